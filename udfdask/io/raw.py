"""Open raw binary files of frames at equal distances."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import DTypeLike

from udfdask.errors import ArgumentTypeError, ArgumentValueError, FileFormatError
from udfdask.io.file_identity import FileIdentity, existing_file
from udfdask.io.lazy_source import StoredArray, choose_chunks, lazy_array
from udfdask.io.memmap import MappedArray, c_strides
from udfdask.io.opened_file import OpenedFile, choose_sig_dims, opened_array, sizes
from udfdask.io.remote import Location, RangedArray, RemoteFile, is_remote, plain_path


def from_raw(
    path: str | os.PathLike[str],
    *,
    nav_shape: int | Sequence[int],
    sig_shape: int | Sequence[int],
    dtype: DTypeLike,
    offset: int = 0,
    frame_header: int = 0,
    frame_footer: int = 0,
    chunks: Any = "auto",
    storage_options: Mapping[str, Any] | None = None,
) -> da.Array:
    """Open a raw binary file as a lazy array.

    Each task maps its part of the file into memory and copies nothing, or reads its byte ranges of
    a URL. If the file has changed since it was opened, tasks raise a `FileFormatError`. If dask's
    setting ``udfdask.map-files`` is False, tasks read the file instead of mapping it.

    Parameters
    ----------
    path : str or path-like
        The file or its URL: frames in C order, one after another.
    nav_shape, sig_shape : int or sequence of int
        Scan positions (y, x), and detector pixels (y, x) or the channels of a spectrum.
    dtype : dtype-like
        Type of the values, including the byte order: ``">u2"`` is big-endian uint16.
    offset : int
        Bytes to skip at the beginning of the file.
    frame_header, frame_footer : int
        Bytes to skip before and after each frame.
    chunks : int, str or tuple
        Chunks in any form that dask accepts. ``"auto"``: whole frames that are next to each other
        in the file, about 16 chunks from 16 MiB up to dask's ``array.chunk-size`` (128 MiB).
    storage_options : mapping, optional
        Options of the file system of a URL, as in `open_file`.

    Returns
    -------
    dask.array.Array
        The data, shape ``(*nav_shape, *sig_shape)``, of the given dtype. Its name depends on the
        path, size and times of the file, and on the arguments.

    Raises
    ------
    FileFormatError
        If the file does not have exactly the size that the shapes require, or is a folder. If the
        detector missed frames, use `open_file` with `sync_offset`.
    FileNotFoundError, ConnectionError, ArgumentTypeError, ArgumentValueError, ImportError
        As in `open_file`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from udfdask.io import from_raw
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "scan.raw"
    ...     np.arange(3 * 4 * 8 * 8, dtype=np.uint16).tofile(path)
    ...     scan = from_raw(path, nav_shape=(3, 4), sig_shape=(8, 8), dtype=np.uint16)
    ...     print(scan.shape, scan[0, 1, 0, 0].compute())
    (3, 4, 8, 8) 64
    """
    skipped = (offset, frame_header, frame_footer)
    how: dict[str, Any] = {"chunks": chunks, "storage_options": storage_options}
    return open_raw(path, nav_shape, sig_shape, dtype, skipped, **how).array


def open_raw(
    path: str | os.PathLike[str],
    nav_shape: int | Sequence[int],
    sig_shape: int | Sequence[int],
    dtype: DTypeLike,
    skipped: tuple[int, int, int],
    *,
    chunks: Any,
    storage_options: Mapping[str, Any] | None,
    sync_offset: int | None = None,
    sig_dims: int | None = None,
) -> OpenedFile:
    """Open a raw file; `skipped` are the bytes before all, before and after each frame."""
    nav, sig = sizes(nav_shape, name="nav_shape"), sizes(sig_shape, name="sig_shape")
    dtype = file_dtype(dtype)
    offset, header, footer = map(operator.index, skipped)
    if not sig or min(skipped) < 0:
        raise ArgumentValueError(
            "sig_shape must have at least one size, and offset, frame_header and frame_footer "
            f"must be at least 0, got {sig} and {skipped}"
        )
    n_sig, frame = len(sig), header + math.prod(sig) * dtype.itemsize + footer
    dims = choose_sig_dims(sig_dims, len(nav) + n_sig, known=n_sig)
    if is_remote(path):
        location = Location(url=path, options=dict(storage_options or {}))
        file: Any = RemoteFile.of(location)
        kind: Any = RangedArray
        where, title = location.shown, location.path.stem
    else:
        found = plain_file(plain_path(path, storage_options))
        file, kind, where, title = FileIdentity.of(found), MappedArray, str(found), found.stem
    n_frames, rest = divmod(max(file.size - offset, 0), frame)

    def source(positions: tuple[int, ...]) -> StoredArray:
        strides = c_strides(positions, frame) + c_strides(sig, dtype.itemsize)
        layout = {"shape": positions + sig, "dtype": dtype, "strides": strides}
        made: StoredArray = kind(file=file, offset=offset + header, **layout)
        return made

    described: dict[str, Any] = {"reader": "raw binary", "title": title}
    grid = choose_chunks(StoredArray(shape=nav + sig, dtype=dtype), n_sig, chunks)
    if sync_offset is not None:
        from udfdask.io.sync_offset import bands, check_offset, with_sync_offset

        first = check_offset(sync_offset, n_frames)
        flat = (bands(grid[: len(nav)], n_frames, first), *grid[len(nav) :])
        frames = lazy_array(source((n_frames,)), flat, prefix="from-raw")
        moved = with_sync_offset(frames, nav, sync_offset=first, sig_dims=n_sig, chunks=grid)
        return replace(opened_array(moved.array, dims, **described), present=moved.present)
    expected = offset + math.prod(nav) * frame
    if file.size == expected:
        return opened_array(lazy_array(source(nav), grid, prefix="from-raw"), dims, **described)
    remedy = "If the detector missed frames or recorded too many, pass sync_offset=0 to open_file"
    if rest and file.size > expected:  # sync_offset=0 would open it, with each frame moved
        remedy = f"If these are a file header, pass offset={offset + file.size - expected}"
    raise FileFormatError(
        f"nav_shape={nav}, sig_shape={sig}, dtype={dtype.str!r}, offset={offset}, "
        f"frame_header={header} and frame_footer={footer} ask for a file of {expected} bytes, but "
        f"{where} has {file.size}: after the offset it holds {n_frames} frames of {frame} bytes "
        f"and {rest} bytes more, and nav_shape asks for {math.prod(nav)}. {remedy}"
    )


def plain_file(path: str | os.PathLike[str]) -> Path:
    """Return the absolute path of a file; raise if it is a folder or does not exist."""
    file = existing_file(path)
    if file.is_dir():
        raise FileFormatError(f"expected a raw file, but {file} is a folder: pass a file in it")
    return file


def file_dtype(
    dtype: DTypeLike | None, *, name: str = "dtype", kinds: str = "biufcmM"
) -> np.dtype[Any]:
    """Return the user's dtype; raise if it is not one of NumPy's `kinds` of numbers."""
    try:
        stored = np.dtype("" if dtype is None else dtype)  # for NumPy, None is float64
    except (TypeError, ValueError, SyntaxError) as error:  # NumPy parses ',u2' like code
        raise ArgumentTypeError(
            f"{name} must be a NumPy dtype, got {dtype!r}: pass for example 'uint16' or '>u2'"
        ) from error
    if stored.kind not in kinds:
        words = "an integer type" if kinds == "iu" else "a type of numbers"
        raise ArgumentTypeError(f"{name} must be {words}, got {stored}")
    return stored
