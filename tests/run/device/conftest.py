import sys

import dask
import pytest

from stand_in import numpy_standing_in_for_cupy
from udfdask.backends import device


@pytest.fixture
def cupy():
    with numpy_standing_in_for_cupy() as module:
        yield module


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture
def no_device(monkeypatch):
    monkeypatch.setattr(device, "_count", lambda: 0)
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
