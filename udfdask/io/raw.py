"""Raw binary files: frames at even distances, and nothing between them that anyone needs."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import DTypeLike

from udfdask.errors import ArgumentTypeError, ArgumentValueError, FileFormatError
from udfdask.io.damaged_files import check_values, existing_file
from udfdask.io.file_identity import FileIdentity
from udfdask.io.lazy_source import choose_chunks, lazy_array
from udfdask.io.memmap import MappedArray, c_strides
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
) -> da.Array:
    """Open a raw binary file as a lazy array.

    The file is mapped into memory: a task reads its part of it and copies nothing. Headers and
    footers of frames are stepped over, so that blocks are views with strides.

    A task that finds another file than the one that was opened raises a `FileFormatError`. With
    dask's setting ``udfdask.map-files`` False, tasks read the file instead of mapping it.

    Parameters
    ----------
    path : str or path-like
        The file: frames in C order, one after another.
    nav_shape : int or sequence of int
        Scan positions, for example (y, x).
    sig_shape : int or sequence of int
        Detector pixels, for example (y, x), or the channels of a spectrum.
    dtype : dtype-like
        Type of the values, with the byte order: ``">u2"`` is big-endian uint16.
    offset : int
        Bytes to skip at the beginning of the file.
    frame_header, frame_footer : int
        Bytes to skip before and after each frame.
    chunks : int, str or tuple
        Chunks in any form that dask takes. ``"auto"``: whole frames that lie next to each other in
        the file, up to dask's ``array.chunk-size`` (128 MiB).
    workers : str, sequence, mapping or callable, optional
        Which workers of a cluster may load which block, as in `on_workers`.

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
        If the file does not have exactly the size that the shapes ask for, or is a folder.
    ArgumentTypeError
        If the dtype is none that a file can hold, or a shape or a number of bytes is not a whole
        number.
    ArgumentValueError
        If a size is not positive, there is no signal dimension, a number of bytes is negative, or
        chunks or workers do not fit the shape.

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

    Frames of 4 bytes, each behind a header of 2 bytes:

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
    file = FileIdentity.of(plain_file(path))
    _check_size(file, nav, sig, stored, offset=start, header=header, footer=footer)
    check_values(file.path, nav + sig, stored)
    frame_strides = c_strides(sig, stored.itemsize)
    step = header + math.prod(sig) * stored.itemsize + footer
    source = MappedArray(
        file=file,
        shape=nav + sig,
        dtype=stored,
        offset=start + header,
        strides=c_strides(nav, step) + frame_strides,
    )
    array = lazy_array(
        source,
        choose_chunks(source.shape, source.dtype, len(sig), chunks),
        prefix="from-raw",
    )
    return on_workers(array, workers)


def plain_file(path: str | os.PathLike[str]) -> Path:
    """Take a path; return it absolute, or raise if there is no file but a folder."""
    file = existing_file(path)
    if file.is_dir():
        raise FileFormatError(
            f"{file} is a folder, and a raw file was expected: pass the path of the file in it"
        )
    return file


def sizes(shape: int | Sequence[int], *, name: str) -> tuple[int, ...]:
    """Take a shape as the user wrote it; return it as a tuple of positive ints."""
    try:
        given = shape if isinstance(shape, Sequence) else (shape,)
        if any(isinstance(size, bool) for size in given):
            raise TypeError("a truth value is no size")  # noqa: TRY301  # told below
        found = tuple(operator.index(size) for size in given)
    except TypeError as error:
        raise ArgumentTypeError(
            f"{name} must be whole numbers, got {shape!r}: pass for example {name}=(64, 64)"
        ) from error
    if any(size < 1 for size in found):
        raise ArgumentValueError(f"{name} must have positive sizes, got {shape!r}")
    return found


def _byte_count(value: Any, *, name: str) -> int:
    """Take a number of bytes as the user wrote it; return it as an int of 0 or more."""
    try:
        count = operator.index(value)
    except TypeError as error:
        raise ArgumentTypeError(
            f"{name} must be a whole number of bytes, got {value!r}: pass for example {name}=1024"
        ) from error
    if count < 0:
        raise ArgumentValueError(f"{name} must be 0 or more bytes, got {value}")
    return count


def file_dtype(dtype: DTypeLike, *, name: str = "dtype") -> np.dtype[Any]:
    """Take what the user passed as dtype; return one whose values have a place in a file."""
    try:
        stored = np.dtype(dtype)
    except (TypeError, ValueError, SyntaxError) as error:  # NumPy parses ',u2' like code
        raise ArgumentTypeError(
            f"{name} must be a NumPy dtype, got {dtype!r}: pass for example 'uint16' or '>u2'"
        ) from error
    if stored.kind not in "biufcmM":
        raise ArgumentTypeError(
            f"{name} must be of numbers, got {stored}: pass for example 'uint16' or '>u2'"
        )
    return stored


def _check_size(
    file: FileIdentity,
    nav: tuple[int, ...],
    sig: tuple[int, ...],
    dtype: np.dtype[Any],
    *,
    offset: int,
    header: int,
    footer: int,
) -> None:
    """Take a file and what should be in it; raise if its size is another one."""
    frame = header + math.prod(sig) * dtype.itemsize + footer
    expected = offset + math.prod(nav) * frame
    size = file.size
    if size == expected:
        return
    frames, rest = divmod(max(size - offset, 0), frame)
    whole = f"exactly {frames}" if rest == 0 else f"{frames} whole"
    around = f" with frame_header={header} and frame_footer={footer}" if header or footer else ""
    raise FileFormatError(
        f"nav_shape={nav}, sig_shape={sig}, dtype={dtype.str!r} and offset={offset}{around} ask "
        f"for a file of {expected} bytes, but {file.path} has {size}: after the offset it holds "
        f"{whole} frames of {frame} bytes"
        + (f" and {rest} bytes more" if rest else "")
        + f", and nav_shape asks for {math.prod(nav)}. Check the shapes, the dtype and the bytes "
        "to skip; to use a part of the file, open all of it and slice the array"
    )
