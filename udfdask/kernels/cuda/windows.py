"""Products of windows of frames, whose positions may differ from frame to frame."""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.backends.table import namespace_of
from udfdask.kernels.cuda.sums import blocks_of


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
