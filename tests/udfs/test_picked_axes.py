"""Picked frames keep the axes of the data, through every door."""

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from udfdask.udfs import PickUDF

DATA = da.from_array(np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5), chunks=(1, 3, 4, 5))
AXES = [
    *(ud.Axis(name=name, unit="nm", scale=0.5) for name in "yx"),
    *(ud.Axis(name=name, unit="mrad", scale=2.0, offset=-4.0) for name in ("ky", "kx")),
]


def test_axes_of_a_result():
    result = ud.run_udf(DATA, PickUDF(), roi=(1, 2), axes=AXES)
    assert result.axes["intensity"] == (ud.Axis(name="frame"), *AXES[2:])
    figure = result.compute().plot()
    assert figure.axes[0].get_xlabel() == "kx (mrad)"


def test_a_dimension_called_frame():
    axes = [ud.Axis(name="frame"), *AXES[1:]]
    result = ud.run_udf(DATA, PickUDF(), roi=(1, 2), axes=axes)
    assert [axis.name for axis in result.axes["intensity"]] == ["picked_frame", "ky", "kx"]


def test_axes_of_a_dataset():
    xr = pytest.importorskip("xarray", reason="xarray is an extra")
    import udfdask.xarray  # noqa: F401

    coords = {"kx": ("kx", np.arange(5) * 2.0, {"units": "mrad"})}
    array = xr.DataArray(DATA, dims=("y", "x", "ky", "kx"), coords=coords)
    picked = array.udf.run_udf(PickUDF(), roi=(1, 2))["intensity"]
    assert picked.dims == ("frame", "ky", "kx")
    xr.testing.assert_equal(
        picked[0].drop_vars("frame", errors="ignore"), array[1, 2].drop_vars([])
    )
    assert picked["kx"].attrs["units"] == "mrad"


def test_axes_of_a_signal():
    hs = pytest.importorskip("hyperspy.api", reason="HyperSpy is an extra")
    import udfdask.hyperspy  # noqa: F401

    signal = hs.signals.Signal2D(DATA).as_lazy()
    for axis in signal.axes_manager.signal_axes:
        axis.name, axis.units, axis.scale = f"k{axis.name}", "mrad", 0.5
    picked = signal.udf.run_udf(PickUDF(), roi=(1, 2))["intensity"]
    units = [axis.units for axis in picked.axes_manager._axes]
    assert units[-2:] == ["mrad", "mrad"]
