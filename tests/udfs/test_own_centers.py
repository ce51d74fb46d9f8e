"""Rings and disks around a center of its own for each frame, against a mask for each frame."""

from functools import partial

import dask
import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from making import compute
from udfdask import ArgumentTypeError, ArgumentValueError
from udfdask.masks import radial_bins
from udfdask.results.detectors import detector_masks
from udfdask.testing import check_udf, raise_if_dask_computes
from udfdask.udfs import (
    FEMUDF,
    CoMUDF,
    RadialFourierUDF,
    RadialProfileUDF,
    SumUDF,
    VirtualDetectorUDF,
)

NAV, SIG = (3, 5), (9, 12)


def frames(dtype="uint16"):
    return np.random.default_rng(0).integers(1, 90, (*NAV, *SIG)).astype(dtype)


def some_centers(seed=1):
    return np.random.default_rng(seed).uniform((-1, -1), SIG, (*NAV, 2))


def round_coordinates(sig, center, stretch=1.0, stretch_angle=0.0):
    """Coordinates (y, x) in which the ellipse is round: along its half axes, and turned back."""
    t = np.radians(stretch_angle)
    y, x = np.indices(sig)
    dy, dx = y - center[0], x - center[1]
    along = (dx * np.cos(t) + dy * np.sin(t)) / np.sqrt(stretch)
    across = (dy * np.cos(t) - dx * np.sin(t)) * np.sqrt(stretch)
    return along * np.sin(t) + across * np.cos(t), along * np.cos(t) - across * np.sin(t)


def mask_about(sig, center, ri, ro, **ellipse):
    """The mask ``ri < d <= ro``, a disk if `ri` is None."""
    d = np.hypot(*round_coordinates(sig, center, **ellipse))
    return (d <= ro) & (d > (-1 if ri is None else ri))


def plain_sum(frame, center, ri=2, ro=4.5, **ellipse):
    return frame[mask_about(frame.shape, center, ri, ro, **ellipse)].sum()


def plain_disk(frame, center, ro=4.5, **ellipse):
    return plain_sum(frame, center, None, ro, **ellipse)


def plain_std(frame, center, ri=2, ro=4.5, **ellipse):
    inside = frame[mask_about(frame.shape, center, ri, ro, **ellipse)]
    return inside.std() if inside.size else np.nan


def plain_com(frame, center, ri=None, ro=4.5, **ellipse):
    weights = frame * mask_about(frame.shape, center, ri, ro, **ellipse)
    if not weights.sum():
        return np.asarray(center)
    return np.tensordot(np.indices(frame.shape), weights) / weights.sum()


def weights_about(frame, center, **ellipse):
    """Soft rings of a circle that is large enough, sampled in the round coordinates."""
    d = np.hypot(*round_coordinates(frame.shape, center, **ellipse))
    edges = [(1.0, 3.0), (3.0, 5.0)]
    return [np.clip(1.5 - abs(d - (low + high) / 2), 0, 1) for low, high in edges]


def plain_profile(frame, center, **ellipse):
    with np.errstate(invalid="ignore"):
        return [(frame * w).sum() / w.sum() for w in weights_about(frame, center, **ellipse)]


def plain_fourier(frame, center, **ellipse):
    phi = np.arctan2(*round_coordinates(frame.shape, center, **ellipse))
    return [
        (frame * w * np.exp(1j * n * phi)).sum()
        for w in weights_about(frame, center, **ellipse)
        for n in range(4)
    ]


CASES = {
    "ring": (
        lambda **k: VirtualDetectorUDF("ring", ri=2, ro=4.5, **k),
        "intensity",
        plain_sum,
    ),
    "disk": (lambda **k: VirtualDetectorUDF("disk", r=4.5, **k), "intensity", plain_disk),
    "fem": (lambda **k: FEMUDF(rad_in=2, rad_out=4.5, **k), "intensity", plain_std),
    "com": (lambda **k: CoMUDF(r=4.5, **k), "raw_com", plain_com),
    "profile": (lambda **k: RadialProfileUDF(r=5, ri=1, n_bins=2, **k), "intensity", plain_profile),
    "fourier": (
        lambda **k: RadialFourierUDF(r=5, ri=1, n_bins=2, max_order=3, **k),
        "coefficients",
        plain_fourier,
    ),
}
ELLIPSES = [{}, {"stretch": 1.3, "stretch_angle": 25.0}]


