"""Single side band ptychography, against plain complex128 NumPy and simulated weak objects."""

import cmath
import itertools
import math

import dask.array as da
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import udfdask as ud
from making import SYNC
from suites import examples
from udfdask import ArgumentTypeError, ArgumentValueError
from udfdask.analyses import SideBandUDF, single_side_band
from udfdask.demo import PhaseObject
from udfdask.geometry.electrons import wavelength
from udfdask.testing import check_udf, raise_if_dask_computes
from udfdask.testing.strategies import chunkings, rois

LAMBDA = wavelength(300e3)
SMALL = PhaseObject(nav_shape=(6, 8), sig_shape=(14, 14), pixel=4.0, step=0.06)
RUN = {"axes": SMALL.axes, "voltage": "300 kV"}


class WeakObject(PhaseObject):
    """A weak object that is periodic over the scan, with all aberrations of the probe."""

    periods = ((2, 1, 0.02), (-3, 4, 0.015), (0, 6, 0.02), (5, 0, 0.01), (1, -1, 0.02))
    aberrations = (0.0, 0.0, 0.0)  # astigmatism, its angle, spherical

    def _waves(self, *, turned=False):
        size = self.step * np.array(self.nav_shape)
        turn = self._turn() if turned else np.eye(2)
        return [(*(np.array(wave[:2]) / size @ turn), wave[2]) for wave in self.periods]

    def _probe(self):
        angles = np.fft.fftfreq(self.sig_shape[0], 1 / self.sig_shape[0]) * self.pixel * 1e-3
        theta = angles[:, None] * 1j + angles
        on_scan = (theta.conj() if self.flip_y else theta) * phasor(self.scan_rotation)
        chi = chi_of(on_scan, self.defocus, *self.aberrations)
        edge = (self.semiangle - 1e3 * abs(theta)) / self.pixel + 0.5
        probe = np.fft.ifft2(np.clip(edge, 0, 1) * np.exp(-1j * chi))
        return probe / np.linalg.norm(probe)


def phasor(degrees):
    return cmath.exp(1j * math.radians(degrees))


def chi_of(theta, defocus=0.0, astigmatism=0.0, angle=0.0, spherical=0.0):
    """The phase of aberrations at angles ``x + 1j * y`` on the scan, in radians."""
    along = astigmatism * (theta**2 * phasor(-2 * angle)).real
    square = abs(theta) ** 2
    return np.pi / LAMBDA * (spherical * square**2 / 2 - defocus * square - along)


