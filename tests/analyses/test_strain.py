"""Strain and rotation against lattices of known deformation."""

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from lattices import LATTICE, disks, rotated
from making import SYNC
from udfdask import ArgumentTypeError, ArgumentValueError
from udfdask.analyses import StrainUDF, fit_lattice, strain_map
from udfdask.corrections import coordinates
from udfdask.testing import assert_eq, check_udf, raise_if_dask_computes

MAPS = ("exx", "eyy", "exy", "rotation")


def deformed(exx=0.0, eyy=0.0, exy=0.0, rotation=0.0):
    """Vectors in reciprocal space of a crystal that is first turned, then strained."""
    cos, sin = np.cos(rotation), np.sin(rotation)
    f = np.array([[1 + eyy, exy], [exy, 1 + exx]]) @ np.array([[cos, sin], [-sin, cos]])
    return LATTICE @ np.linalg.inv(f)


def strain_of(lattices, **options):
    options = {"reference": LATTICE, **options}
    found = strain_map(np.asarray(lattices), **options).compute(**SYNC)
    return {name: np.asarray(found[name]) for name in MAPS}


@pytest.mark.parametrize("rotation", [0.0, 0.02, -2.0])
def test_known_deformation(rotation):
    true = {"exx": 0.03, "eyy": -0.02, "exy": 0.01, "rotation": rotation}
    for name, values in strain_of([deformed(**true)]).items():
        np.testing.assert_allclose(values, true[name], atol=1e-12, err_msg=name)


def test_longer_in_real_space_is_shorter_in_reciprocal_space():
    found = strain_of([LATTICE / (1, 1.02), LATTICE / (0.99, 1), rotated(LATTICE, 0.1)])
    np.testing.assert_allclose(found["exx"], [0.02, 0, 0], atol=1e-12)
    np.testing.assert_allclose(found["eyy"], [0, -0.01, 0], atol=1e-12)
    np.testing.assert_allclose(found["rotation"], [0, 0, 0.1], atol=1e-12)


def test_axes_of_the_results():
    along = {"exx": 0.02, "rotation": 0.03}
    turned = strain_of([deformed(**along)], angle=90)  # x of the results is y of the scan
    np.testing.assert_allclose([turned[n][0] for n in MAPS], [0, 0.02, 0, 0.03], atol=1e-12)
    diagonal = strain_of([deformed(**along)], angle=45)
    np.testing.assert_allclose(
        [diagonal[n][0] for n in MAPS], [0.01, 0.01, -0.01, 0.03], atol=1e-12
    )
    # a tension along the axis is all of it
    direction = coordinates.rotate_deg(30) @ (0, 1)
    tension = LATTICE @ np.linalg.inv(np.eye(2) + 0.02 * np.outer(direction, direction))
    found = strain_of([tension], angle=30)
    np.testing.assert_allclose([found[n][0] for n in MAPS], [0.02, 0, 0, 0], atol=1e-12)


@pytest.mark.parametrize("flip_y", [False, True])
def test_the_detector_is_turned(flip_y):
    true = {"exx": 0.03, "eyy": -0.02, "exy": 0.01, "rotation": 0.05}
    matrix = coordinates.rotate_deg(25)
    matrix = matrix @ coordinates.flip_y() if flip_y else matrix
    on_detector = deformed(**true) @ matrix  # vectors of the scan are matrix @ v
    turned = {"scan_rotation": 25, "flip_y": flip_y, "reference": LATTICE @ matrix}
    for name, values in strain_of([on_detector], **turned).items():
        np.testing.assert_allclose(values, true[name], atol=1e-12, err_msg=name)


REGION = np.zeros((2, 4), bool)
REGION[:, :2] = True


@pytest.mark.parametrize("region", [REGION, np.s_[:, :2], (1, 0), [((0, 1), True)]])
def test_reference_is_a_region(region):
    lattices = np.tile(LATTICE, (2, 4, 1, 1))
    lattices[:, 2:] /= 1.01
    lattices[0, 0] = np.nan
    found = strain_map(lattices, reference=region).compute(**SYNC)
    np.testing.assert_allclose(found["exx"][:, 2:], 0.01)
    np.testing.assert_allclose(found["reference"], LATTICE)
    assert found.valid_mask["exx"].sum() == np.isfinite(found["exx"]).sum() == 7
    roi = np.ones((2, 4), bool)
    roi[1, 3] = False
    part = strain_map(lattices, reference=region, roi=roi).compute(**SYNC)
    np.testing.assert_array_equal(part["exx"][roi], found["exx"][roi])


def test_median_is_the_reference_by_default():
    lattices = np.stack([LATTICE, LATTICE, LATTICE, LATTICE / 1.05, np.full((2, 2), np.nan)])
    found = strain_map(lattices).compute(**SYNC)
    np.testing.assert_allclose(found["eyy"], [0, 0, 0, 0.05, np.nan], atol=1e-12)
    assert found.units == {**dict.fromkeys(MAPS, ""), "rotation": "rad", "reference": "px"}
    origin = np.concatenate([[(1, 1)], LATTICE])
    assert_eq(strain_map(lattices, reference=origin), strain_map(lattices, reference=LATTICE))


