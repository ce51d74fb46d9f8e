"""Fourier transforms of frames."""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.arrays.backends.table import namespace_of
from udfdask.kernels.cuda.sums import blocks_of


def write_moduli(tile: Any, keep: Any, ky: Any, kx: Any, out: Any) -> None:
    """Write the sum of the moduli of some bins of the `rfft2` of each frame to `out`, shape (n,).

    `tile` has the shape (n, y, x); `keep`, bool, shape (y, x), says which pixels do not become 0,
    None for all.
    """
    xp = namespace_of(tile)
    for block, sums in blocks_of(2 * tile.itemsize, tile, out):
        frames = block if keep is None else xp.where(keep, block, tile.dtype.type(0))
        moduli = xp.abs(xp.fft.rfft2(frames)[:, ky, kx])
        sums[:] = moduli.sum(axis=1, dtype=np.float64)
