"""Raw binary files: frames one after another, without a header that anyone needs to read."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import dask.array as da
import numpy as np
from numpy.typing import DTypeLike

from udfdask.errors import ArgumentTypeError, ArgumentValueError, FileFormatError
from udfdask.io.source import choose_chunks, lazy_array


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedArray:
    """An array in a file, mapped into memory by each task that slices it."""

    path: str
    """Absolute path of the file."""
    shape: tuple[int, ...]
    """Shape of the whole array."""
    dtype: np.dtype[Any]
    """Type of the values, byte order included."""
    offset: int
    """Where the values start, bytes from the beginning of the file."""
    order: Literal["C", "F"] = "C"
    """Which index runs fastest in the file: the last (C) or the first (F)."""

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def __getitem__(self, index: Any) -> np.ndarray[Any, Any]:
        """Return the part at `index`, a view of the mapped file."""
        whole: np.ndarray[Any, Any] = np.memmap(
            self.path, self.dtype, "r", self.offset, self.shape, self.order
        )
        part: np.ndarray[Any, Any] = whole[index].view(np.ndarray)
        return part


def from_raw(
    path: str | os.PathLike[str],
    *,
    nav_shape: int | Sequence[int],
    sig_shape: int | Sequence[int],
    dtype: DTypeLike,
    offset: int = 0,
    chunks: Any = "auto",
) -> da.Array:
    """Open a raw binary file as a lazy array.

    The file is mapped into memory: a task reads its part of it and copies nothing.

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
    chunks : int, str or tuple
        Chunks in any form that dask takes. ``"auto"``: whole frames that lie next to each other in
        the file, up to dask's ``array.chunk-size`` (128 MiB).

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
        If the file does not have exactly the size that the shapes ask for.
    ArgumentTypeError
        If the dtype is none that a file can hold, or a shape does not hold whole numbers.
    ArgumentValueError
        If a size is not positive, there is no signal dimension, or the offset is negative.

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
    nav = _sizes(nav_shape, name="nav_shape")
    sig = _sizes(sig_shape, name="sig_shape")
    if not sig:
        raise ArgumentValueError("sig_shape must have at least one size, got (): pass (1,)")
    stored_dtype = _file_dtype(dtype)
    if operator.index(offset) < 0:
        raise ArgumentValueError(f"offset must be 0 or more bytes, got {offset}")
    file = existing_file(path)
    _check_size(file, nav, sig, stored_dtype, offset)
    source = MappedArray(
        path=str(file), shape=nav + sig, dtype=stored_dtype, offset=operator.index(offset)
    )
    return lazy_array(
        source,
        choose_chunks(source.shape, source.dtype, len(sig), chunks),
        prefix="from-raw",
    )


def existing_file(path: str | os.PathLike[str]) -> Path:
    """Take a path; return it absolute, so that workers elsewhere in the file system find it."""
    file = Path(path).expanduser().resolve()
    if not file.exists():
        folder = file.parent
        where = f"the folder {folder} exists" if folder.is_dir() else f"nor is there {folder}"
        raise FileNotFoundError(f"there is no file {os.fspath(path)!r} ({where}): check the path")
    return file


def _sizes(shape: int | Sequence[int], *, name: str) -> tuple[int, ...]:
    """Take a shape as the user wrote it; return it as a tuple of positive ints."""
    try:
        sizes = tuple(
            operator.index(size) for size in (shape if isinstance(shape, Sequence) else (shape,))
        )
    except TypeError as error:
        raise ArgumentTypeError(
            f"{name} must be whole numbers, got {shape!r}: pass for example {name}=(64, 64)"
        ) from error
    if any(size < 1 for size in sizes):
        raise ArgumentValueError(f"{name} must have positive sizes, got {shape!r}")
    return sizes


def _file_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """Take what the user passed as dtype; return one whose values have a place in a file."""
    try:
        stored = np.dtype(dtype)
    except TypeError as error:
        raise ArgumentTypeError(
            f"dtype must be a NumPy dtype, got {dtype!r}: pass for example 'uint16' or '>u2'"
        ) from error
    if stored.hasobject or stored.itemsize == 0:
        raise ArgumentTypeError(
            f"dtype must be of numbers, got {stored}: pass for example 'uint16' or '>u2'"
        )
    return stored


def _check_size(
    file: Path, nav: tuple[int, ...], sig: tuple[int, ...], dtype: np.dtype[Any], offset: int
) -> None:
    """Take a file and what should be in it; raise if its size is another one."""
    frame = math.prod(sig) * dtype.itemsize
    expected = offset + math.prod(nav) * frame
    size = file.stat().st_size
    if size == expected:
        return
    frames, rest = divmod(max(size - offset, 0), frame)
    whole = f"exactly {frames}" if rest == 0 else f"{frames} whole"
    raise FileFormatError(
        f"nav_shape={nav}, sig_shape={sig}, dtype={dtype.str!r} and offset={offset} ask for a file "
        f"of {expected} bytes, but {file.name} has {size}: after the offset it holds {whole} "
        f"frames of {frame} bytes"
        + (f" and {rest} bytes more" if rest else "")
        + f", and nav_shape asks for {math.prod(nav)}. Check the shapes, the dtype and the offset; "
        "to use a part of the file, open all of it and slice the array"
    )
