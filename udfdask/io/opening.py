"""One function that opens a file, whatever its format."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import DTypeLike

from udfdask.errors import ArgumentValueError, FileFormatError
from udfdask.io.hdf5 import SIGNATURE, open_hdf5
from udfdask.io.hyperspy_file import open_with_hyperspy
from udfdask.io.numpy_file import open_npy
from udfdask.io.opened import OpenedFile, choose_sig_dims, name_axes
from udfdask.io.raw import existing_file, from_raw
from udfdask.io.zarr_file import open_zarr
from udfdask.stores import is_zarr

# HDF5 inside, but with a layout that HyperSpy knows: it gives axes and units.
_HYPERSPY_HDF5 = {".hspy", ".emd"}


def open_file(
    path: str | os.PathLike[str],
    *,
    dataset: str | int | None = None,
    nav_shape: int | Sequence[int] | None = None,
    sig_shape: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    offset: int = 0,
    sig_dims: int | None = None,
    chunks: Any = None,
) -> OpenedFile:
    """Open a file of detector frames or spectra as a lazy array.

    It opens ``.npy`` files, zarr stores, HDF5 files, everything that HyperSpy reads lazily, and,
    when `nav_shape`, `sig_shape` and `dtype` are given, raw binary files.

    Parameters
    ----------
    path : str or path-like
        The file, or the folder of a zarr store.
    dataset : str or int, optional
        Which dataset of the file: a path inside an HDF5 file or zarr group, a number or title of
        one of the signals that HyperSpy finds. By default the only one with three or more
        dimensions or the largest of these; of signals the one with navigation axes.
    nav_shape, sig_shape : int or sequence of int, optional
        Scan positions and detector pixels of a raw file.
    dtype : dtype-like, optional
        Type of a raw file's values.
    offset : int
        Bytes to skip at the beginning of a raw file.
    sig_dims : int, optional
        Number of trailing signal dimensions. By default what HyperSpy or `sig_shape` say, otherwise
        2, or 1 where there are no more than two dimensions.
    chunks : int, str or tuple, optional
        Chunks of all dimensions in any form that dask takes. By default what suits the file.

    Returns
    -------
    OpenedFile
        The lazy array, shape ``(*nav, *sig)``, with what the file says about it. Values are as
        they are stored.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    FileFormatError
        If nothing can read the file, or nothing says which of its datasets is meant.
    ArgumentTypeError
        If the shapes or the dtype of a raw file have the wrong type.
    ArgumentValueError
        If there is no such dataset, only some of a raw file's shapes and dtype are given, or the
        file has fewer dimensions than `sig_dims`.
    ImportError
        If the package that reads the format is not installed; the message names it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from udfdask.io import open_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "spectra.npy"
    ...     np.save(path, np.arange(10 * 64.0).reshape(10, 64))
    ...     opened = open_file(path, chunks=(4, -1))
    ...     print(opened.array.chunks, opened.sig_dims, opened.array[1, 0].compute())
    ((4, 4, 2), (64,)) 1 64.0
    """
    file = existing_file(path)
    if nav_shape is not None or sig_shape is not None or dtype is not None or offset:
        return _open_raw(
            file, nav_shape, sig_shape, dtype, offset=offset, sig_dims=sig_dims, chunks=chunks
        )
    suffix = file.suffix.lower()
    if suffix == ".npy":
        return open_npy(file, sig_dims=sig_dims, chunks=chunks)
    if file.is_dir() and suffix != ".zspy":
        if not is_zarr(file):
            raise FileFormatError(
                f"{file.name} is a folder but no zarr store: pass a file, or the folder that holds "
                "zarr.json, .zgroup or .zarray"
            )
        return open_zarr(file, dataset=dataset, sig_dims=sig_dims, chunks=chunks)
    if file.is_file() and suffix not in _HYPERSPY_HDF5 and _has_hdf5_signature(file):
        return open_hdf5(file, dataset=dataset, sig_dims=sig_dims, chunks=chunks)
    return open_with_hyperspy(file, dataset=dataset, sig_dims=sig_dims, chunks=chunks)


def _has_hdf5_signature(file: Path) -> bool:
    """Whether a file begins as HDF5 files do."""
    with file.open("rb") as stream:
        return stream.read(len(SIGNATURE)) == SIGNATURE


def _open_raw(
    file: Path,
    nav_shape: int | Sequence[int] | None,
    sig_shape: int | Sequence[int] | None,
    dtype: DTypeLike | None,
    *,
    offset: int,
    sig_dims: int | None,
    chunks: Any,
) -> OpenedFile:
    """Take a raw file and what was said about it; return it opened."""
    given = {"nav_shape": nav_shape, "sig_shape": sig_shape, "dtype": dtype}
    missing = [name for name, value in given.items() if value is None]
    if nav_shape is None or sig_shape is None or dtype is None:
        raise ArgumentValueError(
            f"a raw file needs nav_shape, sig_shape and dtype, but {' and '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} missing for {file.name}; for a file that "
            "describes itself pass none of them, and no offset"
        )
    array = from_raw(
        file,
        nav_shape=nav_shape,
        sig_shape=sig_shape,
        dtype=dtype,
        offset=offset,
        chunks="auto" if chunks is None else chunks,
    )
    known = len(sig_shape) if isinstance(sig_shape, Sequence) else 1
    sig = choose_sig_dims(sig_dims, array.ndim, known=known)
    return OpenedFile(
        array=array,
        sig_dims=sig,
        reader="raw binary",
        title=file.stem,
        axes=name_axes([None] * array.ndim, sig),
    )
