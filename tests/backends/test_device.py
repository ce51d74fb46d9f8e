import contextlib
import sys
import threading

import dask
import numpy as np
import pytest

from device_udfs import cupy_is
from stand_in import numpy_standing_in_for_cupy
from udfdask.backends import device
from udfdask.backends.backend import CUPY
from udfdask.backends.table import backend_of, namespace_of, to_host
from udfdask.errors import DeviceError


@pytest.fixture
def no_device(monkeypatch):
    """Simulate a process without a CUDA device, whose devices are counted again."""

    def fail():
        raise OSError("no driver")

    monkeypatch.setattr(device, "_count_with_numba", fail)
    monkeypatch.setitem(sys.modules, "cupy", None)
    device._count.cache_clear()
    yield monkeypatch
    device._count.cache_clear()


def test_without_cupy_or_a_device_the_error_says_so(no_device):
    with pytest.raises(DeviceError, match=r"CuPy is not installed: pip install 'udfdask\[cupy\]'"):
        device.cupy()

    class Blind:
        def __getattr__(self, name):
            raise RuntimeError("cudaErrorNoDevice")

    no_device.setitem(sys.modules, "cupy", Blind())
    no_device.setenv("CUDA_VISIBLE_DEVICES", "7")
    with pytest.raises(DeviceError, match=r"no CUDA device \(CUDA_VISIBLE_DEVICES is '7'\)"):
        device.cupy()


def test_devices_are_counted_once_and_without_raising(no_device):
    assert device.n_devices() == 0
    no_device.setattr(device, "_count_with_numba", lambda: 3)
    assert device.n_devices() == 0
    device._count.cache_clear()
    assert device.n_devices() == 3


def test_the_number_of_the_device_is_a_setting():
    with numpy_standing_in_for_cupy(n_devices=2):
        assert device.device_number() == 0
        with dask.config.set({"udfdask.cuda-device": 1}):
            assert device.device_number() == 1
        with (
            dask.config.set({"udfdask.cuda-device": 2}),
            pytest.raises(DeviceError, match=r"cuda-device is 2, but this process sees 2 CUDA"),
        ):
            device.device_number()


def test_where_arrays_are():
    host = np.arange(6.0)
    with numpy_standing_in_for_cupy() as cupy:
        there = CUPY.from_host(host)
        assert backend_of(there).on_device
        assert not backend_of(host).on_device
        assert not backend_of([1, 2]).on_device
        assert CUPY.owns(type("Mine", (cupy.ndarray,), {}))
        assert namespace_of(there) is cupy
        assert namespace_of(host) is np
        assert CUPY.share(there) is there
        assert to_host(host) is host
        back = to_host(there)
        assert type(back) is np.ndarray
        np.testing.assert_array_equal(back, host)
        assert (cupy.ledger.to_device, cupy.ledger.to_host) == (1, 1)


@pytest.mark.parametrize("method", [CUPY.from_host, CUPY.send, CUPY.share])
@pytest.mark.parametrize("dtype", ["datetime64[s]", "U2", "longdouble"])
def test_dtypes_that_cupy_does_not_have(dtype, method):
    with (
        numpy_standing_in_for_cupy(),
        pytest.raises(DeviceError, match="CuPy has no arrays of dtype"),
    ):
        method(np.zeros(2, dtype=dtype))


def test_own_streams_belong_to_threads_and_are_waited_for():
    with numpy_standing_in_for_cupy() as cupy:
        streams = []

        def note():
            for _ in range(2):
                with device.using_device(own_stream=True):
                    streams.append(cupy.cuda.get_current_stream())

        for _ in range(2):
            thread = threading.Thread(target=note)
            thread.start()
            thread.join()
        first, again, other, other_again = streams
        assert first is again
        assert other is other_again
        assert first is not other
        shared = cupy.cuda.get_current_stream()
        with device.using_device(own_stream=False):
            assert cupy.cuda.get_current_stream() is shared
        done = []
        # also after an error, before buffers are handed on
        with contextlib.suppress(KeyError), device.using_device(own_stream=True):
            cupy.cuda.get_current_stream().put(lambda: done.append(True))
            assert not done
            raise KeyError("mine")
        assert done
        assert cupy.cuda.get_current_stream() is shared


@pytest.mark.gpu
def test_a_device():
    with cupy_is("cupy") as xp:
        assert device.cupy() is xp
        assert device.n_devices() == xp.cuda.runtime.getDeviceCount()
        there = CUPY.share(np.arange(6, dtype=">i2"))
        assert backend_of(there).on_device
        assert namespace_of(there) is xp
        with device.using_device(own_stream=True):
            assert xp.cuda.Device().id == device.device_number()
            assert xp.cuda.get_current_stream() != xp.cuda.Stream.null
            doubled = there * 2
        assert to_host(doubled).tolist() == [0, 2, 4, 6, 8, 10]