def plain(data, about, radius, *, center=None, turn=0.0, flip=False, roi=None, **lens):
    """The transmission, one frequency at a time; lengths in nm, radius in mrad."""
    data = data.astype(float)
    if roi is not None:
        data[~roi] = data[roi].mean(axis=0)
    (ny, nx), sig = data.shape[:2], data.shape[2:]
    cy, cx = (n // 2 for n in sig) if center is None else center
    y, x = np.indices(sig)
    theta = about.pixel * 1e-3 * ((y - cy) * 1j + x - cx)

    def wave(theta):
        edge = np.clip((radius - 1e3 * abs(theta)) / about.pixel + 0.5, 0, 1)
        on_scan = (theta.conj() if flip else theta) * phasor(turn)
        return edge * np.exp(-1j * chi_of(on_scan, **lens))

    spectrum = np.fft.fft2(data, axes=(0, 1))
    bright = abs(wave(theta)) ** 2
    beam = (spectrum[0, 0] * bright).sum().real / (bright**2).sum() / (ny * nx)
    found = np.zeros((ny, nx), complex)
    for row, column in itertools.product(range(ny), range(nx)):
        if 2 * column >= nx or 2 * row == ny or not (row or column):
            continue
        fy, fx = np.fft.fftfreq(ny, about.step)[row], column / (nx * about.step)
        q = LAMBDA * (fy * 1j + fx) * phasor(-turn)
        q = q.conjugate() if flip else q
        back, forth = wave(theta - q), wave(theta + q)
        pair = np.stack([wave(theta).conj() * back, wave(theta) * forth.conj()], axis=-1)[
            bright > 0
        ]
        (one, other), _, _, weights = np.linalg.lstsq(pair, spectrum[row, column][bright > 0])
        if min(weights) ** 2 >= 1:
            found[row, column] = one / beam
            if column:
                found[-row, -column] = other.conj() / beam
    found[0, 0] = ny * nx
    return np.fft.ifft2(found)


def recorded(about=SMALL, seed=0):
    """Frames of a scan with noise, as integers."""
    frames = about.array.compute(**SYNC)
    return np.random.default_rng(seed).poisson(3000 * frames).astype("uint16")


DATA = recorded()
CASES = [
    ({}, {}),
    ({"defocus": 12.0}, {"defocus": 12.0}),
    ({"scan_rotation": 25.0, "flip_y": True}, {"turn": 25.0, "flip": True}),
    (
        {"astigmatism": 5.0, "astigmatism_angle": 20.0, "spherical": 2e4, "scan_rotation": 25.0},
        {"astigmatism": 5.0, "angle": 20.0, "spherical": 2e4, "turn": 25.0},
    ),
    ({"center": (6.7, 7.2)}, {"center": (6.7, 7.2)}),
]


@pytest.mark.parametrize(("parameters", "same"), CASES, ids=str)
def test_the_object_follows_the_formula(parameters, same):
    wanted = plain(DATA, SMALL, 20.0, **same)
    for dtype in ("uint16", ">u2", "float64"):
        x = da.from_array(DATA.astype(dtype), chunks=(4, 5, 9, 14))
        found = single_side_band(x, semiangle="20 mrad", **parameters, **RUN).compute(**SYNC)
        np.testing.assert_allclose(found["object"], wanted, atol=1e-5)
    np.testing.assert_allclose(found["phase"], np.angle(found["object"]), atol=1e-6)
    np.testing.assert_allclose(found["amplitude"], abs(found["object"]), atol=1e-6)


@pytest.mark.parametrize("axis", range(4))
def test_an_axis_can_run_backwards(axis):
    lens = {"defocus": 12.0, "astigmatism": 5.0, "astigmatism_angle": 20.0, "scan_rotation": 25.0}
    wanted = single_side_band(da.from_array(DATA), "20 mrad", **lens, **RUN)["object"]
    back = [slice(None)] * 4
    back[axis] = slice(None, None, -1)
    axes = list(SMALL.axes)
    axes[axis] = axes[axis].sliced(back[axis], DATA.shape[axis])
    mirrored = da.from_array(DATA[tuple(back)])
    found = single_side_band(mirrored, "20 mrad", **lens, **{**RUN, "axes": axes})["object"]
    found, wanted = (one.compute(**SYNC) for one in (found, wanted))
    np.testing.assert_allclose(found[tuple(back[:2])], wanted, atol=1e-5)


@given(data=st.data())
@settings(max_examples=examples(15, 4), suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_chunks_and_regions(data):
    chunks, roi = data.draw(chunkings(DATA.shape)), data.draw(rois(DATA.shape[:2]))
    seen = np.ones(DATA.shape[:2], bool) if roi is None else roi
    assume(seen.any())
    udf = SideBandUDF(semiangle=5, defocus=12.0)
    result = ud.run_udf(da.from_array(DATA, chunks=chunks), udf, roi=roi, **RUN)
    found = result.compute(**SYNC)["object"]
    np.testing.assert_array_equal(np.isfinite(found), seen)
    wanted = plain(DATA, SMALL, 20.0, defocus=12.0, roi=seen)
    np.testing.assert_allclose(found[seen], wanted[seen], atol=1e-5)


def test_bins_are_larger_pixels():
    joined = DATA.reshape(6, 8, 7, 2, 7, 2).sum(axis=(3, 5))
    scan, frame = SMALL.axes[:2], [ud.Axis(name=k, unit="mrad", scale=8.0) for k in ("ky", "kx")]
    known = {"voltage": "300 kV", "axes": [*scan, *frame]}
    x, y = da.from_array(DATA, chunks=(2, 8, 5, 9)), da.from_array(joined)
    found = single_side_band(x, semiangle="24 mrad", center=(6.7, 7.1), bin=2, **RUN)
    wanted = single_side_band(y, semiangle="24 mrad", center=(3.1, 3.3), **known)
    found, wanted = ud.compute(found, wanted, **SYNC)
    np.testing.assert_allclose(found["object"], wanted["object"], atol=1e-6)


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"defocus": 10},
        {"scan_rotation": 30, "flip_y": True},
        {"scan_rotation": -70, "flip_y": True, "defocus": -8, "aberrations": (4.0, 65.0, 2e4)},
    ],
    ids=str,
)
def test_weak_objects_have_their_phase(parameters):
    """Errors are of the second order of the phase, which is 0.03 rad rms."""
    weak = WeakObject(
        nav_shape=(16, 20),
        sig_shape=(48, 48),  # the scattered waves are inside, and the probe too
        pixel=1.5,
        **{k: v for k, v in parameters.items() if k != "aberrations"},
    )
    lens = parameters.get("aberrations", (0, 0, 0))
    object.__setattr__(weak, "aberrations", lens)
    parameters = {k: v for k, v in parameters.items() if k != "aberrations"}
    names = ("astigmatism", "astigmatism_angle", "spherical")
    parameters |= dict(zip(names, lens, strict=True))
    frames = weak.frames(*(axis.ravel() for axis in np.indices(weak.nav_shape)))
    x = da.from_array(frames.reshape(*weak.nav_shape, 48, 48), chunks=(8, 20, 48, 48))
    how = {"semiangle": "20 mrad", "voltage": "300 kV", "axes": weak.axes}
    result = single_side_band(x, **parameters, **how).compute(**SYNC)
    assert np.std(result["phase"] - weak.phase) < 1e-3
    assert np.std(result["amplitude"]) < 1e-3
    assert np.mean(result["amplitude"]) == pytest.approx(1, abs=1e-3)
    if parameters.get("defocus"):
        parameters["defocus"] *= -1
        wrong = single_side_band(x, **parameters, **how).compute(**SYNC)
        assert np.std(wrong["phase"] - weak.phase) > 1e-2


