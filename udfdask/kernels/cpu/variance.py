"""Moments of pixels over frames: add tiles, merge partial results."""

from __future__ import annotations

import numpy as np

from udfdask.kernels.cpu.exact_squares import HALVES, LARGEST, MOST_SQUARES, square_columns
from udfdask.kernels.cpu.frame_reductions import MOST_FRAMES, deviate_columns
from udfdask.kernels.cpu.merging import merge_columns
from udfdask.kernels.cpu.rows import as_real, as_rows, wider
from udfdask.kernels.moment_arrays import Moments
from udfdask.types import AnyArray

BLOCK = 1 << 12
"""Pixels at a time: their sums stay in a cache. With fewer, frames are not read sequentially."""

SMALL_BLOCK = 512
"""Pixels at a time in few frames: the sums stay in the first-level cache, where they are merged."""

SQUARE_BLOCK = 1 << 14
"""Pixels at a time if squares are added up exactly: their sums stay in a cache."""


def add_moments(tile: AnyArray, before: int, moments: Moments) -> None:
    """Merge the frames of a tile, shape (n, *part), into the moments of `before` other frames."""
    if not tile.size:
        return
    if wider(tile.dtype) is None:
        tile = tile.astype(moments.excess.dtype)
    rows = as_rows(tile, keeps_half=True).as_real()
    origin, excess, varsum = _as_real(moments)
    dtype = f"{rows.dtype.kind}{rows.dtype.itemsize}"
    if dtype not in LARGEST:
        for group in rows.cut(MOST_FRAMES):
            block = min(SMALL_BLOCK if group.frames < 8 else BLOCK, rows.width)
            deviate_columns(*group, block, before, origin, excess, varsum)
            before += group.frames
    else:
        block = min(SQUARE_BLOCK, rows.width)
        sums, halves = np.empty(block, wider(rows.dtype)), np.empty(block, HALVES[dtype])
        for group in rows.cut(MOST_SQUARES):
            buffers = LARGEST[dtype], sums, halves
            square_columns(*group, *buffers, before, origin, excess, varsum)
            before += group.frames
    _join_parts(varsum, moments)


def merge_moments(before: int, moments: Moments, count: int, more: Moments) -> None:
    """Merge the moments of `count` frames into the moments of `before` other frames."""
    if not count:
        return
    if not before:  # a run of a single chunk compiles no kernel to merge
        for mine, theirs in zip(moments, more, strict=True):
            mine[...] = theirs
        return
    origin, excess, varsum = _as_real(moments)
    merge_columns(before, origin, excess, varsum, count, *_as_real(more))
    _join_parts(varsum, moments)


def _as_real(moments: Moments) -> Moments:
    """Return flat moments of real numbers; complex numbers become pairs.

    The two squared deviations of a pair may start as (sum, 0): only their sum counts.
    """
    origin, excess = as_real(moments.origin), as_real(moments.excess)
    varsum = moments.varsum.reshape(-1)
    if moments.excess.dtype.kind == "c":
        varsum = np.zeros(excess.size)
        varsum[::2] = moments.varsum.reshape(-1)
    return Moments(origin, excess, varsum)


def _join_parts(varsum: AnyArray, moments: Moments) -> None:
    """Add the squared deviations of real and imaginary parts, for complex numbers."""
    if moments.excess.dtype.kind == "c":
        np.add(varsum[::2], varsum[1::2], out=moments.varsum.reshape(-1))
