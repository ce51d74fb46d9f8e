"""The stand-in for CuPy is as strict as CuPy."""

import pickle

import dask
import dask.array as da
import numpy as np
import pytest
from dask.sizeof import sizeof
from hypothesis import given
from hypothesis import strategies as st

from stand_in import numpy_standing_in_for_cupy

HOST = np.arange(24, dtype="float32").reshape(2, 3, 4)


@pytest.fixture
def cupy():
    with numpy_standing_in_for_cupy() as module:
        yield module


MIXED = {
    "asarray": lambda cupy, x: np.asarray(x),
    "float array": lambda cupy, x: np.zeros(x.shape).__setitem__(..., x),
    "operator": lambda cupy, x: x + HOST,
    "operator, host first": lambda cupy, x: HOST * x,
    "in place": lambda cupy, x: x.__iadd__(HOST),
    "into the host": lambda cupy, x: HOST.copy().__iadd__(x),
    "no axes": lambda cupy, x: x + np.array(3.0),
    "function": lambda cupy, x: np.concatenate([x, HOST]),
    "function of the module": lambda cupy, x: cupy.sum(HOST),
    "einsum": lambda cupy, x: cupy.einsum("abc,abc->a", x, HOST),
    "out": lambda cupy, x: np.add(x, 1, out=HOST.copy()),
    "assignment": lambda cupy, x: x.__setitem__(..., HOST),
    "assignment of a part": lambda cupy, x: x.__setitem__(0, HOST[0]),
    "ufunc method": lambda cupy, x: np.add.reduce(x),
    "set": lambda cupy, x: x.set(HOST.astype("float64")),
    "where": lambda cupy, x: x.sum(where=x > 3),
    "initial": lambda cupy, x: np.max(x, initial=3),
}


@pytest.mark.parametrize("case", MIXED)
def test_what_cupy_refuses_is_refused(cupy, case):
    with pytest.raises(TypeError):
        MIXED[case](cupy, cupy.asarray(HOST))


@pytest.mark.parametrize("name", ["errstate", "nanquantile", "datetime64", "nditer"])
def test_what_cupy_does_not_have_is_not_there(cupy, name):
    with pytest.raises(AttributeError, match=name):
        getattr(cupy, name)


@pytest.mark.parametrize("dtype", ["U3", "O", "datetime64[s]", "longdouble", "S2"])
def test_dtypes_that_a_device_does_not_know(cupy, dtype):
    with pytest.raises(ValueError, match="Unsupported dtype"):
        cupy.zeros((2,), dtype=dtype)


SAME = {
    "sum": lambda xp, x: xp.sum(x, axis=1, dtype="float64"),
    "a number": lambda xp, x: x.sum(),
    "operators": lambda xp, x: (x + 1) * 2 / (x + 3) - x**2,
    "numpy's own function": lambda xp, x: np.sqrt(x),
    "numpy's own reduction": lambda xp, x: np.sum(x, axis=(1, 2)),
    "comparison": lambda xp, x: x > np.float32(3),
    "fancy": lambda xp, x: x[:, [0, 2]][..., x[0, 0] > 1],
    "matmul": lambda xp, x: x[0] @ x[1].T,
    "einsum": lambda xp, x: xp.einsum("abc,ac->ab", x, x[:, 0]),
    "fft": lambda xp, x: xp.abs(xp.fft.rfft2(x)),
    "linalg": lambda xp, x: xp.linalg.norm(x, axis=0),
    "where": lambda xp, x: xp.where(x > 3, x, 0),
    "stack": lambda xp, x: xp.stack([x, 2 * x], axis=-1),
    "full_like": lambda xp, x: np.full_like(x, np.nan),
    "several": lambda xp, x: x.nonzero()[1],
    "real": lambda xp, x: (x * (1 + 2j)).imag + x.real,
    "maximum": lambda xp, x: np.maximum(x, 5).max(axis=0),
    "moveaxis": lambda xp, x: xp.moveaxis(x, 0, -1),
    "view": lambda xp, x: x.view("int32"),
}


@pytest.mark.parametrize("case", SAME)
def test_the_same_numbers_as_numpy(cupy, case):
    found, wanted = SAME[case](cupy, cupy.asarray(HOST)), np.asarray(SAME[case](np, HOST))
    assert isinstance(found, cupy.ndarray)
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_array_equal(found.get(), wanted)


