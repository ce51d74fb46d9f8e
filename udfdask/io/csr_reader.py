"""Read frames in compressed sparse rows (CSR) from three files, block by block."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from udfdask.backends.pydata_backends import gcxs_rows, gcxs_to_csr
from udfdask.errors import FileFormatError
from udfdask.io.lazy_source import FileArray
from udfdask.io.memmap import MappedArray, Values
from udfdask.kernels.cpu.sparse_sums import in_order
from udfdask.once_per_process import OncePerProcess

_in_order = OncePerProcess(1 << 14)
"""Whether the indices of a block are in order. This check takes as long as a sum over the block, so
each process makes it once; the constructors of sparse and SciPy would make it for each block, which
took more than two thirds of the time of a sum over the pixels of each frame."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CSRFiles(FileArray):
    """Sparse frames in three files that each task maps into memory.

    `file` is the file with the values. `dtype` has the byte order of the machine, because sparse
    arrays cannot have another one.
    """

    sig_dims: int
    """Number of signal dimensions."""
    indptr: MappedArray
    """Index of the first entry of each frame, shape (frames + 1,)."""
    indices: MappedArray
    """Pixel of each entry in the flattened frame, shape (entries,)."""
    data: MappedArray
    """Value of each entry, shape (entries,)."""

    def __getitem__(self, index: tuple[slice, ...]) -> Any:
        """Return the frames of a block as a sparse.GCXS array, compressed over navigation."""
        n_nav = self.ndim - self.sig_dims
        nav, sig = self.shape[:n_nav], self.shape[n_nav:]
        runs = _runs(nav, index[:n_nav])
        pointers = [self._pointers(first, last) for first, last in runs]
        entries_of_runs = [slice(int(run[0]), int(run[-1])) for run in pointers]
        indices = _joined([_signed(self.indices[entries]) for entries in entries_of_runs])
        if indices.size > np.iinfo(indices.dtype).max:
            indices = indices.astype(np.int64)  # pointers have the same type, and count entries
        starts = np.zeros(sum(len(run) - 1 for run in pointers) + 1, np.int64)
        np.cumsum(_joined([np.diff(run) for run in pointers]), out=starts[1:])
        shape = (*(part.stop - part.start for part in index[:n_nav]), *sig)
        values = _joined([self.data[entries] for entries in entries_of_runs])
        values = values.astype(self.dtype, copy=False)
        csr = (values, indices, starts.astype(indices.dtype))
        frames = gcxs_rows(csr, shape, tuple(range(n_nav)))
        # each read compares the files with their identities, which are a part of the key
        key = (self, tuple(runs))
        if _in_order.get(key, lambda: in_order(starts, indices, math.prod(sig))):
            return frames
        _check_pixels(indices, sig, runs, self)
        return _summed(frames)

    def _pointers(self, first: int, last: int) -> Values:
        """Return the first entry of each of some frames and the end of the last one, int64."""
        # A copy, because another program may write to the mapped file after the check.
        pointers = self.indptr[first : last + 1].astype(np.int64)
        entries = self.data.shape[0]
        if pointers[0] < 0 or pointers[-1] > entries or (pointers[1:] < pointers[:-1]).any():
            raise FileFormatError(
                f"{self.indptr.file.path} must increase from 0 to {entries}, the number of "
                f"entries, but at frames {first} to {last - 1} it goes from {pointers[0]} to "
                f"{pointers[-1]}: perhaps it was written again. Open the files again"
            )
        return pointers


def _runs(shape: tuple[int, ...], block: tuple[slice, ...]) -> list[tuple[int, int]]:
    """Return the ranges of consecutive frames in a block of the scan, as (first, last + 1)."""
    cut = [part.stop - part.start < size for part, size in zip(block, shape, strict=True)]
    along = max((axis for axis, less in enumerate(cut) if less), default=0)
    # the block contains all positions of the axes after `along`
    steps = [math.prod(shape[axis + 1 :]) for axis in range(along + 1)]
    firsts = [np.arange(p.start, p.stop) * s for p, s in zip(block, steps[:-1], strict=False)]
    outer = reduce(np.add.outer, firsts, np.zeros((), np.int64)).ravel().tolist()
    start, stop = block[along].start * steps[-1], block[along].stop * steps[-1]
    return [(first + start, first + stop) for first in outer]


def _joined(parts: list[Values]) -> Values:
    """Return concatenated arrays; a single array is not copied."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _signed(indices: Values) -> Values:
    """Return indices in a signed type, which SciPy needs for products; a view if possible."""
    if indices.dtype.isnative and indices.dtype.itemsize in (4, 8):
        return indices.view(f"i{indices.dtype.itemsize}")  # no frame has 2**31 pixels
    return indices.astype(np.int32 if indices.dtype.itemsize <= 4 else np.int64)


def _check_pixels(
    indices: Values, sig: tuple[int, ...], runs: list[tuple[int, int]], source: CSRFiles
) -> None:
    """Raise if a pixel is outside the frame."""
    if indices.size and (indices.min() < 0 or indices.max() >= math.prod(sig)):
        wrong = indices[(indices < 0) | (indices >= math.prod(sig))][0]
        raise FileFormatError(
            f"{source.indices.file.path} has pixel {wrong} among frames {runs[0][0]} to "
            f"{runs[-1][1] - 1}, but a frame of shape {sig} has {math.prod(sig)} pixels: check "
            "sig_shape and indices_dtype"
        )


def _summed(frames: Any) -> Any:
    """Return sparse frames with sorted pixels; the values of equal pixels are added."""
    matrix = gcxs_to_csr(frames).copy()
    matrix.sum_duplicates()
    return gcxs_rows(
        (matrix.data, matrix.indices, matrix.indptr), frames.shape, frames.compressed_axes
    )