class EndlessObject(WeakObject):
    """A weak object that is not periodic over the scan: short waves, and one that is longer."""

    periods = ((5.3, 2.2, 0.02), (-3.6, 6.4, 0.02))


def mirrored(frames):
    """A scan and its mirror images, which have no step at the borders of the scan."""
    twice = da.concatenate([frames, frames[::-1, :, ::-1]], axis=0)
    return da.concatenate([twice, twice[:, ::-1, :, ::-1]], axis=1)


@pytest.mark.parametrize("defocus", [0.0, 10.0, 20.0])
def test_details_are_wrong_in_a_border_as_wide_as_the_probe(defocus):
    free = EndlessObject(nav_shape=(40, 40), sig_shape=(48, 48), pixel=1.5, defocus=defocus)
    lens = {"semiangle": "20 mrad", "voltage": "300 kV", "defocus": defocus}
    phase = single_side_band(free, **lens)["phase"].compute(**SYNC)
    error = np.abs(phase - free.phase) / free.phase.std()
    wide = 1.22 * LAMBDA / 0.02 + defocus * 0.02
    border = math.ceil(wide / free.step)
    assert np.sqrt(np.mean(error[border:-border, border:-border] ** 2)) < 0.2
    assert np.sqrt(np.mean(error[:, [0, -1]] ** 2)) > 0.4


