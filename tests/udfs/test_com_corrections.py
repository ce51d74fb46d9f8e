"""Angle and flip between detector and scan: vectors corrected, and a guess of both."""

import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import udfdask as ud
from suites import examples
from udfdask import ArgumentTypeError, ArgumentValueError
from udfdask.testing import raise_if_dask_computes
from udfdask.udfs import CoMUDF, GuessResult, apply_correction, guess_corrections, to_beam_shift


def plain_guess(y, x, roi=(slice(0, -1), slice(0, -1))):
    """Every angle tried in turn, as the definition has it."""

    def derivatives(angle, flip):
        t = np.radians(angle)
        fy, fx = (-y if flip else y), x
        fy, fx = np.cos(t) * fy + np.sin(t) * fx, -np.sin(t) * fy + np.cos(t) * fx
        curl = np.gradient(fy, axis=1) - np.gradient(fx, axis=0)
        divergence = np.gradient(fy, axis=0) + np.gradient(fx, axis=1)
        return curl[roi], divergence[roi]

    rms = {
        (angle, flip): np.sqrt(np.mean(derivatives(angle, flip)[0] ** 2))
        for flip in (False, True)
        for angle in range(360)
    }
    flip = min(rms[a, True] for a in range(360)) < min(rms[a, False] for a in range(360))
    angle = min(range(360), key=lambda a: rms[a, flip])
    divergence = derivatives(angle, flip)[1]
    largest = abs(divergence).max()
    histogram, _ = np.histogram(divergence, bins=5, range=(-largest, largest))
    angle = (angle + 180 * (histogram[0] < histogram[-1])) % 360
    return GuessResult(angle - 360 * (angle > 180), flip, y[roi].mean(), x[roi].mean())


