"""Parallax on simulated phase objects, whose aberrations and phase are known."""

import inspect
from dataclasses import replace
from functools import cache

import dask.array as da
import numpy as np
import pytest
from scipy import fft

import udfdask as ud
from udfdask.analyses import ParallaxUDF, TiltCorrectedUDF, parallax
from udfdask.analyses.aberrations import Aberrations
from udfdask.demo import PhaseObject
from udfdask.geometry.electrons import wavelength
from udfdask.testing import check_udf

SMALL = {"nav_shape": (24, 20), "sig_shape": (32, 32), "pixel": 2.0}
CASES = [(10, -40, False), (20, 30, True), (40, 75, False), (30, -15, True)]
"""Defocus in nm, rotation in degrees, flip."""
LAMBDA = wavelength(300e3)


@cache
def frames(thin, dose=None):
    """The frames of a simulation in memory, with the noise of a dose."""
    y, x = (axis.ravel() for axis in np.mgrid[tuple(map(slice, thin.nav_shape))])
    data = thin.frames(y, x).reshape((*thin.nav_shape, *thin.sig_shape))
    if dose is None:
        return data.astype("float32")
    return np.random.default_rng(0).poisson(dose * data).astype("uint16")


def run(thin, udf, dose=None, chunks=(8, 20, 32, 32), **options):
    data = da.from_array(frames(thin, dose), chunks=chunks)
    options = {"axes": thin.axes, "voltage": thin.voltage, **options}
    return ud.run_udf(data, udf, **options).compute(scheduler="synchronous")


def filtered(image, lens, step, image_of=lambda t: t):
    """An image whose waves are multiplied by a function of their contrast."""
    ny, nx = image.shape
    spectrum = fft.rfft2(np.pad(image, ((0, ny), (0, nx)), mode="symmetric"))
    qy, qx = fft.fftfreq(2 * ny, step)[:, None], fft.rfftfreq(2 * nx, step)
    transfer = lens.contrast_transfer(qy, qx, wavelength=LAMBDA, semiangle=0.02)
    return fft.irfft2(spectrum * image_of(transfer), s=(2 * ny, 2 * nx))[:ny, :nx]


def correlation(one, other):
    return np.corrcoef(np.ravel(one), np.ravel(other))[0, 1]


def check_lens(thin, found):
    assert found["defocus"] == pytest.approx(thin.defocus, abs=2)
    assert found["astigmatism"] < 2
    assert found["scan_rotation"] == pytest.approx(thin.scan_rotation, abs=1)
    assert found["flip_y"] == thin.flip_y


@pytest.mark.parametrize(("defocus", "rotation", "flip"), CASES)
def test_the_lens_of_a_simulation(defocus, rotation, flip):
    thin = PhaseObject(**SMALL, defocus=defocus, scan_rotation=rotation, flip_y=flip)
    found = run(thin, ParallaxUDF("20 mrad"))
    check_lens(thin, found)
    assert found["residual"] < 0.03


@pytest.mark.full
@pytest.mark.parametrize(("defocus", "rotation", "flip"), CASES)
def test_the_lens_of_a_simulation_with_noise(defocus, rotation, flip):
    large = {**SMALL, "nav_shape": (40, 36)}
    thin = PhaseObject(**large, defocus=defocus, scan_rotation=rotation, flip_y=flip)
    check_lens(thin, run(thin, ParallaxUDF("20 mrad"), 1000))


class Astigmatic(PhaseObject):
    """A lens with an astigmatism of 8 nm at 25 degrees."""

    lens = Aberrations(20, 8, 25)

    def _probe(self):
        n = self.sig_shape[0]
        y, x = np.meshgrid(*[np.fft.fftfreq(n, 1 / n) * self.pixel * 1e-3] * 2, indexing="ij")
        aperture = np.clip(
            (self.semiangle * 1e-3 - np.hypot(y, x)) / (self.pixel * 1e-3) + 0.5, 0, 1
        )
        (yy, yx), (_, xx) = self.lens.defocus_matrix()
        bend = -np.pi * (yy * y * y + 2 * yx * y * x + xx * x * x) / LAMBDA
        probe = np.fft.ifft2(aperture * np.exp(-1j * bend))
        return probe / np.linalg.norm(probe)


def test_astigmatism():
    found = run(Astigmatic(**SMALL), ParallaxUDF("20 mrad"))
    assert found["defocus"] == pytest.approx(20, abs=2)
    assert found["astigmatism"] == pytest.approx(8, abs=1)
    assert found["astigmatism_angle"] == pytest.approx(25, abs=3)


