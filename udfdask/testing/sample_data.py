"""Provide small arrays and ways to chunk them; they never change, so a check can be repeated."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from udfdask.testing.eager_run import Chunks, Layout
from udfdask.types import AnyArray

NAV = (4, 6)
FEW_FRAMES = 64
"""Largest scan that is also processed in tiles of a few pixels; more would take seconds."""
FEW_CHUNKS = (
    *((1, 1), (1, 2), (2, 1), (1, 1, 1)),
    *((1, 3), (2, 2), (3, 1), (1, 1, 2), (1, 2, 1), (2, 1, 1)),
)
"""All ways to cut up to four frames into two or three chunks, the smallest first."""
SIGS = {1: (16,), 2: (6, 8), 3: (3, 4, 5)}
DTYPES = ("int16", "float32", "uint16", ">u2", "int32", "uint8", "float64", ">f4")
"""Dtypes of the default arrays. All laws are checked on the first, a few laws on all."""


def default_arrays(sig_dims: int) -> tuple[AnyArray, ...]:
    """Return small arrays of several dtypes and a scan of 4 by 6 positions.

    They contain whole numbers, because their sums are exact in any precision: positive ones,
    zeros, and negative ones if the dtype has them.
    """
    sig = SIGS.get(sig_dims, (2,) * sig_dims)
    rng = np.random.default_rng(20)
    signed = rng.integers(-30, 60, size=(*NAV, *sig))
    signed[rng.random(signed.shape) < 0.2] = 0
    return tuple(
        (abs(signed) if np.dtype(dtype).kind == "u" else signed).astype(dtype) for dtype in DTYPES
    )


def other_dtypes(data: AnyArray) -> tuple[AnyArray, ...]:
    """Return an array, and its byte-swapped copy if the dtype has a byte order."""
    if data.dtype.itemsize == 1:
        return (data,)
    return data, data.astype(data.dtype.newbyteorder("S"))


def parts_and_chunkings(data: AnyArray, sig_dims: int) -> Iterator[tuple[AnyArray, Chunks]]:
    """Yield parts of an array with ways to chunk their navigation axes, the smallest first.

    Small parts come first because a message shows the first case that fails.
    """
    nav = data.shape[: data.ndim - sig_dims]
    if not nav:
        return
    ones = (slice(0, 1),) * (len(nav) - 1)
    for cut in FEW_CHUNKS:
        if sum(cut) <= nav[-1]:
            yield data[(*ones, slice(0, sum(cut)))], (*((1,) for _ in ones), cut)
    for nav_chunks in scan_chunkings(nav):
        yield data, nav_chunks


def scan_chunkings(nav: tuple[int, ...]) -> Iterator[Chunks]:
    """Yield ways to chunk a scan: halves, ragged chunks and single frames, in one axis or all."""
    uncut = tuple((n,) for n in nav)
    for axis, n in enumerate(nav):
        for cut in dict.fromkeys(((1, n - 1), (n - 1, 1), _halves(n), (1,) * n)):
            if n > 1:
                yield (*uncut[:axis], cut, *uncut[axis + 1 :])
    if sum(n > 1 for n in nav) > 1:
        yield tuple(_halves(n) if n > 1 else (n,) for n in nav)
        yield tuple((1, n - 1) if n > 1 else (n,) for n in nav)


def ragged_sig_chunks(sig: tuple[int, ...]) -> Chunks:
    """Return ragged signal chunks, two along each axis of more than one pixel."""
    return tuple((n // 3 or 1, n - (n // 3 or 1)) if n > 1 else (n,) for n in sig)


def tile_sizes(sig: tuple[int, ...], dtype: np.dtype[Any], n_frames: int) -> list[int]:
    """Return tile sizes in bytes: a few frames, half a frame, and a few pixels."""
    frame = math.prod(sig) * dtype.itemsize
    sizes = [3 * frame, max(1, frame // 2)]
    if n_frames <= FEW_FRAMES:
        sizes.append(max(1, frame // 50))
    return list(dict.fromkeys(sizes))


def regions(nav: tuple[int, ...]) -> list[tuple[str, AnyArray]]:
    """Return regions of interest, each with a name for messages."""
    size = math.prod(nav)
    number = np.arange(size).reshape(nav)
    named = [
        ("every third frame", number % 3 == 1),
        ("a single frame", number == size // 2 + 1),
        ("no frame of the first chunk", number >= (size + 1) // 2),
        ("no frame", np.zeros(nav, dtype=bool)),
    ]
    return [(name, roi) for name, roi in named if nav and (roi.any() or name == "no frame")]


def roi_layouts(nav: tuple[int, ...], roi: AnyArray) -> list[Layout]:
    """Return layouts with a region of interest: one chunk, and two ways to chunk the scan."""
    several = [c for c in scan_chunkings(nav) if all(len(n) <= 2 for n in c)]
    return [Layout(roi=roi), *(Layout(nav_chunks=c, roi=roi) for c in several[:1] + several[-1:])]


def _halves(n: int) -> tuple[int, ...]:
    """Return the sizes of two halves of n."""
    return (n - n // 2, n // 2)
