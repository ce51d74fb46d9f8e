"""Open a file of any format: raw files by their description, others by the readers of a table.

Other packages add readers through the entry point group ``udfdask.readers``: each entry is a
`Reader`. Modules that read a format are imported when a file of it is opened.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from numpy.typing import DTypeLike

from udfdask.errors import ArgumentValueError, FileFormatError, UDFWarning
from udfdask.io.file_identity import COPY_AGAIN, existing_file, reading
from udfdask.io.memmap import MAGIC, open_npy
from udfdask.io.opened_file import OpenedFile
from udfdask.io.raw import open_raw
from udfdask.io.remote import (
    REFERENCES,
    Location,
    RemoteFile,
    is_remote,
    local_path,
    open_remote_npy,
    plain_path,
    reference_location,
)

GROUP = "udfdask.readers"  # of the entry points by which other packages add readers

_HDF5 = b"\x89HDF\r\n\x1a\n"


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

    It opens ``.npy`` files, zarr stores, HDF5 and NetCDF 4 files, and all formats that HyperSpy
    reads. With `nav_shape`, `sig_shape` and `dtype`, it opens raw binary files. Of URLs such as
    ``s3://bucket/scan.zarr``, it opens zarr stores, ``.npy`` and raw files. What ends in ``.json``,
    ``.parquet`` or ``.parq`` contains references to parts of other files, as kerchunk and
    VirtualiZarr write them.

    Parameters
    ----------
    path : str or path-like
        The file, the folder of a zarr store, or a URL with any protocol of fsspec.
    dataset : str or int, optional
        A path inside an HDF5 file or zarr group, or the number or title of HyperSpy's signal. By
        default the signal that NeXus names, the largest dataset with three or more dimensions, or
        the only signal with navigation axes. In a group of an HDF5 file, it is searched for.
    nav_shape : int or sequence of int, optional
        Scan positions, for raw files, and for others whose frames are not in the shape of the scan.
    sig_shape : int or sequence of int, optional
        Detector pixels of a raw file.
    dtype : dtype-like, optional
        Type of the values in a raw file.
    offset : int
        Bytes to skip at the beginning of a raw file.
    frame_header, frame_footer : int
        Bytes to skip before and after each frame of a raw file.
    sync_offset : int, optional
        The number of frames to skip at the start of the file, or if negative, of positions without
        a frame there; the scan may then have another size: see `with_sync_offset`. By default, the
        file must have exactly one frame for each position.
    sig_dims : int, optional
        Number of trailing signal dimensions. By default the number that the file says or of
        `sig_shape`, otherwise 2, or 1 if there are at most two dimensions.
    chunks : int, str or tuple, optional
        Chunks of all dimensions in any form that dask accepts; by default those that suit the file.
    storage_options : mapping, optional
        Options of the file system of a URL in fsspec: ``{"anon": True}`` for public data on S3. For
        references, the options of their file system, or those for references and data.

    Returns
    -------
    OpenedFile
        The lazy array of the stored values, shape ``(*nav, *sig)``, with its description.

    Raises
    ------
    FileNotFoundError, ConnectionError
        If there is no such file, or a server cannot be reached.
    FileFormatError
        If no reader can read the file, or it is not clear which of its datasets is meant.
    ArgumentTypeError, ArgumentValueError
        If an argument has the wrong type, does not fit the file, or names no dataset in it, or a
        raw file is only partly described.
    ImportError
        If the package for the format or protocol is not installed; the message names it.

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
    skipped = (offset, frame_header, frame_footer)
    if sig_shape is not None or dtype is not None or any(skipped):
        if nav_shape is None or sig_shape is None or dtype is None or dataset is not None:
            raise ArgumentValueError(
                "a raw file needs nav_shape, sig_shape and dtype, and has no dataset: pass all of "
                "them; for any other file, pass none of them, and no offset, frame_header or "
                f"frame_footer; got {nav_shape=}, {sig_shape=}, {dtype=}, {dataset=}"
            )
        if not is_remote(path) and not any(skipped):
            file = existing_file(local_path(path))
            if file.is_file() and _first_bytes(file).startswith((MAGIC, _HDF5)):
                raise ArgumentValueError(
                    f"{file.name} says itself how to read it: leave out nav_shape, sig_shape and "
                    "dtype; to read its bytes as a raw file, pass the offset of the first frame"
                )
        how: dict[str, Any] = {"sync_offset": sync_offset, "sig_dims": sig_dims, "chunks": chunks}
        how["storage_options"] = storage_options
        return open_raw(path, nav_shape, sig_shape, dtype, skipped, **how)
    how = {"dataset": dataset, "sig_dims": sig_dims}
    how["chunks"] = chunks if nav_shape is None and sync_offset is None else None
    if is_remote(path):
        opened = _open_remote(path, storage_options, **how)
    else:
        file = existing_file(local_path(path))
        if file.suffix.lower() in REFERENCES:
            opened = _open_references(f"file://{file}", storage_options, **how)
        else:
            plain_path(path, storage_options)  # raises if there are options
            opened = _open_local(file, scan=(nav_shape, sync_offset), **how)
    if sync_offset is not None:
        from udfdask.io.sync_offset import with_sync_offset

        return with_sync_offset(opened, nav_shape, sync_offset=sync_offset, chunks=chunks)
    if nav_shape is not None:
        from udfdask.io.sync_offset import with_nav_shape

        return with_nav_shape(opened, nav_shape, chunks=chunks)
    return opened


def _open_references(url: str, options: Mapping[str, Any] | None, **how: Any) -> OpenedFile:
    from udfdask.io.zarr_file import open_remote_zarr

    return open_remote_zarr(reference_location(url, options), **how)


def _open_remote(
    url: str, options: Mapping[str, Any] | None, *, dataset: str | int | None, **how: Any
) -> OpenedFile:
    """Open a zarr store, references to parts of files, or a .npy file on a server."""
    from udfdask.io.zarr_file import open_remote_zarr

    location = Location(url=url, options=dict(options or {}))
    suffix = location.path.suffix.lower()
    if suffix in REFERENCES and "::" not in url:
        return _open_references(url, options, dataset=dataset, **how)
    if suffix != ".npy":
        try:
            return open_remote_zarr(location, dataset=dataset, **how)
        except FileNotFoundError as error:
            if RemoteFile.of(location).read([(0, len(MAGIC))]) != [MAGIC]:  # raises without a file
                raise FileFormatError(
                    f"{location.shown} is neither a zarr store nor a .npy file: download it; open "
                    "references to its chunks (kerchunk, VirtualiZarr); or pass nav_shape, "
                    "sig_shape and dtype if it is a raw file"
                ) from error
    _refuse_dataset(dataset, location.shown)
    return open_remote_npy(location, **how)


def _refuse_dataset(dataset: str | int | None, name: str) -> None:
    """Raise if the user names a dataset in a file of one array."""
    if dataset is not None:
        raise ArgumentValueError(
            f"dataset={dataset!r}: {name} holds one array and no datasets: leave out dataset"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """A format of files, and how to open them.

    Examples
    --------
    >>> import dask.array as da
    >>> from udfdask import Axis
    >>> from udfdask.io import OpenedFile, Reader
    >>> def open_zeros(path, *, sig_dims, chunks):
    ...     array = da.zeros((2, 8, 8))
    ...     axes = tuple(Axis(name=name) for name in ("t", "y", "x"))
    ...     return OpenedFile(array=array, sig_dims=2, reader="zeros", title=path.stem, axes=axes)
    >>> reader = Reader(
    ...     name="zeros", matches=lambda path, begin: path.suffix == ".zeros", open=open_zeros
    ... )
    """

    name: str
    """The format, in words."""
    matches: Callable[[Path, bytes], bool]
    """Whether it opens a file, by its path and its first 512 bytes."""
    open: Callable[..., OpenedFile]
    """Open a file lazily: called as ``open(path, sig_dims=, chunks=)`` with an absolute path and
    the user's arguments of `open_file`, perhaps None; with `dataset` too if the user names one."""


