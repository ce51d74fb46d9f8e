"""Damaged files: whatever a reader stumbles over becomes one error, which names the file."""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from udfdask.errors import ArgumentTypeError, FileFormatError, UDFError
from udfdask.io.lazy_source import chunk_bytes

COPY_AGAIN = "Is the file complete? Copy it again from where it was recorded, or write it anew"

MOST_CHUNKS = 10_000_000
"""Chunks of one array: its graph alone would take about 10 GB. Damaged shapes are far above."""

MOST_DIMENSIONS = 64
"""As many as NumPy knows."""

_LONGEST = 300
"""Characters of another package's message; some print whole tables of bytes."""

_KINDS = {
    stat.S_ISFIFO: "a named pipe",
    stat.S_ISSOCK: "a socket",
    stat.S_ISCHR: "a device",
    stat.S_ISBLK: "a device",
}


@contextmanager
def reading(
    path: str | os.PathLike[str], reader: str, *, part: str = "", advice: str = COPY_AGAIN
) -> Iterator[None]:
    """Turn the errors of a package that reads a file into a `FileFormatError` with its path.

    Only calls of that package belong under it, so that mistakes of ours stay what they are. `part`
    says in words which part of the file is read, where it is not all of it.
    """
    try:
        yield
    except (UDFError, ImportError, MemoryError, Warning):
        # Said already; a package that is missing; too small a machine; the user's own filter.
        raise
    except PermissionError as error:
        raise _not_permitted(path) from error
    except Exception as error:
        # Readers have no errors in common: 331 damaged zarr stores gave 14 types of them.
        where = f", {part}," if part else ""
        raise FileFormatError(
            f"{os.fspath(path)}{where} cannot be read as {reader}: {in_words(error)}. {advice}"
        ) from error


def in_words(error: BaseException) -> str:
    """Take an error of another package; return its type and message in one short line."""
    words = " ".join(str(error).split()).rstrip(".")
    if len(words) > _LONGEST:
        words = f"{words[:_LONGEST]}..."
    name = type(error).__name__
    if name == "error":  # zlib and struct call theirs so
        name = f"{type(error).__module__}.error"
    return f"{name}: {words}" if words else name


def existing_file(path: str | os.PathLike[str]) -> Path:
    """Take a path; return it absolute, so that workers elsewhere in the file system find it.

    Raise if there is nothing, or neither a file nor a folder: to open a pipe waits for ever.
    """
    try:
        asked = os.fspath(path)
        file = Path(path).expanduser().resolve()
    except TypeError as error:
        raise ArgumentTypeError(
            f"a path must be a str or a pathlib.Path, got {path!r}: pass the name of a file"
        ) from error
    except (OSError, ValueError, RuntimeError) as error:  # a loop of links, a NUL, ~nobody
        raise _no_path(path, error) from error
    if not asked:
        raise FileFormatError("the path is empty (''): pass the name of a file")
    try:
        mode = file.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        folder = file.parent
        where = f"the folder {folder} exists" if folder.is_dir() else f"nor is there {folder}"
        raise FileNotFoundError(f"there is no file {asked!r} ({where}): check the path") from None
    except PermissionError as error:
        raise _not_permitted(file) from error
    except (OSError, ValueError) as error:  # from Python 3.13 on, loops show only here
        raise _no_path(path, error) from error
    for is_kind, kind in _KINDS.items():
        if is_kind(mode):
            raise FileFormatError(
                f"{file} is {kind}, and a file was expected: write its data to a file first"
            )
    if not os.access(file, os.R_OK | os.X_OK if stat.S_ISDIR(mode) else os.R_OK):
        raise _not_permitted(file)
    return file


def check_values(
    path: str | os.PathLike[str], shape: tuple[int, ...], dtype: np.dtype[Any], *, part: str = ""
) -> None:
    """Take what a file says of an array in it; raise if no frames can be like that."""
    where = f"{os.fspath(path)}, {part}," if part else os.fspath(path)
    if dtype.kind not in "biufcmM":
        raise FileFormatError(
            f"{where} holds values of type {dtype}, and numbers were expected: write the numbers "
            "in it to an array of their own"
        )
    if not shape:
        raise FileFormatError(
            f"{where} holds a single value without dimensions, and an array of frames or spectra "
            "was expected: check which file, or which of its datasets, is meant"
        )
    room = MOST_CHUNKS * chunk_bytes()
    if (
        len(shape) > MOST_DIMENSIONS
        or min(shape) < 0
        or max(shape) > room
        or math.prod(shape) * dtype.itemsize > room
    ):
        raise FileFormatError(
            f"{where} says that it has the shape {shape} of {dtype}: that is below 0, or more than "
            f"{MOST_DIMENSIONS} dimensions, or than {MOST_CHUNKS:,} chunks of {chunk_bytes():,} "
            f"bytes. {COPY_AGAIN}; for an array that is as large as that, raise dask's "
            "array.chunk-size"
        )


def _no_path(path: object, error: Exception) -> FileFormatError:
    """Take a path that the file system does not follow, and why; return the error to raise."""
    return FileFormatError(
        f"{os.fspath(path)!r} is no path to a file: {in_words(error)}. "  # type: ignore[call-overload]
        "Check the name, and where links in it lead (readlink -f)"
    )


def _not_permitted(path: str | os.PathLike[str]) -> FileFormatError:
    """Take a path that may not be read; return the error to raise."""
    return FileFormatError(
        f"{os.fspath(path)} may not be read by this user: ask its owner for the permission "
        "(ls -l shows who has it)"
    )
