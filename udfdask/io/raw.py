"""Open raw binary files of frames at equal distances."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
from udfdask.io.remote import (
    Location,
    RangedArray,
    RemoteFile,
    is_remote,
    local_path,
    refuse_options,
)


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

    Each task maps its part of the file into memory and copies nothing: blocks are views, with
    strides that skip the headers and footers of frames. Of a URL, each task reads its byte ranges.

    If the file has changed since it was opened, tasks raise a `FileFormatError`. If dask's setting
    ``udfdask.map-files`` is False, tasks read the file instead of mapping it.

    Parameters
    ----------
    path : str or path-like
        The file or its URL: frames in C order, one after another.
    nav_shape : int or sequence of int
        Scan positions, for example (y, x).
    sig_shape : int or sequence of int
        Detector pixels, for example (y, x), or the channels of a spectrum.
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
        path, size and modification time of the file, and on the arguments.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    FileFormatError
        If the file does not have exactly the size that the shapes require, or is a folder. If the
        detector missed frames, use `open_file` with `sync_offset`.
    ArgumentTypeError, ArgumentValueError
        If an argument has the wrong type, or a value that is not possible.
    ConnectionError
        If a server cannot be reached.
    ImportError
        If the package for the protocol of a URL is not installed; the message names it.

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
    skipped = {"offset": offset, "frame_header": frame_header, "frame_footer": frame_footer}
    raw = _RawFile.of(path, sig_shape, dtype, skipped, storage_options)
    return raw.array(sizes(nav_shape, name="nav_shape"), chunks)


def open_raw(
    path: str | os.PathLike[str],
    layout: Mapping[str, Any],
    skipped: Mapping[str, int],
    *,
    sync_offset: int | None,
    sig_dims: int | None,
    chunks: Any,
    options: Mapping[str, Any] | None,
) -> OpenedFile:
    """Open a raw file; `layout` has its shapes and dtype, `skipped` the bytes to skip."""
    raw = _RawFile.of(path, layout["sig_shape"], layout["dtype"], skipped, options)
    nav, n_sig = sizes(layout["nav_shape"], name="nav_shape"), len(raw.sig)
    sig = choose_sig_dims(sig_dims, len(nav) + n_sig, known=n_sig)
    if sync_offset is None:
        array = raw.array(nav, chunks)
        return opened_array(array, sig, reader="raw binary", title=raw.title)
    from udfdask.io.sync_offset import check_offset, source_chunks, with_sync_offset

    offset = check_offset(sync_offset, raw.n_frames, raw.where)
    grid = choose_chunks(StoredArray(shape=nav + raw.sig, dtype=raw.dtype), n_sig, chunks)
    flat = (source_chunks(grid[: len(nav)], raw.n_frames, offset), *grid[len(nav) :])
    frames = lazy_array(raw.source((raw.n_frames,)), flat, prefix="from-raw")
    opened = with_sync_offset(frames, nav, sync_offset=sync_offset, sig_dims=n_sig, chunks=grid)
    axes = opened_array(opened.array, sig, reader="", title="").axes
    return replace(opened, sig_dims=sig, reader="raw binary", title=raw.title, axes=axes)


@dataclass(frozen=True, slots=True, kw_only=True)
class _RawFile:
    """Frames of equal size in a file, `where` for messages, with bytes before and after each."""

    file: FileIdentity | RemoteFile
    where: str
    title: str
    sig: tuple[int, ...]
    dtype: np.dtype[Any]
    offset: int
    header: int
    footer: int

    @classmethod
    def of(
        cls,
        path: str | os.PathLike[str],
        sig_shape: int | Sequence[int],
        dtype: DTypeLike,
        skipped: Mapping[str, int],
        options: Mapping[str, Any] | None,
    ) -> _RawFile:
        """Return the frames that the user describes."""
        sig, stored = sizes(sig_shape, name="sig_shape"), file_dtype(dtype)
        offset, header, footer = map(operator.index, skipped.values())
        if not sig or min(offset, header, footer) < 0:
            raise ArgumentValueError(
                f"sig_shape must have at least one size, got {sig}, and numbers of bytes must be "
                f"at least 0, got {skipped}"
            )
        file: FileIdentity | RemoteFile
        if is_remote(path):
            location = Location(url=path, options=dict(options or {}))
            file, where, title = RemoteFile.of(location), location.shown, location.path.stem
        else:
            refuse_options(path, options)
            found = plain_file(local_path(path))
            file, where, title = FileIdentity.of(found), str(found), found.stem
        layout: dict[str, Any] = {"offset": offset, "header": header, "footer": footer}
        return cls(file=file, where=where, title=title, sig=sig, dtype=stored, **layout)

    @property
    def frame_bytes(self) -> int:
        """Bytes of a frame with its header and footer."""
        return self.header + math.prod(self.sig) * self.dtype.itemsize + self.footer

    @property
    def n_frames(self) -> int:
        """Number of whole frames in the file."""
        return max(self.file.size - self.offset, 0) // self.frame_bytes

    def source(self, nav: tuple[int, ...]) -> StoredArray:
        """Return the frames in an array of shape (*nav, *sig)."""
        layout: dict[str, Any] = {
            "shape": nav + self.sig,
            "dtype": self.dtype,
            "offset": self.offset + self.header,
            "strides": c_strides(nav, self.frame_bytes) + c_strides(self.sig, self.dtype.itemsize),
        }
        if isinstance(self.file, FileIdentity):
            return MappedArray(file=self.file, **layout)
        return RangedArray(file=self.file, **layout)

    def array(self, nav: tuple[int, ...], chunks: Any) -> da.Array:
        """Return the lazy array of shape (*nav, *sig); raise if the file has another size."""
        size, frame = self.file.size, self.frame_bytes
        expected = self.offset + math.prod(nav) * frame
        if size == expected:
            source = self.source(nav)
            grid = choose_chunks(source, len(self.sig), chunks)
            return lazy_array(source, grid, prefix="from-raw")
        rest, more = max(size - self.offset, 0) % frame, size - expected
        remedy = (
            "If the detector missed frames or recorded too many, pass sync_offset=0 to open_file, "
            "or the number of frames to skip"
        )
        if rest and more > 0:  # sync_offset=0 would open such a file, with each frame moved
            remedy = f"If these are a file header, pass offset={self.offset + more}"
        raise FileFormatError(
            f"nav_shape={nav}, sig_shape={self.sig}, dtype={self.dtype.str!r}, "
            f"offset={self.offset}, frame_header={self.header} and frame_footer={self.footer} ask "
            f"for a file of {expected} bytes, but {self.where} has {size}: after the offset it "
            f"holds {self.n_frames} frames of {frame} bytes and {rest} bytes more, and nav_shape "
            f"asks for {math.prod(nav)}. Check the shapes, the dtype and the bytes to skip. "
            f"{remedy}"
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
            f"{name} must be a NumPy dtype, got {dtype!r}: pass for example 'uint16' or '>u2', "
            "which has 2 bytes"
        ) from error
    if stored.kind not in kinds:
        words = "an integer type" if kinds == "iu" else "a type of numbers"
        raise ArgumentTypeError(f"{name} must be {words}, got {stored}")
    return stored