def test_long_waves_of_a_mirrored_scan_have_no_step():
    class Slow(EndlessObject):
        periods = ((0.6, 0.3, 0.03), (0.2, -0.7, 0.03))

    free = Slow(nav_shape=(24, 24), sig_shape=(32, 32), pixel=2.0)
    lens = {"semiangle": "20 mrad", "voltage": "300 kV", "axes": free.axes, "center": "middle"}
    frames = free.array[:, :, 1:, 1:]
    plain, twice = ud.compute(
        single_side_band(frames, **lens)["phase"],
        single_side_band(mirrored(frames), **lens)["phase"],
    )
    assert np.std(twice[:24, :24] - free.phase) < 0.5 * np.std(plain - free.phase)


@pytest.mark.parametrize("dose", [100, 10_000])
@pytest.mark.parametrize("defocus", [0.0, 6.0])
def test_the_noise_is_that_of_counted_electrons(defocus, dose):
    """Within 1.2 times the limit of Cramer and Rao, over the frequencies of the result."""
    about = WeakObject(
        nav_shape=(24, 24), sig_shape=(24, 24), pixel=2.0, defocus=defocus, dose=dose
    )
    object.__setattr__(about, "periods", ())
    known = {"axes": about.axes, "voltage": "300 kV"}
    result = single_side_band(about.array, semiangle="20 mrad", defocus=defocus, **known)
    phase = result["phase"].compute(**SYNC)
    seen = abs(np.fft.fft2(phase)) > 1e-4
    y, x = np.indices(about.sig_shape) - 12
    theta, variance = 2e-3 * (1j * y + x), 0.0

    def wave(theta):
        edge = np.clip(10.5 - 500 * abs(theta), 0, 1)
        return edge * np.exp(-1j * chi_of(theta, defocus))

    bright = abs(wave(theta)) ** 2
    for row, column in np.argwhere(seen)[1:]:
        frequency = np.fft.fftfreq(24, about.step)
        q = LAMBDA * (1j * frequency[row] + frequency[column])
        change = abs(wave(theta - q) * wave(theta).conj() - wave(theta) * wave(theta + q).conj())
        information = (change[bright > 0] ** 2 / bright[bright > 0]).sum() / bright.sum()
        variance += 1 / (dose * information * phase.size)
    assert 0.9 < np.std(phase) / np.sqrt(variance) < 1.2


def test_snapshots_show_what_has_come_in():
    x = da.from_array(DATA, chunks=(2, 8, 14, 14))
    udf = SideBandUDF(semiangle="20 mrad")
    whole = ud.run_udf(x, udf, **RUN).compute(**SYNC)
    snapshots = list(ud.run_udf_iter(x, udf, scheduler="synchronous", **RUN))
    for snapshot in snapshots:
        phase = snapshot.buffers[0]["phase"]
        np.testing.assert_array_equal(np.isfinite(phase), snapshot.damage)
        assert snapshot.buffers[0].valid_mask["phase"].sum() == snapshot.damage.sum()
    assert not snapshots[0].damage.all()
    np.testing.assert_allclose(phase, whole["phase"], atol=1e-6)


def test_nothing_is_computed_before_and_results_have_units():
    x = da.from_array(DATA, chunks=(2, 8, 14, 14))
    with raise_if_dask_computes():
        result = single_side_band(x, semiangle="20 mrad", **RUN)
    assert result.units["phase"] == "rad"
    assert result["object"].dtype == np.complex64


def test_units_of_the_axes_do_not_matter():
    per_nm = 4e-3 / LAMBDA
    frame = [ud.Axis(name=k, unit="1/Å", scale=per_nm / 10) for k in ("ky", "kx")]
    scan = [ud.Axis(name=k, unit="pm", scale=60.0) for k in "yx"]
    known = {"voltage": 300e3, "axes": [*scan, *frame]}
    x = da.from_array(DATA)
    one = single_side_band(x, semiangle=5, defocus=12, **RUN)
    other = single_side_band(x, semiangle=5, defocus=(12e3, "pm"), center="middle", **known)
    one, other = ud.compute(one, other, **SYNC)
    np.testing.assert_allclose(one["object"], other["object"], atol=1e-5)


