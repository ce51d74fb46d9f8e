"""Disks found without a list of places, against simulated ones and against plain loops."""

import dask.array as da
import numpy as np
import pytest
from scipy import ndimage

import udfdask as ud
from udfdask import ArgumentTypeError, ArgumentValueError
from udfdask.analyses import FindDisksUDF, find_disks
from udfdask.analyses.disk_correlation import disk_center, disk_radius
from udfdask.kernels.cpu.map_maxima import climb, find_local_maxima, fold_waves
from udfdask.masks import DiskTemplate, circular
from udfdask.testing import assert_eq, check_udf, raise_if_dask_computes

# a task takes all signal chunks of its frames
pytestmark = pytest.mark.filterwarnings("ignore:a task takes .* signal chunks:udfdask.UDFWarning")

RADIUS = 3
RING = DiskTemplate(radius=RADIUS, radius_outer=5)
LATTICE = np.array([(8, 8), (8, 22), (20, 9), (20, 23)])
NAV, SIG = (3, 4), (28, 32)
LENGTHS = {"min_spacing": 3, "edge": 3}


def simulate(places, radius, shape, counts=200, background=5):
    """Frames with disks at places (frames, disks, 2), without noise."""
    frames = np.full((len(places), *shape), float(background))
    for f, disk in np.ndindex(places.shape[:2]):
        y, x = places[f, disk]
        frames[f] += counts * circular(x, y, *shape[::-1], radius=radius, antialiased=True)
    return frames


RNG = np.random.default_rng(1)
TRUTH = LATTICE + RNG.uniform(-1.5, 1.5, (12, 4, 2))
DATA = RNG.poisson(simulate(TRUTH, RADIUS, SIG)).astype("uint16").reshape((*NAV, *SIG))


def run(data, udf=None, **options):
    found = ud.run_udf(data, udf or FindDisksUDF(RING, max_disks=6), sig_dims=2, **options)
    return found.compute(scheduler="synchronous")


def errors(found, truth):
    """Found minus true positions, of the found disk that is next to each true one."""
    distance = np.linalg.norm(found[:, :, None] - truth[:, None], axis=-1)
    nearest = np.nanargmin(distance, axis=1)
    return np.take_along_axis(found, nearest[..., None], axis=1) - truth


@pytest.mark.parametrize(
    ("correlation", "most"), [("cross", 0.018), ("hybrid", 0.036), ("phase", 0.04)]
)
@pytest.mark.parametrize("radius", [6, 8, 10])
def test_disks_are_found_within_a_small_part_of_a_pixel(correlation, most, radius):
    rng = np.random.default_rng(3)
    truth = np.array([(24, 24), (24, 64), (64, 24), (64, 64)]) + rng.uniform(-4, 4, (24, 4, 2))
    frames = rng.poisson(simulate(truth, radius, (88, 88)))
    found = run(
        da.from_array(frames), FindDisksUDF(DiskTemplate(radius=radius), correlation=correlation)
    )
    error = errors(found["positions"], truth)
    assert np.sqrt(np.mean(error**2)) < most
    assert np.all(found["num_disks"] == 4)


@pytest.mark.parametrize(("correlation", "most"), [("hybrid", 0.1), ("phase", 0.1)])
def test_unevenly_filled_disks(correlation, most):
    rng = np.random.default_rng(3)
    truth = np.array([(24, 24), (24, 64), (64, 24), (64, 64)]) + rng.uniform(-4, 4, (12, 4, 2))
    frames = simulate(truth, 8, (88, 88))
    y, x = np.mgrid[:88, :88]
    angle, phase = rng.uniform(0, 2 * np.pi, (2, 12, 1, 1))
    along = y * np.sin(angle) + x * np.cos(angle)
    frames *= 1 + 0.8 * np.cos(0.35 * along + phase)  # waves of 18 pixels
    found = {
        kind: run(
            da.from_array(rng.poisson(frames)),
            FindDisksUDF(DiskTemplate(radius=8), correlation=kind),
        )
        for kind in ("cross", correlation)
    }
    rms = {k: np.sqrt(np.mean(errors(f["positions"], truth) ** 2)) for k, f in found.items()}
    assert rms[correlation] < most < rms["cross"]