def _open_local(
    path: Path, *, dataset: str | int | None, scan: tuple[Any, Any], **how: Any
) -> OpenedFile:
    file = path.resolve()  # a link may have another suffix
    if file.is_dir() and file.suffix.lower() != ".zspy":  # folders of .zspy are HyperSpy's own
        from udfdask.io.zarr_file import open_zarr

        return open_zarr(file, dataset=dataset, **how)
    # wrong suffixes are common, so the first bytes count more
    begin = b"" if file.is_dir() else _first_bytes(file)
    if begin.startswith(MAGIC) or file.suffix.lower() == ".npy":
        _refuse_dataset(dataset, f"the NumPy file {path.name}")
        return open_npy(file, **how)
    for reader in added_readers():
        if reader.matches(file, begin):
            return reader.open(path, **how, **({} if dataset is None else {"dataset": dataset}))
    from udfdask.io.hdf5 import hyperspy_format, is_hdf5, open_hdf5

    if (begin.startswith(_HDF5) or is_hdf5(file)) and hyperspy_format(file) is None:
        # not `file`, because HDF5 also looks for files next to a link
        return open_hdf5(path, dataset=dataset, nav_shape=scan[0], sync_offset=scan[1], **how)
    from udfdask.io.hyperspy_file import open_with_hyperspy

    return open_with_hyperspy(file, dataset=dataset, **how)


def _first_bytes(file: Path) -> bytes:
    """Return the first bytes of a file, which identify its format; raise if it is empty."""
    with reading(file, "a file"), file.open("rb", buffering=0) as stream:
        begin = stream.read(512)
    if not begin:
        raise FileFormatError(f"{file} is empty (0 bytes). {COPY_AGAIN}")
    return begin


@cache
def added_readers() -> tuple[Reader, ...]:
    """Return the readers of other packages, by the names of their entry points."""
    readers = []
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        try:
            reader = entry.load()
            if not isinstance(reader, Reader):
                raise TypeError("it is no udfdask.io.Reader")  # noqa: TRY301
            readers.append(reader)
        except Exception as error:  # noqa: BLE001  # other packages fail in any way
            text = f"the reader {entry.name!r} ({entry.value}) is left out: {error}"
            warnings.warn(text, UDFWarning, stacklevel=2)
    return tuple(readers)