@pytest.mark.parametrize("near", [0, 140, -150, 180])
@pytest.mark.parametrize("flip", [False, True])
def test_the_lens_of_a_matrix(near, flip):
    for defocus, rotation in ((20, 30), (-20, 30), (-15, -170), (15, 100)):
        lens = Aberrations(defocus, 3, 110, rotation, flip)
        found = Aberrations.from_matrix(lens.shift_matrix(), near)
        np.testing.assert_allclose(found.shift_matrix(), lens.shift_matrix(), atol=1e-9)
        assert abs((found.scan_rotation - near + 180) % 360 - 180) <= 90 + 1e-9
        assert found.astigmatism == pytest.approx(3)
    lens = Aberrations(20, 3, 110, 30, flip)
    found = Aberrations.from_matrix(lens.shift_matrix())
    for name in ("defocus", "astigmatism", "astigmatism_angle", "scan_rotation"):
        assert getattr(found, name) == pytest.approx(getattr(lens, name))


@pytest.mark.parametrize("upsampling", [1, 2])
def test_the_image_is_the_phase_with_its_contrast(upsampling):
    thin, lens = PhaseObject(**SMALL, defocus=20), Aberrations(20)
    found = run(thin, ParallaxUDF("20 mrad", upsampling=upsampling), 1000)
    fine = replace(thin, nav_shape=found["image"].shape, step=thin.step / upsampling)
    expected = filtered(fine.phase, lens, fine.step)
    assert correlation(found["image"], expected) > 0.93
    expected = filtered(fine.phase, lens, fine.step, lambda t: t * t / (t * t + 0.25))
    assert correlation(found["phase"], expected) > 0.9
    assert found["phase"].std() == pytest.approx(expected.std(), rel=0.3)
    assert found["image"].mean() == pytest.approx(1, abs=0.05)


def test_the_phase_has_the_contrast_of_a_lens_that_is_not_round():
    lens = {"defocus": 20, "astigmatism": 8, "astigmatism_angle": 25}
    thin = Astigmatic(**SMALL)
    found = run(thin, TiltCorrectedUDF("20 mrad", **lens))
    sinc = [np.sinc(fft.fftfreq(48))[:, np.newaxis], np.sinc(fft.rfftfreq(40))]

    def restored(transfer):
        transfer = transfer * (sinc[0] * sinc[1]) ** 2  # of linear interpolation
        return transfer / (transfer**2 + 0.25)

    expected = filtered(found["image"] - 1, thin.lens, thin.step, restored)
    np.testing.assert_allclose(found["phase"], expected, atol=1e-6)


def test_both_udfs_make_the_same_image():
    thin = PhaseObject(**SMALL, defocus=20, scan_rotation=30, flip_y=True)
    found = run(thin, ParallaxUDF("20 mrad", upsampling=2))
    names = ("defocus", "astigmatism", "astigmatism_angle", "scan_rotation", "flip_y")
    lens = {name: found[name].item() for name in names}
    again = run(thin, TiltCorrectedUDF("20 mrad", **lens, upsampling=2))
    for name in ("image", "phase"):
        np.testing.assert_allclose(again[name], found[name], atol=1e-4)
    lens["defocus"] = f"{lens['defocus'] / 1000} um"
    text = run(thin, TiltCorrectedUDF("20 mrad", **lens, upsampling=2))
    np.testing.assert_allclose(text["image"], again["image"], atol=1e-6)


def test_a_plain_sum():
    """Each pixel is added where its beam meets the object: on whole positions, without rounding."""
    thin = replace(PhaseObject(**SMALL), pixel=2.5)
    data = frames(thin)
    found = run(thin, TiltCorrectedUDF("20 mrad", defocus=20))["image"]  # one position for a pixel
    total, weights = np.zeros((2, 24, 20))
    for y, x in np.argwhere(np.hypot(*np.mgrid[-16:16, -16:16]) <= 8):
        here = np.roll(data[:, :, y, x], (16 - y, 16 - x), axis=(0, 1))
        inside = np.roll(np.pad(np.ones((24, 20)), 20), (16 - y, 16 - x), axis=(0, 1))
        inside = inside[20:-20, 20:-20]
        total += here * inside
        weights += data[:, :, y, x].mean() * inside
    np.testing.assert_allclose(found, total / weights, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["?", "uint8", ">i2", "float16", ">f8", "longdouble"])
def test_any_real_dtype(dtype):
    thin = PhaseObject(**SMALL)
    data = np.random.default_rng(0).integers(0, 2 if dtype == "?" else 100, (24, 20, 32, 32))
    udf, options = TiltCorrectedUDF("20 mrad", defocus=10), {"axes": thin.axes, "voltage": 3e5}
    x, y = (da.from_array(data.astype(kind), chunks=(9, 20, 20, 32)) for kind in (dtype, "float64"))
    found, wanted = ud.compute(*(ud.run_udf(array, udf, **options) for array in (x, y)))
    np.testing.assert_array_equal(found["image"], wanted["image"])


