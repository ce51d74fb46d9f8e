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
from udfdask.explanation.loading import LoadingMemory, loading_memory
from udfdask.explanation.memory import predict_memory
from udfdask.plan.plan import make_plan
from udfdask.udfs import CoMUDF, StdDevUDF, SumSigUDF, SumUDF

UDFS = {"sum": SumUDF, "sumsig": SumSigUDF, "stddev": StdDevUDF, "com": CoMUDF}


def recipe_of(udfs, rows=2, n=6, split_every=None, dtype="uint16", **options):
    x = da.zeros((rows * n, 8, 32, 32), chunks=(rows, 8, 32, 32), dtype=dtype)
    return make_plan(x, udfs, split_every=split_every, **options).recipe


names = st.lists(st.sampled_from(sorted(UDFS)), min_size=1, max_size=3)


@given(names, st.integers(1, 4), st.integers(1, 20), st.sampled_from([2, 3, 8, False]))
def test_memory_is_the_sum_of_its_parts_and_grows_with_threads(some, rows, n, split_every):
    predicted = predict_memory(recipe_of([UDFS[u]() for u in some], rows, n, split_every))
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
    one = predict_memory(recipe_of([UDFS[u]() for u in some], n=n)).total(2)
    more = predict_memory(recipe_of([*(UDFS[u]() for u in some), SumSigUDF()], n=n))
    assert more.total(2) >= one


@given(st.integers(2, 40), st.integers(2, 8))
def test_partial_results_that_wait_in_a_tree(n, fan_in):
    """As many as wait if chunks are processed depth first, counted one by one."""

    def merge(self, dest, src):
        dest.v[:] += src.v

    udf = make({"v": {"kind": "sig"}}, process_tile=lambda self, tile: None, merge=merge)()
    recipe = recipe_of([udf], 1, n, fan_in)
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
    predicted = predict_memory(recipe).waiting // (32 * 32 * 4) - 2  # of the merge itself
    assert most <= predicted <= n + len(groups)
    if n in (fan_in, fan_in**2, fan_in**3):
        assert predicted == most


def test_nav_results_exist_twice_at_the_end():
    udf = make(
        {"v": {"kind": "nav", "dtype": "float64", "extra_shape": (1000,)}},
        process_frame=lambda s, f: None,
    )()
    assert predict_memory(recipe_of([udf], n=50)).results == 2 * 100 * 8 * 8000


def test_a_region_takes_its_rows_and_the_full_result():
    udf = make(
        {"v": {"kind": "nav", "dtype": "float64", "extra_shape": (1000,)}},
        process_frame=lambda s, f: None,
    )()
    roi = np.zeros((100, 8), bool)
    roi[:, 0] = True
    memory = predict_memory(recipe_of([udf], n=50, roi=roi))
    assert memory.results == (100 + 100 * 8) * 8000


def test_loading_counts_once_per_thread_and_shared_blocks_once():
    recipe = recipe_of([SumUDF()])
    plain = predict_memory(recipe)
    loading = predict_memory(recipe, loading=LoadingMemory(copies=1 << 30, shared=1 << 20))
    assert loading.parts(2)["copies"] == 2 << 30
    assert loading.parts(2)["data"] == plain.parts(2)["data"] + (1 << 20)
    assert predict_memory(recipe, loading=LoadingMemory(in_memory=True)).data == 0


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
    found = loading_memory(change(unloaded()))
    assert found.shared == shared * size
    assert copies is None or found.copies == copies * size
    assert not found.in_memory


def test_data_in_memory():
    x = da.from_array(np.ones((8, 8, 4, 4)), chunks=(2, 8, 4, 4))
    assert loading_memory(x).in_memory
    assert ud.explain(x, SumUDF()).memory.data == 0
    assert ud.explain(x.map_blocks(np.negative), SumUDF()).memory.data == 2 * 8 * 16 * 8


def test_a_computed_result_explains_itself_and_keeps_nothing():
    x = da.from_array(np.ones((4, 4, 8, 8)), chunks=2).map_blocks(np.copy)
    graph = weakref.ref(x.dask)
    lazy = ud.run_udf(x, SumUDF())
    text = str(lazy.explain())
    done = ud.run_udf(x, SumUDF()).compute(scheduler="synchronous")
    sent = pickle.loads(pickle.dumps(ud.run_udf(x, SumUDF())))
    assert str(done.explain()) == str(sent.explain()) == text
    del x, lazy, sent
    gc.collect()
    assert graph() is None
    assert str(pickle.loads(pickle.dumps(done)).explain()) == text


@pytest.mark.parametrize("dtype", ["uint16", "float32"])
def test_converted_partitions_are_copies(dtype):
    udf = make(
        {"v": {"kind": "nav"}},
        process_partition=lambda self, part: None,
        get_preferred_input_dtype=lambda self: np.float32,
    )()
    copies = predict_memory(recipe_of([udf], dtype=dtype)).copies
    assert copies == (2 * 8 * 32 * 32 * 4 if dtype == "uint16" else 0)


def test_explain_prints_it():
    x = da.zeros((8, 8, 64, 64), chunks=(2, 8, 64, 64), dtype="uint16")
    plan = ud.explain(x, SumUDF())
    assert "\nmemory    " in str(plan)
    assert " in a process with " in str(plan)
    assert plan.bytes_per_task == plan.memory.per_task >= 2 * 8 * 64 * 64 * 2
