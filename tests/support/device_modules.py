"""What CuPy is in a test: NumPy standing in for it, or CuPy itself where there is a device."""

import contextlib

import pytest

from stand_in import numpy_standing_in_for_cupy
from udfdask.backends.device import n_devices

MODULES = ["stand-in", pytest.param("cupy", marks=pytest.mark.gpu)]


@contextlib.contextmanager
def cupy_is(what):
    """Yield the module CuPy; skip the test where it is to be the real one and there is none."""
    if what == "stand-in":
        with numpy_standing_in_for_cupy() as module:
            yield module
        return
    module = pytest.importorskip("cupy", reason="CuPy is not installed")
    if not n_devices():
        pytest.skip("there is no CUDA device")
    yield module