@pytest.mark.parametrize("chunks", [(24, 20, 32, 32), (5, 7, 32, 32), (24, 10, 16, 20)])
def test_chunks_do_not_show(chunks):
    thin = PhaseObject(**SMALL, defocus=20)
    for udf in (ParallaxUDF("20 mrad", bin=2), TiltCorrectedUDF("20 mrad", defocus=20)):
        one, other = run(thin, udf, 1000), run(thin, udf, 1000, chunks=chunks)
        for name in one:
            np.testing.assert_allclose(other[name], one[name], rtol=1e-6, atol=1e-6)


def test_a_region_and_half_a_scan():
    thin = PhaseObject(**SMALL, defocus=20, scan_rotation=30)
    roi = np.ones(thin.nav_shape, bool)
    roi[20:, 12:] = False
    found = run(thin, ParallaxUDF("20 mrad"), roi=roi)
    assert found["defocus"] == pytest.approx(20, abs=2)
    found = run(thin, TiltCorrectedUDF("20 mrad", defocus=5), roi=roi)
    assert np.isnan(found["image"][-1, -1])
    assert np.isfinite(found["image"][:18]).all()
    data = da.from_array(frames(thin), chunks=(6, 20, 32, 32))
    both = [ParallaxUDF("20 mrad", bin=2), TiltCorrectedUDF("20 mrad", defocus=20)]
    options = {"axes": thin.axes, "voltage": "300 kV", "scheduler": "synchronous"}
    snapshots = list(ud.run_udf_iter(data, both, **options))
    whole = snapshots[-1].buffers[1]
    half = next(s for s in snapshots if s.damage.sum() == 240)
    known = np.isfinite(half.buffers[1]["image"])
    assert 200 < known.sum() < 400
    assert half.buffers[0]["defocus"] == pytest.approx(20, abs=3)
    middle = known & (np.arange(24) < 8)[:, np.newaxis] & half.damage.reshape(24, 20)
    difference = (half.buffers[1]["image"] - whole["image"])[middle]
    assert np.abs(difference).max(initial=0) < 0.2


def test_broken_frames_and_pixels():
    thin = PhaseObject(**SMALL, defocus=20)
    data = frames(thin).copy()
    data[:, :, 0, 0] = np.nan  # outside of the bright field
    udf, options = TiltCorrectedUDF("20 mrad", defocus=20), {"axes": thin.axes, "voltage": 3e5}
    added = ud.run_udf(da.from_array(data, chunks=(8, 20, 32, 32)), udf, **options)
    assert np.isfinite(added["image"].compute()).all()
    data[3, 4] = np.nan
    found = ud.run_udf(da.from_array(data, chunks=(8, 20, 32, 32)), ParallaxUDF(10), **options)
    assert found["defocus"].compute() == pytest.approx(20, abs=2)


def test_without_an_object():
    thin = PhaseObject(**SMALL)
    empty = da.ones((24, 20, 32, 32), chunks=(8, 20, 32, 32))
    options = {"axes": thin.axes, "voltage": "300 kV"}
    udfs = [ParallaxUDF("20 mrad"), TiltCorrectedUDF("20 mrad", defocus=20)]
    found, added = ud.compute(*ud.run_udf(empty, udfs, **options))
    assert np.isnan(found["defocus"])
    assert np.isnan(found["image"]).all()
    np.testing.assert_allclose(added["image"], 1, rtol=1e-6)
    for upsampling, roi in ((2, None), (3, None), (2, np.arange(480).reshape(24, 20) % 7 > 0)):
        udf = TiltCorrectedUDF("20 mrad", defocus=20, astigmatism=8, upsampling=upsampling)
        added = ud.run_udf(empty, udf, roi=roi, **options)
        np.testing.assert_allclose(added["image"].compute(), 1, rtol=1e-6)
    nothing = ud.run_udf(empty, udfs, roi=np.zeros((24, 20), bool), **options)
    for result in ud.compute(*nothing):
        assert np.isnan(result["image"]).all()


def test_units_and_axes():
    thin = PhaseObject(**SMALL, defocus=20)
    found = run(thin, ParallaxUDF("20 mrad", upsampling=2))
    assert found.units["defocus"] == found.units["shifts"] == "nm"
    assert found.units["scan_rotation"] == "deg"
    y, x = found.axes["image"]
    assert (y.unit, y.scale, x.name) == ("nm", 0.025, "fine_x")
    lengths = [replace(axis, unit="Å", scale=10 * axis.scale) for axis in thin.axes[:2]]
    frequencies = [
        replace(axis, unit="1/nm", scale=1e-3 * axis.scale / LAMBDA, offset=0.0)
        for axis in thin.axes[2:]
    ]
    options = {"axes": [*lengths, *frequencies]}
    same = run(thin, ParallaxUDF(10, center="middle", upsampling=2), **options)
    for name in ("defocus", "scan_rotation", "shifts", "image"):
        np.testing.assert_allclose(same[name], found[name], rtol=1e-5, atol=1e-5)


