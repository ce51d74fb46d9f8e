"""The arrays of the package `sparse`: COO, GCXS and DOK."""

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
        """Where the entries of each frame begin."""
        return coo_starts(self.array)

    def _picked(self, places: Any) -> Any:
        """Return some of the frames."""
        if isinstance(places, slice):
            return coo_rows(self.array, self._starts, places.start, places.stop)
        return coo_take(self.array, self._starts, places)


class GcxsRows(SparseRows):
    """Frames of `sparse.GCXS`, which is compressed over them."""

    def _picked(self, places: Any) -> Any:
        """Return some of the frames."""
        csr = self._csr
        if isinstance(places, slice):
            rows = cut_rows(csr, places.start, places.stop)
        else:
            rows = csr[places]
        return gcxs_rows((rows.data, rows.indices, rows.indptr), (rows.shape[0], *self.sig), (0,))


@dataclass(frozen=True, slots=True, kw_only=True)
class CooBackend(SparseBackend):
    """Arrays of coordinates."""

    missing_dtypes: str = "mM"

    def frames(self, block: Any, nav_dims: int) -> SparseRows:
        """Return the frames of a block, shape (*nav, *sig part)."""
        sig = tuple(block.shape[nav_dims:])
        return self._rows(with_compiled_dtype(self._flat(block, nav_dims)), sig)

    def frames_of_stack(self, stack: Any) -> SparseRows:
        """Return the frames of what has been cut out of such frames."""
        return self._rows(self._flat(stack, 1), tuple(stack.shape[1:]))

    def join(self, parts: list[Any], counts: list[int]) -> Any:
        """Return whole frames from their signal parts."""
        return self.read_only(_joined(parts, counts))

    def _rows(self, array: Any, sig: tuple[int, ...]) -> SparseRows:
        """Return frames out of which rows can be cut."""
        return CooRows(array, sig, COO)

    def _flat(self, block: Any, nav_dims: int) -> Any:
        """Return a block with its navigation in one dimension."""
        return block.reshape((math.prod(block.shape[:nav_dims]), *block.shape[nav_dims:]))


@dataclass(frozen=True, slots=True, kw_only=True)
class DokBackend(CooBackend):
    """Dictionaries of keys; their frames are read as coordinates."""

    def _flat(self, block: Any, nav_dims: int) -> Any:
        """Return a block with its navigation in one dimension."""
        return COO._flat(block.to_coo(), nav_dims)


@dataclass(frozen=True, slots=True, kw_only=True)
class GcxsBackend(CooBackend):
    """Arrays that are compressed over some of their axes; of frames, over the first one."""

    missing_dtypes: str = "mMegG"  # compiled by numba

    def reshape(self, array: Any, shape: tuple[int, ...]) -> Any:
        """Return an array in another shape with the same first dimension."""
        if is_rows(array):
            return gcxs_rows((array.data, array.indices, array.indptr), shape, (0,))
        return array.reshape(shape)

    def for_conversion(self, array: Any) -> Any:
        """Return the matrix of compressed rows that an array is, if it is one."""
        return gcxs_to_csr(array) if is_rows(array) else array

    def join(self, parts: list[Any], counts: list[int]) -> Any:
        """Return whole frames from their signal parts."""
        whole = _joined(parts, counts)
        if tuple(whole.compressed_axes) != (0,):
            whole = whole.change_compressed_axes((0,))
        return self.read_only(whole)

    def _rows(self, array: Any, sig: tuple[int, ...]) -> SparseRows:
        """Return frames out of which rows can be cut."""
        return GcxsRows(array, sig, self)

    def _flat(self, block: Any, nav_dims: int) -> Any:
        """Return a block with its navigation in one dimension."""
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
    """Return whole frames from their signal parts, in C order."""
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
