import dask
import pytest

from stand_in import numpy_standing_in_for_cupy


@pytest.fixture
def cupy():
    with numpy_standing_in_for_cupy() as module:
        yield module


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield
