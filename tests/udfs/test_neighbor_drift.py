"""ScanDriftUDF on frames that were shifted by known amounts, and the drift made of its shifts."""

import functools

import dask.array as da
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import ndimage

import udfdask as ud
from suites import examples
from udfdask.udfs import CoMUDF, ScanDriftUDF, SumUDF, integrate_drift

pytestmark = pytest.mark.filterwarnings("ignore:.*task:udfdask.UDFWarning")


def smooth_frame(shape, seed=0):
    """A periodic frame without high frequencies, as its Fourier transform, and the frequencies."""
    frequencies = [np.fft.fftfreq(n) for n in shape]
    square = sum(f**2 for f in np.meshgrid(*frequencies, indexing="ij"))
    noise = np.random.default_rng(seed).normal(size=shape)
    return np.fft.fftn(noise) * np.exp(-40 * square), frequencies


def moved(shape, drift):
    """Frames moved by `drift`, shape (*nav, sig dims), in parts of pixels."""
    spectrum, frequencies = smooth_frame(shape)
    frames = []
    for shift in drift.reshape(-1, len(shape)):
        phases = [np.exp(-2j * np.pi * f * s) for f, s in zip(frequencies, shift, strict=True)]
        turned = spectrum * (phases[0] if len(shape) == 1 else np.multiply.outer(*phases))
        frames.append(np.fft.ifftn(turned).real)
    return np.array(frames).reshape(drift.shape[:-1] + shape)


def differences(drift):
    """Shift of each position relative to its predecessor along each axis; NaN for the first."""
    nav_dims = drift.ndim - 1
    found = np.full((*drift.shape[:-1], nav_dims, drift.shape[-1]), np.nan)
    for axis in range(nav_dims):
        later = (slice(None),) * axis + (slice(1, None),)
        found[(*later, ..., axis, slice(None))] = np.diff(drift, axis=axis)
    return found


def measure(x, *, roi=None, sig_dims=2, **options):
    res = ud.run_udf(x, ScanDriftUDF(**options), roi=roi, sig_dims=sig_dims)
    return res.compute(scheduler="synchronous")


@settings(deadline=None, max_examples=examples(40), suppress_health_check=list(HealthCheck))
@given(
    nav=st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple),
    sig=st.sampled_from([(16, 24), (17, 15), (40, 36), (1, 20), (20, 1), (24,), (21,)]),
    seed=st.integers(0, 99),
    data=st.data(),
)
def test_known_shifts(nav, sig, seed, data):
    """Each pair of neighbors, on any grid, with a region or without."""
    rng = np.random.default_rng(seed)
    drift = rng.uniform(-2, 2, (*nav, len(sig)))
    drift[..., np.array(sig) == 1] = 0
    frames = moved(sig, drift)
    chunks = tuple(data.draw(st.integers(1, n)) for n in frames.shape)
    roi = data.draw(st.none() | st.just(rng.random(nav) > 0.3))
    x = da.from_array(frames, chunks=chunks)
    found = measure(x, normalization=None, roi=roi, sig_dims=len(sig))
    where = ... if roi is None else roi
    np.testing.assert_allclose(found["shifts"][where], differences(drift)[where], atol=0.005)
    missing = np.isnan(differences(drift)).any(axis=-1)
    np.testing.assert_allclose(
        found["correlation"][where], np.where(missing, np.nan, 1)[where], atol=0.01
    )


def test_a_ridge_at_an_angle():
    """The maximum is more than half a pixel from the whole pixel with the highest correlation."""
    drift = np.random.default_rng(24).uniform(-2, 2, (4, 4, 3, 2))
    found = measure(da.from_array(moved((17, 15), drift)))
    np.testing.assert_allclose(found["shifts"], differences(drift), atol=0.005)


