"""An .npy file of which several tasks, perhaps in several processes, write rows."""

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
    """An open .npy file in which rows have their places."""

    _file: io.FileIO
    is_new = False
    """Whether the file was not there before."""

    def __init__(self, shape: Sequence[int], sig_dims: int, dtype: np.dtype[Any]) -> None:
        self._dtype = dtype
        self._header = _header(shape, dtype)
        self._row = math.prod(shape[len(shape) - sig_dims :]) * dtype.itemsize
        self._size = len(self._header) + math.prod(shape) * dtype.itemsize

    def _blocks(self, rows: slice | AnyArray, values: AnyArray) -> Iterator[tuple[int, memoryview]]:
        """Return positions in the file, and the bytes of values that belong there."""
        for first, start, stop in _neighbours(rows, len(values)):
            block = np.ascontiguousarray(values[start:stop], dtype=self._dtype)
            position = len(self._header) + first * self._row
            yield position, block.reshape(-1).view(np.uint8).data

    @property
    def number(self) -> int:
        """What tells the file from all others on its disk, whatever it is called."""
        return os.fstat(self._file.fileno()).st_ino

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class NpyRows(_Rows):
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
        super().__init__(shape, sig_dims, dtype)
        self._path = path
        # a buffer would write back what it has read of others' rows
        self._file = io.FileIO(path, "r+b", opener=self._open_or_make)
        if os.fstat(self._file.fileno()).st_size != self._size:
            self._file.truncate(self._size)
        if self._file.read(len(self._header)) != self._header:
            self._write(0, memoryview(self._header))

    def _open_or_make(self, path: str, flags: int) -> int:
        """Open a file as it is; make an empty one if there is none, and note that."""
        while True:
            try:
                descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o666)
            except FileExistsError:
                with contextlib.suppress(FileNotFoundError):  # removed at this moment
                    return os.open(path, flags)
            else:
                self.is_new = True
                return descriptor

    def write(self, rows: slice | AnyArray, values: AnyArray) -> None:
        """Write rows, given by their numbers in C order, from an array of shape (rows, ...)."""
        for position, block in self._blocks(rows, values):
            self._write(position, block)

    def _write(self, position: int, left: memoryview) -> None:
        """Write bytes; the operating system may take them in pieces."""
        self._file.seek(position)
        while left:
            try:
                left = left[self._file.write(left) :]
            except OSError as error:  # a full disk, and the system does not say which
                self._file.close()
                raise OSError(
                    error.errno,
                    f"{error.strerror}, while frames were written to a hidden file, which can be "
                    "removed: make room, or choose a file on another disk",
                    self._path,
                ) from error


class KeptRows(_Rows):
    """A complete .npy file that is not written to: it must hold what is to be written.

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
            raise self._other()

    def write(self, rows: slice | AnyArray, values: AnyArray) -> None:
        """Raise unless rows, given by their numbers in C order, have these values already."""
        for position, block in self._blocks(rows, values):
            self._compare(position, block)

    def _compare(self, position: int, left: memoryview) -> None:
        """Raise unless the file has these bytes; the operating system may give them in pieces."""
        self._file.seek(position)
        while left:
            piece = self._file.read(len(left))
            if not piece or piece != left[: len(piece)]:
                raise self._other()
            left = left[len(piece) :]

    def _other(self) -> FileExistsError:
        """Return the error about a file that holds something else."""
        self._file.close()
        return FileExistsError(
            f"{self._path} is there already, with other frames: choose another name, or pass "
            "overwrite=True"
        )


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
