"""Products of a stack of masks with sparse tiles, and with tiles on a device."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from udfdask.backends.backend import DenseBackend, locked
from udfdask.backends.sparse_rows import csr_rows
from udfdask.base.once_per_process import OncePerProcess
from udfdask.base.types import AnyArray
from udfdask.geometry.slices import Slice
from udfdask.kernels.cuda.dense_products import add_dense_products
from udfdask.kernels.overflow import add_exactly, require_near
from udfdask.masks.dense_product import LARGEST, MaskProduct, real_masks, region_of
from udfdask.masks.stack import MOST_REGIONS


class EntryProduct(MaskProduct):
    """Add dot products of sparse tiles with a stack of masks to rows of results.

    It chooses dense or sparse masks like `MaskProduct`. In both cases it reads only the stored
    pixels of the tiles.
    """

    def add(self, tile: Any, part: Slice, out: AnyArray) -> None:
        """Add the products of a tile at `part` of the signal to `out`, shape (n, masks)."""
        from udfdask.kernels.cpu.sparse_sums import entries_of

        self._add(entries_of(tile), part, out)

    def add_shifted(self, tile: Any, part: Slice, shift: tuple[int, ...], out: AnyArray) -> None:
        """Add the products of a tile with masks that are all shifted equally, in pixels."""
        shifts = np.broadcast_to(np.array(shift, np.int64), (len(out), len(shift)))
        self._add_moved(tile, part, shifts, out)

    def add_moved(self, frames: Any, shifts: AnyArray, out: AnyArray) -> None:
        """Add the products of whole frames with masks; each frame has its shift, (n, sig dims)."""
        self._add_moved(frames, self._whole, shifts, out)

    def _add_moved(self, tile: Any, part: Slice, shifts: AnyArray, out: AnyArray) -> None:
        """Add the products of a tile with masks; each frame has its own shift."""
        from udfdask.kernels.cpu.change_frames import moved_entries
        from udfdask.kernels.cpu.sparse_sums import entries_of

        whole = self._whole
        moved = moved_entries(entries_of(tile), shifts, part.origin, part.shape, whole.shape)
        self._add(moved, whole, out)

    def _add(self, stored: Any, part: Slice, out: AnyArray) -> None:
        from udfdask.kernels.cpu.sparse_products import add_entry_products

        if self.dtype.char in "gG":
            out += self._long_products(stored, part)
            return
        masks, wide = self._within(part)
        if not self._may_wrap:
            add_entry_products(stored, masks, wide, out.view(self._real) if self._split else out)
            return
        products = np.zeros_like(out)
        add_entry_products(stored, masks, wide, products)
        # integers wrap silently, as in `MaskProduct.add`
        if float(np.abs(stored.values, dtype=np.float64).max(initial=0)) * self._weight > LARGEST:
            require_near(products, self._approximate(stored, part))
        add_exactly(out, products)

    def _approximate(self, stored: Any, part: Slice) -> AnyArray:
        masks, values = self._matrix_of(part, np.float64), stored.values.astype(np.float64)
        frames = itertools.pairwise(stored.starts.tolist())
        return np.array([values[a:b] @ masks[stored.pixels[a:b]] for a, b in frames])

    def _long_products(self, stored: Any, part: Slice) -> AnyArray:
        """Return products in long double precision, with SciPy: numba has no long doubles."""
        from scipy.sparse import csr_array

        masks = self._matrix_of(part, self.dtype)
        places = stored.pixels.view(f"i{stored.pixels.itemsize}")
        products: AnyArray = csr_rows(csr_array, stored.values, places, stored.starts, len(masks))
        return products @ masks

    def _cut_dense(self, part: Slice) -> tuple[Any, np.dtype[Any]]:
        """Return a matrix (pixels, masks), floating if that is exact, and the dtype of sums."""
        masks, _ = self._dense(part)
        is_exact = masks.dtype.kind in "fc"
        matrix = np.ascontiguousarray(masks.T)
        wide = np.result_type(self._real, np.float64) if is_exact else self.dtype
        return (matrix.view(self._real) if self._split else matrix), wide

    def _cut_sparse(self, part: Slice) -> tuple[Any, np.dtype[Any]]:
        """Return the nonzero values of the masks, pixel by pixel, and the dtype of sums."""
        from udfdask.kernels.cpu.sparse_products import PixelMasks

        which, pixels, values, bound = self._entries(part)
        order, wide = np.lexsort((which, pixels)), self._wide(bound)
        starts = np.searchsorted(pixels[order], np.arange(part.shape.size + 1)).astype(np.int64)
        which, values = which[order].astype(np.uint32), values[order].astype(wide)
        return PixelMasks(*map(locked, (starts, which, values))), wide


class DeviceMaskProduct(MaskProduct):
    """Add dot products with masks that are dense matrices on the device.

    Each matrix is copied to the device once, in the dtype of the multiplication. `backend` is the
    backend of the tiles.
    """

    _narrowest = 128  # a product of cuBLAS adds up no more pixels than that

    def __init__(self, backend: DenseBackend, *args: Any) -> None:
        self._backend = backend
        self._uploaded = OncePerProcess(MOST_REGIONS)
        super().__init__(*args)

    def _choose(self) -> bool:
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

        def upload() -> tuple[Any, int | None]:
            masks, most = self._dense(part)
            if self._split:
                masks = real_masks(masks, self._data)
            return self._backend.share(np.ascontiguousarray(masks.T)), most

        found: tuple[Any, int | None] = self._uploaded.get(region_of(part), upload)
        return found
