"""Moments of pixels over frames, of tiles and of partial results."""

from __future__ import annotations

import numpy as np

from udfdask.kernels.cpu.frame_reductions import deviate_columns, merge_columns, square_columns
from udfdask.kernels.cpu.rows import as_real, as_rows, wider
from udfdask.kernels.moment_arrays import Moments
from udfdask.types import AnyArray

BLOCK = 512
"""Pixels whose sums are held in the nearest cache at a time, with the values of many frames."""

SQUARE_BLOCK = 1 << 14
"""Pixels whose sums are held in a cache at a time, where squares are added up exactly."""

TOGETHER = 32
"""Frames that deviate from one origin, at most, before they are merged."""

SQUARES = {"u1": np.uint32, "i1": np.int32, "u2": np.uint64, "i2": np.int64}
"""Integers whose squares are added up exactly, and in what."""

MOST_SQUARES = 1 << 15
"""Frames whose squares are added up before that is merged."""


def add_moments(tile: AnyArray, before: int, moments: Moments) -> None:
    """Merge the frames of a tile, shape (n, *part), into moments of `before` others."""
    if not tile.size:
        return
    if wider(tile.dtype) is None:
        tile = tile.astype(moments.excess.dtype)
    rows = as_rows(tile).as_real()
    origin, excess, varsum = _as_real(moments)
    squares = SQUARES.get(f"{rows.flat.dtype.kind}{rows.flat.dtype.itemsize}")
    if squares is None:
        for some in rows.cut(TOGETHER):
            deviate_columns(*some, min(BLOCK, rows.width), before, origin, excess, varsum)
            before += some.frames
    else:
        block = min(SQUARE_BLOCK, rows.width)
        sums = np.empty(block, wider(rows.flat.dtype))
        for some in rows.cut(MOST_SQUARES):
            square_columns(*some, sums, np.empty(block, squares), before, origin, excess, varsum)
            before += some.frames
    _join_parts(varsum, moments)


def merge_moments(before: int, moments: Moments, count: int, more: Moments) -> None:
    """Merge moments of `count` frames into those of `before` others."""
    if not count:
        return
    origin, excess, varsum = _as_real(moments)
    merge_columns(before, origin, excess, varsum, count, *_as_real(more))
    _join_parts(varsum, moments)


def _as_real(moments: Moments) -> Moments:
    """Return flat moments of real numbers, complex ones as pairs.

    Each part deviates from its own mean, however the sum of both came about.
    """
    origin, excess = as_real(moments.origin), as_real(moments.excess)
    varsum = moments.varsum.reshape(-1)
    if moments.excess.dtype.kind == "c":
        varsum = np.zeros(excess.size)
        varsum[::2] = moments.varsum.reshape(-1)
    return Moments(origin, excess, varsum)


def _join_parts(varsum: AnyArray, moments: Moments) -> None:
    """Write the squared deviations of complex numbers, which are those of both parts."""
    if moments.excess.dtype.kind == "c":
        np.add(varsum[::2], varsum[1::2], out=moments.varsum.reshape(-1))
