"""Frames of compressed sparse rows (CSR) in three files, read block by block."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from udfdask.arrays.backends.pydata_sparse import gcxs_rows, gcxs_to_csr
from udfdask.cache import OncePerProcess
from udfdask.errors import FileFormatError
from udfdask.io.file_identity import FileIdentity
from udfdask.io.memmap import MappedArray
from udfdask.kernels.cpu.sparse_entries import in_order

Values = np.ndarray[Any, Any]


SETTLED = 2_000_000_000
"""Time since a file was written, in ns, from which its time tells one content from another."""

_looks = OncePerProcess(1 << 14)
"""Whether the indices of blocks are in order: to see that takes as long as a sum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CSRFiles:
    """Sparse frames in three files that are mapped into memory by each task that slices them."""

    shape: tuple[int, ...]
    """Shape of all frames, (*nav, *sig)."""
    sig_dims: int
    """Number of signal dimensions."""
    indptr: MappedArray
    """Where the entries of each frame begin, shape (frames + 1,)."""
    indices: MappedArray
    """Pixel of each entry in the flattened frame, shape (entries,)."""
    data: MappedArray
    """Value of each entry, shape (entries,)."""

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def file(self) -> FileIdentity:
        """The file with the values as it was when it was opened."""
        return self.data.file

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values in a block, in the byte order of the machine: sparse has no other."""
        return self.data.dtype.newbyteorder("=")

    def __getitem__(self, index: tuple[slice, ...]) -> Any:
        """Return the frames of a block as a sparse.GCXS array, compressed over navigation."""
        n_nav = self.ndim - self.sig_dims
        nav, sig = self.shape[:n_nav], self.shape[n_nav:]
        runs = _runs(nav, index[:n_nav])
        pointers = [self._pointers(first, last) for first, last in runs]
        parts = [self._entries(int(some[0]), int(some[-1])) for some in pointers]
        indices = _joined([_signed(i) for i, _ in parts])
        if indices.size > np.iinfo(indices.dtype).max:
            indices = indices.astype(np.int64)  # pointers have the same type, and count entries
        starts = np.zeros(sum(len(some) - 1 for some in pointers) + 1, np.int64)
        np.cumsum(_joined([np.diff(some) for some in pointers]), out=starts[1:])
        shape = (*(part.stop - part.start for part in index[:n_nav]), *sig)
        entries = (_joined([d for _, d in parts]), indices, starts.astype(indices.dtype))
        frames = gcxs_rows(entries, shape, tuple(range(n_nav)))
        if self._once(runs, lambda: in_order(starts, indices, math.prod(sig))):
            return frames
        _check_pixels(indices, sig, runs, self)
        return _summed(frames)

    def _once(self, runs: list[tuple[int, int]], look: Callable[[], bool]) -> bool:
        """Return what `look` finds in the indices of some frames; it is called once per process."""
        states = [Path(part.file.path).stat() for part in (self.indptr, self.indices)]
        if time.time_ns() - max(state.st_mtime_ns for state in states) < SETTLED:
            return look()
        # The time of the last change as well: whoever sets back the other one cannot set it.
        files = tuple((s.st_dev, s.st_ino, s.st_mtime_ns, s.st_ctime_ns) for s in states)
        types = (self.indptr.dtype, self.indices.dtype)
        found: bool = _looks.get((files, types, self.shape, self.sig_dims, tuple(runs)), look)
        return found

    def _pointers(self, first: int, last: int) -> Values:
        """Return where entries of some frames begin, and where the last ones end, int64."""
        # A copy: what was checked stays as it is when the mapped file is written to.
        pointers = self.indptr[first : last + 1].astype(np.int64)
        entries = self.data.shape[0]
        if pointers[0] < 0 or pointers[-1] > entries or (pointers[1:] < pointers[:-1]).any():
            raise FileFormatError(
                f"{self.indptr.file.path} must increase from 0 to {entries}, the number of "
                f"entries, but does not at frames {first} to {last - 1}, where it goes from "
                f"{pointers[0]} to {pointers[-1]}: was it written anew? Open the files again"
            )
        return pointers

    def _entries(self, start: int, stop: int) -> tuple[Values, Values]:
        """Return pixels and values of some entries, views of the mapped files."""
        return self.indices[start:stop], self.data[start:stop].astype(self.dtype, copy=False)


def _runs(shape: tuple[int, ...], block: tuple[slice, ...]) -> list[tuple[int, int]]:
    """Take the scan's shape and a part of it; return first and last + 1 of frames in one piece."""
    cut = [part.stop - part.start < size for part, size in zip(block, shape, strict=True)]
    along = max((axis for axis, less in enumerate(cut) if less), default=0)
    steps = [math.prod(shape[axis + 1 :]) for axis in range(along + 1)]  # axes behind are whole
    firsts = [np.arange(p.start, p.stop) * s for p, s in zip(block, steps[:-1], strict=False)]
    outer = reduce(np.add.outer, firsts, np.zeros((), np.int64)).ravel().tolist()
    start, stop = block[along].start * steps[-1], block[along].stop * steps[-1]
    return [(first + start, first + stop) for first in outer]


def _joined(parts: list[Values]) -> Values:
    """Take arrays of one dimension; return them behind each other, a single one as it is."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _signed(indices: Values) -> Values:
    """Take indices; return them in a type that SciPy multiplies with, as a view if possible."""
    native = indices.dtype.isnative and indices.dtype.itemsize in (4, 8)
    if native and indices.dtype.kind == "i":
        return indices
    if native:
        return indices.view(f"i{indices.dtype.itemsize}")  # of 2**31 pixels there is none
    return indices.astype(np.int32 if indices.dtype.itemsize <= 4 else np.int64)


def _check_pixels(
    indices: Values, sig: tuple[int, ...], runs: list[tuple[int, int]], source: CSRFiles
) -> None:
    """Raise if a pixel lies outside of the frame."""
    if indices.size and (indices.min() < 0 or indices.max() >= math.prod(sig)):
        wrong = indices[(indices < 0) | (indices >= math.prod(sig))][0]
        raise FileFormatError(
            f"{source.indices.file.path} has pixel {wrong} among frames {runs[0][0]} to "
            f"{runs[-1][1] - 1}, but a frame of shape {sig} has {math.prod(sig)} pixels: check "
            "sig_shape and indices_dtype"
        )


def _summed(frames: Any) -> Any:
    """Take sparse frames; return them with the pixels of each in order and none twice."""
    matrix = gcxs_to_csr(frames).copy()
    matrix.sum_duplicates()
    return gcxs_rows(
        (matrix.data, matrix.indices, matrix.indptr), frames.shape, frames.compressed_axes
    )
