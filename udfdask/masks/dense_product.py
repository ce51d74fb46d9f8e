"""Compute dot products of tiles with a stack of masks, dense or sparse."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from udfdask.base.types import AnyArray
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.shapes import Shape
from udfdask.geometry.slices import Slice
from udfdask.kernels.cpu.change_frames import moved_back, overlap
from udfdask.kernels.cpu.dense_products import product
from udfdask.kernels.overflow import add_exactly, require_near
from udfdask.masks.container import MaskContainer
from udfdask.masks.stack import Region, dense_matrix, entries

SHIFTED_BYTES = 1 << 20
"""Size of the frames that are shifted at a time, in bytes; at least one frame."""

BATCH_BYTES, FEWEST = 4 << 20, 64
"""Size of the frames that are multiplied at a time, in bytes, and their smallest number. With 64
instead of 16 frames of 256 x 256 pixels, 64 masks, which no cache holds, took 0.75 of the time."""

LARGEST = 2.0**62
"""Sums with an absolute value up to this fit into 64 bits."""

EXACT, EXACT_SINGLE = 2**53, 2**24
"""Integers up to this are exact in double and in single precision."""


def product_dtype(data: np.dtype[Any], masks: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of dot products: 64 bits for sums of integers, at least float32."""
    try:
        both = np.result_type(data, masks)
    except TypeError:
        both = np.dtype(object)
    if both.kind not in "biufc":
        raise ArgumentTypeError(
            f"masks of dtype {masks} cannot be multiplied with data of dtype {data}"
        )
    wide: np.dtype[Any] = np.zeros(1, both).sum().dtype
    return np.result_type(wide, np.float32) if both.kind == "f" else wide


def check_masks(container: MaskContainer, sig: Shape, wanted: Any = None) -> None:
    """Compute masks; raise if their shape is not that of a frame, or their dtype's kind changes."""
    masks = container.computed_masks
    if masks.shape[1:] != tuple(sig):
        hint = ""
        if callable(container.mask_factories) and masks.ndim == len(sig):
            hint = (
                f". The function returned one array of shape {masks.shape}, and its first axis "
                "counts the masks. For one mask, write mask_factories=[lambda: mask]"
            )
        raise ArgumentValueError(
            f"the masks have the shape {masks.shape[1:]}, but a frame has the shape {tuple(sig)}: "
            f"make masks of the shape of a frame{hint}"
        )
    if wanted is not None and not np.can_cast(masks.dtype, wanted, "same_kind"):
        raise ArgumentTypeError(
            f"mask_dtype={np.dtype(wanted)} would change masks of dtype {masks.dtype}: convert them"
        )


def heaviest(container: MaskContainer) -> float:
    """Return the largest sum of absolute values of a mask."""
    masks = container.computed_masks
    which, _, values = entries(masks, tuple((0, n) for n in masks.shape[1:]))
    return _largest_sum(which, values)