def atoms(seed=0, shape=(24, 30)):
    """A field towards atoms, (y, x)."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[: shape[0], : shape[1]]
    field = np.zeros((2, *shape))
    for ay, ax in rng.random((12, 2)) * shape:
        pull = np.exp(-((y - ay) ** 2 + (x - ax) ** 2) / 8)
        field -= np.stack([(y - ay) * pull, (x - ax) * pull])
    return field + rng.normal(0, 1e-3, field.shape)


@given(st.integers(-179, 180), st.booleans(), st.integers(0, 5))
@settings(deadline=None, max_examples=examples(25))
def test_a_guess_undoes_what_was_done(angle, flip, seed):
    fy, fx = atoms(seed)
    y, x = apply_correction(fy, fx, scan_rotation=angle, flip_y=flip, forward=False)
    guess = guess_corrections(y + 3, x - 2)
    assert (guess.scan_rotation, guess.flip_y) == (angle, flip)
    assert (guess.cy, guess.cx) == pytest.approx(
        ((y + 3)[:-1, :-1].mean(), (x - 2)[:-1, :-1].mean())
    )


@pytest.mark.parametrize("seed", range(4))
def test_a_guess_is_that_of_trying_every_angle(seed):
    y, x = apply_correction(*atoms(seed), scan_rotation=50.4 * seed, flip_y=seed % 2 == 0)
    assert guess_corrections(y, x) == pytest.approx(plain_guess(y, x))
    roi = (slice(2, 20), slice(3, 25))
    assert guess_corrections(y, x, roi=roi) == pytest.approx(plain_guess(y, x, roi))
    mask = np.random.default_rng(seed).random(y.shape) < 0.7
    assert guess_corrections(y, x, roi=mask) == pytest.approx(plain_guess(y, x, mask))


def test_a_guess_leaves_out_what_is_not_known():
    y, x = apply_correction(*atoms(), scan_rotation=40, flip_y=True, forward=False)
    y[3, 4] = x[3, 4] = np.nan
    guess = guess_corrections(y, x)
    assert (guess.scan_rotation, guess.flip_y) == (40, True)
    assert np.isfinite([guess.cy, guess.cx]).all()


def test_a_guess_is_what_the_udf_takes():
    y, x = apply_correction(*atoms(), scan_rotation=40, flip_y=True, forward=False)
    guess = guess_corrections(y, x)
    assert [type(value) for value in guess] == [int, bool, float, float]
    assert "scan_rotation=40" in repr(CoMUDF.with_params(**guess._asdict()))


@given(st.floats(-720, 720), st.booleans())
def test_backward_undoes_forward(angle, flip):
    there = apply_correction(np.array([1.0, 2]), np.array([3.0, -4]), angle, flip)
    y, x = apply_correction(*there, angle, flip, forward=False)
    np.testing.assert_allclose([y, x], [[1, 2], [3, -4]], atol=1e-12)


def test_corrections_are_lazy_on_lazy_arrays():
    with raise_if_dask_computes():
        y, x = apply_correction(da.zeros(3), da.ones(3), 90, flip_y=False)
        shift = to_beam_shift(da.stack([y, x], axis=-1))
    np.testing.assert_allclose(shift.compute(), [[0, -1]] * 3, atol=1e-15)


def test_beam_shifts_are_x_before_y_and_point_back():
    np.testing.assert_array_equal(to_beam_shift([[1.0, 2], [-3, 4]]), [[-2, -1], [-4, 3]])
    with pytest.raises(ArgumentValueError, match=r"of shape \(\.\.\., 2\), not \(3,\)"):
        to_beam_shift(np.zeros(3))


@pytest.mark.parametrize(
    ("y", "x", "error"),
    [
        (np.zeros((3, 3)), np.zeros((3, 4)), ArgumentValueError),
        (np.zeros(9), np.zeros(9), ArgumentValueError),
        (np.zeros((1, 9)), np.zeros((1, 9)), ArgumentValueError),
        (np.zeros((3, 3), complex), np.zeros((3, 3)), ArgumentTypeError),
        (np.full((3, 3), np.nan), np.zeros((3, 3)), ArgumentValueError),
    ],
)
def test_what_cannot_be_guessed_is_named(y, x, error):
    with pytest.raises(error):
        guess_corrections(y, x)


@pytest.mark.parametrize(
    ("angle", "error"), [("left", ArgumentTypeError), (np.inf, ArgumentValueError)]
)
def test_a_wrong_angle_is_named(angle, error):
    with pytest.raises(error, match="scan_rotation"):
        apply_correction(np.zeros(2), np.zeros(2), angle, flip_y=False)


@pytest.mark.parametrize("lazy", [False, True])
def test_the_beam_shift_of_a_signal_keeps_its_axes(lazy):
    hs = pytest.importorskip("hyperspy.api", reason="hyperspy is an extra")
    data = np.arange(24.0).reshape(3, 4, 2)
    signal = hs.signals.Signal1D(data)
    x = signal.axes_manager[0]
    x.name, x.units, x.scale = "x", "nm", 0.5
    found = to_beam_shift(signal.as_lazy() if lazy else signal)
    assert found._lazy == lazy
    axis = found.axes_manager[0]
    assert (axis.name, axis.units, axis.scale) == ("x", "nm", 0.5)
    np.testing.assert_array_equal(np.asarray(found.data), -data[..., ::-1])


def test_the_origin_of_beam_shifts_on_odd_frames():
    frames = np.zeros((1, 7, 9))
    frames[0, 5, 2] = 1
    x = da.from_array(frames)
    ours = ud.run_udf(x, CoMUDF())["raw_shifts"].compute()
    np.testing.assert_array_equal(to_beam_shift(ours), [[2, -2]])
    pyxem = ud.run_udf(x, CoMUDF(cy=7 / 2, cx=9 / 2))["raw_shifts"].compute()
    np.testing.assert_array_equal(to_beam_shift(pyxem), [[9 / 2 - 2, 7 / 2 - 5]])


def test_beam_shifts_of_another_unit_are_refused():
    xr = pytest.importorskip("xarray", reason="xarray is an extra")
    field = xr.DataArray(np.ones((3, 2)), dims=("x", "component"), attrs={"units": "mrad"})
    with pytest.raises(ud.ArgumentValueError, match="must be in pixels, but they are in mrad"):
        to_beam_shift(field)
    in_pixels = field.assign_attrs(units="px")
    np.testing.assert_array_equal(to_beam_shift(in_pixels), -np.ones((3, 2)))
    hs = pytest.importorskip("hyperspy.api", reason="HyperSpy is an extra")
    signal = hs.signals.Signal1D(np.ones((3, 2)))
    signal.metadata.set_item("Signal.quantity", "field (1/nm)")
    with pytest.raises(ud.ArgumentValueError, match="but they are in 1/nm"):
        to_beam_shift(signal)
