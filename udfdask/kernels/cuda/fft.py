"""Fourier transforms of frames on a device."""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.arrays.backends.table import namespace_of
from udfdask.kernels.cuda.sums import blocks_of


def write_moduli(tile: Any, keep: Any, ky: Any, kx: Any, out: Any) -> None:
    """Write the sum of the moduli of some `rfft2` bins of each frame to `out`, shape (n,).

    `tile` has the shape (n, y, x). `ky` and `kx` are the indices of the bins. Pixels are set to 0
    where `keep`, bool, shape (y, x), is False; None keeps all.
    """
    xp = namespace_of(tile)
    for block, sums in blocks_of(2 * tile.itemsize, tile, out):
        frames = block if keep is None else xp.where(keep, block, tile.dtype.type(0))
        moduli = xp.abs(xp.fft.rfft2(frames)[:, ky, kx])
        sums[:] = moduli.sum(axis=1, dtype=np.float64)