@pytest.mark.parametrize("normalization", ["phase", None])
@pytest.mark.parametrize("dtype", ["u1", "u2", ">i4", "f4", "f8", "f2"])
def test_whole_pixels(normalization, dtype):
    frame = np.random.default_rng(1).integers(0, 100, (12, 15))
    drift = np.random.default_rng(2).integers(-3, 4, (3, 4, 2))
    frames = [np.roll(frame, shift, axis=(0, 1)) for shift in drift.reshape(-1, 2)]
    x = da.from_array(np.array(frames).reshape((3, 4, 12, 15)).astype(dtype), chunks=(2, 3, 12, 15))
    for upsample, within in ((1, 0), (10, 1e-3)):
        found = measure(x, normalization=normalization, upsample=upsample)
        np.testing.assert_allclose(found["shifts"], differences(drift * 1.0), atol=within)
        np.testing.assert_allclose(found["correlation"][1:, 1:], 1, rtol=1e-5)


@settings(deadline=None, max_examples=examples(20, 5), suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 99), chunks=st.tuples(*[st.integers(1, 4)] * 2))
def test_the_last_bit_does_not_depend_on_chunks(seed, chunks):
    data = np.random.default_rng(seed).random((4, 4, 7, 9)).astype("f4")
    cut, whole = (measure(da.from_array(data, chunks=(*c, 7, 9))) for c in (chunks, (4, 4)))
    for name in whole:
        np.testing.assert_array_equal(cut[name], whole[name])


def test_the_other_end_is_a_neighbor():
    drift = np.array([[0.0, 0], [0, 1], [2, 1]])
    x = da.from_array(moved((16, 16), drift), chunks=(2, 16, 16))
    found = measure(x, boundary="periodic", normalization=None)
    np.testing.assert_allclose(found["shifts"][0, 0], drift[0] - drift[2], atol=0.01)


def test_max_shift():
    """A pattern with a period of 8 pixels, moved by 5: 3 in the other direction."""
    line = np.tile(np.arange(8) ** 2.0, 4)
    frames = np.stack([np.outer(np.hanning(16), np.roll(line, k)) for k in (0, 5)])
    x = da.from_array(frames, chunks=(1, 16, 32))
    near = measure(x, max_shift=4, upsample=1)["shifts"][1, 0]
    np.testing.assert_array_equal(near, [0, -3])


def test_frames_without_a_shift():
    frames = np.random.default_rng(3).random((5, 8, 8)).astype("f4")
    frames[1] = 0.1
    frames[3, 2, 2] = np.nan
    found = measure(da.from_array(frames, chunks=(2, 8, 8)))
    assert np.isnan(found["shifts"]).all()
    np.testing.assert_array_equal(found["correlation"][:, 0], [np.nan, 0, 0, np.nan, np.nan])
    rows = np.indices((2, 8, 8))[1] % 2.0  # waves of 2 pixels, which the blur removes
    for normalization in ("phase", None):
        found = measure(da.from_array(rows), normalization=normalization)
        assert np.isnan(found["shifts"]).all()
        assert found["correlation"][1, 0] == 0
    frames[3, 2, 2] = np.inf
    assert np.isnan(measure(da.from_array(frames, chunks=(2, 8, 8)))["correlation"][3, 0])


def test_it_feeds_descan():
    """A disk that drifts is brought back to where it was in the first frame."""
    y, x = np.indices((3, 5))
    drift = np.stack([y - x * 0.5, 1.5 * x], axis=-1)
    rows, columns = np.indices((48, 48))
    d = np.hypot(rows - 20 - drift[..., :1, None], columns - 18 - drift[..., 1:, None])
    data = da.from_array(np.clip(6.5 - d, 0, 1) * 100, chunks=(2, 2, 48, 48))
    found = measure(data, normalization=None)
    shifts = integrate_drift(found["shifts"], weights=found["correlation"])
    np.testing.assert_allclose(shifts, drift, atol=0.1)
    still, com = ud.run_udf(
        data, [SumUDF(), CoMUDF()], descan=ud.corrections.Descan(shifts, subpixel=True)
    )
    np.testing.assert_allclose(com["raw_com"].compute() - [20, 18], 0, atol=0.1)
    assert (still["intensity"].compute()[20, 8:11] == 0).all()
    assert still["intensity"].compute()[20, 14] > 1000


