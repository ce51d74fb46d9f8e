"""`to_xarray` of an opened file: the same data, with the same axes."""

from dataclasses import replace

import dask
import dask.array as da
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import udfdask as ud
from suites import examples
from udfdask.io import OpenedFile, open_file
from udfdask.testing import raise_if_dask_computes
from udfdask.udfs import CoMUDF, SumSigUDF, SumUDF

xr = pytest.importorskip("xarray", reason="xarray is an extra")
import udfdask.xarray  # noqa: E402

SHAPE = (3, 4, 8, 9)
NAMES = ("y", "x", "ky", "kx")

scales = st.builds(
    lambda sign, digits, exponent: float(f"{sign}{digits}e{exponent}"),
    st.sampled_from(["", "-"]),
    st.integers(1, 9999),
    st.integers(-12, 3),
)
units = st.sampled_from([None, "nm", "eV", "px"])


@st.composite
def axes(draw, name, n):
    """A linear axis, an axis of values that rise, or one with nothing known."""
    if draw(st.booleans()):
        scale, offset = draw(scales), draw(scales)
        assume(abs(offset) < 1e9 * abs(scale))  # else rounding decides the positions
        return ud.Axis(name=name, unit=draw(units), scale=scale, offset=offset)
    if draw(st.booleans()):
        return ud.Axis(name=name)
    steps = draw(st.lists(st.integers(1, 9), min_size=n, max_size=n))
    values = np.cumsum([*steps[:-1], 10]).tolist()  # not evenly spaced
    return ud.Axis(name=name, unit=draw(units), values=tuple(map(float, values)))


def opened_with(axes, unit=None):
    data = np.random.default_rng(1).integers(0, 50, SHAPE).astype("uint16")
    array = da.from_array(data, chunks=(2, 2, 8, 9))
    return OpenedFile(array=array, sig_dims=2, reader="", title="a", axes=axes, unit=unit)


@settings(max_examples=examples(10), deadline=None)
@given(data=st.data())
def test_the_axes_of_the_file(data):
    given_axes = tuple(data.draw(axes(n, size)) for n, size in zip(NAMES, SHAPE, strict=True))
    opened = opened_with(given_axes, data.draw(units))
    with raise_if_dask_computes():
        array = opened.to_xarray()
    assert array.data is opened.array
    assert array.name is None  # and not that of the dask array
    assert array.dims == NAMES
    assert array.attrs.get("units") == opened.unit
    for axis, n in zip(given_axes, SHAPE, strict=True):
        if axis == ud.Axis(name=axis.name):
            assert axis.name not in array.coords
            continue
        assert array[axis.name].attrs.get("units") == axis.unit
        np.testing.assert_array_equal(array[axis.name].values, axis.positions(n), strict=True)
    udfs = [SumUDF(), SumSigUDF(), CoMUDF()]
    labeled = array.udf.run_udf(udfs, sig_dims=("ky", "kx"))
    plain = ud.run_udf(opened, udfs)
    for dataset, result in zip(labeled, plain, strict=True):
        own = result.to_xarray()
        assert set(dataset.variables) == set(own.variables)
        for name, array_of_result in result.items():
            assert dataset[name].data.name == array_of_result.name  # the same work, the same name
            # the accessor follows xarray's rules for attributes, and adds no parameters
            attrs = {
                k: v for k, v in own[name].attrs.items() if k not in ("parameters", "udf_class")
            }
            assert dataset[name].attrs == attrs
        for name in own.coords:
            np.testing.assert_array_equal(dataset[name].values, own[name].values)


def test_values_and_labels_in_arrays():
    given = (
        ud.Axis(name="y", values=np.r_[0, 1, 3]),
        ud.Axis(name="x", labels=np.array([*"abcd"])),
    )
    array = opened_with((*given, *(ud.Axis(name=name) for name in NAMES[2:]))).to_xarray()
    assert [array[name].values.tolist() for name in "yx"] == [[0, 1, 3], [*"abcd"]]


@pytest.mark.parametrize("name", ["y", "present"])
def test_positions_without_a_frame(tmp_path, name):
    np.ones((10, 2, 2), "uint8").tofile(tmp_path / "a.raw")
    opened = open_file(
        tmp_path / "a.raw", nav_shape=(3, 4), sig_shape=(2, 2), dtype="uint8", sync_offset=-1
    )
    assert opened.present is not None
    opened = replace(opened, axes=tuple(ud.Axis(name=n) for n in (name, "x", "ky", "kx")))
    array = opened.to_xarray()
    mask = array["present_" if name == "present" else "present"]
    np.testing.assert_array_equal(mask.values, opened.present)
    found = array.udf.run_udf(SumSigUDF(), sig_dims=2, roi=mask)["intensity"]
    own = ud.run_udf(opened, SumSigUDF())["intensity"]
    np.testing.assert_array_equal(*dask.compute(found.data, own, scheduler="synchronous"))
