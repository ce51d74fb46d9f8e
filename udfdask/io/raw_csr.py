"""Open sparse frames in three raw files, and check that the files are consistent.

They are described by arguments, or in TOML, the format of LiberTEM's ``raw_csr``.
"""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import DTypeLike

from udfdask.config import chunk_bytes
from udfdask.errors import ArgumentTypeError, ArgumentValueError, FileFormatError, missing_package
from udfdask.io.csr_reader import CSRFiles
from udfdask.io.damaged_files import reading
from udfdask.io.file_identity import FileIdentity
from udfdask.io.lazy_source import choose_chunks, lazy_array
from udfdask.io.memmap import MappedArray
from udfdask.io.opened_file import OpenedFile, choose_sig_dims, opened_array, sizes
from udfdask.io.raw import file_dtype, plain_file

_PARTS = ("indptr", "indices", "data")

STORED_SHARE, DENSE_SHARE = 1 / 4, 8
"""Maximum sizes of an automatic chunk, as stored and as if dense, relative to dask's size."""


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
    column for each pixel. Event-counting detectors write such files, and LiberTEM's ``raw_csr``
    data sets consist of them. Tasks map the files into memory.

    Parameters
    ----------
    indptr : str or path-like
        File with the index of the first entry of each frame, then the number of all entries; frames
        in C order of the scan.
    indices : str or path-like
        File with the pixel of each entry, as an index into the flattened frame.
    data : str or path-like
        File with the value of each entry.
    nav_shape : int or sequence of int
        Scan positions, for example (y, x).
    sig_shape : int or sequence of int
        Detector pixels, for example (y, x).
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
        over the navigation axes, which is the layout of the files. A block is a view of the files
        if its frames are consecutive, values have the byte order of the machine, indices have four
        or eight bytes, and the pixels of each frame are sorted and different. Other blocks are
        converted when they are loaded; the values of equal pixels are added.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    FileFormatError
        If the files do not match the shapes, the types or each other. That pixels are inside the
        frame is checked later, when a block is computed.
    ArgumentTypeError
        If a dtype is not possible for its file, or a shape does not consist of integers.
    ArgumentValueError
        If a size is not positive, there is no navigation or signal dimension, or chunks
        do not fit the array.
    ImportError
        If sparse is not installed.

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
    paths, dtypes = (indptr, indices, data), (indptr_dtype, indices_dtype, dtype)
    return _csr_array(_describe_csr(paths, dtypes, nav_shape, sig_shape), chunks)


def open_csr_toml(file: Path, *, sig_dims: int | None, chunks: Any) -> OpenedFile:
    """Open raw CSR files by the TOML file that describes them."""
    with reading(file, "TOML"), file.open("rb") as stream:
        content = tomllib.load(stream)
    try:
        params = content["params"]
        kind = params["filetype"]
        if kind.lower() != "raw_csr":
            raise FileFormatError(
                f"{file} describes data of type {kind!r}, but a TOML file must have "
                'filetype = "raw_csr": pass the file with the data itself'
            )
        paths = [file.parent / content[kind][f"{part}_file"] for part in _PARTS]
        dtypes = [content[kind][f"{part}_dtype"] for part in _PARTS]
        source = _describe_csr(paths, dtypes, params["nav_shape"], params["sig_shape"])
    except KeyError as error:
        raise FileFormatError(
            f"{file} has no {error}: the table [params] needs filetype, nav_shape and "
            "sig_shape, and [raw_csr] a file and a dtype for each of indptr, indices and data, "
            'such as data_file = "data.raw" and data_dtype = "<u2"'
        ) from error
    except (TypeError, AttributeError, ArgumentValueError) as error:
        # These values are not the user's arguments, but come from the file.
        raise FileFormatError(f"{file} does not describe raw CSR files: {error}") from error
    array = _csr_array(source, "auto" if chunks is None else chunks)
    sig = choose_sig_dims(sig_dims, array.ndim, known=source.sig_dims)
    return opened_array(array, sig, reader="raw CSR", title=file.stem)


