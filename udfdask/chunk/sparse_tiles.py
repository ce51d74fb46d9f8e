"""A piece of sparse data as UDFs want it, and the frames of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from udfdask.arrays.backends.backend import Backend, SparseBackend
from udfdask.arrays.backends.convert import to_backend
from udfdask.chunk.udf_instance import Instance


class SparsePieces:
    """A piece of sparse data, for UDFs that take sparse data.

    It has the shape (frames, *sig), or (frames, pixels) of a matrix.
    """

    def __init__(self, native: Any, sig: tuple[int, ...]) -> None:
        self._native = native
        self._shape = (int(native.shape[0]), *sig)
        self._converted: dict[tuple[np.dtype[Any], Backend], Any] = {}

    def get(self, instance: Instance) -> Any:
        """Return the piece in the dtype and backend of a UDF.

        It is private and writable if the UDF asks for that. Else only its values and places are
        shared: the object is not, since sparse arrays can be resized or given other values.
        """
        wanted = (instance.where.input_dtype, instance.backend)
        if wanted not in self._converted:
            self._converted[wanted] = self._convert(*wanted)
        piece = self._converted[wanted]
        return piece.copy() if instance.writable_input else instance.backend.read_only(piece)

    def _convert(self, dtype: np.dtype[Any], backend: Backend) -> Any:
        """Return the piece in a dtype and backend."""
        piece = self._native
        if piece.dtype != dtype:
            piece = piece.astype(dtype)
        return to_backend(piece, backend, self._shape)


def frames_of(stack: Any, backend: Backend, writable: bool = False) -> Iterable[Any]:
    """Return the frames of a stack one by one, shape sig; of a matrix, of shape (1, pixels).

    Sparse ones are copied if they are to be `writable`; dense ones are if the stack is.
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