def test_the_function():
    thin = PhaseObject(**SMALL, defocus=20)
    lazy = parallax(thin, "20 mrad", bin=2, near_rotation=180, voltage="300 kV")
    assert lazy["image"].shape == (24, 20)
    with pytest.raises(ud.errors.MemoryLimitError) as caught:
        parallax(thin, "20 mrad", voltage="300 kV", max_memory="1 MB")
    assert "bin=2" in caught.value.__notes__[0]


def test_the_function_takes_what_the_udf_and_a_run_take():
    shown = set(inspect.signature(parallax).parameters)
    of_udf, of_run = (set(inspect.signature(f).parameters) for f in (ParallaxUDF, ud.run_udf))
    assert of_udf | (of_run - {"array", "udf", "sig_dims"}) | {"data"} == shown
    with pytest.raises(TypeError, match="binn"):
        parallax(PhaseObject(**SMALL), "20 mrad", binn=2, voltage="300 kV")
    thin, roi = PhaseObject(**SMALL, defocus=20), np.s_[:, :16]
    found = parallax(thin, "20 mrad", bin=2, roi=roi, voltage="300 kV").compute(scheduler="sync")
    wanted = ud.run_udf(thin, ParallaxUDF("20 mrad", bin=2), roi=roi, voltage="300 kV")
    np.testing.assert_array_equal(found["image"], wanted["image"].compute(scheduler="sync"))


AXES = PhaseObject(**SMALL).axes


@pytest.mark.parametrize("make", [ParallaxUDF, lambda r: TiltCorrectedUDF(r, defocus=20)])
@pytest.mark.parametrize(
    ("nav", "r", "options"),
    [
        ((1, 20), 10, {}),
        ((480,), 10, {"axes": AXES[1:]}),
        ((24, 20), 10, {"voltage": None}),
        ((24, 20), 10, {"axes": None}),
        ((24, 20), 10, {"axes": (*AXES[2:], *AXES[2:])}),
        ((24, 20), 10, {"axes": (*AXES[:3], ud.Axis(name="kx", unit="mrad", scale=8))}),
        ((24, 20), "10 nm", {}),
        ((24, 20), 18, {}),
        ((24, 20), "40 mrad", {}),
        ((24, 20), 0.4, {}),
    ],
)
def test_mistakes_in_the_plan(make, nav, r, options):
    data = da.zeros((*nav, 32, 32), chunks=(*nav, 16, 16))
    options = {"axes": AXES, "voltage": "300 kV", **options}
    with pytest.raises((ud.ArgumentValueError, ud.ArgumentTypeError)):
        ud.run_udf(data, make(r), **options)


@pytest.mark.parametrize(
    "mistake",
    [
        {"semiangle": 0},
        {"semiangle": -1},
        {"semiangle": "wide"},
        {"bin": 0},
        {"upsampling": 1.5},
        {"near_rotation": "left"},
        {"center": 3},
    ],
)
def test_mistakes(mistake):
    with pytest.raises((ud.ArgumentValueError, ud.ArgumentTypeError)):
        ParallaxUDF(**{"semiangle": 10, **mistake})


@pytest.mark.parametrize(
    "mistake",
    [{"defocus": "20 mrad"}, {"defocus": np.nan}, {"flip_y": "no"}, {"scan_rotation": None}],
)
def test_mistakes_about_the_lens(mistake):
    with pytest.raises((ud.ArgumentValueError, ud.ArgumentTypeError)):
        TiltCorrectedUDF(**{"semiangle": 10, "defocus": 20, **mistake})


def test_images_that_leave_the_scan():
    udf = TiltCorrectedUDF(10, defocus="1 mm")
    with pytest.raises(ud.ArgumentValueError):
        ud.run_udf(da.zeros((24, 20, 32, 32)), udf, axes=AXES, voltage=3e5)


def test_bins_that_are_too_large():
    with pytest.raises(ud.ArgumentValueError, match="make bin smaller"):
        ud.run_udf(da.zeros((9, 9, 32, 32)), ParallaxUDF(10, bin=9), axes=AXES, voltage=3e5)


@pytest.mark.full
@pytest.mark.parametrize(
    "udf",
    [
        ParallaxUDF(5, upsampling=2),
        TiltCorrectedUDF(5, defocus=10, scan_rotation=20, upsampling=2),
    ],
)
def test_laws(udf):
    thin = PhaseObject(nav_shape=(12, 10), sig_shape=(16, 16), pixel=4.0, defocus=10)
    data = frames(thin, 1000)
    assert not check_udf(udf, data, axes=thin.axes, voltage=thin.voltage).notes