def _describe_csr(
    paths: Sequence[str | os.PathLike[str]],
    dtypes: Sequence[DTypeLike],
    nav_shape: int | Sequence[int],
    sig_shape: int | Sequence[int],
) -> CSRFiles:
    """Return the source of raw CSR files after all checks; the order is indptr, indices, data."""
    try:
        import sparse  # noqa: F401
    except ImportError as error:
        purpose = f"reading {os.fspath(paths[2])}"
        raise missing_package(error.name or "sparse", purpose=purpose, extra="sparse") from error
    nav = sizes(nav_shape, name="nav_shape")
    sig = sizes(sig_shape, name="sig_shape")
    if not nav or not sig:
        raise ArgumentValueError("nav_shape and sig_shape must have at least one size: pass (1,)")
    dtype = file_dtype(dtypes[2], kinds="biufc")
    if dtype == np.float16:
        raise ArgumentTypeError(
            "sparse frames cannot be of float16, because SciPy has no such sparse matrices: write "
            "the values again as float32"
        )
    indptr = _mapped(paths[0], file_dtype(dtypes[0], name="indptr_dtype", kinds="iu"))
    indices = _mapped(paths[1], file_dtype(dtypes[1], name="indices_dtype", kinds="iu"))
    data = _mapped(paths[2], dtype)
    source = CSRFiles(
        file=data.file,
        shape=nav + sig,
        dtype=dtype.newbyteorder("="),
        sig_dims=len(sig),
        indptr=indptr,
        indices=indices,
        data=data,
    )
    _check_files(source, math.prod(nav))
    return source


def _csr_array(source: CSRFiles, chunks: Any) -> da.Array:
    """Return the lazy array of sparse frames, in chunks in any form that dask accepts."""
    import sparse

    n_nav = source.ndim - source.sig_dims
    nbytes = _dense_chunk_bytes(source, math.prod(source.shape[:n_nav]))
    grid = choose_chunks(source, source.sig_dims, chunks, nbytes=nbytes)
    if any(len(sizes_of_axis) > 1 for sizes_of_axis in grid[n_nav:]):
        raise ArgumentValueError(
            f"chunks={chunks!r} divide frames, but the files contain complete frames: pass -1 for "
            "the signal, such as chunks=(16, 16, -1, -1)"
        )
    empty = np.empty((0,) * source.ndim, source.dtype)
    meta = sparse.GCXS.from_numpy(empty, compressed_axes=tuple(range(n_nav)))
    return lazy_array(source, grid, prefix="from-raw-csr", meta=meta)


def _dense_chunk_bytes(source: CSRFiles, frames: int) -> int:
    """Return the size of an automatic chunk as if it were dense.

    Tasks on entries alone are short, so a chunk can contain many frames. But UDFs that need dense
    tiles need enough chunks for all threads.
    """
    dense = math.prod(source.shape) * source.dtype.itemsize
    stored = source.indices.shape[0] * (source.indices.dtype.itemsize + source.dtype.itemsize)
    ratio = min(DENSE_SHARE, STORED_SHARE * dense / max(1, stored))
    return max(dense // frames, int(chunk_bytes() * ratio))


def _mapped(path: str | os.PathLike[str], dtype: np.dtype[Any]) -> MappedArray:
    """Return a file as a one-dimensional array of values of a type."""
    file = FileIdentity.of(plain_file(path))
    count, rest = divmod(file.size, dtype.itemsize)
    if rest:
        raise FileFormatError(
            f"{file.path} has {file.size} bytes, which is not a multiple of the {dtype.itemsize} "
            f"bytes of {dtype.str!r}: check its dtype, and whether the file is complete"
        )
    return MappedArray(file=file, shape=(count,), dtype=dtype, offset=0, strides=(dtype.itemsize,))


def _check_files(source: CSRFiles, frames: int) -> None:
    """Raise if three files cannot contain `frames` sparse frames."""
    indptr, indices, data = source.indptr, source.indices, source.data
    if indptr.shape[0] != frames + 1:
        raise FileFormatError(
            f"{frames} frames need {frames + 1} values of {indptr.dtype.str!r} in "
            f"{indptr.file.path}, but it contains {indptr.shape[0]}: check nav_shape and "
            "indptr_dtype"
        )
    if indices.shape != data.shape:
        raise FileFormatError(
            f"{indices.file.path} contains {indices.shape[0]} values of {indices.dtype.str!r} and "
            f"{data.file.path} {data.shape[0]} of {data.dtype.str!r}, but each entry needs one "
            "value in both: check indices_dtype and dtype, and whether the files are complete"
        )
    pointers = indptr[:]
    n = data.shape[0]
    if pointers[0] != 0 or pointers[-1] != n or (pointers[1:] < pointers[:-1]).any():
        raise FileFormatError(
            f"{indptr.file.path} must increase from 0 to the {n} entries in {indices.file.path}, "
            f"but goes from {pointers[0]} to {pointers[-1]}, or decreases: check indptr_dtype and "
            "its byte order, and that the files belong together and are complete"
        )
