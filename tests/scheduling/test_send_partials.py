"""Partial results and results arrive as they were sent, and without a copy in a pickle."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import udfdask as ud
from making import make, run_python
from udfdask.chunk.partial_result import Partial, send_without_copies

protocol = pytest.importorskip("distributed.protocol", reason="distributed is an extra")
send_without_copies()

dtypes = st.sampled_from(["f8", ">f4", "i2", "?", "c16", "M8[s]", "U3", "i4,f8"])
arrays = dtypes.flatmap(
    lambda dtype: (
        hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0))
        if "," not in dtype
        else hnp.array_shapes(max_dims=2).map(lambda shape: np.zeros(shape, dtype))
    )
)
named = st.dictionaries(st.text(max_size=3), arrays, max_size=3)


def sent(value):
    """Return what another process gets, and how it was sent."""
    header, frames = protocol.serialize(value)
    frames = [bytearray(memoryview(frame).cast("B")) for frame in frames]
    return protocol.deserialize(header, frames), header


def same(one, other):
    assert one.keys() == other.keys()
    for name, array in one.items():
        got = other[name]
        assert type(got) is type(array)
        assert (got.dtype, got.shape) == (array.dtype, array.shape)
        assert got.tobytes() == array.tobytes()
        assert got.flags.writeable == array.flags.writeable


@given(named, named, st.booleans(), st.booleans())
def test_partial_results(buffers, aux, looked, read_only):
    for array in buffers.values():
        array.flags.writeable = not read_only
    got, header = sent(Partial(buffers, 3, 5, aux, looked))
    assert header["serializer"] == "dask"
    assert (got.first, got.stop, got.looked_beyond) == (3, 5, looked)
    same(buffers, got.arrays)
    same(aux, got.aux)


def test_no_array_is_copied():
    """The frames of what is sent are the memory of the arrays."""
    array = np.ones((1000, 1000))
    for value in (Partial({"v": array}, 0, 1, {}), (Partial({"v": array}, 0, 1, {}), None)):
        header, frames = protocol.serialize(value)
        assert any(np.shares_memory(np.frombuffer(f, "u1"), array) for f in frames if len(f) > 64)
        assert len(pickle.dumps(header)) < 2000


def named_udf():
    def merge(self, dest, src):
        dest.s[:] += src.s
        dest.n[:] = src.n

    def process_frame(self, frame):
        self.results.n[:] = frame.sum()
        self.results.s[:] += frame

    def get_results(self):
        return {"n": self.with_mask(self.results.n, self.results.n > 5), "s": self.results.s}

    return make(
        {"n": {"kind": "nav", "dtype": "float64"}, "s": {"kind": "sig", "dtype": "float64"}},
        process_frame=process_frame,
        merge=merge,
        get_results=get_results,
    )()


def test_on_a_cluster(client):
    """The same results to the last bit, writable as those of threads."""
    import dask.array as da

    x = da.random.default_rng(3).random((6, 4, 5, 5), chunks=(2, 2, 5, 5)).persist()
    here = ud.run_udf(x, named_udf()).compute(scheduler="synchronous")
    there = ud.run_udf(x, named_udf()).compute(scheduler=client)
    future = client.compute(ud.run_udf(x, named_udf())).result()
    for name in here:
        for other in (there, future):
            assert other[name].tobytes() == here[name].tobytes()
            assert other[name].flags.writeable == here[name].flags.writeable
            assert other.valid_mask[name].tolist() == here.valid_mask[name].tolist()
    (got, header) = sent(here)
    assert header["serializer"] == "dask"
    assert got["n"].tobytes() == here["n"].tobytes()
    lazy, _ = sent(ud.run_udf(x, named_udf()))
    assert lazy.compute()["n"].tobytes() == here["n"].tobytes()


def test_a_worker_knows_them_before_the_first_one_comes():
    """A new process imports only the module of what it receives."""
    program = (
        "import distributed\n"
        "from udfdask.chunk.partial_result import Finalized, Partial\n"
        "from distributed.protocol import dask_deserialize\n"
        "print([dask_deserialize.dispatch(cls) is not None for cls in (Finalized, Partial)])"
    )
    assert run_python("-c", program).stdout.strip() == "[True, True]"
