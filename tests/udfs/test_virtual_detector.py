"""VirtualDetectorUDF: shapes, numbers, chunks and mistakes."""

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from udfdask.udfs import ApplyMasksUDF, VirtualDetectorUDF

SIG = (12, 15)
DATA = np.random.default_rng(2).integers(0, 60000, (4, 5, *SIG)).astype("u2")
YY, XX = np.indices(SIG)
D2 = (YY - 6) ** 2 + (XX - 7) ** 2

DETECTORS = {
    "disk": (VirtualDetectorUDF("disk", r=3), D2 <= 9),
    "disk by default": (VirtualDetectorUDF(r=2.5), D2 <= 6.25),
    "disk elsewhere": (
        VirtualDetectorUDF("disk", cx=2.5, cy=-1, r=4),
        (YY + 1) ** 2 + (XX - 2.5) ** 2 <= 16,
    ),
    "ring": (VirtualDetectorUDF("ring", ri=2, ro=5), (D2 > 4) & (D2 <= 25)),
    "ring to the corners": (VirtualDetectorUDF("ring", ri=0, ro=np.inf), D2 > 0),
    "rect": (
        VirtualDetectorUDF("rect", x=2, y=1, width=4, height=1),
        (YY == 1) & (XX >= 2) & (XX < 6),
    ),
    "rect of fractions": (
        VirtualDetectorUDF("rect", x=2.6, y=1.2, width=4.5, height=1.9),
        (YY == 1) & (XX >= 2) & (XX < 6),
    ),
    "rect across the border": (
        VirtualDetectorUDF("rect", x=10, y=-3, width=100, height=5),
        (YY < 2) & (XX >= 10),
    ),
    "point": (VirtualDetectorUDF("point", x=14, y=0), (YY == 0) & (XX == 14)),
}


@pytest.mark.full
@pytest.mark.parametrize("chunks", [(4, 5, 12, 15), (2, 3, 5, 15), (4, 5, 4, 2)])
@pytest.mark.parametrize("name", DETECTORS)
@pytest.mark.parametrize("dtype", ["u2", "f4", "c8"])
def test_shapes(name, chunks, dtype):
    udf, mask = DETECTORS[name]
    data = DATA.astype(dtype)
    res = ud.run_udf(da.from_array(data, chunks=chunks), udf)["intensity"]
    got = res.compute(scheduler="sync")
    want = data[..., mask].astype("i8" if dtype == "u2" else "c16").sum(axis=-1)
    assert got.shape == (4, 5)
    assert got.dtype == res.dtype == np.dtype("i8" if dtype == "u2" else dtype)
    np.testing.assert_allclose(got, want, rtol=0 if dtype == "u2" else 1e-5)


def test_a_window_of_spectra():
    x = da.from_array(DATA, chunks=(2, 5, 12, 4))
    res = ud.run_udf(x, VirtualDetectorUDF("window", start=3, stop=8), sig_dims=1)
    np.testing.assert_array_equal(res["intensity"], DATA[..., 3:8].sum(axis=-1))


def test_a_region():
    x = da.from_array(DATA, chunks=(2, 3, 12, 15))
    res = ud.run_udf(x, VirtualDetectorUDF(r=3), roi=np.s_[1:3, 2:])["intensity"].compute()
    np.testing.assert_array_equal(res[1:3, 2:], DATA[1:3, 2:, D2 <= 9].sum(axis=-1))
    assert not res[0].any()


@pytest.mark.parametrize(
    ("args", "numbers", "error"),
    [
        (("circle",), {"r": 3}, ValueError),
        (([[True]],), {}, TypeError),
        (("disk",), {}, TypeError),
        (("ring",), {"ri": 2}, TypeError),
        (("disk",), {"ri": 2, "ro": 3}, TypeError),
        (("ring",), {"r": 2, "cx": 3, "cy": 3}, TypeError),
        (("disk",), {"x": 2, "y": 3}, TypeError),
        (("point",), {"x": 1, "y": 2, "cx": 3}, TypeError),
        (("disk",), {"r": "3"}, TypeError),
        (("disk",), {"r": True}, TypeError),
    ],
)
def test_mistakes_at_once(args, numbers, error):
    with pytest.raises(error):
        VirtualDetectorUDF(*args, **numbers)


