"""Products, logarithms and Fourier transforms of tiles and windows on a device."""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.backends.table import namespace_of
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


def add_dense_products(frames: Any, matrix: Any, out: Any, most: int | None = None) -> None:
    """Add ``frames @ matrix`` to `out`, shape (n, masks), computed in the dtype of the matrix.

    `frames` has the shape (n, pixels), `matrix` (pixels, masks). `most` is the largest number of
    pixels whose products the dtype of the matrix adds up exactly: the products of so many pixels
    each are added up in float64.
    """
    pixels = frames.shape[1]
    width = max(1, pixels if most is None else most)
    for block, rows in blocks_of(matrix.itemsize, frames, out):
        for start in range(0, pixels, width):
            part = block[:, start : start + width].astype(matrix.dtype, copy=False)
            product = part @ matrix[start : start + width]
            if product.dtype.kind != rows.dtype.kind:
                product = product.astype(np.float64).astype(rows.dtype)
            rows[:] += product.astype(rows.dtype, copy=False)


def add_window_products(frames: Any, corners: Any, size: Any, matrix: Any, out: Any) -> None:
    """Add the products of windows of frames with a matrix to `out`, shape (n, k, m).

    `frames` has the shape (n, height, width). `corners`, a NumPy array, holds the first pixel
    (y, x) of each of k windows, shape (n, k, 2), or (1, k, 2) if they are the same in all frames.
    Windows have the shape `size`, and are 0 outside the frame. `matrix` has the shape
    (pixels of a window, m).
    """
    xp, per_frame = namespace_of(frames), len(corners) > 1
    k, pixels = corners.shape[1], matrix.shape[0]
    frame_bytes = k * pixels * (frames.itemsize + 2 * np.dtype(np.int64).itemsize)
    itemsize = -(-frame_bytes // max(1, frames[:1].size))
    for block, products, block_corners in blocks_of(itemsize, frames, out, corners):
        n = block.shape[0]
        first = block_corners if per_frame else corners
        y, x = (_indices(first[..., axis], size[axis], block.shape[1 + axis]) for axis in (0, 1))
        inside = xp.asarray(y[1][..., :, np.newaxis] & x[1][..., np.newaxis, :])
        indices = xp.asarray(y[0][..., :, np.newaxis] * block.shape[2] + x[0][..., np.newaxis, :])
        flat = block.reshape((n, -1))
        rows = xp.arange(n).reshape((n, 1, 1, 1))
        windows = xp.where(inside, flat[rows, indices], block.dtype.type(0))
        products[:] += windows.reshape((n, k, pixels)) @ matrix


def _indices(corners: Any, size: int, extent: int) -> tuple[Any, Any]:
    """Return indices of windows along an axis, shape (n, k, size), and whether each is valid."""
    indices = corners[..., np.newaxis] + np.arange(size)
    inside = (indices >= 0) & (indices < extent)
    return np.where(inside, indices, 0), inside


def multiply_heights(tile: Any, mantissa: Any, exponent: Any) -> None:
    """Multiply the products with (frame - min(frame) + 1) for each frame of a tile.

    The tile consists of full frames, shape (n, *sig). A product is ``mantissa * 2**exponent``,
    float64 and int64, both of shape `sig`.
    """
    xp, axes = namespace_of(tile), tuple(range(1, tile.ndim))
    for (block,) in blocks_of(8, tile):
        heights = block.astype(np.float64)
        heights -= heights.min(axis=axes, keepdims=True)
        logs = xp.log2(heights + 1).sum(axis=0)
        powers = xp.where(xp.isfinite(logs), xp.floor(logs), 0)
        mantissa *= xp.exp2(logs - powers)
        exponent += powers.astype(exponent.dtype)
        normalize_products(mantissa, exponent)


def normalize_products(mantissa: Any, exponent: Any) -> None:
    """Bring each finite mantissa between 1 and 2."""
    xp = namespace_of(mantissa)
    fraction, power = xp.frexp(mantissa)  # between 1/2 and 1
    finite = xp.isfinite(mantissa)
    exponent += xp.where(finite, power - 1, 0).astype(exponent.dtype)
    mantissa[...] = xp.where(finite, 2 * fraction, mantissa)
