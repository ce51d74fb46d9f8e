"""Write rows of an .npy file from several tasks, which can run in several processes."""

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
    """Open an .npy file for writing; create it, and correct its size and header, if necessary.

    Tasks need no lock: all tasks write the same size and header, and each task writes its own rows
    only. In a new file, rows that no task writes are 0. The shape is that of the array, a row has
    `sig_dims` axes. With `compare`, the file must be complete, and `write` only compares.
    """

    def __init__(
        self,
        path: str,
        shape: Sequence[int],
        sig_dims: int,
        dtype: np.dtype[Any],
        compare: bool = False,
    ) -> None:
        self.is_new = False  # whether this object created the file
        self._path, self._dtype, self._compares = path, dtype, compare
        header = _header(shape, dtype)
        self._start = len(header)
        self._row = math.prod(shape[len(shape) - sig_dims :]) * dtype.itemsize
        size = self._start + math.prod(shape) * dtype.itemsize
        # unbuffered: a buffer would write back old bytes of rows that other tasks have written
        self._file = io.FileIO(path, "rb" if compare else "r+b", opener=self._open)
        has_size = os.fstat(self._file.fileno()).st_size == size
        if compare and not has_size:
            raise self._differs()
        if not has_size:
            self._file.truncate(size)
        if self._file.read(self._start) != header:
            self._put(0, memoryview(header))

    def _open(self, path: str, flags: int) -> int:
        """Open the file; if there is none, create an empty file and set `is_new`."""
        if self._compares:
            return os.open(path, flags)
        try:
            descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            return os.open(path, flags | os.O_CREAT, 0o666)
        self.is_new = True
        return descriptor

    @property
    def number(self) -> int:
        """Inode of the file, which identifies it on its disk independent of its name."""
        return os.fstat(self._file.fileno()).st_ino

    def write(self, rows: slice | AnyArray, values: AnyArray) -> None:
        """Write rows from an array of shape (rows, ...); `rows` are their numbers in C order."""
        ends = [0, len(values)]
        if not isinstance(rows, slice):  # each stretch of consecutive rows
            ends[1:1] = (np.flatnonzero(np.diff(rows) != 1) + 1).tolist()
        for a, b in itertools.pairwise(ends):
            first = int(rows.start if isinstance(rows, slice) else rows[a])
            block = np.ascontiguousarray(values[a:b], dtype=self._dtype)
            self._put(self._start + first * self._row, block.reshape(-1).view(np.uint8).data)

    def _put(self, position: int, left: memoryview) -> None:
        """Write or compare bytes; the operating system may accept only a part of them at a time."""
        self._file.seek(position)
        while left:
            if not self._compares:
                left = left[self._file.write(left) :]
                continue
            piece = self._file.read(len(left))
            if not piece or piece != left[: len(piece)]:
                raise self._differs()
            left = left[len(piece) :]

    def _differs(self) -> FileExistsError:
        self._file.close()
        return FileExistsError(
            f"{self._path} already exists, with other frames: choose another name, or pass "
            "overwrite=True"
        )

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _header(shape: Sequence[int], dtype: np.dtype[Any]) -> bytes:
    descr = np.lib.format.dtype_to_descr(dtype)
    parts = {"descr": descr, "fortran_order": False, "shape": tuple(map(int, shape))}
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, parts)
    return stream.getvalue()
