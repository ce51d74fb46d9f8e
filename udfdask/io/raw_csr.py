"""Sparse frames in three raw files: what they are opened with, and whether they fit together."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import DTypeLike

from udfdask.errors import ArgumentTypeError, ArgumentValueError, FileFormatError, missing_package
from udfdask.io.csr_reader import CSRFiles
from udfdask.io.damaged_files import check_values, reading
from udfdask.io.file_identity import FileIdentity
from udfdask.io.lazy_source import choose_chunks, chunk_bytes, lazy_array
from udfdask.io.memmap import MappedArray
from udfdask.io.raw import file_dtype, plain_file, sizes
from udfdask.scheduling.workers.block_placement import Workers, on_workers

STORED_SHARE, DENSE_SHARE = 1 / 4, 8
"""Sizes of an automatic chunk, as stored and as if it were dense, in those of dask."""


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
    workers: Workers = None,
) -> da.Array:
    """Open sparse frames in three raw files as a lazy array of sparse blocks.

    The files hold a matrix with a row for each frame and a column for each pixel in compressed
    sparse rows (CSR), as event-counting detectors write them and LiberTEM's ``raw_csr`` data sets
    have them. They are mapped into memory.

    Parameters
    ----------
    indptr : str or path-like
        File with the number of the first entry of each frame, and at last the number of all
        entries; frames in C order of the scan.
    indices : str or path-like
        File with the pixel of each entry, counted in C order of the frame.
    data : str or path-like
        File with the value of each entry.
    nav_shape : int or sequence of int
        Scan positions, for example (y, x).
    sig_shape : int or sequence of int
        Detector pixels, for example (y, x).
    indptr_dtype, indices_dtype, dtype : dtype-like
        Types of the three files, with the byte order: ``"<i8"``, ``"<i4"``, ``"<u2"``.
    chunks : int, str or tuple
        Chunks in any form that dask takes, with whole frames. ``"auto"``: frames whose entries take
        about a quarter of dask's ``array.chunk-size`` (128 MiB), but no more frames than would take
        eight times that size if they were dense.
    workers : str, sequence, mapping or callable, optional
        Which workers of a cluster may load which block, as in `on_workers`.

    Returns
    -------
    dask.array.Array
        The frames, shape ``(*nav_shape, *sig_shape)``. Blocks are `sparse.GCXS` arrays compressed
        over the navigation axes, the layout of the files. They are views of these where frames lie
        next to each other, the byte order is that of the machine, indices have four or eight bytes,
        and the pixels of each frame come in order and none twice. Other blocks are brought into
        that form when they are loaded; values of the same pixel are added up.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    FileFormatError
        If the files do not fit the shapes, the types or each other. What needs all indices, that
        pixels lie within the frame, is checked block by block when it is computed.
    ArgumentTypeError
        If a dtype is none that the file can hold, or a shape does not hold whole numbers.
    ArgumentValueError
        If a size is not positive, there is no navigation or signal dimension, or chunks or workers
        do not fit.
    ImportError
        If sparse or SciPy is not installed.

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
    source = describe_csr(
        indptr,
        indices,
        data,
        nav_shape=nav_shape,
        sig_shape=sig_shape,
        indptr_dtype=indptr_dtype,
        indices_dtype=indices_dtype,
        dtype=dtype,
    )
    return on_workers(csr_array(source, chunks), workers)


def describe_csr(
    indptr: str | os.PathLike[str],
    indices: str | os.PathLike[str],
    data: str | os.PathLike[str],
    *,
    nav_shape: int | Sequence[int],
    sig_shape: int | Sequence[int],
    indptr_dtype: DTypeLike,
    indices_dtype: DTypeLike,
    dtype: DTypeLike,
) -> CSRFiles:
    """Take what is to be opened, as in `from_raw_csr`; check it and return it described."""
    _check_packages(os.fspath(data))
    nav = sizes(nav_shape, name="nav_shape")
    sig = sizes(sig_shape, name="sig_shape")
    for name, shape in (("nav_shape", nav), ("sig_shape", sig)):
        if not shape:
            raise ArgumentValueError(f"{name} must have at least one size, got (): pass (1,)")
    source = CSRFiles(
        shape=nav + sig,
        sig_dims=len(sig),
        indptr=_mapped(indptr, _index_dtype(indptr_dtype, name="indptr_dtype")),
        indices=_mapped(indices, _index_dtype(indices_dtype, name="indices_dtype")),
        data=_mapped(data, _value_dtype(dtype)),
    )
    _check_files(source, math.prod(nav))
    check_values(source.data.file.path, source.shape, source.dtype)
    return source


