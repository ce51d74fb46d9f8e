"""`merge_small`: one task for several small chunks, with the results of a rechunk."""

import itertools
import math
import threading

import dask
import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import udf_zoo
import udfdask as ud
from counting import CountedData
from suites import examples
from udfdask import on_workers
from udfdask.geometry.chunk_grid import Grid
from udfdask.geometry.good_chunks import joined_chunks
from udfdask.graph.small_chunks import join_small_chunks
from udfdask.testing.strategies import chunkings
from udfdask.udfs import NeighborAverageUDF, SumSigUDF, SumUDF

UDFS = [
    udf_zoo.NavSums,
    udf_zoo.Chain,
    udf_zoo.TileTree,
    udf_zoo.MergeAllNav,
    udf_zoo.Coordinates,
    udf_zoo.Floats,
]
"""All ways to merge, with coordinates, and with sums of floats whose last bits depend on chunks."""


class Loads:
    """Makes lazy arrays and notes which of their blocks were loaded."""

    def __init__(self):
        self.places = []
        self._lock = threading.Lock()

    def array(self, values, chunks):
        """Return values as an array whose blocks are loaded by tasks."""

        def load(block_info=None):
            where = block_info[None]["array-location"]
            with self._lock:
                self.places.append(tuple(start for start, _ in where))
            return values[tuple(slice(*ends) for ends in where)]

        return da.map_blocks(load, chunks=chunks, meta=values[(slice(0, 0),) * values.ndim])


@st.composite
def runs(draw):
    """Values, chunks, the least size of a joined chunk, and a region of interest."""
    shape = draw(st.tuples(*([st.integers(1, 9)] * draw(st.integers(3, 4)))))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    values = rng.normal(size=shape).astype("float32")
    roi = (
        rng.random(shape[:-2]) < draw(st.sampled_from([0.1, 0.6])) if draw(st.booleans()) else None
    )
    return values, draw(chunkings(shape)), draw(st.integers(1, 2 * values.nbytes)), roi


@given(runs())
@settings(max_examples=examples(300))
def test_joined_chunks_begin_and_end_where_small_ones_do(run):
    values, chunks, least, _ = run
    joined = joined_chunks(chunks, values.itemsize, least)
    for small, large in zip(chunks, joined, strict=True):
        assert set(np.cumsum(large)) <= set(np.cumsum(small))
        assert sum(large) == sum(small)
    sizes = [math.prod(each) * values.itemsize for each in itertools.product(*joined)]
    is_whole = all(len(axis) == 1 for axis in joined)
    # where other axes are cut unevenly, some chunks stay below the size that the largest have
    assert max(sizes) >= least or is_whole
    # later axes are whole where an earlier one is joined
    changed = [k for k, axis in enumerate(joined) if axis != tuple(chunks[k])]
    assert all(len(axis) == 1 for axis in joined[min(changed, default=len(joined)) + 1 :])


@pytest.mark.filterwarnings("ignore:a task takes .* signal chunks")
@given(runs())
@settings(max_examples=examples(150))
def test_a_run_gives_what_it_gives_after_a_rechunk_and_loads_once(run):
    values, chunks, least, roi = run
    loads = Loads()
    x = loads.array(values, chunks)
    udfs = [cls() for cls in UDFS]
    joined = joined_chunks(chunks, values.itemsize, least)
    expected = ud.compute(*ud.run_udf(da.from_array(values, chunks=joined), udfs, roi=roi))
    found = ud.compute(*ud.run_udf(x, udfs, roi=roi, merge_small=least), scheduler="synchronous")
    for one, other in zip(found, expected, strict=True):
        for name in other:
            np.testing.assert_array_equal(one[name], other[name])
    starts = itertools.product(*(itertools.accumulate([0, *axis[:-1]]) for axis in chunks))
    sizes = itertools.product(*chunks)
    selected = np.ones(values.shape[:-2], bool) if roi is None else roi
    needed = {
        start
        for start, size in zip(starts, sizes, strict=True)
        if selected[tuple(slice(a, a + n) for a, n in zip(start, size, strict=True))[:-2]].any()
    }
    assert sorted(loads.places) == sorted(needed)


VALUES = np.random.default_rng(0).integers(0, 99, (8, 6, 4, 4)).astype("uint16")