PROBE = ndimage.gaussian_filter(circular(10, 10, 21, 21, radius=6, antialiased=True), 0.7)


@pytest.mark.parametrize("offset", [0, 300])
@pytest.mark.parametrize(
    "template", [DiskTemplate(radius=6, radius_outer=9), np.log1p(100 * PROBE)]
)
def test_templates_do_not_see_disks_at_the_opposite_border(template, offset):
    at_border = np.tile([(6.4, 30.3), (41.7, 7.2)], (2, 1, 1))
    opposite = np.array([(62.0, 31.0), (42.0, 65.0)])
    alone = simulate(at_border, 6, (60, 64), background=offset)
    both = simulate(np.concatenate([at_border, [opposite] * 2], axis=1), 6, (60, 64))
    for frames in (alone, both - 5 + offset):
        found = run(da.from_array(frames), FindDisksUDF(template, edge=6))
        assert np.abs(errors(found["positions"], at_border)).max() < 0.05


def test_intensities_are_sums_of_counts():
    found = run(da.from_array(DATA))
    total = 200 * np.maximum(RING.array(), 0).sum()
    np.testing.assert_allclose(found["intensity"][..., :4], total, rtol=0.1)
    assert np.isnan(found["intensity"][..., 4:]).all()


@pytest.mark.parametrize(
    ("correlation", "height"), [("cross", 20), ("hybrid", 20**0.5), ("phase", 1)]
)
def test_the_correlation_of_a_copy(correlation, height):
    image = 20 * circular(16, 14, *SIG[::-1], radius=RADIUS, antialiased=True)
    found = run(
        da.from_array(image[None]),
        FindDisksUDF(DiskTemplate(radius=RADIUS), correlation=correlation),
    )
    np.testing.assert_allclose(found["positions"][0, 0], (14, 16), atol=1e-4)
    assert found["correlation"][0, 0] == pytest.approx(height, rel=1e-3)
    assert found["intensity"][0, 0] == pytest.approx(image.sum(), rel=1e-3)


def plain_maxima(one, edge, spacing, least):
    """The places of local maxima by the definition: in order of their height."""
    around = [np.roll(one, step, axis=(0, 1)) for step in np.ndindex(3, 3) if step != (1, 1)]
    top = (one[None] > np.roll(around, (-1, -1), axis=(1, 2))).all(axis=0)
    inside = np.zeros_like(top)
    inside[edge : len(one) - edge, edge : one.shape[1] - edge] = True
    candidates = np.argwhere(top & inside & (one > 0) & (one >= least * one[inside].max()))
    kept = []
    for place in sorted(candidates.tolist(), key=lambda p: -one[tuple(p)]):
        if all(np.hypot(*np.subtract(place, other)) >= spacing for other in kept):
            kept.append(place)
    return kept


@pytest.mark.parametrize(("edge", "spacing", "least"), [(0, 1, 0), (2, 3.5, 0.3), (5, 20, 0.5)])
def test_maxima_are_those_of_a_plain_loop(edge, spacing, least):
    maps = np.random.default_rng(5).normal(size=(3, 17, 20)).astype("f4")
    places, numbers = find_local_maxima(maps, edge, spacing, least, 9, subpixel=False)
    for one, some, number in zip(maps, places, numbers, strict=True):
        expected = plain_maxima(one, edge, spacing, least)
        assert number == len(expected)
        np.testing.assert_array_equal(some[: len(expected)], expected[:9])
        assert np.isnan(some[len(expected) :]).all()


