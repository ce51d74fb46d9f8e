"""Integrated DPC of a simulated recording, whose phase is known."""

from dataclasses import replace

import dask
import numpy as np
import pytest

import udfdask as ud
from making import SYNC
from udfdask import ArgumentTypeError, ArgumentValueError, Axis
from udfdask.analyses import IntegratedDPCUDF, ScanRotationUDF, integrated_dpc
from udfdask.demo import PhaseObject
from udfdask.testing import assert_eq, check_udf
from udfdask.udfs import CoMUDF, guess_corrections

KV = {"voltage": "300 kV"}
TURNED = {"scan_rotation": 25.0, "flip_y": True}


@pytest.fixture(scope="module")
def thin():
    """A recording in memory, turned and flipped, and what is known about it."""
    about = PhaseObject(nav_shape=(32, 36), sig_shape=(48, 48), semiangle=14, **TURNED)
    return about, about.array.compute(scheduler="threads")


def known(thin, chunks=(8, 18, -1, -1)):
    about, frames = thin
    return dask.array.from_array(frames, chunks=chunks), {"axes": about.axes, **KV}


def test_the_phase_is_that_of_the_object(thin):
    array, how = known(thin)
    result = integrated_dpc(array, **TURNED, **how).compute(**SYNC)
    error = result["phase"] - thin[0].blurred_phase
    assert np.std(error) < 0.02
    assert result.units["phase"] == "rad"
    assert result.valid_mask["phase"].all()


def test_a_result_is_integrated_like_frames(thin):
    array, how = known(thin)
    com = ud.run_udf(array, CoMUDF(**TURNED), **how)
    wanted = integrated_dpc(array, **TURNED, **how)["phase"].compute(**SYNC)
    np.testing.assert_allclose(integrated_dpc(com)["phase"].compute(**SYNC), wanted, atol=1e-12)
    done = integrated_dpc(com.compute(**SYNC))
    np.testing.assert_allclose(done["phase"].compute(**SYNC), wanted, atol=1e-12)


def test_frames_in_reciprocal_lengths_need_no_voltage(thin):
    array, how = known(thin)
    wanted = integrated_dpc(array, **TURNED, **how)["phase"].compute(**SYNC)
    per = 1e-3 / ud.geometry.electrons.wavelength(300e3)  # 1/nm in a mrad
    frame = [Axis(name=a.name, unit="1/Å", scale=a.scale * per / 10) for a in how["axes"][2:]]
    axes = [*how["axes"][:2], *frame]
    found = integrated_dpc(array, center=(24, 24), **TURNED, axes=axes)
    np.testing.assert_allclose(found["phase"].compute(**SYNC), wanted, atol=1e-9)
    with pytest.raises(ArgumentValueError):  # a step in pixels is no length
        integrated_dpc(array, **TURNED, axes=[Axis(name="y"), Axis(name="x"), *frame])


def test_a_region_and_a_snapshot_have_the_phase_of_their_positions(thin):
    array, how = known(thin)
    y, x = np.ogrid[:32, :36]
    roi = np.hypot(y - 16, x - 18) < 12
    found = integrated_dpc(array, **TURNED, roi=roi, **how)["phase"].compute(**SYNC)
    np.testing.assert_array_equal(np.isnan(found), ~roi)
    error = (found - thin[0].blurred_phase)[roi]
    assert np.std(error) < 0.02
    snapshots = ud.run_udf_iter(array, IntegratedDPCUDF(**TURNED), **how, **SYNC)
    for snapshot in snapshots:
        phase = np.asarray(snapshot.buffers[0]["phase"])
        assert np.array_equal(np.isfinite(phase), snapshot.damage)