SOURCES = {
    "in memory": lambda: da.from_array(VALUES, chunks=(1, 2, 4, 4)),
    "one object for all": lambda: da.from_array(VALUES, chunks=(1, 2, 4, 4), inline_array=False),
    "arithmetic": lambda: da.from_array(VALUES, chunks=(1, 2, 4, 4)) + 1 - 1,
    "cut again": lambda: da.from_array(VALUES, chunks=(4, 6, 4, 4)).rechunk((1, 2, 4, 4)),
    "cut across": lambda: da.from_array(VALUES, chunks=(3, 4, 4, 4)).rechunk((1, 2, 4, 4)),
    "slice": lambda: da.from_array(np.repeat(VALUES, 2, 0), chunks=(1, 2, 4, 4))[::2],
    "stack": lambda: da.stack([da.from_delayed(dask.delayed(v), (6, 4, 4), "u2") for v in VALUES]),
    "twice the same": lambda: da.from_array(VALUES, chunks=(1, 2, 4, 4))[[0, 1, 2, 3, 4, 5, 6, 7]],
}
"""Arrays whose small chunks come from tasks of very different graphs."""


@pytest.mark.parametrize("name", SOURCES)
def test_any_source(name):
    x = SOURCES[name]()
    for least in (300, "1 MiB"):
        found = ud.run_udf(x, [SumUDF(), SumSigUDF()], merge_small=least)
        total, sums = ud.compute(*found)
        np.testing.assert_array_equal(total["intensity"], VALUES.sum((0, 1)))
        np.testing.assert_array_equal(sums["intensity"], VALUES.sum((2, 3)))
    (optimized,) = dask.optimize(ud.run_udf(x, SumUDF(), merge_small="1 MiB"))
    assert len(dict(optimized.__dask_graph__())) <= 6


@pytest.mark.parametrize("kind", ["sparse", "scipy"])
def test_sparse_chunks(kind):
    pytest.importorskip("sparse", reason="sparse is an extra")
    import scipy.sparse
    import sparse

    make = sparse.COO.from_numpy if kind == "sparse" else scipy.sparse.csr_array
    values = VALUES.reshape(8, -1) % 3 == 0
    x = da.from_array(values, chunks=(1, -1)).map_blocks(make, meta=make(values[:0]))
    found = ud.run_udf(
        x, [SumUDF(), SumSigUDF()], sig_dims=1, roi=np.arange(8) > 2, merge_small=300
    )
    total, sums = ud.compute(*found)
    np.testing.assert_array_equal(total["intensity"], values[3:].sum(0))
    np.testing.assert_array_equal(sums["intensity"][3:], values[3:].sum(1))


@pytest.mark.parametrize("least", [64, 1000])
@pytest.mark.parametrize("boundary", ["mask", "periodic"])
def test_neighbors_outside_of_a_region_are_loaded_and_no_others(least, boundary):
    loads = Loads()
    x = loads.array(np.ones((9, 1, 2, 2)), ((1,) * 9, (1,), (2,), (2,)))
    roi = np.zeros((9, 1), bool)
    roi[0] = True
    udf = NeighborAverageUDF("rectangular", normalize=False, boundary=boundary)
    result = ud.run_udf(x, [udf, SumUDF()], roi=roi, merge_small=least)[0]
    *_, last = ud.run_udf_iter(x, [SumUDF(), udf], roi=roi, merge_small=least)
    loads.places.clear()
    sums = result.compute(scheduler="synchronous")["intensity"]
    expected, chunks = (2, [0, 1]) if boundary == "mask" else (9, [0, 1, 8])
    assert sums[0, 0, 0, 0] == last.buffers[1]["intensity"][0, 0, 0, 0] == expected
    assert [place[0] for place in sorted(loads.places)] == chunks
    assert result.explain().bytes_read == len(chunks) * 32


def test_explain_says_when_it_pays():
    x = da.zeros((128, 4, 64, 64), chunks=(1, 4, 64, 64), dtype="uint16")
    assert "merge_small='64 MiB'" in str(ud.explain(x, SumUDF()))
    joined = ud.explain(x, SumUDF(), merge_small="1 MiB")
    assert joined.n_chunks == 4
    parts = joined.memory.parts(1)
    assert parts["data"] + parts["copies"] >= 2 << 20  # the small blocks and their copy
    assert "merge_small='64" not in str(joined)