@pytest.mark.parametrize("shape", [(16, 18), (15, 17)])
def test_positions_are_those_of_the_highest_value_between_pixels(shape):
    y, x = (np.arange(n) for n in shape)
    top = np.array([(6.3, 9.8)])
    one = np.exp(np.cos(2 * np.pi * (y - top[0, 0]) / shape[0]))[:, None] * np.exp(
        np.cos(2 * np.pi * (x - top[0, 1]) / shape[1])
    )
    maps = one[None].astype("f4")
    places, _ = find_local_maxima(maps, 0, 1, 0.5, 1, subpixel=True)
    columns = (shape[1] + 1) // 2
    waves = fold_waves((np.fft.rfft2(maps)[..., :columns] / one.size).astype("c8"))
    heights = np.empty((1, 1), "f4")
    climb(shape, waves, 2, np.empty((6, columns), "f4"), places, heights)
    np.testing.assert_allclose(places[0], top, atol=1e-4)
    assert heights[0, 0] == pytest.approx(np.e**2, rel=1e-5)


@pytest.mark.parametrize("chunks", [(3, 4, *SIG), (1, 3, *SIG), (2, 2, 9, 20), (1, 1, 28, 1)])
@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_chunks_regions_and_schedulers_do_not_show(chunks, scheduler):
    whole = run(da.from_array(DATA, chunks=-1))
    roi = np.random.default_rng(6).random(NAV) < 0.5
    data = da.from_array(DATA, chunks=chunks)
    udf = FindDisksUDF(RING, max_disks=6)
    every, part = ud.compute(
        ud.run_udf(data, udf), ud.run_udf(data, udf, roi=roi), scheduler=scheduler
    )
    for name in whole:
        np.testing.assert_array_equal(every[name], whole[name])
        np.testing.assert_array_equal(part.raw[name], whole[name][roi])


@pytest.mark.full
@pytest.mark.parametrize("correlation", ["cross", "hybrid", "phase"])
@pytest.mark.parametrize("subpixel", [True, False])
def test_a_run_keeps_the_laws(correlation, subpixel):
    check_udf(FindDisksUDF(RING, correlation=correlation, subpixel=subpixel, max_disks=5), DATA)


def test_most_disks_that_are_stored():
    two = run(da.from_array(DATA), FindDisksUDF(RING, max_disks=2))
    six = run(da.from_array(DATA))
    assert np.all(two["num_disks"] == 4)
    assert np.all(np.diff(six["correlation"][..., :4]) <= 0)
    assert two["positions"].shape == (*NAV, 2, 2)


def test_whole_pixels():
    found = run(da.from_array(DATA), FindDisksUDF(RING, subpixel=False, max_disks=4))["positions"]
    np.testing.assert_array_equal(found, np.rint(found))
    assert np.abs(errors(found.reshape(12, 4, 2), TRUTH)).max() < 1


def test_an_own_template_has_its_center_at_the_center_of_mass():
    disk = circular(7.3, 5.6, 14, 12, radius=RADIUS, antialiased=True)
    assert disk_center(disk) == pytest.approx((5.6, 7.3), abs=0.02)
    assert disk_radius(disk) == pytest.approx(RADIUS, abs=0.2)
    with raise_if_dask_computes():
        lazy = find_disks(da.from_array(DATA), da.from_array(disk), **LENGTHS, max_disks=4)
    given = find_disks(da.from_array(DATA), disk, center=(5.6, 7.3), **LENGTHS, max_disks=4)
    moved = find_disks(da.from_array(DATA), disk, center=(5.1, 7.3), **LENGTHS, max_disks=4)
    lazy, given, moved = (one["positions"].compute() for one in (lazy, given, moved))
    np.testing.assert_allclose(lazy, given, atol=0.02)
    np.testing.assert_allclose(given - moved, np.broadcast_to((0.5, 0), given.shape), atol=1e-3)


