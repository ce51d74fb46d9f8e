"""Open a file of any format."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import DTypeLike

from udfdask.errors import ArgumentValueError
from udfdask.io.file_identity import existing_file
from udfdask.io.numpy_file import MAGIC
from udfdask.io.opened_file import OpenedFile
from udfdask.io.raw import open_raw
from udfdask.io.readers import HDF5, first_bytes, open_described
from udfdask.io.remote_location import (
    REFERENCES,
    Location,
    is_remote,
    local_path,
    reference_location,
    refuse_options,
)


def open_file(
    path: str | os.PathLike[str],
    *,
    dataset: str | int | None = None,
    nav_shape: int | Sequence[int] | None = None,
    sig_shape: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    offset: int = 0,
    frame_header: int = 0,
    frame_footer: int = 0,
    sync_offset: int | None = None,
    sig_dims: int | None = None,
    chunks: Any = None,
    storage_options: Mapping[str, Any] | None = None,
) -> OpenedFile:
    """Open a file of detector frames or spectra as a lazy array.

    It opens ``.npy`` files, zarr stores, HDF5 and NetCDF 4 files, descriptions of raw CSR files in
    ``.toml``, and all formats that HyperSpy reads lazily. With `nav_shape`, `sig_shape` and
    `dtype`, it opens raw binary files. The attribute `reader` of the result names the reader.

    Of URLs such as ``s3://bucket/scan.zarr`` or ``https://host/scan.npy``, it opens zarr stores,
    ``.npy`` and raw files. Files and URLs that end in ``.json``, ``.parquet`` or ``.parq`` contain
    references to parts of other files, as kerchunk and VirtualiZarr write them.

    Parameters
    ----------
    path : str or path-like
        The file, the folder of a zarr store, or a URL with any protocol of fsspec.
    dataset : str or int, optional
        Dataset in the file: a path inside an HDF5 file or zarr group, or the number or title of a
        signal that HyperSpy finds. By default the signal that a NeXus file names, the largest
        dataset with three or more dimensions, or the only signal with navigation axes. For a group
        of an HDF5 file, the search is only in this group.
    nav_shape, sig_shape : int or sequence of int, optional
        Scan positions and detector pixels of a raw file. With `sync_offset`, `nav_shape` is also
        for other files.
    dtype : dtype-like, optional
        Type of the values in a raw file.
    offset : int
        Bytes to skip at the beginning of a raw file.
    frame_header, frame_footer : int
        Bytes to skip before and after each frame of a raw file.
    sync_offset : int, optional
        The number of frames to skip at the start of the file; if it is negative, the number of
        positions without a frame there. The scan may then have fewer or more positions than the
        file has frames: see `with_sync_offset`. By default, the file must have exactly one frame
        for each position.
    sig_dims : int, optional
        Number of trailing signal dimensions. By default the number in HyperSpy's signal, in
        `sig_shape`, or of the interpretation in a NeXus file, otherwise 2, or 1 if there are at
        most two dimensions.
    chunks : int, str or tuple, optional
        Chunks of all dimensions in any form that dask accepts. By default, chunks that suit the
        file.
    storage_options : mapping, optional
        Options of the file system of a URL, which fsspec passes to it: ``{"anon": True}`` for
        public data on S3. For references, the options of fsspec's file system for references, or
        options for the references and for the data.

    Returns
    -------
    OpenedFile
        The lazy array of the stored values, shape ``(*nav, *sig)``, with its description.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    FileFormatError
        If no reader can read the file, or it is not clear which of its datasets is meant.
    ArgumentTypeError
        If an argument has the wrong type.
    ArgumentValueError
        If there is no such dataset, only a part of the description of a raw file is given,
        arguments do not fit the file, or there are `storage_options` for a local file.
    ConnectionError
        If a server cannot be reached.
    ImportError
        If the package that reads the format or the protocol is not installed; the message names
        the package.

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
    layout = {"nav_shape": nav_shape, "sig_shape": sig_shape, "dtype": dtype}
    skipped = {"offset": offset, "frame_header": frame_header, "frame_footer": frame_footer}
    is_raw = sig_shape is not None or dtype is not None or any(skipped.values())
    if is_raw or (nav_shape is not None and sync_offset is None):
        _check_raw(path, layout, any(skipped.values()), dataset)
        return open_raw(
            path,
            layout,
            skipped,
            sync_offset=sync_offset,
            sig_dims=sig_dims,
            chunks=chunks,
            options=storage_options,
        )
    how: dict[str, Any] = {"dataset": dataset, "sig_dims": sig_dims, "chunks": None}
    if sync_offset is None:
        how["chunks"] = chunks
    if is_remote(path):
        from udfdask.io.remote_file import open_remote

        opened = open_remote(Location.of(path, storage_options), options=storage_options, **how)
    else:
        file = existing_file(local_path(path))
        if file.suffix.lower() in REFERENCES:
            from udfdask.io.zarr_file import open_remote_zarr

            opened = open_remote_zarr(reference_location(f"file://{file}", storage_options), **how)
        else:
            refuse_options(path, storage_options)
            opened = open_described(Path(local_path(path)).expanduser().absolute(), **how)
    if sync_offset is None:
        return opened
    from udfdask.io.sync_offset import with_sync_offset

    return with_sync_offset(opened, nav_shape, sync_offset=sync_offset, chunks=chunks)


def _check_raw(path: Any, layout: dict[str, Any], is_skipping: bool, dataset: Any) -> None:
    """Raise if the description of a raw file is incomplete, or the file is of another format."""
    if dataset is not None:
        raise ArgumentValueError(
            f"dataset={dataset!r}: a raw file holds one array and no datasets: leave out dataset"
        )
    missing = [key for key, value in layout.items() if value is None]
    if missing:
        raise ArgumentValueError(
            f"a raw file needs nav_shape, sig_shape and dtype, but {' and '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} missing: pass all of them; for any other "
            "file, pass none of them, and no offset, frame_header or frame_footer"
        )
    if is_remote(path) or is_skipping:
        return
    file = existing_file(local_path(path))
    if file.is_file() and first_bytes(file).startswith((MAGIC, HDF5)):
        raise ArgumentValueError(
            f"{file.name} is a NumPy or HDF5 file, which says itself how to read it: leave out "
            "nav_shape, sig_shape and dtype; to read its bytes as a raw file, pass the offset "
            "of the first frame"
        )
