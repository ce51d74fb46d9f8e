"""Write rows of an .npy file from several tasks, which can run in several processes."""

from __future__ import annotations

import contextlib
import io
import itertools
import math
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from udfdask.types import AnyArray


class _Rows:
    """Map rows of an array to positions in an open .npy file."""

    _file: io.FileIO
    is_new = False
    """Whether this object created the file."""

    def __init__(self, shape: Sequence[int], sig_dims: int, dtype: np.dtype[Any]) -> None:
        self._dtype = dtype
        self._header = _header(shape, dtype)
        self._row = math.prod(shape[len(shape) - sig_dims :]) * dtype.itemsize
        self._size = len(self._header) + math.prod(shape) * dtype.itemsize

    def _blocks(self, rows: slice | AnyArray, values: AnyArray) -> Iterator[tuple[int, memoryview]]:
        """Yield positions in the file, and the bytes to be stored there."""
        for first, start, stop in _consecutive(rows, len(values)):
            block = np.ascontiguousarray(values[start:stop], dtype=self._dtype)
            position = len(self._header) + first * self._row
            yield position, block.reshape(-1).view(np.uint8).data

    @property
    def number(self) -> int:
        """Inode of the file, which identifies it on its disk independent of its name."""
        return os.fstat(self._file.fileno()).st_ino

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class NpyRows(_Rows):
    """Open an .npy file for writing; create it, and correct its size and header, if necessary.

    Tasks need no lock: all tasks write the same size and header, and each task writes its own rows
    only. In a new file, rows that no task writes are 0.

    Parameters
    ----------
    path : str
        Path of the file.
    shape : sequence of int
        Shape of the array.
    sig_dims : int
        Number of axes of a row.
    dtype : numpy.dtype
        Dtype of the array.
    """

    def __init__(
        self, path: str, shape: Sequence[int], sig_dims: int, dtype: np.dtype[Any]
    ) -> None:
        super().__init__(shape, sig_dims, dtype)
        self._path = path
        # unbuffered: a buffer would write back old bytes of rows that other tasks have written
        self._file = io.FileIO(path, "r+b", opener=self._open_or_make)
        if os.fstat(self._file.fileno()).st_size != self._size:
            self._file.truncate(self._size)
        if self._file.read(len(self._header)) != self._header:
            self._write(0, memoryview(self._header))

    def _open_or_make(self, path: str, flags: int) -> int:
        """Open the file; if there is none, create an empty file and set `is_new`."""
        while True:
            try:
                descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o666)
            except FileExistsError:
                with contextlib.suppress(FileNotFoundError):  # it was removed in the meantime
                    return os.open(path, flags)
            else:
                self.is_new = True
                return descriptor

    def write(self, rows: slice | AnyArray, values: AnyArray) -> None:
        """Write rows from an array of shape (rows, ...); `rows` are their numbers in C order."""
        for position, block in self._blocks(rows, values):
            self._write(position, block)

    def _write(self, position: int, left: memoryview) -> None:
        """Write bytes; the operating system may accept only a part of them at a time."""
        self._file.seek(position)
        while left:
            try:
                left = left[self._file.write(left) :]
            except OSError as error:  # the system's message about a full disk names no file
                self._file.close()
                raise OSError(
                    error.errno,
                    f"{error.strerror}, while frames were written to a hidden file, which you can "
                    "remove: free disk space, or choose a file on another disk",
                    self._path,
                ) from error


class KeptRows(_Rows):
    """Compare rows with a complete .npy file instead of writing them.

    Parameters are those of `NpyRows`.
    """

    def __init__(
        self, path: str, shape: Sequence[int], sig_dims: int, dtype: np.dtype[Any]
    ) -> None:
        super().__init__(shape, sig_dims, dtype)
        self._path = path
        self._file = io.FileIO(path, "rb")
        self._compare(0, memoryview(self._header))
        if os.fstat(self._file.fileno()).st_size != self._size:
            raise self._differs()

    def write(self, rows: slice | AnyArray, values: AnyArray) -> None:
        """Raise unless the file has these values in rows with these numbers in C order."""
        for position, block in self._blocks(rows, values):
            self._compare(position, block)

    def _compare(self, position: int, left: memoryview) -> None:
        """Raise unless the file has these bytes; the operating system may return them in parts."""
        self._file.seek(position)
        while left:
            piece = self._file.read(len(left))
            if not piece or piece != left[: len(piece)]:
                raise self._differs()
            left = left[len(piece) :]

    def _differs(self) -> FileExistsError:
        """Close the file and return the error for a file with other frames."""
        self._file.close()
        return FileExistsError(
            f"{self._path} already exists, with other frames: choose another name, or pass "
            "overwrite=True"
        )


def _header(shape: Sequence[int], dtype: np.dtype[Any]) -> bytes:
    descr = np.lib.format.dtype_to_descr(dtype)
    parts = {"descr": descr, "fortran_order": False, "shape": tuple(map(int, shape))}
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, parts)
    return stream.getvalue()


def _consecutive(rows: slice | AnyArray, n: int) -> list[tuple[int, int, int]]:
    """Return the first row, first index and last index of each stretch of consecutive rows."""
    if isinstance(rows, slice):
        return [(int(rows.start), 0, n)]
    ends = [0, *(np.flatnonzero(np.diff(rows) != 1) + 1).tolist(), n]
    return [(int(rows[a]), a, b) for a, b in itertools.pairwise(ends)]