def plain(name, data, centers, **ellipse):
    """The result of all frames, one after the other."""
    formula = CASES[name][2]
    nav = data.shape[:-2]
    values = [formula(data[p].astype("f8"), centers[p], **ellipse) for p in np.ndindex(*nav)]
    return np.reshape(values, (*nav, *np.shape(values[0])))


@pytest.mark.parametrize("ellipse", ELLIPSES, ids=["round", "ellipse"])
@pytest.mark.parametrize("name", CASES)
def test_each_frame_has_its_own(name, ellipse):
    make, buffer, _ = CASES[name]
    data, centers = frames(), some_centers()
    for chunks in ((2, 3, 9, 12), (3, 5, 5, 7)):
        x = da.from_array(data, chunks=chunks)
        found = compute(x, make(centers=centers, **ellipse))
        np.testing.assert_allclose(
            found[buffer], plain(name, data, centers, **ellipse), rtol=1e-5, atol=1e-2
        )
        if name == "com":
            np.testing.assert_allclose(found["raw_shifts"], found["raw_com"] - centers, atol=1e-12)


@pytest.mark.full
@pytest.mark.parametrize("dtype", ["?", "i1", ">u2", "i8", "u8", "f2", "f4", ">f8", "g"])
@pytest.mark.parametrize("name", CASES)
def test_every_real_dtype(name, dtype):
    make, buffer, _ = CASES[name]
    data, centers = frames("i8").astype(dtype), some_centers()
    found = compute(da.from_array(data, chunks=(2, 5, 9, 5)), make(centers=centers))[buffer]
    np.testing.assert_allclose(found, plain(name, data, centers), rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize("name", ["ring", "fem"])
def test_complex_data(name):
    make, buffer, formula = CASES[name]
    data = frames() + 1j * frames()[::-1]
    centers = some_centers()
    found = compute(da.from_array(data, chunks=(2, 5, 9, 5)), make(centers=centers))[buffer]
    want = np.reshape([formula(data[p], centers[p]) for p in np.ndindex(*NAV)], NAV)
    np.testing.assert_allclose(found, want, rtol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_the_same_center_for_all_is_a_common_center(name):
    make, buffer, _ = CASES[name]
    x = da.from_array(frames(), chunks=(2, 3, 9, 12))
    common = {"center": (4.2, 5.7)} if name == "fem" else {"cy": 4.2, "cx": 5.7}
    own = {"centers": np.broadcast_to((4.2, 5.7), (*NAV, 2))}
    for ellipse in ELLIPSES:
        a, b = compute(x, [make(**common, **ellipse), make(**own, **ellipse)])
        np.testing.assert_allclose(a[buffer], b[buffer], rtol=1e-5, atol=1e-2)


@pytest.mark.parametrize("name", CASES)
def test_a_frame_without_a_center_is_nan(name):
    make, buffer, _ = CASES[name]
    data, centers = frames(), np.full((*NAV, 2), 4.0)
    centers[1, 2, 0], centers[0, 1, 1] = np.nan, np.inf
    for chunks in ((2, 3, 9, 12), (3, 5, 5, 7)):
        found = compute(da.from_array(data, chunks=chunks), make(centers=centers))[buffer]
        nowhere = np.isnan(found.reshape(*NAV, -1)).all(axis=-1)
        assert {(1, 2), (0, 1)} == set(map(tuple, np.argwhere(nowhere)))


def test_a_frame_without_a_pixel_in_the_ring():
    """An empty sum is 0, a mean of nothing is NaN, and a center of mass of nothing the center."""
    centers = np.full((*NAV, 2), 4.0)
    centers[0, 0] = 400.0, 300.0
    x = da.from_array(frames(), chunks=(2, 3, 9, 12))
    names = ["ring", "disk", "fourier", "fem", "profile", "com"]
    found = compute(x, [CASES[name][0](centers=centers) for name in names])
    at = {name: result[CASES[name][1]][0, 0] for name, result in zip(names, found, strict=True)}
    assert at["ring"] == at["disk"] == 0
    assert not at["fourier"].any()
    assert np.isnan(at["fem"])
    assert np.isnan(at["profile"]).all()
    assert at["com"].tolist() == [400.0, 300.0]


@pytest.mark.parametrize("name", CASES)
def test_centers_of_another_run(name):
    make, buffer, _ = CASES[name]
    data = frames()
    x = da.from_array(data, chunks=(2, 3, 9, 12))
    with raise_if_dask_computes():
        com = ud.run_udf(x, CoMUDF())["raw_com"]
        lazy = ud.run_udf(x, make(centers=com))[buffer]
    centers, found = dask.compute(com, lazy, scheduler="sync")
    np.testing.assert_allclose(found, plain(name, data, centers), rtol=1e-5, atol=1e-2)


@pytest.mark.full
@pytest.mark.parametrize("name", CASES)
def test_laws(name):
    data = np.random.default_rng(1).integers(-30, 60, (4, 6, 6, 8)).astype("int16")
    centers = np.random.default_rng(2).random((4, 6, 2)) * 6
    check_udf(CASES[name][0](centers=centers, stretch=1.2, stretch_angle=70), data)


@pytest.mark.full
@pytest.mark.parametrize("name", CASES)
def test_pixels_outside_are_not_used(name):
    make, buffer, _ = CASES[name]
    data, centers = frames("f8"), np.full((*NAV, 2), 4)
    want = compute(da.from_array(data), make(centers=centers))[buffer]
    data[..., 0, 11] = np.nan
    data[..., 8, 10] = np.inf
    np.testing.assert_array_equal(compute(da.from_array(data), make(centers=centers))[buffer], want)


@pytest.mark.parametrize("name", CASES)
def test_wrong_centers(name):
    make = CASES[name][0]
    common = {"center": (4, 4)} if name == "fem" else {"cx": 4}
    wrong = [
        ({"centers": np.ones((2, 2)), **common}, ArgumentValueError),
        ({"centers": np.ones((2, 3))}, ArgumentValueError),
        ({"centers": np.ones((2, 2), complex)}, ArgumentTypeError),
        ({"centers": "4,4"}, ArgumentTypeError),
        ({"centers": [[1, 2], [3]]}, ArgumentTypeError),
        ({"stretch": 0.5}, ArgumentValueError),
        ({"stretch": "2 mrad"}, ArgumentTypeError),
        ({"stretch": True}, ArgumentTypeError),
        ({"stretch": np.nan}, ArgumentValueError),
        ({"stretch_angle": np.inf}, ArgumentValueError),
        ({"stretch": da.ones(())}, ArgumentTypeError),
    ]
    for parameters, error in wrong:
        with raise_if_dask_computes(), pytest.raises(error):
            make(**parameters)


@pytest.mark.parametrize("name", CASES)
def test_centers_that_do_not_fit_the_scan(name):
    make = CASES[name][0]
    x = da.from_array(frames(), chunks=(2, 3, 9, 12))
    turned = np.full((*NAV[::-1], 2), 4.0)
    far, unknown = np.full((*NAV, 2), 500.0), np.full((*NAV, 2), np.nan)
    for centers in (np.ones((4, 2)), turned, far, unknown):
        with raise_if_dask_computes(), pytest.raises(ArgumentValueError):
            ud.run_udf(x, make(centers=centers))


@pytest.mark.parametrize("shape", ["rect", "point", "window"])
def test_other_detectors_have_no_center(shape):
    numbers = {
        "rect": {"x": 1, "y": 1, "width": 2, "height": 2},
        "point": {"x": 1, "y": 1},
        "window": {"start": 1, "stop": 2},
    }[shape]
    for more in ({"centers": some_centers()}, {"stretch": 1.1}):
        with pytest.raises(ArgumentTypeError, match=f"a {shape} takes .* was given"):
            VirtualDetectorUDF(shape, **numbers, **more)


@pytest.mark.parametrize("ellipse", [{"stretch": 1.5, "stretch_angle": 90.0}, ELLIPSES[1]], ids=str)
def test_elliptical_bins_are_those_of_round_coordinates(ellipse):
    bins = radial_bins(6, 4, 12, 9, radius=5, radius_inner=1, n_bins=2, use_sparse=False, **ellipse)
    np.testing.assert_allclose(bins, weights_about(np.ones(SIG), (4, 6), **ellipse), atol=1e-12)


@pytest.mark.parametrize(
    "udf",
    [
        VirtualDetectorUDF("ring", cy=500, ri=2, ro=np.inf),
        VirtualDetectorUDF("disk", cy=500, r=3),
        CoMUDF(cy=500),
        CoMUDF(cy=500, r=3),
        FEMUDF((500, 4), 1, np.inf),
        FEMUDF((500, 4), 1, 3),
        RadialProfileUDF(cy=500),
        RadialProfileUDF(cy=500, r=3),
        RadialFourierUDF(cy=500),
        RadialFourierUDF(cy=500, r=3),
        VirtualDetectorUDF("ring", ri=20, ro=30),
        CoMUDF(ri=20),
        FEMUDF((4, 4), 20, 30),
        RadialProfileUDF(ri=20),
        RadialProfileUDF(r=30, ri=20),
        RadialFourierUDF(ri=20, r=30),
        RadialFourierUDF(ri=20),
    ],
    ids=repr,
)
def test_centers_and_radii_beyond_the_frame(udf):
    x = da.from_array(frames(), chunks=(2, 3, 9, 12))
    with raise_if_dask_computes(), pytest.raises(ArgumentValueError, match=r"of shape \(9, 12\)"):
        ud.run_udf(x, udf)


def test_centers_that_are_labeled():
    """Those of an accessor: a DataArray, or a signal."""
    xr, hs = pytest.importorskip("xarray"), pytest.importorskip("hyperspy.api")
    centers, x = some_centers(), da.from_array(frames(), chunks=(2, 3, 9, 12))
    want = compute(x, VirtualDetectorUDF("disk", r=3, centers=centers))["intensity"]
    array = xr.DataArray(centers, dims=("y", "x", "component"), attrs={"units": "px"})
    signal = hs.signals.BaseSignal(centers)
    for given_ in (array, array.chunk(x=2), signal, signal.as_lazy()):
        udf = VirtualDetectorUDF("disk", r=3, centers=given_)
        np.testing.assert_array_equal(compute(x, udf)["intensity"], want)
    with pytest.raises(ArgumentValueError, match="centers must be in pixels, but they are in mrad"):
        VirtualDetectorUDF("disk", r=3, centers=array.assign_attrs(units="mrad"))


def test_pictures_show_the_mean_center():
    total = ud.run_udf(da.from_array(frames()), SumUDF())
    centers = np.random.default_rng(2).uniform(3, 5, (*NAV, 2))
    centers[0, 0] = np.nan
    mean = tuple(np.nanmean(centers, axis=(0, 1)))
    disk = partial(VirtualDetectorUDF, "disk", r=3)
    com = partial(CoMUDF, r=3)
    fem = partial(FEMUDF, rad_in=1, rad_out=3)
    for make in (disk, com, fem):
        own = detector_masks(total._info, make(centers=centers, stretch=1.2))
        place = {"center": mean} if make is fem else {"cy": mean[0], "cx": mean[1]}
        common = detector_masks(total._info, make(**place, stretch=1.2))
        for mask, other in zip(own.values(), common.values(), strict=True):
            np.testing.assert_array_equal(mask, other)
        with raise_if_dask_computes(), pytest.raises(ArgumentValueError, match="varies with the"):
            detector_masks(total._info, make(centers=da.from_array(centers)))


def test_the_message_about_wrong_centers_is_one_line():
    with pytest.raises(ArgumentTypeError, match=r"^.* not of dtype object$"):
        CoMUDF(centers=np.ones((2, 2), object))
