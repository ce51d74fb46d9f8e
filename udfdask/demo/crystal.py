"""A small, lifelike 4D-STEM recording, computed chunk by chunk."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import dask.array as da
import numpy as np
from dask.array.core import normalize_chunks

Array = np.ndarray[Any, Any]

# The specimen. Lengths are in pixels of the frame, fractions are of the scan or of the frame.
_DISK_RADIUS = 0.062  # of the frame
_EDGE_SOFTNESS = 0.8  # pixels
_LATTICE = ((0.205, 0.035), (-0.045, 0.215))  # two lattice vectors (y, x), of the frame
_STRAIN = 0.06  # relative change of the lattice along x, from one side of the scan to the other
_SHEAR = 0.015
_SHIFT = 2.0  # largest deflection of the beam, pixels
_BRIGHT_FIELD_RADIUS = 10.0  # pixels, more than the central disk and its deflections
_COUNTS = 40.0  # counts per pixel in the undisturbed central disk
_PARTICLES = (  # center y, center x, radius (of the scan), strength
    (0.30, 0.24, 0.110, 1.0),
    (0.62, 0.42, 0.150, 0.8),
    (0.24, 0.66, 0.085, 0.9),
    (0.76, 0.80, 0.120, 1.0),
    (0.46, 0.84, 0.060, 0.7),
    (0.84, 0.17, 0.070, 0.8),
)


def make_recording(
    nav_shape: tuple[int, int] = (48, 64),
    sig_shape: tuple[int, int] = (96, 96),
    *,
    chunks: Any = (12, 32, -1, -1),
    seed: int = 0,
) -> da.Array:
    """Make a lazy 4D-STEM recording of a strained crystal with particles on it.

    Every frame is a lattice of diffraction disks, strained along x of the scan. The particles
    absorb a part of the beam, and deflect it by a pixel or so at their rims. The counts are Poisson
    distributed. Chunks are generated when they are computed, and nothing stays in memory.

    Parameters
    ----------
    nav_shape : tuple of int
        Scan positions (y, x).
    sig_shape : tuple of int
        Detector pixels (y, x), at least (32, 32).
    chunks : int, str or tuple
        Chunks of the four dimensions, in any form that dask takes.
    seed : int
        Seed of the noise and of the disks' brightness.

    Returns
    -------
    dask.array.Array
        Detector counts, shape ``(*nav_shape, *sig_shape)``, dtype uint16. The same seed gives the
        same counts, whatever the chunks.

    Examples
    --------
    >>> from udfdask.demo import make_recording
    >>> recording = make_recording(nav_shape=(4, 6), sig_shape=(48, 48), chunks=(2, 3, -1, -1))
    >>> recording.shape, recording.dtype
    ((4, 6, 48, 48), dtype('uint16'))
    >>> frame = recording[1, 2].compute()
    >>> bool(frame[24, 24] > 10 * frame[0, 0])
    True
    """
    none = np.empty((0, 0, 0, 0), np.uint16)
    known = normalize_chunks(chunks, (*nav_shape, *sig_shape), dtype=none.dtype)
    shapes = {"nav_shape": nav_shape, "sig_shape": sig_shape}
    recording: da.Array = da.map_blocks(_make_block, **shapes, seed=seed, chunks=known, meta=none)
    return recording


def disk_center(frame: Array) -> Array:
    """Find the center of the central disk of a frame, as an example for `map_frames`.

    Parameters
    ----------
    frame : numpy.ndarray, shape (y, x)
        Counts.

    Returns
    -------
    numpy.ndarray, shape (2,), float64
        Center of mass (y, x) of the pixels around the middle of the frame, in pixels from there.

    Examples
    --------
    >>> from udfdask.demo import disk_center, make_recording
    >>> frame = make_recording(nav_shape=(1, 1), sig_shape=(48, 48))[0, 0].compute()
    >>> abs(disk_center(frame)) < 0.5
    array([ True,  True])
    """
    y, x = np.ogrid[: frame.shape[0], : frame.shape[1]]
    middle_y, middle_x = (n // 2 for n in frame.shape)
    disk = frame * (np.hypot(y - middle_y, x - middle_x) < _BRIGHT_FIELD_RADIUS)
    total = disk.sum()
    return np.array([(disk * y).sum() / total - middle_y, (disk * x).sum() / total - middle_x])


def _make_block(
    *,
    nav_shape: tuple[int, int],
    sig_shape: tuple[int, int],
    seed: int,
    block_info: Mapping[Any, Any],
) -> Array:
    rows, columns, *frame_part = (slice(*span) for span in block_info[None]["array-location"])
    y, x = np.mgrid[rows, columns]
    expected = _expected_counts(y.ravel(), x.ravel(), nav_shape, sig_shape, seed)
    counts = np.empty(expected.shape, np.uint16)
    for row, position in enumerate(np.ravel_multi_index((y.ravel(), x.ravel()), nav_shape)):
        # One random generator per frame, so that the counts do not depend on the chunks.
        counts[row] = np.random.default_rng([seed, 0, int(position)]).poisson(expected[row])
    return counts.reshape(*y.shape, *sig_shape)[(slice(None), slice(None), *frame_part)]


def _expected_counts(
    y: Array, x: Array, nav_shape: tuple[int, int], sig_shape: tuple[int, int], seed: int
) -> Array:
    """Return noiseless frames, shape (n, *sig_shape), at scan positions of shape (n,)."""
    size = float(min(sig_shape))
    thickness, shift_y, shift_x = _specimen(y, x, nav_shape)
    center_y, center_x = sig_shape[0] // 2 + shift_y, sig_shape[1] // 2 + shift_x
    along = x / max(nav_shape[1] - 1, 1) - 0.5
    frames = _diffuse_background(center_y, center_x, sig_shape)
    for order, (spot_y, spot_x) in enumerate(_reflections(sig_shape)):
        rng = np.random.default_rng([seed, 1, order])
        tilt = rng.uniform(0.3, 1.0) + 0.06 * np.cos(2 * np.pi * (along + rng.uniform()))
        if spot_y == spot_x == 0:
            bright = _COUNTS * (1 - 0.45 * thickness)
        else:
            falloff = 0.6 * np.exp(-4.4 * np.hypot(spot_y, spot_x) / size)
            bright = _COUNTS * falloff * tilt * (1 - 0.1 * thickness)
        strained_y = spot_y * (1 + 0.2 * _STRAIN * along) + spot_x * _SHEAR * along
        strained_x = spot_x * (1 + _STRAIN * along)
        _add_disk(frames, center_y + strained_y, center_x + strained_x, _DISK_RADIUS * size, bright)
    return frames


def _specimen(y: Array, x: Array, nav_shape: tuple[int, int]) -> tuple[Array, Array, Array]:
    """Return thickness (0 to 1) and beam shifts y, x (pixels) at scan positions of shape (n,)."""
    scale = float(max(nav_shape))
    thickness, shift_y, shift_x = np.zeros((3, y.size))
    for part_y, part_x, radius, strength in _PARTICLES:
        # In units of the particle's radius: relative slopes are the same for every scan size.
        dy = (y - part_y * (nav_shape[0] - 1)) / (radius * scale)
        dx = (x - part_x * (nav_shape[1] - 1)) / (radius * scale)
        bump = strength * np.exp(-((dy**2 + dx**2) ** 2))
        thickness += bump
        # The slope of the bump, scaled so that it is about 1 at its steepest.
        slope = 1.2 * bump * (dy**2 + dx**2)
        shift_y -= _SHIFT * slope * dy
        shift_x -= _SHIFT * slope * dx
    return np.minimum(thickness, 1.0), shift_y, shift_x


def _reflections(sig_shape: tuple[int, int]) -> list[tuple[float, float]]:
    """Return the places (y, x), from the beam, of the disks that may touch a frame, in pixels."""
    size = float(min(sig_shape))
    reach = int(np.ceil(max(sig_shape) / (0.2 * size)))
    orders = itertools.product(range(-reach, reach + 1), repeat=2)
    (ay, ax), (by, bx) = _LATTICE
    spots = [((h * ay + k * by) * size, (h * ax + k * bx) * size) for h, k in orders]
    edge_y, edge_x = (n / 2 + 0.15 * size for n in sig_shape)
    return [(y, x) for y, x in spots if abs(y) < edge_y and abs(x) < edge_x]


def _diffuse_background(center_y: Array, center_x: Array, sig_shape: tuple[int, int]) -> Array:
    """Return diffuse counts, shape (n, *sig_shape), for beam centers (pixels) of shape (n,)."""
    width = 0.18 * min(sig_shape)
    from_y = ((np.arange(sig_shape[0]) - center_y[:, None]) / width) ** 2
    from_x = ((np.arange(sig_shape[1]) - center_x[:, None]) / width) ** 2
    frames: Array = 0.05 * _COUNTS / (1 + from_y[:, :, None] + from_x[:, None, :])
    return frames


def _add_disk(
    frames: Array, center_y: Array, center_x: Array, radius: float, bright: Array
) -> None:
    """Add a soft disk to each frame, shape (n, y, x), in place; centers and counts, shape (n,)."""
    reach = int(np.ceil(radius + 4 * _EDGE_SOFTNESS))
    offsets = np.arange(-reach, reach + 1)
    rows = np.rint(center_y).astype(int)[:, None, None] + offsets[:, None]
    columns = np.rint(center_x).astype(int)[:, None, None] + offsets
    distance = np.hypot(rows - center_y[:, None, None], columns - center_x[:, None, None])
    disk = bright[:, None, None] / (1 + np.exp((distance - radius) / (0.5 * _EDGE_SOFTNESS)))
    frame, row, column = np.broadcast_arrays(np.arange(len(frames))[:, None, None], rows, columns)
    seen = (row >= 0) & (row < frames.shape[1]) & (column >= 0) & (column < frames.shape[2])
    # An indexed += adds only one value per pixel: correct, because a disk has each pixel once.
    frames[frame[seen], row[seen], column[seen]] += disk[seen]