def textured_movie(counts):
    """A texture that drifts by 8 pixels, in a frame that does not; and something that grows."""
    rng = np.random.default_rng(5)
    base = ndimage.gaussian_filter(rng.standard_normal((136, 136)), 2)
    base = counts * (base - base.min()) / np.ptp(base)
    drift = np.cumsum(rng.normal(0.15, 0.4, (40, 2)), axis=0)
    drift -= drift[0]
    frames = np.stack(
        [ndimage.shift(base, d, order=3, mode="reflect")[20:-20, 20:-20] for d in drift]
    )
    frames[25:, 40:50, 40:50] += 0.3 * counts
    return rng.poisson(np.clip(frames, 0, None)).astype("uint16"), drift


@pytest.mark.parametrize("counts", [20, 200, 2000, 20000])
def test_a_textured_movie(counts):
    frames, drift = textured_movie(counts)
    x = da.from_array(frames, chunks=(10, 96, 96))
    steps = measure(x)["shifts"]
    within = 0.4 if counts == 20 else 0.2
    assert np.sqrt(np.mean((integrate_drift(steps) - drift) ** 2, axis=0)).max() < 3 * within
    for reference, chunks in ((x[0], 10), (frames[0], 7)):  # lazy, and in memory
        found = measure(x.rechunk((chunks, -1, -1)), reference=reference)["shifts"]
        assert np.sqrt(np.mean((found - drift) ** 2, axis=0)).max() < 0.1


def test_a_reference():
    drift = np.random.default_rng(0).uniform(-2, 2, (3, 4, 2))
    data = moved((32, 32), drift).astype("f4")
    whole = measure(da.from_array(data), reference=data[1, 2])
    np.testing.assert_allclose(whole["shifts"], drift - drift[1, 2], atol=0.005)
    assert whole["correlation"].shape == (3, 4)
    x = da.from_array(data, chunks=(2, 3, 9, 32))
    cut = measure(x, reference=x[1, 2])
    for name in whole:
        np.testing.assert_array_equal(cut[name], whole[name])
    with pytest.raises(ud.ArgumentValueError, match="the shape of a frame"):
        ud.run_udf(x, ScanDriftUDF(reference=data))
    with pytest.raises(ud.ArgumentValueError, match="reference must be"):
        ScanDriftUDF(reference="first")


def test_axes_units_and_plots():
    axes = [ud.Axis(name=name, unit="nm") for name in ("up", "down", "ky", "kx")]
    res = ud.run_udf(da.zeros((2, 3, 8, 8)), ScanDriftUDF(), axes=axes)
    along, component = res.axes["shifts"][2:]
    assert along.labels == ("up", "down")
    assert component.labels == ("y", "x")
    assert res.units == {"shifts": "px", "correlation": ""}


@settings(deadline=None, max_examples=examples(40), suppress_health_check=list(HealthCheck))
@given(
    nav=st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple),
    sig_dims=st.integers(1, 2),
    seed=st.integers(0, 99),
)
def test_integrals_of_differences(nav, sig_dims, seed):
    """What is missing in a shift is found in others, if there is a way around."""
    rng = np.random.default_rng(seed)
    drift = rng.normal(size=(*nav, sig_dims))
    drift -= drift[(0,) * len(nav)]
    steps = differences(drift)
    np.testing.assert_allclose(integrate_drift(steps), drift, atol=1e-9)
    weights = rng.random(steps.shape[:-1]) + 0.1
    np.testing.assert_allclose(integrate_drift(steps, weights=weights), drift, atol=1e-9)


