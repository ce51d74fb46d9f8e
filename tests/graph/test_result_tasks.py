"""How many tasks a result costs, and what they hold: arrays are made on demand only."""

import pickle
import tracemalloc
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest
from dask import base
from dask._task_spec import Alias, DataNode, Task
from dask.delayed import delayed
from dask.graph_manipulation import bind, clone, wait_on

import udf_zoo
import udfdask as ud
from counting import CountedChain, CountedNav, counted_block, counts
from making import make
from udf_facts import make_udfs
from udfdask import udfs

N = 64
X = da.from_array(
    np.arange(8 * 8 * 8 * 8, dtype="uint16").reshape((8, 8, 8, 8)), chunks=(1, 1, 8, 8)
)


LOOK_AROUND = ("Neighbor", "ScanDrift", "Record", "Pick", "Auto")
BUILT_INS = {k: u for k, u in make_udfs(Path()).items() if not k.startswith(LOOK_AROUND)}


def tasks_of(*collections):
    """Number of tasks that run, loading fused into the chunk tasks, assembly left out."""
    graph = base.collections_to_expr(collections).optimize().__dask_graph__()
    return sum(isinstance(t, Task) and not isinstance(t, (Alias, DataNode)) for t in graph.values())


@pytest.mark.parametrize("udf", BUILT_INS.values(), ids=BUILT_INS)
def test_tasks_of_the_built_ins(udf):
    result = ud.run_udf(da.zeros((8, 8, 16, 16), chunks=(1, 1, 16, 16), dtype="uint16"), udf)
    tree = 8 + 1  # of 64 chunks
    by_chunk = N if udf.elementwise_results else 1  # calls of get_results
    assert tasks_of(result) <= N + tree + by_chunk
    assert result.explain().n_tasks == tasks_of(result) + 1  # one assembles the result
    for array in result.values():
        assert tasks_of(array) <= 3 * N


@pytest.mark.parametrize(("side", "more"), [(8, 0), (200, N)])
def test_rows_are_kept_without_large_buffers_of_other_udfs(side, more):
    """Chunk tasks may keep 4 MiB of sums in memory until their rows are assembled, not 20."""
    x = da.zeros((8, 8, side, side), chunks=(1, 1, side, side), dtype="uint16")
    results = ud.run_udf(x, [udfs.SumUDF(), udfs.SumSigUDF()])
    assert tasks_of(*results) == N + 9 + more


def test_results_whose_names_differ_in_case():
    def process_frame(self, frame):
        self.results.n[:], self.results.N[:] = 1, 2

    result = ud.run_udf(X, make({n: {"kind": "nav"} for n in "nN"}, process_frame=process_frame)())
    small, large = dask.compute(result["n"], result["N"])
    assert (small == 1).all()
    assert (large == 2).all()


@pytest.mark.parametrize("roi", [None, np.arange(64).reshape((8, 8)) % 9 == 0])
def test_explain_counts_what_runs(roi):
    result = ud.run_udf(X, udfs.SumSigUDF(), roi=roi)
    chunks = N if roi is None else np.count_nonzero(roi)
    assert result.explain().n_chunks == chunks == tasks_of(result)


@pytest.mark.parametrize("roi", [None, (3, 3), np.zeros((8, 8), dtype=bool)], ids=str)
@pytest.mark.parametrize("chunks", [(3, 5, 8, 8), (8, 8, 8, 8), (2, 3, 4, 8)])
@pytest.mark.parametrize("cls", [udfs.CoMUDF, udfs.SumSigUDF, udfs.NoOpUDF])
def test_whole_results_equal_their_arrays(cls, chunks, roi):
    result, beside = ud.run_udf(X.rechunk(chunks), [cls(), udfs.SumUDF()], roi=roi)
    done = result.compute(scheduler="synchronous")
    arrays, masks = dask.compute(
        dict(result), {k: result.valid_mask[k] for k in result}, scheduler="synchronous"
    )
    assert list(done) == list(arrays) == list(result)
    for name, array in arrays.items():
        np.testing.assert_array_equal(done[name], array)
        assert done[name].dtype == array.dtype == result[name].dtype
        np.testing.assert_array_equal(done.valid_mask[name], masks[name])
    assert beside.compute()["intensity"].shape == (8, 8)