def csr_array(source: CSRFiles, chunks: Any) -> da.Array:
    """Take sparse frames and chunks in any form that dask takes; return their lazy array."""
    n_nav = source.ndim - source.sig_dims
    room = _room(source, math.prod(source.shape[:n_nav]))
    wanted = choose_chunks(source.shape, source.dtype, source.sig_dims, chunks, nbytes=room)
    if any(len(sizes_of_axis) > 1 for sizes_of_axis in wanted[n_nav:]):
        raise ArgumentValueError(
            f"chunks={chunks!r} cut frames, which are stored as a whole: pass -1 for the signal, "
            "such as chunks=(16, 16, -1, -1)"
        )
    return lazy_array(source, wanted, prefix="from-raw-csr", meta=_meta(source))


def _room(source: CSRFiles, frames: int) -> int:
    """Take sparse frames and how many there are; return the bytes of an automatic chunk if dense.

    A task over entries alone is short, so that it may take many frames; but UDFs that want dense
    tiles have to find enough chunks for all threads.
    """
    dense = math.prod(source.shape) * source.dtype.itemsize
    stored = source.indices.shape[0] * (source.indices.dtype.itemsize + source.dtype.itemsize)
    least = dense // frames
    return max(least, int(chunk_bytes() * min(DENSE_SHARE, STORED_SHARE * dense / max(1, stored))))


def _check_packages(file: str) -> None:
    """Raise if what makes sparse blocks is not installed."""
    try:
        import sparse  # noqa: F401
    except ImportError as error:
        raise missing_package(
            error.name or "sparse", purpose=f"reading {file}", extra="sparse"
        ) from error


def _meta(source: CSRFiles) -> Any:
    """Take sparse frames; return an empty block of them."""
    import sparse

    n_nav = source.ndim - source.sig_dims
    empty = np.empty((0,) * source.ndim, source.dtype)
    return sparse.GCXS.from_numpy(empty, compressed_axes=tuple(range(n_nav)))


def _index_dtype(dtype: DTypeLike, *, name: str) -> np.dtype[Any]:
    """Take what the user passed as type of a file of numbers of entries or pixels; return it."""
    stored = file_dtype(dtype, name=name)
    if stored.kind not in "iu":
        raise ArgumentTypeError(f"{name} must be of whole numbers, got {stored}: pass 'int32'")
    return stored


def _value_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """Take what the user passed as type of the values; return one that can be added up."""
    stored = file_dtype(dtype)
    if stored.kind not in "biufc":
        raise ArgumentTypeError(f"dtype must be of numbers, got {stored}: pass 'uint16'")
    if stored == np.float16:
        raise ArgumentTypeError(
            "sparse frames cannot be of float16, which SciPy has no sparse matrices of: write the "
            "values anew as float32"
        )
    return stored


def _mapped(path: str | os.PathLike[str], dtype: np.dtype[Any]) -> MappedArray:
    """Take a file and the type of its values; return it as an array of one dimension."""
    file = FileIdentity.of(plain_file(path))
    count, rest = divmod(file.size, dtype.itemsize)
    if rest:
        raise FileFormatError(
            f"{file.path} has {file.size} bytes, no multiple of the {dtype.itemsize} of "
            f"{dtype.str!r}: check its dtype, and whether the file is complete"
        )
    return MappedArray(file=file, shape=(count,), dtype=dtype, offset=0, strides=(dtype.itemsize,))


def _check_files(source: CSRFiles, frames: int) -> None:
    """Take sparse frames and how many there should be; raise if the files say otherwise."""
    indptr, indices, data = (
        part.file.path for part in (source.indptr, source.indices, source.data)
    )
    n_pointers, n_indices, n_values = (
        part.shape[0] for part in (source.indptr, source.indices, source.data)
    )
    if n_pointers != frames + 1:
        raise FileFormatError(
            f"{frames} frames need {frames + 1} values of {source.indptr.dtype.str!r} in {indptr}, "
            f"but it holds {n_pointers}: check nav_shape and indptr_dtype"
        )
    if n_indices != n_values:
        raise FileFormatError(
            f"{indices} holds {n_indices} values of {source.indices.dtype.str!r} and {data} "
            f"{n_values} of {source.data.dtype.str!r}, but each entry needs one of both: check "
            "indices_dtype and dtype, and whether the files are complete"
        )
    with reading(indptr, "pointers of raw CSR"):
        pointers = source.indptr[:]
    falls = np.flatnonzero(pointers[1:] < pointers[:-1])
    if falls.size:
        frame = int(falls[0])
        raise FileFormatError(
            f"{indptr} must increase, but after {pointers[frame]} for frame {frame} comes "
            f"{pointers[frame + 1]}: check indptr_dtype and its byte order"
        )
    if pointers[0] != 0 or pointers[-1] != n_values:
        raise FileFormatError(
            f"{indptr} must go from 0 to the {n_values} entries in {indices} and {data}, but goes "
            f"from {pointers[0]} to {pointers[-1]}: do the files belong together, and are they "
            "complete?"
        )