def test_integrals_are_least_squares():
    steps = np.random.default_rng(0).normal(size=(3, 4, 2, 1))
    found = integrate_drift(steps)
    rows, wanted = [], []
    for axis, step in ((0, 4), (1, 1)):
        for k in range(12):
            if (k // 4, k % 4)[axis]:
                rows.append(np.eye(12)[k] - np.eye(12)[k - step])
                wanted.append(steps.reshape(12, 2)[k, axis])
    plain = np.linalg.lstsq(np.array(rows), np.array(wanted), rcond=None)[0]
    np.testing.assert_allclose(found.ravel(), plain - plain[0], atol=1e-9)


def test_parts_that_nothing_connects():
    steps = np.ones((6, 1, 1))
    steps[2] = np.nan
    check = functools.partial(np.testing.assert_allclose, atol=1e-9)
    check(integrate_drift(steps).ravel(), [0, 1] + [np.nan] * 4)
    steps[1] = np.nan  # the first frame is alone
    check(integrate_drift(steps).ravel(), [np.nan] * 2 + [0, 1, 2, 3])
    weights = np.array([1, 1, 1, -1, np.nan, 1.0])[:, None]
    found = integrate_drift(np.ones((6, 1, 1)), weights=weights)
    check(found.ravel(), [0, 1, 2] + [np.nan] * 3)
    check(integrate_drift(np.full((2, 1, 1), np.nan)).ravel(), [0, np.nan])
    assert integrate_drift(np.ones((0, 1, 2))).shape == (0, 2)


@pytest.mark.parametrize(
    "options",
    [
        {"upsample": 0},
        {"upsample": 2.5},
        {"upsample": True},
        {"normalization": "none"},
        {"max_shift": 0},
        {"max_shift": "far"},
        {"boundary": "wrap"},
    ],
)
def test_mistakes(options):
    with pytest.raises((ud.ArgumentValueError, ud.ArgumentTypeError)):
        ScanDriftUDF(**options)


@pytest.mark.parametrize(
    ("data", "sig_dims"),
    [
        (np.zeros((2, 3, 4, 4), "c8"), 2),
        (np.zeros((2, 3, 4, 4)), 3),
        (np.zeros((2, 0, 4)), 2),
    ],
)
def test_mistakes_in_the_plan(data, sig_dims):
    with pytest.raises((ud.ArgumentValueError, ud.ArgumentTypeError)):
        ud.run_udf(da.from_array(data), ScanDriftUDF(), sig_dims=sig_dims)


@pytest.mark.parametrize(
    ("shifts", "weights"),
    [
        (np.ones((4, 2)), None),
        (np.ones((4, 2, 2)), None),
        (np.ones((4, 1, 2)), np.ones(4)),
        ("far", None),
    ],
)
def test_mistakes_in_the_integral(shifts, weights):
    with pytest.raises((ud.ArgumentValueError, ud.ArgumentTypeError)):
        integrate_drift(shifts, weights=weights)


def test_the_largest_shift_can_be_given_as_text():
    frame = np.random.default_rng(0).random((8, 8))
    movie = da.from_array(np.stack([frame, np.roll(frame, 2, axis=0)]), chunks=(1, 8, 8))
    result = ud.run_udf(movie, ScanDriftUDF(max_shift="3")).compute()
    np.testing.assert_allclose(result["shifts"][1, 0], [2, 0], atol=1e-3)


def test_weights_of_many_sizes():
    shifts = np.ones((4, 1, 2))
    drift = integrate_drift(shifts, weights=[[1], [1e-300], [1e300], [1e295]])
    # the first shift counts for nothing beside the others
    np.testing.assert_allclose(drift[:, 0], [np.nan, 0, 1, 2])
    with pytest.raises(ud.ArgumentValueError, match="weights are infinite"):
        integrate_drift(shifts, weights=np.full((4, 1), np.inf))