@pytest.mark.parametrize("chosen", [slice(None), slice(1, None)], ids=["all", "roi"])
def test_a_whole_result_takes_twice_its_memory(chosen):
    """Its rows in the order of the chunks, and in their places in the scan; no third copy."""
    roi = np.zeros((20, 10), dtype=bool)
    roi[:, chosen] = True
    x = da.ones((20, 10, 2, 2), chunks=(1, 10, 2, 2))
    result = ud.run_udf(x, Spectra(), roi=roi)
    result.compute(scheduler="synchronous")  # loads modules
    tracemalloc.start()
    try:
        done = result.compute(scheduler="synchronous")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2.5 * done["spectra"].nbytes


class Spectra(ud.UDF):
    """80 kB for each frame."""

    def get_result_buffers(self):
        return {"spectra": self.buffer(kind="nav", dtype="float64", extra_shape=(10_000,))}

    def process_frame(self, frame):
        self.results.spectra[:] = frame.sum()


def test_what_is_computed_is_nobody_elses():
    """Results of results in memory are copies, those that share a buffer too."""
    kept = ud.run_udf(X, udfs.CoMUDF()).persist(scheduler="synchronous")
    first = kept.compute(scheduler="synchronous")
    before = {name: array.copy() for name, array in first.items()}
    for array in first.values():
        array[...] = 7
    again = kept.compute(scheduler="synchronous")
    for name, array in again.items():
        np.testing.assert_array_equal(array, before[name])
        assert not any(np.shares_memory(array, again[k]) for k in again if k != name)


def check_loaded_once(folder, route):
    data = np.arange(6 * 5 * 3 * 4, dtype="int64").reshape((6, 5, 3, 4))
    array = da.from_array(data - 1, chunks=(2, 3, 3, 4)).map_blocks(
        counted_block, folder=folder, dtype="int64", meta=np.empty(0, "int64")
    )
    a, b = ud.run_udf(array, [CountedChain(folder), CountedNav(folder)])
    route(a, b)
    found = counts(folder)
    found.pop("results", None)
    assert set(found.values()) == {1}, found
    assert sum(name.startswith("load-") for name in found) == 6


ROUTES = {
    "with its array": lambda a, b: dask.compute(a, b, a["sums"]),
    "optimized with its array": lambda a, b: dask.compute(*dask.optimize(b, b["sums"], a["sums"])),
    "an array of an optimized one": lambda a, b: dask.compute(
        [(r["sums"], r.valid_mask["sums"]) for r in dask.optimize(a, b)]
    ),
    "a kept one, kept again": lambda a, b: dask.persist(*dask.persist(a, b))[1].compute(),
    "pickled": lambda a, b: dask.compute(*pickle.loads(pickle.dumps((a, b)))),
}


@pytest.mark.filterwarnings("ignore::udfdask.UDFWarning")
@pytest.mark.parametrize("route", ROUTES.values(), ids=ROUTES)
def test_one_pass(route, tmp_path):
    folder = str(tmp_path)
    with dask.config.set(scheduler="threads", num_workers=3):
        check_loaded_once(folder, route)


@pytest.mark.filterwarnings("ignore::udfdask.UDFWarning")
def test_on_a_cluster_one_pass(client, tmp_path):
    def route(a, b):
        done, sums = client.gather(client.compute([a, b["sums"]]))
        np.testing.assert_array_equal(done["sums"], sums)

    check_loaded_once(str(tmp_path), route)