@pytest.mark.parametrize(
    ("args", "numbers"),
    [
        (("disk",), {"r": -1}),
        (("ring",), {"ri": 3, "ro": 2}),
        (("disk",), {"r": 3, "cx": 100}),
        (("point",), {"x": 15, "y": 0}),
        (("rect",), {"x": 0, "y": 0, "width": 0, "height": 2}),
        (("window",), {"start": 1, "stop": 2}),
        (("disk",), {"r": 3, "cy": np.nan}),
    ],
)
def test_mistakes_in_the_plan(args, numbers):
    with pytest.raises(ud.ArgumentValueError):
        ud.run_udf(da.from_array(DATA), VirtualDetectorUDF(*args, **numbers))


@pytest.mark.parametrize(
    "numbers",
    [
        {"ri": "18 mrad", "ro": "6 mrad"},
        {"ri": (6, "mrad"), "ro": "6 mrad"},
    ],
)
def test_radii_in_a_unit_are_compared_as_typed(numbers):
    with pytest.raises(ud.ArgumentValueError):
        VirtualDetectorUDF("ring", **numbers)
    VirtualDetectorUDF("ring", ri="18 mrad", ro="0.1 rad")  # other units are compared in pixels


@pytest.mark.parametrize(
    ("shape", "numbers"),
    [
        ("disk", {"centerY": 6, "centerX": 7, "radius": 3}),
        ("ring", {"radius_inner": 2, "radius_outer": 3}),
        ("ring", {"ri": 2, "radius": 3}),
    ],
)
def test_other_words_for_numbers(shape, numbers):
    with pytest.raises(ud.ArgumentTypeError):
        VirtualDetectorUDF(shape, **numbers)
    with pytest.raises(ud.ArgumentTypeError, match=r"size was given$"):
        VirtualDetectorUDF(shape, size=3)


@pytest.mark.parametrize(
    "sig_dims",
    [1, 3],
)
def test_signals_of_other_dimensions(sig_dims):
    with pytest.raises(ud.ArgumentValueError):
        ud.run_udf(da.from_array(DATA), VirtualDetectorUDF(r=3), sig_dims=sig_dims)


def test_it_says_what_it_is():
    assert repr(VirtualDetectorUDF("ring", ri=2, ro=5)) == (
        "VirtualDetectorUDF(shape='ring', ri=2, ro=5)"
    )


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "g", "c8"])
@pytest.mark.parametrize("name", ["disk", "ring to the corners", "rect across the border"])
@pytest.mark.parametrize("chunks", [(4, 5, 12, 15), (2, 3, 5, 15)])
def test_pixels_outside_do_not_count(name, dtype, chunks):
    """Neither in a small detector, which is a sparse mask, nor in a large one."""
    udf, mask = DETECTORS[name]
    clean = (DATA % 100).astype(dtype)
    for wrong in (np.nan, np.inf, -np.inf):
        data = clean.copy()
        data[1:3, :, ~mask] = wrong
        got = ud.run_udf(da.from_array(data, chunks=chunks), udf)["intensity"].compute()
        np.testing.assert_allclose(got, clean[..., mask].sum(axis=-1, dtype=got.dtype), rtol=1e-5)


@pytest.mark.parametrize("name", ["disk", "ring to the corners"])
def test_pixels_inside_count(name):
    udf, mask = DETECTORS[name]
    data = DATA.astype("f4")
    data[0, 0, 5, 7], data[1, 1, 5, 7] = np.nan, -np.inf
    got = ud.run_udf(da.from_array(data, chunks=(2, 3, 5, 15)), udf)["intensity"].compute()
    assert mask[5, 7]
    np.testing.assert_allclose(got, data[..., mask].sum(axis=-1, dtype="f8"), rtol=1e-6)


@pytest.mark.parametrize(
    ("udf", "sig_dims"),
    [
        (VirtualDetectorUDF("window", start=2, stop=4), 2),
        (VirtualDetectorUDF("disk", r=2), 1),
        (VirtualDetectorUDF(np.ones(8, bool)), 2),
        (ApplyMasksUDF(np.ones(8)), 2),
    ],
)
def test_frames_with_another_number_of_axes(udf, sig_dims):
    with pytest.raises(ud.ArgumentValueError):
        ud.run_udf(da.ones((4, 6, 8)), udf, sig_dims=sig_dims)
