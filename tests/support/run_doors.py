"""A dask array as users of each library have it, and the methods that run UDFs over it."""

from functools import partial
from types import SimpleNamespace

import pytest

import udfdask as ud
import udfdask.dask


def as_data_array(array):
    xr = pytest.importorskip("xarray", reason="xarray is an extra")
    pytest.importorskip("udfdask.xarray")
    return xr.DataArray(array, dims=("y", "x", "ky", "kx"))


def as_signal(array):
    hs = pytest.importorskip("hyperspy.api", reason="hyperspy is an extra")
    pytest.importorskip("udfdask.hyperspy")
    return hs.signals.Signal2D(array).as_lazy()


DATA = {"dask": lambda array: array, "xarray": as_data_array, "hyperspy": as_signal}
DOORS = ("function", *DATA)


def methods(door, array):
    """The accessor of the data, or the functions of the package with the array as argument."""
    if door != "function":
        return DATA[door](array).udf
    names = ("run_udf", "run_udf_iter", "explain", "map_frames")
    return SimpleNamespace(**{name: partial(getattr(ud, name), array) for name in names})
