"""Parameters in units of labeled data; DataArrays and signals as centers and shifts."""

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from udfdask.udfs import (
    ApplyMasksUDF,
    CoMUDF,
    RadialProfileUDF,
    SumUDF,
    VirtualDetectorUDF,
)

xr = pytest.importorskip("xarray", reason="xarray is an extra")
import udfdask.xarray  # noqa: E402

NAMES = ("y", "x", "ky", "kx")
MASK = np.tri(8)


@pytest.fixture
def array():
    values = np.random.default_rng(0).integers(0, 99, (4, 6, 8, 8)).astype("uint16")
    coords = {name: (name, np.arange(8) * 2.0 - 8, {"units": "mrad"}) for name in NAMES[2:]}
    return xr.DataArray(da.from_array(values, chunks=(2, 3, 8, 8)), dims=NAMES, coords=coords)


def as_signal(array):
    hs = pytest.importorskip("hyperspy.api", reason="HyperSpy is an extra")
    import udfdask.hyperspy  # noqa: F401

    signal = hs.signals.Signal2D(array.data).as_lazy()
    for axis, name in zip(signal.axes_manager._axes, NAMES, strict=True):
        axis.name = name
    for axis in signal.axes_manager.signal_axes:
        axis.units, axis.scale, axis.offset = "mrad", 2.0, -8.0
    return signal


def doors(array):
    """Yield a function that runs a UDF, and the centers of mass as this door returns them."""
    yield array.udf.run_udf
    signal = as_signal(array)
    yield signal.udf.run_udf
    axes = [ud.Axis(name=name) for name in NAMES]
    yield lambda udf, **options: ud.run_udf(array.data, udf, axes=axes, **options)


def values_of(result, name="intensity"):
    return np.asarray(getattr(result[name], "data", result[name]))


def test_accessors_know_the_units_of_the_axes(array):
    detector = VirtualDetectorUDF("disk", cy="-2 mrad", cx="0.002 rad", r=(4, "mrad"))
    pixels = VirtualDetectorUDF("disk", cy=3, cx=5, r=2)
    expected = ud.run_udf(array.data, pixels)["intensity"].compute()
    for accessor in (array.udf, as_signal(array).udf):
        np.testing.assert_array_equal(values_of(accessor.run_udf(detector)), expected)
        assert accessor.explain(detector).n_chunks == 4
        *_, last = accessor.run_udf_iter(detector)
        np.testing.assert_array_equal(values_of(last.buffers[0]), expected)


USES = {
    "centers": lambda values: (RadialProfileUDF(r=3, centers=values), {}),
    "shifts": lambda values: (ApplyMasksUDF(MASK, shifts=values), {}),
    "descan": lambda values: (SumUDF(), {"descan": values}),
}
PIXELS = {"centers": "raw_com", "shifts": "raw_shifts", "descan": "raw_shifts"}


def _run(run, parameter, values):
    udf, options = USES[parameter](values)
    return run(udf, **options)


@pytest.mark.parametrize("parameter", USES)
def test_a_field_in_units_is_refused_through_every_door(array, parameter):
    fields = [array.udf.run_udf(CoMUDF())["field"], as_signal(array).udf.run_udf(CoMUDF())["field"]]
    words = f"{parameter} must be in pixels, but they are in mrad: pass {PIXELS[parameter]} of a"
    for field in fields:
        for run in doors(array):
            with pytest.raises(ud.ArgumentValueError, match=words):
                _run(run, parameter, field)


@pytest.mark.parametrize("parameter", ["centers", "shifts"])
@pytest.mark.parametrize("lazy", [True, False])
def test_values_in_pixels_are_taken_from_every_door_to_every_door(array, parameter, lazy):
    name = PIXELS[parameter]
    labeled = array.udf.run_udf(CoMUDF())[name]
    signal = as_signal(array).udf.run_udf(CoMUDF())[name]
    plain = ud.run_udf(array.data, CoMUDF())[name].compute()
    expected = ud.run_udf(array.data, USES[parameter](plain)[0])["intensity"].compute()
    if not lazy:
        labeled = labeled.compute()
        signal.compute(progressbar=False) if hasattr(signal, "compute") else None
    for values in (labeled, signal, labeled.assign_attrs(units="px")):
        for run in doors(array):
            np.testing.assert_allclose(values_of(run(USES[parameter](values)[0])), expected)


def test_axes_in_another_order_are_aligned_by_accessors_and_else_refused(array):
    given = array.udf.run_udf(CoMUDF())["raw_com"]
    expected = ud.run_udf(array.data, RadialProfileUDF(r=3, centers=given.data))["intensity"]
    centers = given.transpose("x", "y", "component")
    udf = RadialProfileUDF(r=3, centers=centers)
    *accessors, plain = doors(array)
    for run in accessors:
        np.testing.assert_array_equal(values_of(run(udf)), expected.compute())
    with pytest.raises(ud.ArgumentValueError, match="transpose the values"):
        plain(udf)
    # without names in common, the shape tells
    renamed = centers.compute().rename(x="a", y="b")
    with pytest.raises(ud.ArgumentValueError, match=r"must have the shape .* not \(6, 4, 2\)"):
        ud.run_udf(array.data, RadialProfileUDF(r=3, centers=renamed))
