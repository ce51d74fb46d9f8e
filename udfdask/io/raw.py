"""Open raw binary files of frames at equal distances."""

from __future__ import annotations

import math
import operator
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import dask.array as da
import numpy as np
from numpy.typing import DTypeLike

from udfdask.errors import ArgumentTypeError, ArgumentValueError, FileFormatError
from udfdask.io.damaged_files import check_values, existing_file
from udfdask.io.file_identity import FileIdentity
from udfdask.io.lazy_source import StoredArray, choose_chunks, lazy_array
from udfdask.io.memmap import MappedArray, c_strides
from udfdask.io.opened_file import OpenedFile, opened_array, sizes
from udfdask.io.remote_location import Location, is_remote, local_path, refuse_options

if TYPE_CHECKING:
    from udfdask.io.remote_file import RemoteFile


@overload
def from_raw(
    path: str | os.PathLike[str],
    *,
    nav_shape: int | Sequence[int],
    sig_shape: int | Sequence[int],
    dtype: DTypeLike,
    offset: int = ...,
    frame_header: int = ...,
    frame_footer: int = ...,
    sync_offset: None = ...,
    chunks: Any = ...,
    storage_options: Mapping[str, Any] | None = ...,
) -> da.Array: ...
@overload
def from_raw(
    path: str | os.PathLike[str],
    *,
    nav_shape: int | Sequence[int],
    sig_shape: int | Sequence[int],
    dtype: DTypeLike,
    offset: int = ...,
    frame_header: int = ...,
    frame_footer: int = ...,
    sync_offset: int,
    chunks: Any = ...,
    storage_options: Mapping[str, Any] | None = ...,
) -> OpenedFile: ...
def from_raw(
    path: str | os.PathLike[str],
    *,
    nav_shape: int | Sequence[int],
    sig_shape: int | Sequence[int],
    dtype: DTypeLike,
    offset: int = 0,
    frame_header: int = 0,
    frame_footer: int = 0,
    sync_offset: int | None = None,
    chunks: Any = "auto",
    storage_options: Mapping[str, Any] | None = None,
) -> da.Array | OpenedFile:
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
    sync_offset : int, optional
        Allow another number of frames in the file than `nav_shape` asks for, and skip this number
        of frames at the start; if it is negative, leave this number of positions without a frame
        there. See `with_sync_offset`. By default, the file must have exactly one frame for each
        position.
    chunks : int, str or tuple
        Chunks in any form that dask accepts. ``"auto"``: whole frames that are next to each other
        in the file, about 16 chunks from 16 MiB up to dask's ``array.chunk-size`` (128 MiB).
    storage_options : mapping, optional
        Options of the file system of a URL, as in `open_file`.

    Returns
    -------
    dask.array.Array, or OpenedFile
        The data, shape ``(*nav_shape, *sig_shape)``, of the given dtype. Its name depends on the
        path, size and modification time of the file, and on the arguments. With `sync_offset`, an
        `OpenedFile`, which `run_udf` takes too: it knows the positions without a frame.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    FileFormatError
        If the file does not have exactly the size that the shapes require, is a folder, or, with
        `sync_offset`, does not have a whole frame.
    ArgumentTypeError
        If the dtype is not a type of numbers, or a shape or a number of bytes is not an integer.
    ArgumentValueError
        If a size is not positive, there is no signal dimension, a number of bytes is negative,
        chunks do not fit the shape, `storage_options` do not suit the URL, or the file
        has not more frames than the size of `sync_offset`.
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

    Frames of 4 bytes, each after a header of 2 bytes:

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "scan.raw"
    ...     _ = path.write_bytes(bytes([255, 255, 1, 2, 3, 4, 255, 255, 5, 6, 7, 8]))
    ...     scan = from_raw(path, nav_shape=2, sig_shape=(2, 2), dtype="u1", frame_header=2)
    ...     print(scan[1].compute())
    [[5 6]
     [7 8]]
    """
    nav = sizes(nav_shape, name="nav_shape")
    sig = sizes(sig_shape, name="sig_shape")
    if not sig:
        raise ArgumentValueError("sig_shape must have at least one size, got (): pass (1,)")
    stored = file_dtype(dtype)
    start = _byte_count(offset, name="offset")
    header = _byte_count(frame_header, name="frame_header")
    footer = _byte_count(frame_footer, name="frame_footer")
    file: FileIdentity | RemoteFile
    if is_remote(path):
        from udfdask.io.remote_file import RemoteFile

        location = Location.of(path, storage_options)
        file, where, title = RemoteFile.of(location), location.shown, location.title
        file.begin(1)  # raises if the server cannot send parts of a file
    else:
        refuse_options(path, storage_options)
        found = plain_file(local_path(path))
        file, title = FileIdentity.of(found), found.stem
        where = file.path
    margins = {"offset": start, "header": header, "footer": footer}
    place = None
    if sync_offset is None:
        _check_size(where, file.size, nav, sig, stored, **margins)
    else:
        from udfdask.io.sync_offset import sequenced

        n_frames = _count_frames(where, file.size, sig, stored, **margins)
        place = sequenced(nav, n_frames, sync_offset, where)
    check_values(where, nav + sig, stored)
    grid = choose_chunks(StoredArray(shape=nav + sig, dtype=stored), len(sig), chunks)
    if place is None:
        scan = _frames(file, nav, sig, stored, **margins)
        return lazy_array(scan, grid, prefix="from-raw")
    from udfdask.io.sync_offset import arrange, source_chunks

    rows, parts = grid[: len(nav)], grid[len(nav) :]
    flat = _frames(file, (place.n_frames,), sig, stored, **margins)
    frames = lazy_array(flat, (source_chunks(place, rows), *parts), prefix="from-raw")
    array = arrange(frames, 1, rows, place.offset)
    opened = opened_array(array, len(sig), reader="raw binary", title=title)
    return replace(opened, present=place.present)


def _frames(
    file: FileIdentity | RemoteFile,
    outer: tuple[int, ...],
    sig: tuple[int, ...],
    dtype: np.dtype[Any],
    *,
    offset: int,
    header: int,
    footer: int,
) -> StoredArray:
    """Return the frames of a file in an array of shape (*outer, *sig)."""
    step = header + math.prod(sig) * dtype.itemsize + footer
    layout: dict[str, Any] = {
        "shape": outer + sig,
        "dtype": dtype,
        "offset": offset + header,
        "strides": c_strides(outer, step) + c_strides(sig, dtype.itemsize),
    }
    if isinstance(file, FileIdentity):
        return MappedArray(file=file, **layout)
    from udfdask.io.remote_file import RangedArray

    return RangedArray(file=file, **layout)


def plain_file(path: str | os.PathLike[str]) -> Path:
    """Return the absolute path of a file; raise if it is a folder or does not exist."""
    file = existing_file(path)
    if file.is_dir():
        raise FileFormatError(
            f"expected a raw file, but {file} is a folder: pass the path of the file in it"
        )
    return file


def _byte_count(value: Any, *, name: str) -> int:
    """Return the user's number of bytes as an integer of at least 0."""
    try:
        count = operator.index(value)
    except TypeError as error:
        raise ArgumentTypeError(
            f"{name} must be an integer number of bytes, got {value!r}: pass for example "
            f"{name}=1024"
        ) from error
    if count < 0:
        raise ArgumentValueError(f"{name} must be at least 0 bytes, got {value}: pass 0 or more")
    return count


