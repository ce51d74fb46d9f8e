"""Fourier coefficients along rings, against plain complex128 NumPy."""

import cmath
import math

import dask
import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from making import compute
from udfdask import ArgumentTypeError, ArgumentValueError
from udfdask.udfs import RadialFourierUDF

NAV, SIG = (3, 4), (9, 11)


def frames(dtype="uint16", nav=NAV, sig=SIG):
    return np.random.default_rng(0).integers(0, 90, (*nav, *sig)).astype(dtype)


def plain(data, cy, cx, r, ri, n_bins, max_order):
    """One pixel, one ring and one order at a time, complex128."""
    width = (r - ri) / n_bins
    *nav, ny, nx = data.shape
    found = np.zeros((*nav, n_bins, max_order + 1), complex)
    for y, x in np.ndindex(ny, nx):
        d, phi = math.hypot(y - cy, x - cx), math.atan2(y - cy, x - cx)
        for b in range(n_bins):
            w = min(1, max(0, width / 2 + 0.5 - abs(d - ri - (b + 0.5) * width)))
            if b == 0 and ri < 0.5 and d < 0.5:
                w = 1 - ri
            for n in range(max_order + 1) if w else ():
                found[..., b, n] += w * cmath.exp(1j * n * phi) * data[..., y, x]
    return found.reshape(*nav, -1)


def assert_close(found, wanted):
    assert found.dtype == np.complex64
    assert found.shape == wanted.shape
    scale = np.abs(wanted).max(initial=0)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=2e-6 * scale)


CASES = [
    {"cy": 4, "cx": 5, "r": 4, "ri": 1, "n_bins": 1, "max_order": 24},
    {"cy": 3.3, "cx": 6.1, "r": 5, "ri": 0, "n_bins": 3, "max_order": 5},
    {"cy": 4, "cx": 5, "r": 2, "ri": 0.2, "n_bins": 4, "max_order": 2},
    {"cy": -3, "cx": 4, "r": 8, "ri": 0, "n_bins": 4, "max_order": 0},  # one ring lies outside
]


@pytest.mark.parametrize("dtype", ["u1", ">u2", "i4", "f2", "f4", "f8", "g", "?"])
@pytest.mark.parametrize("parameters", CASES, ids=str)
def test_coefficients_follow_the_formula(parameters, dtype):
    data = frames().astype(dtype)
    x = da.from_array(data, chunks=(2, 3, 5, 11))
    found = compute(x, RadialFourierUDF(**parameters))["coefficients"]
    assert_close(found, plain(data.astype("f8"), **parameters))


def test_defaults_are_one_ring_over_the_frame_and_24_orders():
    data = frames()
    found = compute(da.from_array(data), RadialFourierUDF())["coefficients"]
    assert_close(found, plain(data, 4, 5, math.ceil(math.hypot(5, 6)) + 1, 0, 1, 24))


@pytest.mark.parametrize("centers", [None, np.full((*NAV, 2), 4.0)], ids=["shared", "own"])
@pytest.mark.parametrize("bad", [(np.inf, 1), (-np.inf, 1), (np.inf, -np.inf), (np.nan, 1)])
def test_infinite_pixels_spoil_their_frame_without_a_warning(bad, centers):
    """BLAS sets other flags on other processors; the tests turn each warning into an error."""
    data = frames("f4")
    x = da.from_array(data.copy(), chunks=(2, 3, 5, 11))
    spoilt = data.copy()
    spoilt[1, 2, 1, 5], spoilt[1, 2, 7, 6] = bad
    udf = RadialFourierUDF(r=9, n_bins=1, max_order=3, centers=centers)
    with dask.config.set({"udfdask.tile-bytes": 64}):  # several tiles for each frame
        for y in (da.from_array(spoilt, chunks=chunks) for chunks in [x.chunks, data.shape]):
            found = compute(y, udf)["coefficients"]
            assert not np.isfinite(found[1, 2]).any()
            found[1, 2] = 0
            clean = compute(x.rechunk(y.chunks), udf)["coefficients"]
            clean[1, 2] = 0
            np.testing.assert_array_equal(found, clean)


@pytest.mark.parametrize("fold", [1, 2, 3, 4])
def test_a_symmetry_has_its_order_and_its_angle(fold):
    y, x = np.mgrid[-20:21, -20:21]
    phi = np.arctan2(y, x)  # zero along +x, growing towards +y, down
    frame = 5 + np.cos(fold * (phi - 0.3))
    udf = RadialFourierUDF(r=18, ri=8, max_order=5)
    c = compute(da.from_array(frame[None]), udf)["coefficients"][0]
    strength = np.abs(c[1:]) / np.abs(c[0])
    assert strength.argmax() + 1 == fold
    assert strength[fold - 1] == pytest.approx(0.1, abs=0.01)
    assert np.angle(c[fold]) == pytest.approx(fold * 0.3, abs=0.05)


def test_rings_come_before_orders():
    result = ud.run_udf(da.ones((2, 2, 9, 9)), RadialFourierUDF(r=4, n_bins=2, max_order=1))
    (axis,) = result.extra_axes["coefficients"]
    assert axis.name == "bin_order"
    assert axis.labels == ("bin 0 order 0", "bin 0 order 1", "bin 1 order 0", "bin 1 order 1")


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"max_order": -1}, ArgumentValueError),
        ({"max_order": 1.5}, ArgumentTypeError),
        ({"n_bins": None}, ArgumentTypeError),
        ({"n_bins": 0}, ArgumentValueError),
        ({"r": 2, "ri": 2}, ArgumentValueError),
        ({"r": -2}, ArgumentValueError),
    ],
    ids=str,
)
def test_wrong_parameters_are_named(parameters, error):
    with pytest.raises(error):
        RadialFourierUDF(**parameters)


def test_wrong_data_are_named_before_there_is_a_graph():
    with pytest.raises(ArgumentValueError, match="RadialFourierUDF works on 2-D frames"):
        ud.run_udf(da.ones((4, 9)), RadialFourierUDF(), sig_dims=1)
    with pytest.raises(ArgumentTypeError, match="RadialFourierUDF works on real numbers"):
        ud.run_udf(da.ones((4, 9, 9), dtype="c8"), RadialFourierUDF())


def test_many_pixels_cost_no_precision():
    """Added up one after another in float32 they would be off by 1e-5."""
    data = np.random.default_rng(0).random((4, 512, 512), dtype="f4")
    found = compute(da.from_array(data, chunks=-1), RadialFourierUDF(max_order=0))["coefficients"]
    np.testing.assert_allclose(found[:, 0], data.sum(axis=(1, 2), dtype="f8"), rtol=5e-7)