def test_from_disks_to_strain():
    rng = np.random.default_rng(0)
    true = {name: rng.uniform(-0.02, 0.02, 600) for name in MAPS}
    true_lattices = np.stack([deformed(*row) for row in zip(*true.values(), strict=True)])
    found, _ = disks(true_lattices, noise=0.05, missing=0.3, false=0.2)
    axes = [ud.Axis(name="y", unit="nm"), ud.Axis(name="x", unit="nm", scale=0.5)]
    axes += [ud.Axis(name="row"), ud.Axis(name="column")]
    with raise_if_dask_computes():
        lattice = fit_lattice(found.reshape(20, 30, -1, 2), axes=axes)
        lazy = strain_map(lattice, reference=LATTICE)
    assert lazy.axes["exx"] == tuple(axes[:2])
    assert lazy.to_xarray()["reference"].dims == ("vector", "component")
    assert lattice.to_xarray()["indices"].dims[2:] == ("disk", "order")
    strain = lazy.compute(**SYNC)
    # 17.5 of 25 disks with sum(h**2) of 50: errors of the vectors, then of their quotient
    error = 0.05 / np.sqrt(0.7 * 50) / 16.9
    factors = {"exx": 1, "eyy": 1, "exy": np.sqrt(0.5), "rotation": np.sqrt(0.5)}
    for name, factor in factors.items():
        rms = np.sqrt(np.mean((strain[name].ravel() - true[name]) ** 2))
        np.testing.assert_allclose(rms, factor * error, rtol=0.15, err_msg=name)


def test_the_axes_of_a_scan_have_any_names():
    positions, _ = disks(np.stack([LATTICE] * 6))
    scan = tuple(ud.Axis(name=name, unit="nm") for name in ("row", "column"))
    axes = [*scan, ud.Axis(name="n"), ud.Axis(name="yx")]
    strain = strain_map(fit_lattice(positions.reshape(2, 3, -1, 2), axes=axes))
    assert strain.axes["exx"] == scan


@pytest.mark.parametrize("whole", [True, False])
def test_coordinates_of_a_dataarray_are_the_axes(whole):
    xr = pytest.importorskip("xarray")
    positions, _ = disks(np.stack([[LATTICE] * 4] * 3).reshape(12, 2, 2))
    array = xr.DataArray(positions.reshape(3, 4, -1, 2), dims=("y", "x", "disk", "component"))
    array = array.assign_coords(x=("x", 0.5 * np.arange(4), {"units": "nm"}))
    given = array.to_dataset(name="positions") if whole else array
    strain = strain_map(fit_lattice(given))
    assert strain.axes["exx"] == (ud.Axis(name="y"), ud.Axis(name="x", unit="nm", scale=0.5))
    vectors = array[:, :, :2].rename(disk="vector")
    assert strain_map(vectors).axes["exx"] == strain.axes["exx"]


def test_axes_of_a_signal_are_those_of_the_strain():
    hs = pytest.importorskip("hyperspy.api")
    positions, _ = disks(np.stack([[LATTICE] * 4] * 3).reshape(12, 2, 2))
    signal = hs.signals.Signal2D(positions.reshape(3, 4, -1, 2))
    x = signal.axes_manager[0]
    x.name, x.units, x.scale = "x", "nm", 0.5
    strain = strain_map(fit_lattice(signal))
    assert strain.axes["exx"] == (ud.Axis(name="y"), ud.Axis(name="x", unit="nm", scale=0.5))


def test_snapshots_are_of_what_is_merged():
    lattices = np.tile(LATTICE, (4, 3, 1, 1))
    lattices[2:] /= 1.01
    x = da.from_array(lattices, chunks=(1, 3, 2, 2))
    *first, last = ud.run_udf_iter(x, StrainUDF(reference=np.s_[:2]), sig_dims=2, **SYNC)
    for snapshot in first:
        values = snapshot.buffers[0]["exx"]
        assert not np.isfinite(values[~snapshot.damage]).any()
    assert_eq(last.buffers[0]["exx"], strain_map(lattices, reference=np.s_[:2])["exx"])


@pytest.mark.full
def test_laws():
    rng = np.random.default_rng(0)
    lattices = LATTICE + rng.integers(-1, 2, (4, 6, 2, 2))
    for reference in (LATTICE, np.s_[:2]):
        check_udf(StrainUDF(reference), lattices)


ONES = np.tile(LATTICE, (4, 3, 1, 1))
WRONG = [
    (ArgumentValueError, lambda: strain_map(np.zeros((4, 3, 2, 3)))),
    (ArgumentValueError, lambda: strain_map(np.zeros(2))),
    (ArgumentValueError, lambda: strain_map({"phase": ONES})),
    (ArgumentTypeError, lambda: strain_map(ONES.astype(complex))),
    (ArgumentValueError, lambda: strain_map(ONES, reference=[(3, 4), (6, 8)])),
    (ArgumentValueError, lambda: strain_map(ONES, reference=np.full((2, 2), np.nan))),
    (ArgumentValueError, lambda: strain_map(ONES, reference=np.zeros((4, 3), bool))),
    (ArgumentValueError, lambda: strain_map(ONES, reference=np.ones((3, 4), bool))),
    (ArgumentValueError, lambda: strain_map(ONES, reference=np.s_[:2], roi=np.s_[2:])),
    (ArgumentTypeError, lambda: strain_map(ONES, angle="x")),
    (ArgumentTypeError, lambda: strain_map(ONES, flip_y=1)),
    (ArgumentValueError, lambda: strain_map(ONES, scan_rotation=np.inf)),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_wrong_arguments(number):
    error, call = WRONG[number]
    with pytest.raises(error):
        call()


def test_region_without_a_lattice():
    lattices = ONES.copy()
    lattices[0] = np.nan
    with pytest.raises(ArgumentValueError):
        strain_map(lattices, reference=np.s_[0]).compute(**SYNC)
