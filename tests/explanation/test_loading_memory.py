"""What loading a chunk needs, from layers alone; and nothing of it before somebody asks."""

import gc
import pickle
import weakref

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from udfdask.explanation import describe as explanation
from udfdask.explanation import loading_memory as module
from udfdask.explanation.memory import LoadingMemory
from udfdask.run import run_udf as running
from udfdask.udfs import SumSigUDF, SumUDF

BLOCK = 4 * 8 * 16 * 16 * 2


def no_value(block_info=None):
    raise AssertionError("a block is loaded")


def data(n=4):
    """Blocks of (4, 8) frames of 16 x 16 uint16 that must not be loaded."""
    return da.map_blocks(
        no_value,
        chunks=((4,) * n, (8,), (16,), (16,)),
        dtype="uint16",
        meta=np.empty((0,) * 4, "uint16"),
    )


def found(array, **options):
    plan, graph = running.plan_run(array, SumUDF(), sig_dims=2, roi=None, **options)
    return running._loading(graph, plan)


CASES = {
    "generated": (lambda x: x, LoadingMemory()),
    # float32 beside uint16, then float32 beside float32
    "converted": (lambda x: x.astype("float32"), LoadingMemory(extra=BLOCK)),
    "computed": (lambda x: x.astype("float32") + 1, LoadingMemory(extra=2 * BLOCK)),
    "two arrays": (lambda x: x + (x * 2), LoadingMemory(extra=2 * BLOCK)),
    "a large slice is a view": (lambda x: x[:, 1:7], LoadingMemory(held=BLOCK // 4)),
    "a small slice is a copy": (lambda x: x[:, :2], LoadingMemory(extra=BLOCK)),
    "cut along the scan": (
        lambda x: x.rechunk((2, -1, -1, -1)),
        # one block waits for its second half, and the halves are copies
        LoadingMemory(waiting=2 * BLOCK),
    ),
    "cut across the scan": (
        lambda x: x.rechunk((-1, 2, -1, -1)),
        LoadingMemory(waiting=4 * 2 * BLOCK),
    ),
    "joined": (lambda x: x.rechunk((8, -1, -1, -1)), LoadingMemory(extra=2 * BLOCK)),
}


@pytest.mark.parametrize("name", CASES)
def test_loading(name):
    change, expected = CASES[name]
    assert found(change(data())) == expected


def test_many_steps_that_share_what_they_read():
    """Each step has two inputs, which are computed from the same one."""
    x = data()
    for _ in range(400):
        x = x + x * 2
    assert found(x) == LoadingMemory(extra=2 * BLOCK)
    y = data()
    for _ in range(40):
        y = (y + y * 2)[:, ::-1]
    assert found(y).extra >= 2 * BLOCK


def test_other_ways_to_make_an_array():
    """Delayed values, stacks and joins: whatever dask makes has a prediction."""
    import dask

    block = dask.delayed(no_value)()
    made = da.from_delayed(block, (4, 8, 16, 16), "uint16")
    for x in (made, da.concatenate([made, data()]), da.stack([made[0], data()[0]]), data()[::2]):
        memory = ud.explain(x, SumUDF()).memory
        assert memory.per_task >= min(x.chunks[0]) * np.prod(x.shape[1:]) * 2 // len(x.chunks[1])
    empty = data()[:0]
    assert ud.explain(empty, SumUDF()).memory.data == 0


def test_data_in_memory():
    x = da.from_array(np.ones((8, 8, 4, 4)), chunks=(2, 8, 4, 4))
    assert found(x) == LoadingMemory(in_memory=True)
    assert ud.explain(x, SumUDF()).memory.data == 0
    assert ud.explain(x.map_blocks(np.negative), SumUDF()).memory.data == 2 * 8 * 16 * 8


class Stored:
    """An array in chunks that are decoded."""

    shape, dtype, ndim, chunks = (8, 8, 16, 16), np.dtype("uint16"), 4, (2, 8, 16, 16)

    def __getitem__(self, index):
        raise AssertionError("a block is loaded")


def test_stored_chunks_are_decoded():
    """The stored chunk, the decoded one and the block; a slice of a file is all that is read."""
    x = da.from_array(Stored(), chunks=(4, 8, 16, 16), meta=np.empty((0,) * 4, "uint16"))
    assert found(x) == LoadingMemory(extra=BLOCK)
    assert found(x[:, 1:7]).held == 0


@pytest.mark.parametrize("name", ["scan.h5", "scan.zarr", "scan.npy"])
def test_files(name, tmp_path):
    """A file that is mapped needs nothing; the others need the bytes of an encoded chunk."""
    from udfdask.io import open_file

    values = np.ones((8, 8, 16, 16), "uint16")
    path = tmp_path / name
    if name == "scan.npy":
        np.save(path, values)
    elif name == "scan.h5":
        h5py = pytest.importorskip("h5py", reason="h5py is an extra")
        with h5py.File(path, "w") as file:
            file.create_dataset("d", data=values, chunks=(2, 8, 16, 16), compression=1)
    else:
        zarr = pytest.importorskip("zarr", minversion="3", reason="zarr 3 is an extra")
        zarr.create_array(path, data=values, chunks=(2, 8, 16, 16))
    x = open_file(path, sig_dims=2, chunks=(4, 8, 16, 16)).array
    assert found(x) == LoadingMemory(extra=0 if name == "scan.npy" else BLOCK // 2)


def test_joined_small_chunks():
    assert found(data(8), merge_small=4 * BLOCK) == LoadingMemory()
    memory = ud.explain(data(8), SumUDF(), merge_small=4 * BLOCK).memory
    assert memory.data == memory.loading == 4 * BLOCK


def test_a_graph_is_built_without_it(monkeypatch):
    """No plan without a limit, and no graph, looks for it; `explain` does, once."""
    calls = []

    def note(array, plan):
        calls.append(plan)
        return LoadingMemory()

    monkeypatch.setattr(running, "_loading", note)
    results = ud.run_udf(data(), [SumUDF(), SumSigUDF()])
    assert not calls
    assert results[0].explain() is results[1].explain()
    assert len(calls) == 1
    monkeypatch.setattr(explanation, "describe", no_value)
    ud.run_udf(data(), SumUDF())["intensity"].dask  # noqa: B018


def test_a_computed_result_explains_itself_and_keeps_nothing():
    values = np.ones((4, 4, 8, 8))
    x = da.from_array(values, chunks=2).map_blocks(np.copy)
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


def test_every_block_of_a_chunk_has_a_size():
    """A layer of blocks without shape or dtype would be left out of the sum."""
    x = ((data().astype("float32") * 2)[:, 1:].rechunk((2, 2, -1, -1))).map_blocks(np.sqrt)
    for name, layer in x.dask.layers.items():
        assert module._block_bytes(layer) > 0, name
