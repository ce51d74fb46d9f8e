"""Strain of frames with 1,000 counts in each disk, against the Cramer-Rao limit."""

import dask.array as da
import numpy as np
import pytest
from scipy import ndimage, special

from lattices import orders
from making import SYNC
from udfdask.analyses import find_disks, fit_lattice, strain_map
from udfdask.demo import crystal
from udfdask.masks import DiskTemplate

SIZE, COUNTS = 256, 1000
RADIUS = crystal._DISK_RADIUS * SIZE
VECTORS = np.array(crystal._LATTICE) * SIZE
MAPS = ("exx", "eyy", "exy")
RNG = np.random.default_rng(0)
STRAINED = VECTORS @ np.linalg.inv(np.eye(2) + RNG.uniform(-0.02, 0.02, (200, 2, 2)))


def profile(distance):
    return special.expit((RADIUS - distance) / (crystal._EDGE_SOFTNESS / 2))


def one_disk(y=0.0, x=0.0):
    """Expected counts of a disk, with this center (y, x) from the middle of 49 x 49 pixels."""
    rows, columns = np.ogrid[-24:25, -24:25]
    disk = profile(np.hypot(rows - y, columns - x))
    return COUNTS * disk / disk.sum()


def simulate():
    """Counts of all frames, and which disks are complete, shape (frames, orders)."""
    centers = SIZE // 2 + RNG.uniform(-2, 2, (len(STRAINED), 1, 2)) + orders(4) @ STRAINED
    frames = np.empty((len(STRAINED), SIZE, SIZE), np.uint16)
    for frame, places in zip(frames, centers, strict=True):
        expected = np.zeros((SIZE + 96, SIZE + 96))
        for center in places[np.all((places > -23) & (places < SIZE + 23), axis=1)]:
            y, x = np.rint(center).astype(int) + 24
            expected[y : y + 49, x : x + 49] += one_disk(*(center - np.rint(center)))
        frame[:] = RNG.poisson(expected[48:-48, 48:-48])
    edge = RADIUS + 1.5
    return frames, np.all((centers >= edge) & (centers <= SIZE - 1 - edge), axis=2)


def limits(complete):
    """The least standard deviations of strains, as shares of 1: complete disks, no background."""
    slope = (one_disk(x=0.01) - one_disk(x=-0.01)) / 0.02
    information = np.sum(slope**2 / one_disk())
    design = np.concatenate([np.ones((len(orders(4)), 1)), orders(4)], axis=1)
    matrix = np.swapaxes(design * complete[..., None], 1, 2) @ design
    of_vectors = np.linalg.inv(matrix)[:, 1:, 1:] / information
    inverse = np.linalg.inv(VECTORS)  # small strains are -inverse @ errors of vectors
    yy, xx = (inverse @ of_vectors @ inverse.T).diagonal(axis1=1, axis2=2).mean(axis=0)
    return np.sqrt([xx, yy, (xx + yy) / 4])


@pytest.mark.full
def test_strain_reaches_the_limit_of_counts():
    counts, complete = simulate()
    x = da.from_array(counts, chunks=(50, -1, -1))
    true = strain_map(STRAINED, reference=VECTORS).compute(**SYNC)

    def errors(template):
        fit = fit_lattice(find_disks(x, template), weights="intensity")
        found = strain_map(fit, reference=VECTORS).compute(**SYNC)
        return np.array([np.sqrt(np.mean((found[n] - true[n]) ** 2)) for n in MAPS])

    ring = DiskTemplate(radius=RADIUS, radius_outer=1.5 * RADIUS)
    probe = ndimage.gaussian_filter(np.pad(DiskTemplate(radius=RADIUS).array(), 4), 0.7)
    limit, best = limits(complete), errors(np.log1p(100 * probe))
    assert (best < 0.0005).all()
    np.testing.assert_allclose(best, limit, rtol=0.1)
    assert (errors(ring) > 1.1 * limit).all()