def test_assignment_writes_through_views(cupy):
    x = cupy.zeros((3, 4), dtype="int64")
    x[1][:] = cupy.arange(4)
    x[2, 1:3] += 5
    x[x == 3] = -1
    assert x.get().tolist() == [[0, 0, 0, 0], [0, 1, 2, -1], [0, 5, 5, 0]]


def test_transfers_are_counted(cupy):
    x = cupy.asarray(HOST)
    ledger = cupy.ledger
    assert (ledger.to_device, ledger.bytes_to_device) == (1, HOST.nbytes)
    assert ledger.to_host == 0
    assert float(x.sum()) == HOST.sum()
    assert (ledger.to_host, ledger.bytes_to_host) == (1, 4)
    x.get()
    assert cupy.asnumpy(x).flags.writeable
    assert ledger.to_host == 3
    assert x[np.array([0, 1])].shape == HOST.shape  # CuPy sends such an index by itself
    assert ledger.to_device == 2


def test_memory_is_counted_once_and_let_go(cupy):
    x = cupy.zeros((1000,), dtype="float64")
    views = [x[10:], x.reshape(10, 100), x.T]
    assert cupy.ledger.alive == 8000
    y = x + 1
    assert cupy.ledger.alive == 16000
    del x, views
    assert cupy.ledger.alive == 8000
    del y
    assert (cupy.ledger.alive, cupy.ledger.most_alive) == (0, 16000)


@given(numbers=st.lists(st.integers(0, 255), min_size=1, max_size=9))
def test_pinned_memory_is_read_when_the_stream_is_waited_for(numbers):
    with numpy_standing_in_for_cupy() as cupy:
        first = np.array(numbers, dtype="uint8")
        staged = np.frombuffer(cupy.cuda.alloc_pinned_memory(first.size), dtype="uint8")
        early, late = cupy.empty(first.shape, "uint8"), cupy.empty(first.shape, "uint8")
        stream, event = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Event()
        staged[:] = first
        early.set(staged, stream)
        event.record(stream)
        late.set(staged, stream)
        event.synchronize()
        staged[:] = 255 - first  # too early for the second copy, and the device takes this
        with stream:
            np.testing.assert_array_equal(early.get(), first)
            np.testing.assert_array_equal(late.get(), 255 - first)


def test_other_streams_do_not_wait(cupy):
    staged = np.frombuffer(cupy.cuda.alloc_pinned_memory(4), dtype="uint8")
    staged[:] = 7
    x = cupy.zeros(4, "uint8")
    with cupy.cuda.Stream(non_blocking=True) as stream:
        x.set(staged, stream)
    assert x.get().tolist() == [0] * 4
    stream.synchronize()
    assert x.get().tolist() == [7] * 4


def test_it_lives_in_dask_arrays(cupy):
    x = cupy.asarray(np.arange(24.0).reshape(4, 6))
    lazy = da.from_array(x, chunks=(2, 3), asarray=False, name="x")
    assert isinstance(lazy._meta, cupy.ndarray)
    for made in (lazy.sum(axis=0), lazy + 1, lazy.mean(), lazy[1:, [2, 0]], lazy.rechunk(4)):
        assert isinstance(made._meta, cupy.ndarray)
        with dask.config.set(scheduler="synchronous"):
            assert isinstance(made.compute(), cupy.ndarray)
    total = (lazy @ lazy.T).sum().compute(scheduler="synchronous")
    host = x.get()
    assert float(total) == (host @ host.T).sum()
    assert sizeof(x) == 24 * 8


def test_it_is_pickled_by_its_values(cupy):
    again = pickle.loads(pickle.dumps(cupy.asarray(HOST)))
    assert isinstance(again, cupy.ndarray)
    np.testing.assert_array_equal(again.get(), HOST)


def test_little_is_there_that_cupy_has_not(cupy):
    x = cupy.asarray(HOST)
    assert x.flags.c_contiguous
    assert not x[:, 1:].flags.c_contiguous
    with pytest.raises(AttributeError):
        x.flags.writeable  # noqa: B018
    with pytest.raises(AttributeError, match="tofile"):
        x.tofile("here")
    with pytest.raises(cupy.cuda.runtime.CUDARuntimeError), cupy.cuda.Device(3):
        pass
    assert [float(row[0]) for row in x[0]] == [0, 4, 8]
    assert x.item(3) == 3
    assert x[0].tolist() == HOST[0].tolist()
    assert "StandInArray" in repr(x)
    assert cupy.get_array_module(HOST) is np
    assert cupy.get_array_module(HOST, x) is cupy