def file_dtype(
    dtype: DTypeLike | None, *, name: str = "dtype", kinds: str = "biufcmM"
) -> np.dtype[Any]:
    """Return the user's dtype; raise if it is not one of NumPy's `kinds` of numbers."""
    try:
        stored = np.dtype("" if dtype is None else dtype)  # for NumPy, None is float64
    except (TypeError, ValueError, SyntaxError) as error:  # NumPy parses ',u2' like code
        raise ArgumentTypeError(
            f"{name} must be a NumPy dtype, got {dtype!r}: {_instead_of(dtype)}"
        ) from error
    if stored.kind not in kinds:
        words = "an integer type" if kinds == "iu" else "a type of numbers"
        raise ArgumentTypeError(f"{name} must be {words}, got {stored}: {_instead_of(dtype)}")
    return stored


def _instead_of(dtype: Any) -> str:
    """Return what to pass in place of a wrong dtype, such as ``u16`` with a number of bits."""
    found = re.fullmatch(r"([uif])(?:int|nt|loat)?[-_ ]?(8|16|32|64)", str(dtype).lower())
    if found is None:
        return "pass for example 'uint16' or '>u2'"
    kind, bits = found[1], int(found[2])
    name = {"u": "uint", "i": "int", "f": "float"}[kind]
    return f"for {bits} bits, pass '{name}{bits}' or '{kind}{bits // 8}', which counts bytes"


def _count_frames(
    where: str,
    size: int,
    sig: tuple[int, ...],
    dtype: np.dtype[Any],
    *,
    offset: int,
    header: int,
    footer: int,
) -> int:
    """Return the number of whole frames in a file; raise if there is none."""
    frame = header + math.prod(sig) * dtype.itemsize + footer
    n_frames = max(size - offset, 0) // frame
    if not n_frames:
        raise FileFormatError(
            f"{where} has {size} bytes, and after offset={offset} not a single frame of {frame} "
            f"bytes: check sig_shape={sig}, dtype={dtype.str!r} and the bytes to skip"
        )
    return n_frames


def _check_size(
    where: str,
    size: int,
    nav: tuple[int, ...],
    sig: tuple[int, ...],
    dtype: np.dtype[Any],
    *,
    offset: int,
    header: int,
    footer: int,
) -> None:
    """Raise if the size of a file does not match its description."""
    frame = header + math.prod(sig) * dtype.itemsize + footer
    expected = offset + math.prod(nav) * frame
    if size == expected:
        return
    frames, rest = divmod(max(size - offset, 0), frame)
    n_frames = f"exactly {frames}" if rest == 0 else f"{frames} whole"
    margins = f" with frame_header={header} and frame_footer={footer}" if header or footer else ""
    if rest and size > expected:  # sync_offset=0 would open such a file, with each frame moved
        more = size - expected
        remedy = (
            f"Are the {more} bytes that are too many a file header? Then pass "
            f"offset={offset + more}. Otherwise, check the shapes, the dtype and the bytes to skip"
        )
    else:
        remedy = (
            "Check the shapes, the dtype and the bytes to skip; to use a part of the file, open "
            "all of it and slice the array. If the detector missed frames or recorded too many, "
            "pass sync_offset=0, or the number of frames to skip"
        )
    raise FileFormatError(
        f"nav_shape={nav}, sig_shape={sig}, dtype={dtype.str!r} and offset={offset}{margins} ask "
        f"for a file of {expected} bytes, but {where} has {size}: after the offset it holds "
        f"{n_frames} frames of {frame} bytes"
        + (f" and {rest} bytes more" if rest else "")
        + f", and nav_shape asks for {math.prod(nav)}. {remedy}"
    )
