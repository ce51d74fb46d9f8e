"""An .npy file of which several tasks, perhaps in several processes, write rows."""

from __future__ import annotations

import io
import itertools
import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from udfdask.types import AnyArray


class NpyRows:
    """An .npy file open for writing; it is made, or made anew, if it is not what it should be.

    Tasks need no lock: each sees to it that size and header are right, which they are alike for
    all of them, and nobody touches another one's rows. What lies in rows that nobody writes is 0 in
    a new file.

    Parameters
    ----------
    path : str
        Where it is.
    shape : sequence of int
        Shape of the array.
    sig_dims : int
        How many axes the array has within a row.
    dtype : numpy.dtype
        Dtype of the array.
    """

    def __init__(
        self, path: str, shape: Sequence[int], sig_dims: int, dtype: np.dtype[Any]
    ) -> None:
        self._dtype = dtype
        header = _header(shape, dtype)
        self._start = len(header)
        self._row = math.prod(shape[len(shape) - sig_dims :]) * dtype.itemsize
        size = self._start + math.prod(shape) * dtype.itemsize
        # a buffer would write back what it has read of others' rows
        self._file = io.FileIO(path, "r+b", opener=_open_or_make)
        if os.fstat(self._file.fileno()).st_size != size:
            self._file.truncate(size)
        if self._file.read(self._start) != header:
            self._write(0, header)

    def write(self, rows: slice | AnyArray, values: AnyArray) -> None:
        """Write rows, given by their numbers in C order, from an array of shape (rows, ...)."""
        for first, start, stop in _neighbours(rows, len(values)):
            block = np.ascontiguousarray(values[start:stop], dtype=self._dtype)
            self._write(self._start + first * self._row, block.reshape(-1).view(np.uint8).data)

    def _write(self, position: int, values: bytes | memoryview) -> None:
        """Write bytes; the operating system may take them in pieces."""
        self._file.seek(position)
        left = memoryview(values)
        while left:
            left = left[self._file.write(left) :]

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _open_or_make(path: str, flags: int) -> int:
    """Open a file as it is; make an empty one if there is none."""
    return os.open(path, flags | os.O_CREAT, 0o666)


def _header(shape: Sequence[int], dtype: np.dtype[Any]) -> bytes:
    """Return the first bytes of an .npy file."""
    descr = np.lib.format.dtype_to_descr(dtype)
    parts = {"descr": descr, "fortran_order": False, "shape": tuple(map(int, shape))}
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, parts)
    return stream.getvalue()


def _neighbours(rows: slice | AnyArray, n: int) -> list[tuple[int, int, int]]:
    """Return first row, first and last index of each stretch of rows that lie side by side."""
    if isinstance(rows, slice):
        return [(int(rows.start), 0, n)]
    ends = [0, *(np.flatnonzero(np.diff(rows) != 1) + 1).tolist(), n]
    return [(int(rows[a]), a, b) for a, b in itertools.pairwise(ends)]