def axes_with(**changed):
    """The axes, of which the scan or the frame has another unit or scale."""
    axes = list(SMALL.axes)
    for place, values in (("scan", (0, 1)), ("frame", (2, 3))):
        for k in values:
            new = changed.get(place, {})
            known = {"unit": axes[k].unit, "scale": axes[k].scale, **new}
            axes[k] = ud.Axis(name=axes[k].name, **known)
    return {"axes": axes}


@pytest.mark.parametrize(
    ("parameters", "run", "message"),
    [
        ({}, {"voltage": None}, "needs the voltage: pass voltage="),
        ({}, {"axes": None}, "axes of the"),
        ({}, axes_with(scan={"unit": None}), "axes of the scan"),
        ({}, axes_with(frame={"unit": None}), "axes of the frames"),
        ({}, axes_with(scan={"unit": "s"}), "axes of the scan"),
        ({}, axes_with(frame={"unit": "eV"}), "axes of the frames"),
        ({}, axes_with(scan={"scale": 1e-3}), "no spatial frequency of the scan"),
        ({}, axes_with(scan={"scale": 1e3}), "no spatial frequency of the scan"),
        ({"semiangle": 7.5}, {}, "larger than the frames"),
        ({"semiangle": 0}, {}, "semiangle must be positive"),
        ({"semiangle": "0 mrad"}, {}, "semiangle must be positive"),
        ({"bin": 0}, {}, "bin must be at least 1"),
        *(({"bin": n}, {}, "bin") for n in (8, 40)),
        ({"defocus": math.nan}, {}, "defocus must be finite"),
        ({"scan_rotation": math.inf}, {}, "scan_rotation"),
    ],
)
def test_values_that_cannot_be(parameters, run, message):
    given_ = {"semiangle": 5, **parameters}
    with raise_if_dask_computes(), pytest.raises(ArgumentValueError, match=message):
        single_side_band(da.from_array(DATA), **given_, **{**RUN, **run})


LAZY = da.ones((), chunks=()) * 2
WRONG_TYPES = [{"semiangle": None}, {"flip_y": "no"}, {"astigmatism": "large"}, {"bin": 1.5}]
WRONG_TYPES += [{name: LAZY} for name in ("scan_rotation", "defocus", "flip_y", "cx")]


@pytest.mark.parametrize("parameters", WRONG_TYPES, ids=str)
def test_types_that_cannot_be(parameters):
    with raise_if_dask_computes(), pytest.raises(ArgumentTypeError, match=next(iter(parameters))):
        single_side_band(da.from_array(DATA), **{"semiangle": 5, **parameters}, **RUN)


@pytest.mark.parametrize("nav", [(1, 8), (8,), (2, 2, 2)])
def test_a_scan_has_two_axes(nav):
    axes = [ud.Axis(name=f"n{k}", unit="nm", scale=0.06) for k in range(len(nav))]
    x = da.ones((*nav, 14, 14))
    with pytest.raises(ArgumentValueError, match="needs a 2-D scan"):
        single_side_band(x, semiangle=5, voltage="300 kV", axes=[*axes, *SMALL.axes[2:]])


def test_dark_data_are_dark():
    found = single_side_band(da.zeros_like(DATA), semiangle=5, **RUN).compute(**SYNC)
    np.testing.assert_array_equal(found["object"], 0)


@pytest.mark.full
@pytest.mark.parametrize(
    "parameters", [{}, {"defocus": 10.0, "bin": 2, "scan_rotation": 20}], ids=str
)
def test_laws(parameters):
    check_udf(SideBandUDF(semiangle=2.5, **parameters), DATA[:6, :7], **RUN)
