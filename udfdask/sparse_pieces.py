"""A piece of sparse data as UDFs want it, and the frames of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from udfdask.backends import names
from udfdask.backends.converting import to_backend
from udfdask.backends.locking import locked_sparse
from udfdask.backends.sparse_rows import SparseRows
from udfdask.instance import Instance


class SparsePieces:
    """A piece of sparse data, for UDFs that take sparse data.

    It has the shape (frames, *sig), or (frames, pixels) of a matrix.
    """

    def __init__(self, native: Any, sig: tuple[int, ...]) -> None:
        self._native = native
        self._shape = (int(native.shape[0]), *sig)
        self._converted: dict[tuple[np.dtype[Any], str], Any] = {}

    def get(self, instance: Instance) -> Any:
        """Return the piece in the dtype and backend of a UDF.

        It is private and writable if the UDF asks for that.
        """
        wanted = (instance.where.input_dtype, instance.backend)
        if wanted not in self._converted:
            self._converted[wanted] = self._convert(*wanted)
        piece = self._converted[wanted]
        return piece.copy() if instance.writable_input else piece

    def _convert(self, dtype: np.dtype[Any], backend: str) -> Any:
        """Return the piece in a dtype and backend, read-only."""
        piece = self._native
        if piece.dtype != dtype:
            piece = piece.astype(dtype)
        piece = to_backend(piece, backend, self._shape)
        return piece if piece is self._native else locked_sparse(piece)


def frames_of(stack: Any, backend: str) -> Iterable[Any]:
    """Return the frames of a stack one by one, shape sig; of a matrix, of shape (1, pixels)."""
    if backend in names.DENSE_BACKENDS:
        frames: Iterable[Any] = stack
        return frames
    sig = tuple(stack.shape[1:])
    rows = SparseRows.of_block(stack, 1)
    singles = (rows.rows(i, i + 1) for i in range(len(rows)))
    if backend in names.D2_BACKENDS:
        return singles
    return (to_backend(single.reshape(sig), backend, sig) for single in singles)
