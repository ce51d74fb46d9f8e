"""Sums over tiles on a device: of frames, pixels and rings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from udfdask.backends.table import namespace_of
from udfdask.kernels.overflow import add_exactly, is_long, require_near

BLOCK_BYTES = 64 << 20
"""Size of a temporary array: small, but large enough that the device takes longer than Python."""


def blocks_of(itemsize: int, frames: Any, *others: Any) -> Iterator[tuple[Any, ...]]:
    """Yield blocks of frames, shape (n, *part), together with the same rows of other arrays.

    A copy of a block with this itemsize fits `BLOCK_BYTES`, which limits temporary arrays.
    """
    n = int(frames.shape[0])
    if not frames.size:
        return
    step = max(1, BLOCK_BYTES // (frames.size // n * itemsize))
    for first in range(0, n, step):
        yield tuple(array[first : first + step] for array in (frames, *others))


def add_frames(tile: Any, total: Any) -> None:
    """Add the frames of a tile, shape (n, *part), to `total`, shape `part`, in its dtype."""
    _add(tile.dtype, total, _sum(tile, 0, total.dtype))


def add_pixels(tile: Any, sums: Any) -> None:
    """Add the pixels of each frame of a tile, shape (n, *part), to `sums`, shape (n,)."""
    _add(tile.dtype, sums, _sum(tile, tuple(range(1, tile.ndim)), sums.dtype))


def add_within(tile: Any, mask: Any, sums: Any) -> None:
    """Add the pixels of each frame of a tile within a mask, shape `part`, to `sums`, shape (n,).

    Pixels outside the mask do not count, even if they are NaN. Floats are added up in double
    precision.
    """
    xp, axes = namespace_of(tile), tuple(range(1, tile.ndim))
    wide = np.result_type(sums.dtype, np.float64) if sums.dtype.kind in "fc" else sums.dtype
    for block, rows in blocks_of(tile.itemsize, tile, sums):
        inside = xp.where(mask, block, tile.dtype.type(0))
        _add(tile.dtype, rows, _sum(inside, axes, wide).astype(sums.dtype, copy=False))


def _add(values: Any, total: Any, more: Any) -> None:
    """Add sums of values of a dtype in place; raise if a sum of 64-bit integers overflows.

    The plan guarantees that sums of narrower integers fit. Checking them would make the thread wait
    for the device.
    """
    if is_long(values):
        add_exactly(total, more)
    else:
        total += more


def _sum(tile: Any, axes: Any, dtype: Any) -> Any:
    """Return a sum in a dtype; raise if a sum of 64-bit integers overflows."""
    sums = tile.sum(axis=axes, dtype=dtype)
    if is_long(tile.dtype) and is_long(dtype):
        require_near(sums, tile.sum(axis=axes, dtype=np.float64))
    return sums


def add_first_moments(tile: Any, mask: Any | None, origin: tuple[int, ...], out: Any) -> None:
    """Add sum(I), sum(y * I) and sum(x * I) within a mask to `out`, shape (frames, 3), float64.

    `tile` has the shape (frames, ny, nx); its first pixel is pixel `origin`, (y, x), of the frame.
    `mask` is the same part of the mask, shape (ny, nx), or None if all pixels count. Pixels outside
    do not count, even if they are NaN. Sums of integers of up to 16 bits are exact.
    """
    xp = namespace_of(tile)
    _, ny, nx = tile.shape
    ys, xs = (xp.arange(o, o + n, dtype=np.float64) for o, n in zip(origin, (ny, nx), strict=True))
    for block, rows in blocks_of(tile.itemsize, tile, out):
        within = block if mask is None else xp.where(mask, block, tile.dtype.type(0))
        lines = within.sum(axis=2, dtype=np.float64)
        columns = within.sum(axis=1, dtype=np.float64)
        rows[:, 0] += lines.sum(axis=1)
        rows[:, 1] += (lines * ys).sum(axis=1)
        rows[:, 2] += (columns * xs).sum(axis=1)


PIECE = 4096
"""Pixels whose products are added up in their own dtype: the sum of more of them is in float64."""


def add_ring_products(frames: Any, rings: Sequence[tuple[Any, Any]], out: Any) -> None:
    """Add weighted sums over the pixels of each ring to `out`, shape (n, rings, m).

    `frames` has the shape (n, pixels). A ring consists of pixel indices, int64, shape (k,), and
    weights, shape (k, m), whose dtype is that of the products. Other pixels are not read.
    """
    for block, rows in blocks_of(8, frames, out):
        for ring, (pixels, weights) in enumerate(rings):
            if pixels.size:
                values = block[:, pixels].astype(weights.dtype, copy=False)
                rows[:, ring] += _product(values, weights)


def _product(values: Any, weights: Any) -> Any:
    """Return the product of matrices, in float64 if there are many pixels."""
    pieces, rest = divmod(len(weights), PIECE)
    if not pieces:
        return values @ weights
    whole = pieces * PIECE
    cut = values[:, :whole].reshape(-1, pieces, PIECE).swapaxes(0, 1)
    sums = (cut @ weights[:whole].reshape(pieces, PIECE, -1)).sum(axis=0, dtype=np.float64)
    return sums + values[:, whole:] @ weights[whole:] if rest else sums