def test_the_noise_is_that_of_the_electrons():
    about = PhaseObject(nav_shape=(32, 32), sig_shape=(48, 48), semiangle=14, dose=1000)
    result = integrated_dpc(about, **KV).compute()
    exact = integrated_dpc(replace(about, dose=None), **KV).compute()
    noise = result["phase"] - exact["phase"]
    # each center of mass has the spread of a disk, r / 2 along an axis, over the root of the dose
    spread = 14 / 2 / np.sqrt(1000)
    field = result["field"] - exact["field"]
    assert 0.8 < np.std(field) / spread < 1.2
    # that of white noise has 1 / k**2 of its variance at a spatial frequency k
    step = 2 * np.pi * spread * 1e-3 / ud.geometry.electrons.wavelength(300e3) * about.step
    k = np.pi * np.arange(32) / 32  # of cosines
    square = k[:, None] ** 2 + k**2
    limit = step * np.sqrt(np.mean(np.divide(1, square, where=square > 0, out=0 * square)))
    assert np.std(noise) < 1.2 * limit


def test_the_rotation_is_guessed_with_its_evidence(thin):
    array, how = known(thin)
    found = ud.run_udf(array, ScanRotationUDF(), **how).compute(**SYNC)
    assert (found["scan_rotation"], found["flip_y"]) == (25, 1)
    guess = guess_corrections(*np.moveaxis(found["raw_com"], -1, 0))
    assert (guess.scan_rotation, guess.flip_y) == (25, True)
    guessed = {"scan_rotation": found["scan_rotation"], "flip_y": found["flip_y"]}
    assert repr(IntegratedDPCUDF(**guessed)) == repr(IntegratedDPCUDF(**TURNED))
    taken = ud.run_udf(array, IntegratedDPCUDF(**guessed), **how)
    given = ud.run_udf(array, IntegratedDPCUDF(**TURNED), **how)
    assert_eq(taken["phase"], given["phase"])
    curl, divergence = found["curl_by_angle"], found["divergence_by_angle"]
    assert curl.argmin() // 2 % 180 == 25
    assert curl.min() < 0.1 * curl.max()
    np.testing.assert_allclose(
        curl**2 + divergence**2, (curl**2 + divergence**2)[:1].repeat(360, 0)
    )
    assert [axis.name for axis in found.extra_axes["curl_by_angle"]] == ["scan_rotation", "flip"]


def test_a_guess_needs_positions(thin):
    array, how = known(thin)
    roi = np.zeros((32, 36), bool)
    roi[4, 4] = True
    found = ud.run_udf(array, ScanRotationUDF(), roi=roi, **how).compute(**SYNC)
    assert np.isnan(found["scan_rotation"])
    assert np.isnan(found["curl_by_angle"]).all()


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"voltage": None}, ArgumentValueError),
        ({"voltage": 0}, ArgumentValueError),
        ({"axes": None}, ArgumentValueError),
        ({"axes": [Axis(name=name, unit="nm") for name in "abcd"]}, ArgumentValueError),
        ({"axes": [Axis(name=name, unit="mrad") for name in "abcd"]}, ArgumentValueError),
        ({"borders": "open"}, ArgumentValueError),
        ({"high_pass": -1}, ArgumentValueError),
        ({"high_pass": "slow"}, ArgumentTypeError),
    ],
)
def test_mistakes_are_found_before_a_run(thin, change, kind):
    array, how = known(thin)
    with pytest.raises(kind):
        integrated_dpc(array, **{**how, **change})


def test_a_line_has_no_phase(thin):
    array, how = known(thin)
    for udf in (IntegratedDPCUDF(), ScanRotationUDF()):
        with pytest.raises(ArgumentValueError):
            ud.run_udf(array[:1], udf, **how)
    with pytest.raises(ArgumentValueError):
        integrated_dpc(ud.run_udf(array, ud.udfs.SumUDF(), **how))
    for more in (TURNED, {"axes": thin[0].axes}, {"unit": "px"}):
        with pytest.raises(ArgumentTypeError):
            integrated_dpc(ud.run_udf(array, CoMUDF(), **how), **more)


@pytest.mark.full
@pytest.mark.parametrize("udf", [IntegratedDPCUDF(), ScanRotationUDF()], ids=repr)
def test_laws(thin, udf):
    about, frames = thin
    check_udf(udf, frames[:6, :7], axes=about.axes, **KV)