def pays_sparse(masks: int, values: int, pixels: int) -> bool:
    """Return whether masks with `values` nonzero values are faster as sparse masks.

    Measured on frames of 128 x 128 pixels, 16-bit integers and float32, on one core, in ns for each
    pixel of a frame: dense masks take 0.022 for each mask in groups of four, and at least 0.1;
    sparse kernels take at most 0.5 for each value, or 0.5 and 0.09 for each value.
    """
    density = values / max(1, pixels)
    dense = max(0.1, 0.022 * 4 * -(-masks // 4))
    return min(0.5 * density, 0.5 + 0.09 * density) < dense


class MaskProduct:
    """Add dot products of tiles with a stack of masks to rows of results. All threads share it."""

    _narrowest = 16
    """Number of products that float32 must add up exactly to be faster than float64."""

    def __init__(self, container: MaskContainer, data: np.dtype[Any], dtype: np.dtype[Any]) -> None:
        self._container = container
        self._data = data
        self.dtype = dtype
        # complex masks on real data are pairs of real masks, adjacent in memory like the results
        self._split = dtype.kind == "c" and data.kind != "c"
        self._real = np.zeros(0, dtype).real.dtype if self._split else dtype
        self.is_sparse = self._choose()
        self._weight = heaviest(container) if dtype.kind in "iu" else 0.0
        self._may_wrap = self._weight > 0 and self._weight * highest(data) > LARGEST

    @property
    def _masks(self) -> Any:
        return self._container.computed_masks

    def _choose(self) -> bool:
        """Return whether to use sparse masks: as the user chose, otherwise the faster way."""
        masks, chosen = self._masks, self._container._use_sparse
        if self.dtype.char in "gG":  # long doubles, which numba does not have
            return False
        if chosen is not None:
            return chosen is not False
        if not isinstance(masks, np.ndarray):
            return True  # dense masks might not fit into memory
        values, pixels = int(np.count_nonzero(masks)), math.prod(masks.shape[1:])
        return pays_sparse(len(masks) * (1 + self._split), values, pixels)

    def add(self, tile: AnyArray, part: Slice, out: AnyArray) -> None:
        """Add the products of a tile, shape (n, *sizes), to `out`, shape (n, masks).

        `part` is the signal slice of the tile.
        """
        size = part.shape.size
        step = max(FEWEST, BATCH_BYTES // max(1, size * tile.itemsize))
        for first in range(0, len(tile), step):
            frames = tile[first : first + step]
            self._add_batch(frames.reshape(len(frames), size), part, out[first : first + step])

    def _add_batch(self, frames: AnyArray, part: Slice, out: AnyArray) -> None:
        """Add the products of flat frames, which are so few that temporary arrays are small."""
        if not self._may_wrap:
            self._add_frames(frames, part, out)
            return
        from udfdask.kernels.cpu.exact_sums import bits_of  # loads numba
        from udfdask.kernels.numba_internals.rows import as_rows

        products = np.zeros_like(out)
        self._add_frames(frames, part, products)
        # integers wrap silently: if the values of this tile are that large, compare with the
        # product in double precision
        if frames.size and float(bits_of(*as_rows(frames))) * self._weight > LARGEST:
            require_near(products, frames.astype(np.float64) @ self._matrix_of(part, np.float64))
        add_exactly(out, products)

    def _matrix_of(self, part: Slice, dtype: Any) -> AnyArray:
        matrix: AnyArray = self._container.get(part, dtype=dtype, sparse_backend=False)
        return matrix

    def _add_frames(self, frames: AnyArray, part: Slice, out: AnyArray) -> None:
        """Add the products of flat frames; sums of integers are correct modulo 2**64."""
        masks = self._within(part)
        if self.is_sparse:
            self._add_sparse(frames, masks, part, out.view(self._real) if self._split else out)
        elif isinstance(masks, np.ndarray):
            out += product(frames, masks)
        else:
            from udfdask.kernels.cpu.dense_products import add_dense_products  # loads numba

            add_dense_products(frames, masks, out)

    def _add_sparse(self, frames: AnyArray, masks: Any, part: Slice, out: AnyArray) -> None:
        from udfdask.kernels.cpu.ring_sums import add_ring_sums, frames_in_memory, mask_runs

        if not frames.size:
            return
        memory, runs = frames_in_memory(frames[:, np.newaxis]), None
        if masks.weights.dtype == np.float64:
            key = (*self._key(part), memory.layout)
            runs = self._container._stack.once(key, lambda: mask_runs(masks, memory))
        sums = np.zeros(out.shape, masks.weights.dtype)
        add_ring_sums(memory, masks, runs, sums)
        out += sums.astype(out.dtype, copy=False)

    def add_shifted(
        self, tile: AnyArray, part: Slice, shift: tuple[int, ...], out: AnyArray
    ) -> None:
        """Add the products of a tile with masks that are all shifted equally, in pixels."""
        in_frame, in_masks = overlap(shift, self._masks.shape[1:])
        window, origin, sizes = [], [], []
        for o, n, f, m in zip(part.origin, part.shape, in_frame, in_masks, strict=True):
            start, stop = max(o, f.start), min(o + n, f.stop)
            if stop <= start:
                return
            window.append(slice(start - o, stop - o))
            origin.append(start - f.start + m.start)
            sizes.append(stop - start)
        frames, inside = tile[(slice(None), *window)], Slice(origin, Shape(sizes, len(sizes)))
        # each batch is copied
        step = max(FEWEST, SHIFTED_BYTES // (inside.shape.size * tile.itemsize))
        for first in range(0, len(frames), step):
            self.add(frames[first : first + step], inside, out[first : first + step])

    def add_moved(self, frames: AnyArray, shifts: AnyArray, out: AnyArray) -> None:
        """Add the products of whole frames, (n, *sig), with masks shifted by (n, sig dims)."""
        whole = self._whole
        step = max(1, SHIFTED_BYTES // max(1, whole.shape.size * frames.itemsize))
        for first in range(0, len(frames), step):
            rows = slice(first, first + step)
            # shift the frames instead of the masks: all frames then use the same matrix
            self.add(moved_back(frames[rows], shifts[rows]), whole, out[rows])

    @property
    def _whole(self) -> Slice:
        sizes = self._masks.shape[1:]
        return Slice((0,) * len(sizes), Shape(sizes, len(sizes)))

    def _within(self, part: Slice) -> Any:
        """Return a part of the masks in the format and dtype of the multiplication."""
        cut = self._cut_sparse if self.is_sparse else self._cut_dense
        return self._container._stack.once(self._key(part), lambda: cut(part))

    def _key(self, part: Slice) -> tuple[Any, ...]:
        return type(self), self.is_sparse, region_of(part), self._data, self.dtype

    def _cut_dense(self, part: Slice) -> Any:
        """Return packed masks, or a matrix (pixels, masks) of a dtype that NumPy multiplies."""
        matrix, most = self._dense(part)
        if matrix.dtype.kind in "iu" or self.dtype.char in "gG":
            return matrix.T
        from udfdask.kernels.cpu.dense_products import pack  # loads numba

        return pack(real_masks(matrix, self._data), most)

    def _dense(self, part: Slice) -> tuple[AnyArray, int | None]:
        """Return the masks, (masks, pixels), as floats if products with integers are exact.

        Also return the number of products that floats add up exactly, if that matters.
        """
        masks, region = self._masks, region_of(part)

        def matrix(dtype: Any) -> AnyArray:
            return dense_matrix(masks, region, np.dtype(dtype), transpose=False)

        if self.dtype.kind in "fc":
            return matrix(self.dtype), None
        weights = np.abs(matrix(masks.dtype), dtype=np.float64)
        largest = highest(self._data)
        if largest * weights.sum(axis=1).max(initial=0) > EXACT:
            return matrix(self.dtype), None
        most = int(EXACT_SINGLE // max(1, largest * weights.max(initial=0)))
        if most < self._narrowest:
            return matrix(np.float64), weights.shape[1]
        return matrix(np.float32), most

    def _cut_sparse(self, part: Slice) -> Any:
        """Return the nonzero values of the masks, mask by mask."""
        from udfdask.kernels.cpu.ring_sums import RingPlaces

        which, pixels, values, bound = self._entries(part)
        order = np.lexsort((pixels, which))
        bounds = np.searchsorted(which[order], np.arange(len(self._masks) * (1 + self._split) + 1))
        pixels, values = pixels[order].astype(np.uint32), values[order].astype(self._wide(bound))
        return RingPlaces(bounds.astype(np.int64), pixels, values)

    def _entries(self, part: Slice) -> tuple[AnyArray, AnyArray, AnyArray, float]:
        """Return masks, pixels and nonzero values in a part, complex ones in two if split.

        Also return an upper limit of the product of a frame of integers with any of the masks.
        """
        which, pixels, values = entries(self._masks, region_of(part))
        if self._split:
            which = np.concatenate([2 * which, 2 * which + 1])
            pixels = np.concatenate([pixels, pixels])
            values = np.concatenate([values.real, values.imag])
        bound = 0.0
        if self.dtype.kind not in "fc":
            bound = highest(self._data) * _largest_sum(which, values)
        return which, pixels, values, bound

    def _wide(self, bound: float) -> np.dtype[Any]:
        """Return a dtype that can hold any sum of products up to a limit."""
        return np.result_type(self._real, np.float64) if bound <= EXACT else self.dtype


def _largest_sum(which: AnyArray, values: AnyArray) -> float:
    return float(np.bincount(which, np.abs(values, dtype=np.float64)).max(initial=0))


def region_of(part: Slice) -> Region:
    """Return a signal slice as a region."""
    return tuple(zip(part.origin, part.shape, strict=True))


def real_masks(matrix: AnyArray, data: np.dtype[Any]) -> AnyArray:
    """Return complex masks, shape (masks, pixels), as pairs of real masks; others as they are.

    The products with the pair of a mask are the real and the imaginary part of its product. If the
    data are complex, a mask has a value for the real and one for the imaginary part of each pixel.
    """
    if matrix.dtype.kind != "c":
        return matrix
    parts = 2 if data.kind == "c" else 1
    masks, pixels = matrix.shape
    pairs = np.empty((masks, 2, pixels, parts), matrix.real.dtype)
    pairs[:, 0, :, 0], pairs[:, 1, :, 0] = matrix.real, matrix.imag
    if parts == 2:
        pairs[:, 0, :, 1], pairs[:, 1, :, 1] = -matrix.imag, matrix.real
    return pairs.reshape(2 * masks, parts * pixels)


def highest(data: np.dtype[Any]) -> int:
    """Return the largest absolute value of an integer or boolean dtype."""
    if data.kind == "b":
        return 1
    limits = np.iinfo(data)
    return max(-int(limits.min), int(limits.max))


def signed_if_fits(dtype: np.dtype[Any], data: np.dtype[Any], weight: float) -> np.dtype[Any]:
    """Return int64 instead of uint64 if no sum of data is too large: differences then do not wrap.

    `weight` is the number of values that are added up, or the sum of their weights.
    """
    fits = dtype == np.uint64 and max(1, weight) * highest(data) <= LARGEST
    return np.dtype(np.int64) if fits else dtype


def as_added_up(total: Any, dtype: np.dtype[Any]) -> Any:
    """Return sums in int64 as a view in uint64, if kernels add them up in the unsigned `dtype`."""
    return total.view(np.uint64) if dtype.kind == "u" and total.dtype == np.int64 else total
