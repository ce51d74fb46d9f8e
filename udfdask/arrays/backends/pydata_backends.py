"""The array types of the package `sparse`: COO, GCXS and DOK."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from udfdask.arrays.backends.backend import SparseBackend
from udfdask.arrays.backends.dense_backends import NUMPY
from udfdask.arrays.backends.pydata_sparse import (
    coo_rows,
    coo_starts,
    coo_take,
    gcxs_rows,
    gcxs_to_csr,
    is_rows,
    like_scipy,
)
from udfdask.arrays.backends.sparse_rows import SparseRows, cut_rows, with_compiled_dtype
from udfdask.types import AnyArray


class CooRows(SparseRows):
    """Frames of `sparse.COO`."""

    @cached_property
    def _starts(self) -> AnyArray:
        """Index of the first entry of each frame."""
        return coo_starts(self.array)

    def _select(self, frames: Any) -> Any:
        """Return some frames."""
        if isinstance(frames, slice):
            return coo_rows(self.array, self._starts, frames.start, frames.stop)
        return coo_take(self.array, self._starts, frames)


class GcxsRows(SparseRows):
    """Frames of `sparse.GCXS`, compressed over the frames."""

    def _select(self, frames: Any) -> Any:
        """Return some frames."""
        csr = self.csr
        if isinstance(frames, slice):
            rows = cut_rows(csr, frames.start, frames.stop)
        else:
            rows = csr[frames]
        return gcxs_rows((rows.data, rows.indices, rows.indptr), (rows.shape[0], *self.sig), (0,))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CooBackend(SparseBackend):
    """Coordinate lists; the base of the other two formats."""

    missing_dtypes: str = "mM"

    def frames(self, block: Any, nav_dims: int) -> SparseRows:
        """Return the frames of a block, shape (*nav, *part of sig)."""
        sig = tuple(block.shape[nav_dims:])
        return self._rows(with_compiled_dtype(self._flat(block, nav_dims)), sig)

    def frames_of_stack(self, stack: Any) -> SparseRows:
        """Return the frames of a stack that was cut out of such frames."""
        return self._rows(self._flat(stack, 1), tuple(stack.shape[1:]))

    def join(self, parts: list[Any], counts: list[int]) -> Any:
        """Join full frames from their signal parts."""
        return self.read_only(_joined(parts, counts))

    def _rows(self, array: Any, sig: tuple[int, ...]) -> SparseRows:
        """Return an array with one navigation axis as frames."""
        return CooRows(array, sig, COO)

    def _flat(self, block: Any, nav_dims: int) -> Any:
        """Flatten the navigation axes of a block into one."""
        return block.reshape((math.prod(block.shape[:nav_dims]), *block.shape[nav_dims:]))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DokBackend(CooBackend):
    """Dictionaries of keys, converted to coordinate lists."""

    def _flat(self, block: Any, nav_dims: int) -> Any:
        """Convert a block to COO and flatten its navigation axes into one."""
        return COO._flat(block.to_coo(), nav_dims)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GcxsBackend(CooBackend):
    """Arrays compressed over some axes; frames are compressed over the navigation axis."""

    missing_dtypes: str = "mMegG"  # sparse compiles its methods with numba

    def reshape(self, array: Any, shape: tuple[int, ...]) -> Any:
        """Return an array in another shape with the same first dimension."""
        if is_rows(array):
            return gcxs_rows((array.data, array.indices, array.indptr), shape, (0,))
        return array.reshape(shape)

    def for_conversion(self, array: Any) -> Any:
        """Return an array that is compressed over its first axis as a CSR matrix."""
        return gcxs_to_csr(array) if is_rows(array) else array

    def join(self, parts: list[Any], counts: list[int]) -> Any:
        """Join full frames from their signal parts."""
        frames = _joined(parts, counts)
        if tuple(frames.compressed_axes) != (0,):
            frames = frames.change_compressed_axes((0,))
        return self.read_only(frames)

    def _rows(self, array: Any, sig: tuple[int, ...]) -> SparseRows:
        """Return an array with one navigation axis as frames."""
        return GcxsRows(array, sig, self)

    def _flat(self, block: Any, nav_dims: int) -> Any:
        """Flatten the navigation axes of a block into one, compressed over it."""
        import sparse

        sig = tuple(block.shape[nav_dims:])
        if nav_dims == 0:
            block = sparse.GCXS.from_coo(block.tocoo().reshape((1, *sig)), compressed_axes=(0,))
        elif tuple(block.compressed_axes or ()) != tuple(range(nav_dims)):
            block = block.change_compressed_axes(tuple(range(nav_dims)))
        indices, starts = like_scipy(block.indices, block.indptr)
        if is_rows(block) and indices is block.indices and starts is block.indptr:
            return block
        n = len(starts) - 1
        return gcxs_rows((block.data, indices, starts), (n, *sig), (0,))


def _joined(parts: list[Any], counts: list[int]) -> Any:
    """Join full frames from their signal parts, which are in C order."""
    import sparse

    for axis in range(len(counts), 0, -1):
        n = counts[axis - 1]
        groups = [parts[k : k + n] for k in range(0, len(parts), n)]
        parts = [sparse.concatenate(group, axis=axis) for group in groups]
    return parts[0]


_ROWS = "scipy.sparse.csr_array"
COO = CooBackend(name="sparse.COO", dense_kind=NUMPY, rows_kind=_ROWS)
GCXS = GcxsBackend(name="sparse.GCXS", dense_kind=NUMPY, rows_kind=_ROWS)
DOK = DokBackend(name="sparse.DOK", dense_kind=NUMPY, rows_kind=_ROWS)
