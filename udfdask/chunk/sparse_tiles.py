"""Cut sparse tiles, for UDFs that take sparse data, and frames from stacks of any backend."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from udfdask.arrays.backends.backend import Backend, SparseBackend
from udfdask.arrays.backends.convert import to_backend
from udfdask.arrays.geometry.slices import Slice
from udfdask.arrays.geometry.tiling import TilingScheme
from udfdask.chunk.frames.sparse import SparseSource
from udfdask.chunk.udf_instance import Instance


class SparseCutter:
    """Cuts sparse tiles from a chunk; each is a view of rows of one signal chunk."""

    def __init__(self, source: SparseSource, tiling: TilingScheme) -> None:
        self.source = source
        self.tiling = tiling

    @property
    def tiles_are_views(self) -> bool:
        """Whether dense tiles are views: these tiles are sparse."""
        return False

    def reader(self, part: Slice, block: int) -> Callable[[int, int], SparseTile]:
        """Return a function of first and last row that reads signal chunk `block`."""
        source, sig = self.source, tuple(part.shape)
        place = block if source.n_blocks > 1 else 0

        def read(start: int, stop: int) -> SparseTile:
            return SparseTile(source.sparse_tile(start, stop, place), sig)

        return read

    def frames(self, start: int, stop: int) -> SparseTile:
        """Return the full frames of rows `start` to `stop`."""
        sig = tuple(self.tiling.dataset_shape)
        return SparseTile(self.source.sparse_frames(start, stop), sig)


class SparseTile:
    """A sparse tile, of shape (frames, *sig), or (frames, pixels) of a matrix."""

    def __init__(self, native: Any, sig: tuple[int, ...]) -> None:
        self._native = native
        self._shape = (int(native.shape[0]), *sig)
        self._converted: dict[tuple[np.dtype[Any], Backend], Any] = {}

    def get(self, instance: Instance) -> Any:
        """Return the tile in the dtype and backend of a UDF.

        It is private and writable if the UDF asks for that. Otherwise UDFs share its values and
        indices, but not the object: sparse arrays can be resized or given other values.
        """
        dtype, backend = instance.declared.input_dtype, instance.backend
        if (dtype, backend) not in self._converted:
            native = self._native
            typed = native if native.dtype == dtype else native.astype(dtype)
            self._converted[dtype, backend] = to_backend(typed, backend, self._shape)
        tile = self._converted[dtype, backend]
        return tile.copy() if instance.writable_input else backend.read_only(tile)


def frames_of(stack: Any, backend: Backend, writable: bool = False) -> Iterable[Any]:
    """Return the frames of a stack one by one, of shape sig, or (1, pixels) of a matrix.

    Sparse frames are copied if they must be `writable`; dense ones are writable if the stack is.
    """
    if not isinstance(backend, SparseBackend):
        frames: Iterable[Any] = stack
        return frames
    rows = backend.frames_of_stack(stack)
    sig = rows.sig
    singles = (rows.rows(i, i + 1) for i in range(len(rows)))
    if not backend.is_matrix:
        singles = (to_backend(single.reshape(sig), backend, sig) for single in singles)
    return (single.copy() if writable else backend.read_only(single) for single in singles)