def test_a_file_is_a_template(tmp_path):
    disk = circular(7.3, 5.6, 14, 12, radius=RADIUS, antialiased=True)
    np.save(tmp_path / "probe.npy", disk)
    data = da.from_array(DATA)
    from_file = find_disks(data, ud.io.open_file(tmp_path / "probe.npy"), **LENGTHS)
    lazy = find_disks(data, da.from_array(disk), **LENGTHS)
    assert_eq(from_file["positions"], lazy["positions"])


def test_lengths_may_have_a_unit():
    axes = [ud.Axis(name=name, unit="mrad", scale=0.5) for name in ("y", "x", "ky", "kx")]
    template = DiskTemplate(radius="1.5 mrad", radius_outer=(2.5, "mrad"))
    got = find_disks(
        da.from_array(DATA), template, min_spacing="1.5 mrad", edge=(1.5, "mrad"), axes=axes,
        unit="counts",
    )  # fmt: skip
    assert (got.units["positions"], got.units["intensity"]) == ("px", "counts")
    assert [axis.name for axis in got.extra_axes["positions"]] == ["disk", "component"]
    want = find_disks(da.from_array(DATA), RING, **LENGTHS)
    np.testing.assert_array_equal(got["positions"], want["positions"])


@pytest.mark.parametrize("bad", [np.nan, np.inf, 0])
def test_frames_with_nothing_to_find(bad):
    frames = DATA.astype("float32")
    frames[1, 2, 5 if bad else slice(None)] = bad
    found = run(da.from_array(frames))
    assert found["num_disks"][1, 2] == 0
    assert np.isnan(found["positions"][1, 2]).all()
    assert found["num_disks"].sum() == 44


@pytest.mark.parametrize("suffix", [".zarr", pytest.param(".nc", marks=pytest.mark.full)])
def test_results_are_saved_and_opened(tmp_path, suffix):
    import xarray as xr

    result = find_disks(da.from_array(DATA), RING, max_disks=5)
    path = ud.save_results(tmp_path / f"disks{suffix}", {"found": result})
    with xr.open_zarr(path) if suffix == ".zarr" else xr.open_dataset(path) as opened:
        for name in result:
            np.testing.assert_array_equal(opened[f"found_{name}"], result[name].compute())


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"template": np.zeros((5, 5))}, ArgumentValueError),
        ({"template": np.ones((0, 4))}, ArgumentValueError),
        ({"template": np.ones(4)}, ArgumentValueError),
        ({"template": np.ones((3, 3)) * 1j}, ArgumentTypeError),
        ({"correlation": "normal"}, ArgumentValueError),
        ({"center": 3}, ArgumentTypeError),
        ({"center": (1, np.nan)}, ArgumentValueError),
        ({"min_spacing": 0}, ArgumentValueError),
        ({"edge": -1}, ArgumentValueError),
        ({"edge": "far"}, ArgumentTypeError),
        ({"min_correlation": 1.5}, ArgumentValueError),
        ({"max_disks": 0}, ArgumentValueError),
        ({"max_disks": 2.5}, ArgumentTypeError),
        ({"subpixel": "no"}, ArgumentTypeError),
    ],
)
def test_wrong_parameters(change, error):
    with pytest.raises(error):
        FindDisksUDF(**{"template": RING, **change})


@pytest.mark.parametrize(
    ("template", "edge", "shape", "dtype", "sig_dims", "error"),
    [
        (RING, None, (4, 28, 8), "f4", 2, ArgumentValueError),
        (RING, 14, (4, 28, 32), "f4", 2, ArgumentValueError),
        (da.ones((3, 3)), 14, (4, 28, 32), "f4", 2, ArgumentValueError),
        (RING, None, (4, 28), "f4", 1, ArgumentValueError),
        (RING, None, (4, 28, 32), "c8", 2, ArgumentTypeError),
    ],
)
def test_data_that_do_not_fit(template, edge, shape, dtype, sig_dims, error):
    data = da.zeros(shape, dtype=dtype)
    with raise_if_dask_computes(), pytest.raises(error):
        find_disks(data, template, edge=edge, sig_dims=sig_dims)