class Scaled(ud.UDF):
    """A parameter of any kind: large, lazy, or aux data."""

    def __init__(self, factor):
        super().__init__(factor=factor)

    def get_result_buffers(self):
        return {"scaled": self.buffer("nav", dtype="float64")}

    def process_tile(self, tile):
        self.results.scaled += tile.sum(axis=(1, 2)) * np.max(self.params.factor)


IN_MEMORY = da.from_array(np.arange(480).reshape(4, 5, 4, 6), chunks=(2, 2, 4, 6))
ONES = da.ones((4, 5, 4, 6), chunks=(2, 2, 2, 6), dtype="int64")
COPIED = {
    "data in memory": (IN_MEMORY, udf_zoo.Chain(), {}),
    "all signal chunks": (ONES, udf_zoo.PartitionTree(), {}),
    "each signal chunk": (ONES, udf_zoo.NavSums(), {}),
    "large recipe": (ONES, Scaled(np.ones(20_000)), {}),
    "lazy parameter": (ONES, Scaled(da.full(4, 3.0, chunks=2)), {}),
    "lazy aux data": (
        ONES,
        Scaled(ud.UDF.aux_data(da.full((4, 5), 3, chunks=2), "nav", dtype="int64")),
        {},
    ),
    "small chunks joined": (ONES, udf_zoo.Chain(), {"merge_small": "1 KiB"}),
}


@pytest.mark.parametrize("copy", ["clone", "bind", "wait_on"])
def test_copies_of_all_kinds_of_runs(copy):
    """Layers of tasks that are listed one by one read copies of their inputs too."""
    started = []
    for what, (array, udf, options) in COPIED.items():
        result = ud.run_udf(array, udf, **options)
        name = next(iter(result))
        given = [result, result[name], result.raw[name]]
        if copy != "bind":
            copies = [(clone if copy == "clone" else wait_on)(each) for each in given]
        else:
            first = delayed(started.append)(what)
            copies = [bind(each, first) for each in given]
        for one, other in zip(given, copies, strict=True):
            keys = set(one.__dask_graph__().to_dict())
            assert copy == "wait_on" or keys.isdisjoint(other.__dask_graph__().to_dict()), what
        done, *arrays = dask.compute(*copies, scheduler="synchronous")
        assert started == ([what] if copy == "bind" else []), what
        started.clear()
        wanted, *wanted_arrays = dask.compute(*given, scheduler="synchronous")
        np.testing.assert_array_equal(done[name], wanted[name])
        for found, expected in zip(arrays, wanted_arrays, strict=True):
            np.testing.assert_array_equal(found, expected)


def test_names_are_the_same_in_each_way():
    one, other = (ud.run_udf(X, udfs.CoMUDF()) for _ in range(2))
    assert one.__dask_keys__() == other.__dask_keys__()
    assert dask.tokenize.tokenize(one) == dask.tokenize.tokenize(other)
    kept = one.persist(scheduler="synchronous")
    for name in one:
        assert one[name].name == other[name].name == kept[name].name
        assert one[name] is one[name]


def test_no_task_reads_from_each_of_many_chunks():
    x = da.ones((400, 8, 8), chunks=(1, 8, 8), dtype="uint16")
    results = ud.run_udf(x, [udfs.SumUDF(), udfs.SumSigUDF(), udfs.CoMUDF()])
    merges, gathers = 50 + 7 + 1, 400 // 20
    assert tasks_of(*results) == 400 + merges + 2 * gathers + 1
    optimized = base.collections_to_expr(results).optimize().__dask_graph__()
    assert max(len(task.dependencies) for task in optimized.values()) == 20
    assert [len(result.__dask_keys__()) for result in results] == [1, 20, 1]
    _, sums, _ = ud.persist(*results, scheduler="synchronous")
    np.testing.assert_array_equal(sums["intensity"].compute(), np.full(400, 64))
    assert sums["intensity"].chunks == x.chunks[:1]
    again = ud.persist(sums, scheduler="synchronous")[0].compute(scheduler="synchronous")
    np.testing.assert_array_equal(again["intensity"], np.full(400, 64))
