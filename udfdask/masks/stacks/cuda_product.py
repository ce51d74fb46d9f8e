"""Compute dot products of tiles on a CUDA device with a stack of masks."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from udfdask.arrays.backends.backend import DenseBackend
from udfdask.arrays.geometry.slices import Slice
from udfdask.kernels.cuda.dense_products import add_dense_products
from udfdask.kernels.overflow import add_exactly, require_near
from udfdask.masks.stacks.dense_product import MaskProduct, real_masks, region_of
from udfdask.masks.stacks.tile_matrix import Region


class DeviceMaskProduct(MaskProduct):
    """Add dot products with masks that are dense matrices on the device.

    Each matrix is copied to the device once, in the dtype of the multiplication. `backend` is the
    backend of the tiles.
    """

    _narrowest = 128  # a product of cuBLAS adds up no more pixels than that

    def __init__(self, backend: DenseBackend, *args: Any) -> None:
        self._backend = backend
        self._lock = threading.Lock()
        self._uploaded: dict[Region, tuple[Any, int | None]] = {}
        super().__init__(*args)

    def _choose(self) -> bool:
        """Use dense masks."""
        return False

    def add(self, tile: Any, part: Slice, out: Any) -> None:
        """Add the products of a tile, shape (n, *sizes), to `out`, shape (n, masks).

        `part` is the signal slice of the tile.
        """
        matrix, most = self._matrix(part)
        frames = tile.reshape((tile.shape[0], part.shape.size))
        if not self._may_wrap:
            target = out.view(self._real) if self._split else out
            add_dense_products(frames, matrix, target, most)
            return
        # integers wrap silently: compare with the product in double precision
        products, approximate = out * 0, out * 0.0
        add_dense_products(frames, matrix, products, most)
        add_dense_products(frames, matrix.astype(np.float64), approximate)
        require_near(products, approximate)
        add_exactly(out, products)

    def _matrix(self, part: Slice) -> tuple[Any, int | None]:
        """Return a part of the masks on the device, shape (pixels, masks), and its exact length."""
        region = region_of(part)
        with self._lock:
            if region not in self._uploaded:
                masks, most = self._dense(part)
                if self._split:
                    masks = real_masks(masks, self._data)
                matrix = self._backend.share(np.ascontiguousarray(masks.T))
                self._uploaded[region] = (matrix, most)
            return self._uploaded[region]
