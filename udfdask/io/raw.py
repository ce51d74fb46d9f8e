"""Open raw binary files of frames at equal distances."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import DTypeLike

from udfdask.errors import ArgumentTypeError, ArgumentValueError, FileFormatError
from udfdask.io.damaged_files import check_values, existing_file
from udfdask.io.file_identity import FileIdentity
from udfdask.io.lazy_source import StoredArray, choose_chunks, lazy_array
from udfdask.io.memmap import MappedArray, c_strides
from udfdask.io.remote_file import RangedArray, RemoteFile
from udfdask.io.remote_location import Location, is_remote, local_path, refuse_options
from udfdask.scheduling.workers.block_placement import Workers, on_workers


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
    workers: Workers = None,
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
    workers : str, sequence, mapping or callable, optional
        Workers of a cluster that can load each block, as in `on_workers`.
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
        If the file does not have exactly the size that the shapes require, or is a folder.
    ArgumentTypeError
        If the dtype is not a type of numbers, or a shape or a number of bytes is not an integer.
    ArgumentValueError
        If a size is not positive, there is no signal dimension, a number of bytes is negative,
        chunks or workers do not fit the shape, or `storage_options` do not suit the URL.
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
        location = Location.of(path, storage_options)
        file, where = RemoteFile.of(location), location.shown
        file.begin(1)  # raises if the server cannot send parts of a file
    else:
        refuse_options(path, storage_options)
        file = FileIdentity.of(plain_file(local_path(path)))
        where = file.path
    margins = {"offset": start, "header": header, "footer": footer}
    _check_size(where, file.size, nav, sig, stored, **margins)
    check_values(where, nav + sig, stored)
    frame_step = header + math.prod(sig) * stored.itemsize + footer
    layout: dict[str, Any] = {
        "shape": nav + sig,
        "dtype": stored,
        "offset": start + header,
        "strides": c_strides(nav, frame_step) + c_strides(sig, stored.itemsize),
    }
    source: StoredArray
    if isinstance(file, RemoteFile):
        source = RangedArray(file=file, **layout)
    else:
        source = MappedArray(file=file, **layout)
    grid = choose_chunks(source, len(sig), chunks)
    return on_workers(lazy_array(source, grid, prefix="from-raw"), workers)


def plain_file(path: str | os.PathLike[str]) -> Path:
    """Return the absolute path of a file; raise if it is a folder or does not exist."""
    file = existing_file(path)
    if file.is_dir():
        raise FileFormatError(
            f"expected a raw file, but {file} is a folder: pass the path of the file in it"
        )
    return file


def sizes(shape: int | Sequence[int], *, name: str) -> tuple[int, ...]:
    """Return the user's shape as a tuple of positive integers."""
    try:
        given = shape if isinstance(shape, Sequence) else (shape,)
        if any(isinstance(size, bool) for size in given):
            raise TypeError("a size cannot be a bool")  # noqa: TRY301  # becomes the cause below
        checked = tuple(operator.index(size) for size in given)
    except TypeError as error:
        raise ArgumentTypeError(
            f"{name} must be integers, got {shape!r}: pass for example {name}=(64, 64)"
        ) from error
    if any(size < 1 for size in checked):
        raise ArgumentValueError(
            f"{name} must have positive sizes, got {shape!r}: pass for example {name}=(64, 64)"
        )
    return checked


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


def file_dtype(dtype: DTypeLike, *, name: str = "dtype", kinds: str = "biufcmM") -> np.dtype[Any]:
    """Return the user's dtype; raise if it is not one of NumPy's `kinds` of numbers."""
    try:
        stored = np.dtype(dtype)
    except (TypeError, ValueError, SyntaxError) as error:  # NumPy parses ',u2' like code
        raise ArgumentTypeError(
            f"{name} must be a NumPy dtype, got {dtype!r}: pass for example 'uint16' or '>u2'"
        ) from error
    if stored.kind not in kinds:
        words = "an integer type" if kinds == "iu" else "a type of numbers"
        raise ArgumentTypeError(
            f"{name} must be {words}, got {stored}: pass for example 'uint16' or '>u2'"
        )
    return stored


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
    raise FileFormatError(
        f"nav_shape={nav}, sig_shape={sig}, dtype={dtype.str!r} and offset={offset}{margins} ask "
        f"for a file of {expected} bytes, but {where} has {size}: after the offset it holds "
        f"{n_frames} frames of {frame} bytes"
        + (f" and {rest} bytes more" if rest else "")
        + f", and nav_shape asks for {math.prod(nav)}. Check the shapes, the dtype and the bytes "
        "to skip; to use a part of the file, open all of it and slice the array"
    )
