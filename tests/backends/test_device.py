import contextlib
import sys
import threading

import dask
import pytest

from stand_in import numpy_standing_in_for_cupy
from udfdask.backends import device
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
        __spec__ = None  # an import statement of Python 3.14 reads it

        def __getattr__(self, name):
            raise RuntimeError("cudaErrorNoDevice")

    no_device.setitem(sys.modules, "cupy", Blind())
    no_device.setenv("CUDA_VISIBLE_DEVICES", "7")
    with pytest.raises(DeviceError, match=r"no CUDA device \(CUDA_VISIBLE_DEVICES is '7'\)"):
        device.cupy()


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