def test_two_runs_over_slices_of_one_loaded_block(folder, options):
    values = np.random.default_rng(0).integers(0, 99, (4, 4, 5))
    source = da.from_array(CountedData(values, folder), chunks=(2, 4, 5), meta=values[:0])
    halves = source.rechunk((2, 2, 5))
    array = da.concatenate([halves[:1], halves[1:]])
    results = (ud.run_udf(array, udf, merge_small="1 kB") for udf in (SumUDF(), SumSigUDF()))
    total, each = dask.compute(*(result["intensity"] for result in results), **options)
    np.testing.assert_array_equal(total, values.sum(axis=0))
    np.testing.assert_array_equal(each, values.sum(axis=(1, 2)))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (True, "number of bytes or a text such as '64 MiB', not True"),
        ("much", "merge_small='much' is not a size"),
        (0, "merge_small=0 is not a size"),
    ],
)
def test_bad_sizes(value, message):
    with pytest.raises(ud.UDFError, match=message):
        ud.run_udf(da.ones((2, 2, 2, 2)), SumUDF(), merge_small=value)


def test_equal_arrays_get_equal_names():
    def joined(roi=None):
        x = da.from_array(VALUES, chunks=(1, 2, 4, 4))
        grid = Grid.of(((4, 4), (6,)), roi)
        return join_small_chunks(x, ((4, 4), (6,), (4,), (4,)), grid).name

    corner = np.arange(48).reshape(8, 6) < 3
    assert joined() == joined()
    assert joined(corner) == joined(corner) != joined()


def from_blocks(*blocks, dtype):
    """Return an array that announces this dtype, and blocks of the shape of the first, for all."""
    shape = blocks[0].shape
    return da.concatenate([da.from_delayed(dask.delayed(b), shape, dtype) for b in blocks])


def test_blocks_of_another_dtype_or_shape_than_announced():
    part = np.ones((2, 2, 4, 4), "int64")
    for first, second in ((part, part + 0.5), (part + 0.5, part)):
        x = from_blocks(first, second, dtype="float64")
        sums = ud.run_udf(x, SumSigUDF(), merge_small="1 KiB").compute()["intensity"]
        assert sums.sum() == 2.5 * part.size
    for wrong, message in (
        (part * 1j, "dtype float64 was announced, but one of dtype complex128 came"),
        (part[:1], r"shape \(2, 2, 4, 4\) was announced, but one of shape \(1, 2, 4, 4\) came"),
        (part[0], r"shape \(2, 2, 4, 4\) was announced, but one of shape \(2, 4, 4\) came"),
    ):
        x = from_blocks(part, wrong, part, dtype="float64")
        for least in (None, "1 MiB"):
            with pytest.raises(ud.UDFError, match=message):
                ud.run_udf(x, SumUDF(), merge_small=least).compute(scheduler="synchronous")


@pytest.mark.full
def test_blocks_that_a_cluster_has_already(client):
    x = da.from_array(VALUES, chunks=(1, 2, 4, 4))
    (persisted,) = ud.persist(x + 1 - 1, scheduler=client)
    scattered = da.from_delayed(dask.delayed(client.scatter(VALUES)), VALUES.shape, VALUES.dtype)
    copied = dask.delayed(np.copy)(client.scatter(VALUES))
    arrays = [
        persisted,
        persisted + 0,
        scattered.rechunk((1, 2, 4, 4)),
        da.from_delayed(copied, VALUES.shape, VALUES.dtype).rechunk((1, 2, 4, 4)),
    ]
    for least in (300, "1 MiB"):
        for y in arrays:
            total = ud.run_udf(y, SumUDF(), merge_small=least).compute(scheduler=client)
            np.testing.assert_array_equal(total["intensity"], VALUES.sum((0, 1)))
    later = ud.run_udf(persisted, SumUDF(), merge_small=300)
    del persisted, arrays, y  # the result needs the blocks
    np.testing.assert_array_equal(later.compute(scheduler=client)["intensity"], VALUES.sum((0, 1)))


@pytest.mark.full
def test_placements_of_small_chunks_are_followed(client):
    first, second = client.scheduler_info()["workers"]

    def where(block):
        from distributed import get_worker

        return np.full_like(block, get_worker().address == second)

    x = da.from_array(VALUES, chunks=(1, 2, 4, 4)).map_blocks(where, meta=VALUES[:0])
    for halves in (4, 0, 8):
        y = on_workers(x, lambda block, n=halves: second if block[0] >= n else first) + 0
        sums = ud.run_udf(y, SumSigUDF(), merge_small=4 * 6 * 32).compute(scheduler=client)
        np.testing.assert_array_equal(sums["intensity"] > 0, np.arange(8)[:, None] >= [halves] * 6)
    split = on_workers(x, lambda block: (first, second)[block[0] % 2])
    with pytest.raises(ud.UDFError, match="no worker can load all of them"):
        ud.run_udf(split, SumSigUDF(), merge_small="1 MiB").compute(scheduler=client)
