"""The arithmetic of predicted memory: laws that hold for any run."""

import gc
import pickle
import weakref

import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import udfdask as ud
from making import make
from udfdask.explanation.loading import loading_memory
from udfdask.plan.plan import make_plan
from udfdask.udfs import CoMUDF, StdDevUDF, SumSigUDF, SumUDF

UDFS = {"sum": SumUDF, "sumsig": SumSigUDF, "stddev": StdDevUDF, "com": CoMUDF}


def data(rows, n, dtype="uint16"):
    return da.zeros((rows * n, 8, 32, 32), chunks=(rows, 8, 32, 32), dtype=dtype)


def memory_of(udfs, rows=2, n=6, dtype="uint16", **options):
    return ud.explain(data(rows, n, dtype), udfs, **options).memory


names = st.lists(st.sampled_from(sorted(UDFS)), min_size=1, max_size=3)


@given(names, st.integers(1, 4), st.integers(1, 20), st.sampled_from([2, 3, 8, False]))
def test_memory_is_the_sum_of_its_parts_and_grows_with_threads(some, rows, n, split_every):
    predicted = memory_of([UDFS[u]() for u in some], rows, n, split_every=split_every)
    before = 0
    for threads in range(1, n + 3):
        total = predicted.total(threads)
        assert total == sum(predicted.parts(threads).values()) >= before
        before = total
        # at least the blocks that the threads hold, and the final arrays
        assert total >= min(threads, n) * rows * 8 * 32 * 32 * 2
    assert before == predicted.total(n)  # no more threads than tasks


@given(names, st.integers(1, 6))
def test_another_udf_never_takes_less(some, n):
    one = memory_of([UDFS[u]() for u in some], n=n).total(2)
    more = memory_of([*(UDFS[u]() for u in some), SumSigUDF()], n=n)
    assert more.total(2) >= one


@given(st.integers(2, 40), st.integers(2, 8))
def test_partial_results_that_wait_in_a_tree(n, fan_in):
    """As many as wait if chunks are processed depth first, counted one by one."""

    def merge(self, dest, src):
        dest.v[:] += src.v

    udf = make({"v": {"kind": "sig"}}, process_tile=lambda self, tile: None, merge=merge)()
    recipe = make_plan(data(1, n), [udf], split_every=fan_in).recipe
    groups = [[len(m.sources) for m in level] for level in recipe.udfs[0].merge.levels()]
    waiting, most = [0] * (len(groups) + 1), 0
    for _ in range(n):
        waiting[0] += 1
        most = max(most, sum(waiting))
        for level, sizes in enumerate(groups):
            if sizes and waiting[level] == sizes[0]:
                sizes.pop(0)
                waiting[level] = 0
                waiting[level + 1] += 1
    assert waiting == [0] * len(groups) + [1]
    predicted = (
        memory_of([udf], 1, n, split_every=fan_in).waiting // (32 * 32 * 4) - 2
    )  # of the merge itself
    assert most <= predicted <= n + len(groups)
    if n in (fan_in, fan_in**2, fan_in**3):
        assert predicted == most


def test_nav_results_exist_twice_at_the_end():
    udf = make(
        {"v": {"kind": "nav", "dtype": "float64", "extra_shape": (1000,)}},
        process_frame=lambda s, f: None,
    )()
    assert memory_of([udf], n=50).results == 2 * 100 * 8 * 8000
    roi = np.zeros((100, 8), bool)
    roi[:, 0] = True  # its rows, and the full result
    assert memory_of([udf], n=50, roi=roi).results == (100 + 100 * 8) * 8000


def no_value(block_info=None):
    raise AssertionError("a block is loaded")


def unloaded(n=4):
    """Blocks of (4, 8) frames of 16 x 16 uint16 that must not be loaded."""
    chunks = ((4,) * n, (8,), (16,), (16,))
    return da.map_blocks(no_value, chunks=chunks, dtype="u2", meta=np.empty((0,) * 4, "u2"))


@pytest.mark.parametrize(
    ("change", "copies", "shared"),
    [
        (lambda x: x, 0, 0),
        (lambda x: x.astype("float32"), 1, 0),  # in blocks of uint16
        (lambda x: x.astype("float32") + 1, 2, 0),
        (lambda x: x[:, 1:7], 1, 0),
        (lambda x: x.rechunk((2, -1, -1, -1)), None, 2),
        (lambda x: x.rechunk((-1, 2, -1, -1)), None, 8),
        (lambda x: x.rechunk((8, -1, -1, -1)), None, 2),
    ],
)
def test_loading(change, copies, shared):
    size = 4 * 8 * 16 * 16 * 2
    x = change(unloaded())
    loading = loading_memory(x)
    assert loading[1] == shared * size
    assert copies is None or loading[0] == copies * size
    parts = ud.explain(x, SumUDF()).memory.parts(2)  # copies for each thread, shared once
    assert (parts["copies"] if copies else 0) == 2 * loading[0] or copies is None


def test_data_in_memory():
    x = da.from_array(np.ones((8, 8, 4, 4)), chunks=(2, 8, 4, 4))
    assert ud.explain(x, SumUDF()).memory.data == 0
    assert ud.explain(x.map_blocks(np.negative), SumUDF()).memory.data == 2 * 8 * 16 * 8


def test_a_lazy_result_explains_itself_and_others_keep_nothing():
    x = da.from_array(np.ones((4, 4, 8, 8)), chunks=2).map_blocks(np.copy)
    graph = weakref.ref(x.dask)
    lazy = ud.run_udf(x, SumUDF())
    assert str(lazy.explain()) == str(ud.explain(x, SumUDF()))
    done = lazy.compute(scheduler="synchronous")
    for other in (done, lazy.persist(), pickle.loads(pickle.dumps(lazy))):
        with pytest.raises(ud.UDFError, match="call it on the lazy result"):
            other.explain()
    del x, lazy, other
    gc.collect()
    assert graph() is None


@pytest.mark.parametrize("dtype", ["uint16", "float32"])
def test_converted_partitions_are_copies(dtype):
    udf = make(
        {"v": {"kind": "nav"}},
        process_partition=lambda self, part: None,
        get_preferred_input_dtype=lambda self: np.float32,
    )()
    copies = memory_of([udf], dtype=dtype).copies
    assert copies == (2 * 8 * 32 * 32 * 4 if dtype == "uint16" else 0)
