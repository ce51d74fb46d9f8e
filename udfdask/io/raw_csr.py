"""Open sparse frames in three raw files, and check that the files are consistent."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import DTypeLike

from udfdask.backends.sparse_types import gcxs_rows, gcxs_to_csr
from udfdask.base.config import chunk_bytes
from udfdask.base.once_per_process import OncePerProcess
from udfdask.errors import ArgumentValueError, FileFormatError, missing_package
from udfdask.io.file_identity import COPY_AGAIN, FileIdentity
from udfdask.io.lazy_source import StoredArray, Values, choose_chunks, lazy_array
from udfdask.io.memmap import MappedArray
from udfdask.io.opened_file import sizes
from udfdask.io.raw import file_dtype, plain_file
from udfdask.kernels.cpu.sparse_sums import in_order

# Maximum sizes of an automatic chunk, as stored and as if dense, relative to dask's size. Tasks on
# entries alone are short, so a chunk can contain many frames. But UDFs that need dense tiles need
# enough chunks for all threads.
STORED_SHARE, DENSE_SHARE = 1 / 4, 8


def from_raw_csr(
    indptr: str | os.PathLike[str],
    indices: str | os.PathLike[str],
    data: str | os.PathLike[str],
    *,
    nav_shape: int | Sequence[int],
    sig_shape: int | Sequence[int],
    indptr_dtype: DTypeLike,
    indices_dtype: DTypeLike,
    dtype: DTypeLike,
    chunks: Any = "auto",
) -> da.Array:
    """Open sparse frames in three raw files as a lazy array of sparse blocks.

    The files contain a matrix in compressed sparse rows (CSR), with a row for each frame and a
    column for each pixel, as in LiberTEM's ``raw_csr`` data sets: their TOML files name the
    arguments. Tasks map the files into memory.

    Parameters
    ----------
    indptr, indices, data : str or path-like
        Files with the index of the first entry of each frame in C order, then the number of
        entries; with the pixel of each entry in the flattened frame; and with its value.
    nav_shape, sig_shape : int or sequence of int
        Scan positions and detector pixels, for example (y, x).
    indptr_dtype, indices_dtype, dtype : dtype-like
        Types of the three files, including the byte order: ``"<i8"``, ``"<i4"``, ``"<u2"``.
    chunks : int, str or tuple
        Chunks of whole frames in any form that dask accepts. ``"auto"``: the entries of a chunk
        take about a quarter of dask's ``array.chunk-size`` (128 MiB), but dense frames would take
        at most eight times that size.

    Returns
    -------
    dask.array.Array
        The frames, shape ``(*nav_shape, *sig_shape)``. Blocks are `sparse.GCXS` arrays compressed
        over the navigation axes: views of the files if their frames are consecutive, values have
        the machine's byte order, indices four or eight bytes, and the pixels of each frame are
        sorted and different. Other blocks are converted; the values of equal pixels are added.

    Raises
    ------
    FileFormatError
        If the files do not match the shapes, the types or each other, or, when a block is computed,
        if pixels are outside of the frame.
    FileNotFoundError, ArgumentTypeError, ArgumentValueError, ImportError
        If there is no such file, arguments are not possible, or sparse is not installed.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from udfdask.io import from_raw_csr
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = [Path(folder) / name for name in ("indptr", "indices", "data")]
    ...     for file, values in zip(files, ([0, 1, 1, 3], [5, 0, 2], [7, 8, 9])):
    ...         np.array(values, "<i4").tofile(file)
    ...     types = {"indptr_dtype": "<i4", "indices_dtype": "<i4", "dtype": "<i4"}
    ...     scan = from_raw_csr(*files, nav_shape=3, sig_shape=(2, 3), **types)
    ...     print(scan.compute().todense()[2])
    [[8 0 9]
     [0 0 0]]
    """
    try:
        import sparse
    except ImportError as error:
        purpose = f"reading {os.fspath(data)}"
        raise missing_package("sparse", purpose=purpose, extra="sparse") from error
    nav, sig = sizes(nav_shape, name="nav_shape"), sizes(sig_shape, name="sig_shape")
    if not nav or not sig:
        raise ArgumentValueError("nav_shape and sig_shape must have at least one size: pass (1,)")
    stored = file_dtype(dtype, kinds="biufc")
    files: dict[str, Any] = {
        "indptr": _mapped(indptr, file_dtype(indptr_dtype, name="indptr_dtype", kinds="iu")),
        "indices": _mapped(indices, file_dtype(indices_dtype, name="indices_dtype", kinds="iu")),
        "data": _mapped(data, stored),
    }
    native = stored.newbyteorder("=")
    source = CSRFiles(shape=nav + sig, dtype=native, sig_dims=len(sig), **files)
    source.check()
    dense, frames = math.prod(source.shape) * stored.itemsize, math.prod(nav)
    entries = source.indices.shape[0] * (source.indices.dtype.itemsize + stored.itemsize)
    ratio = min(DENSE_SHARE, STORED_SHARE * dense / max(1, entries))
    nbytes = max(dense // frames, int(chunk_bytes() * ratio))
    grid = choose_chunks(source, len(sig), chunks, nbytes=nbytes)
    if any(len(sizes_of_axis) > 1 for sizes_of_axis in grid[len(nav) :]):
        raise ArgumentValueError(
            f"chunks={chunks!r} divide frames: pass -1 for the signal, such as (16, 16, -1, -1)"
        )
    empty = np.empty((0,) * source.ndim, source.dtype)
    meta = sparse.GCXS.from_numpy(empty, compressed_axes=tuple(range(len(nav))))
    return lazy_array(source, grid, prefix="from-raw-csr", meta=meta)


def _mapped(path: str | os.PathLike[str], dtype: np.dtype[Any]) -> MappedArray:
    """Return a file as a one-dimensional array of values of a type."""
    file = FileIdentity.of(plain_file(path))
    count, rest = divmod(file.size, dtype.itemsize)
    if rest:
        raise FileFormatError(
            f"{file.path} has {file.size} bytes, which is not a multiple of the {dtype.itemsize} "
            f"bytes of {dtype.str!r}: check its dtype. {COPY_AGAIN}"
        )
    return MappedArray(file=file, shape=(count,), dtype=dtype, offset=0, strides=(dtype.itemsize,))


# Whether the indices of a block are in order: this takes as long as a sum over the block, so each
# process checks it once.
_in_order = OncePerProcess(1 << 14)


@dataclass(frozen=True, slots=True, kw_only=True)
class CSRFiles(StoredArray):
    """Sparse frames in three files that each task maps; `dtype` has the machine's byte order."""

    sig_dims: int
    indptr: MappedArray
    indices: MappedArray
    data: MappedArray

    def check(self) -> None:
        """Raise if the files do not match each other or the shape."""
        frames, n = math.prod(self.shape[: -self.sig_dims]), self.data.shape[0]
        if self.indptr.shape[0] != frames + 1 or self.indices.shape != self.data.shape:
            found = "; ".join(
                f"{part.file.path} contains {part.shape[0]} values of {part.dtype.str!r}"
                for part in (self.indptr, self.indices, self.data)
            )
            raise FileFormatError(
                f"{frames} frames need {frames + 1} pointers, and each entry a value in the two "
                f"other files, but {found}: check nav_shape and the types"
            )
        pointers = self.indptr[:]
        if pointers[0] != 0 or pointers[-1] != n or (pointers[1:] < pointers[:-1]).any():
            raise FileFormatError(
                f"{self.indptr.file.path} must increase from 0 to the {n} entries, but goes "
                f"from {pointers[0]} to {pointers[-1]}, or decreases: check indptr_dtype"
            )

    def __getitem__(self, index: tuple[slice, ...]) -> Any:
        """Return the frames of a block as a sparse.GCXS array, compressed over navigation."""
        n_nav = self.ndim - self.sig_dims
        nav, sig = self.shape[:n_nav], self.shape[n_nav:]
        runs = _runs(nav, index[:n_nav])
        pointers = [self.indptr[first : last + 1].astype(np.int64) for first, last in runs]
        entries_of_runs = [slice(int(run[0]), int(run[-1])) for run in pointers]
        indices = _joined([_signed(self.indices[entries]) for entries in entries_of_runs])
        if indices.size > np.iinfo(indices.dtype).max:
            indices = indices.astype(np.int64)  # pointers have the same type, and count entries
        starts = np.zeros(sum(len(run) - 1 for run in pointers) + 1, np.int64)
        np.cumsum(_joined([np.diff(run) for run in pointers]), out=starts[1:])
        shape = (*(part.stop - part.start for part in index[:n_nav]), *sig)
        values = _joined([self.data[entries] for entries in entries_of_runs])
        csr = (values.astype(self.dtype, copy=False), indices, starts.astype(indices.dtype))
        frames = gcxs_rows(csr, shape, tuple(range(n_nav)))
        # each read compares the files with their identities, which are a part of the key
        key, n_pixels = (self, tuple(runs)), math.prod(sig)
        if _in_order.get(key, lambda: in_order(starts, indices, n_pixels)):
            return frames
        if indices.size and (indices.min() < 0 or indices.max() >= n_pixels):
            raise FileFormatError(
                f"{self.indices.file.path} has pixels {indices.min()} to {indices.max()} among "
                f"frames {runs[0][0]} to {runs[-1][1] - 1}, but a frame of shape {sig} has "
                f"{n_pixels} pixels: check sig_shape and indices_dtype"
            )
        matrix = gcxs_to_csr(frames).copy()
        matrix.sum_duplicates()  # the values of equal pixels are added
        summed = (matrix.data, matrix.indices, matrix.indptr)
        return gcxs_rows(summed, frames.shape, frames.compressed_axes)


def _runs(shape: tuple[int, ...], block: tuple[slice, ...]) -> list[tuple[int, int]]:
    """Return the ranges of consecutive frames in a block of the scan, as (first, last + 1)."""
    places = np.ix_(*(np.arange(part.start, part.stop) for part in block))
    numbers = np.ravel_multi_index(places, shape).ravel()
    runs = np.split(numbers, np.flatnonzero(np.diff(numbers) != 1) + 1)
    return [(int(run[0]), int(run[-1]) + 1) for run in runs]


def _joined(parts: list[Values]) -> Values:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _signed(indices: Values) -> Values:
    """Return indices in a signed type, which SciPy needs for products; a view if possible."""
    if indices.dtype.isnative and indices.dtype.itemsize in (4, 8):
        return indices.view(f"i{indices.dtype.itemsize}")  # no frame has 2**31 pixels
    return indices.astype(np.int32 if indices.dtype.itemsize <= 4 else np.int64)
