"""Sums and sums of squared deviations from the mean, of tiles and of partial results."""

from __future__ import annotations

import numpy as np

from udfdask.numeric.columns import deviate_columns, merge_columns, square_columns
from udfdask.numeric.rows import as_real, as_rows, wider
from udfdask.types import AnyArray

BLOCK = 512
"""Pixels whose sums are held in the nearest cache at a time, with the values of many frames."""

SQUARE_BLOCK = 1 << 14
"""Pixels whose sums are held in a cache at a time, where the values are read once."""

TWICE = 32
"""Frames of which a block of pixels is walked through twice, the second time in the cache."""

SQUARES = {"u1": np.uint32, "i1": np.int32, "u2": np.uint64, "i2": np.int64}
"""Integers whose squares are added up exactly, and in what."""

MOST_SQUARES = 1 << 15
"""Frames whose squares are added up before that is merged."""


def add_moments(tile: AnyArray, before: int, total: AnyArray, varsum: AnyArray) -> None:
    """Merge the frames of a tile, shape (n, *part), into moments of `before` others.

    `total`, float64 or complex128, and `varsum`, float64, have shape `part` and are contiguous.
    """
    if not tile.size:
        return
    if wider(tile.dtype) is None:
        tile = tile.astype(total.dtype)
    rows = as_rows(tile).as_real()
    sums = as_real(total)
    paired = tile.dtype.kind == "c"
    squared = np.zeros(sums.size) if paired else varsum.reshape(-1)
    if paired:  # each part deviates from its own mean, however the sum of both came about
        squared[::2] = varsum.reshape(-1)
    squares = SQUARES.get(f"{rows.flat.dtype.kind}{rows.flat.dtype.itemsize}")
    # the sum of a few integers of 64 bits may need more of them
    add_up = np.float64 if rows.flat.itemsize == 8 else wider(rows.flat.dtype)
    if squares is None:
        scratch = np.empty(min(BLOCK, rows.width), add_up)
        for some in rows.cut(TWICE):
            deviate_columns(*some, scratch, before, sums, squared)
            before += some.frames
    else:
        block = min(SQUARE_BLOCK, rows.width)
        for some in rows.cut(MOST_SQUARES):
            square_columns(
                *some, np.empty(block, add_up), np.empty(block, squares), before, sums, squared
            )
            before += some.frames
    if paired:
        np.add(squared[::2], squared[1::2], out=varsum.reshape(-1))


def merge_moments(
    before: int,
    total: AnyArray,
    varsum: AnyArray,
    count: int,
    more_total: AnyArray,
    more_varsum: AnyArray,
) -> None:
    """Merge moments of `count` frames into those of `before` others; arrays as in add_moments."""
    if not count:
        return
    sums, more_sums = as_real(total), as_real(more_total)
    if total.dtype.kind != "c":
        merge_columns(before, sums, varsum.reshape(-1), count, more_sums, more_varsum.reshape(-1))
        return
    squared, more_squared = np.zeros(sums.size), np.zeros(sums.size)
    squared[::2], more_squared[::2] = varsum.reshape(-1), more_varsum.reshape(-1)
    merge_columns(before, sums, squared, count, more_sums, more_squared)
    np.add(squared[::2], squared[1::2], out=varsum.reshape(-1))
