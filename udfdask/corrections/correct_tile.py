"""Correct a tile: arithmetic on arrays that knows nothing about runs or chunks.

All corrections of a tile (dark, gain, patches) are one compiled function that reads the tile once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.corrections.planes import PixelPlanes, TilePlanes
from udfdask.kernels.dtypes import compiled_dtype
from udfdask.types import AnyArray


def correct_tile(tile: AnyArray, planes: TilePlanes, beyond: AnyArray | None = None) -> AnyArray:
    """Return a corrected copy of a tile, C-ordered, of shape (frames, *sig part).

    `beyond` contains the uncorrected values of the same frames at the pixels `planes.beyond`,
    shape (frames, m). It is required if m is not 0.
    """
    dtype = compiled_dtype(planes.dtype)
    around = np.empty((len(tile), 0), dtype=dtype)
    if beyond is not None:
        around = _corrected(beyond, planes.beyond_planes, dtype, _NO_PATCHES, around)
    patches = (planes.patched, planes.neighbors, planes.counts)
    out = _corrected(tile, planes.part_planes, dtype, patches, around)
    return out.reshape(tile.shape).astype(planes.dtype, copy=False)


_NO_PATCHES = (
    np.empty(0, dtype=np.int64),
    np.empty((0, 0), dtype=np.int64),
    np.empty(0, dtype=np.int64),
)


def _corrected(
    tile: AnyArray,
    planes: PixelPlanes,
    dtype: np.dtype[Any],
    patches: tuple[AnyArray, AnyArray, AnyArray],
    around: AnyArray,
) -> AnyArray:
    """Return the corrected pixels of a tile in a dtype, shape (frames, pixels)."""
    from udfdask.kernels.cpu.correct import correct_frames  # loads numba

    out = np.empty((len(tile), planes.dark.size), dtype=dtype)
    if out.size:
        given = tile.astype(compiled_dtype(tile.dtype), copy=False)
        correct_frames(*as_lines(given), planes.dark, planes.gain, *patches, around, out)
    return out


def as_lines(tile: AnyArray) -> tuple[AnyArray, int, int, int]:
    """Return a tile as flat memory, the steps between frames and lines, and the length of a line.

    Steps and lengths are numbers of elements. Lines are contiguous; a contiguous frame is a single
    line. The flat memory is a read-only view of the memory of the tile, or a copy if the tile does
    not consist of contiguous lines.
    """
    frames, size, item = len(tile), tile[:1].size, tile.itemsize
    if tile.flags.c_contiguous:
        flat = tile.reshape(-1)
        flat.flags.writeable = False  # compiled code only exists for read-only arrays
        return flat, size, size, size
    for line in (size, tile.shape[-1]):
        try:
            lines = tile.reshape((frames, size // line, line), copy=False)
        except ValueError:
            continue
        # a stride along an axis with one element is arbitrary
        strides = [s if n > 1 else item for s, n in zip(lines.strides, lines.shape, strict=True)]
        if strides[2] == item and all(s >= 0 and s % item == 0 for s in strides):
            steps = [s // item for s in strides]
            span = 1 + sum(s * (n - 1) for s, n in zip(steps, lines.shape, strict=True))
            flat = np.lib.stride_tricks.as_strided(lines, (span,), (item,), writeable=False)
            return flat, steps[0], steps[1], line
    return as_lines(np.ascontiguousarray(tile))
