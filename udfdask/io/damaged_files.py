"""Turn all errors of readers about damaged files into one error that names the file."""

from __future__ import annotations

import lzma
import math
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from udfdask.config import chunk_bytes
from udfdask.errors import ArgumentTypeError, FileFormatError, UDFError

COPY_AGAIN = "Is the file complete? Copy it again from where it was recorded, or write it anew"
"""Advice if a part of a file is missing or damaged."""

_UNCERTAIN = (
    "It may be damaged, incomplete, or of a kind that this reader does not know: copy it again, or "
    "save it in another format with the program that wrote it"
)
"""Advice if the cause is unknown."""

_UNSUPPORTED = "Save it in another format with the program that wrote it"

_BROKEN_OFF = (EOFError, struct.error, zlib.error, lzma.LZMAError, zipfile.BadZipFile)
"""Errors of readers to which a file has too few bytes, or compressed ones that do not fit."""

MOST_CHUNKS = 10_000_000
"""Maximum number of chunks of an array: its graph would take about 10 GB. Damaged shapes have many
more."""

MOST_DIMENSIONS = 64
"""Maximum number of dimensions in NumPy."""

_MOST_CHARACTERS = 300
"""Maximum length of another package's message; some contain long tables of bytes."""

_KINDS = {
    stat.S_ISFIFO: "a named pipe",
    stat.S_ISSOCK: "a socket",
    stat.S_ISCHR: "a device",
    stat.S_ISBLK: "a device",
}


@contextmanager
def reading(
    path: str | os.PathLike[str], reader: str, *, part: str = "", advice: str = ""
) -> Iterator[None]:
    """Turn the errors of a package that reads a file into a `FileFormatError` with its path.

    Use it only around calls of that package, so that errors in our own code keep their type. `part`
    describes the part of the file that is read. Without `advice`, the type of the error decides.
    """
    try:
        yield
    except (UDFError, ImportError, MemoryError, Warning):
        # These do not mean that the file is damaged: our own errors, a missing package, too little
        # memory, and warnings that the user's filter turns into errors.
        raise
    except PermissionError as error:
        raise _not_permitted(path) from error
    except Exception as error:
        # Readers have no common base class of errors: 331 damaged zarr stores raised 14 types.
        where = f", {part}," if part else ""
        raise FileFormatError(
            f"{os.fspath(path)}{where} cannot be read as {reader}: {in_words(error)}. "
            f"{advice or _advice(error)}"
        ) from error


def _advice(error: Exception) -> str:
    """Return what to do after an error of a reader."""
    if isinstance(error, _BROKEN_OFF):
        return COPY_AGAIN
    if isinstance(error, NotImplementedError):
        return _UNSUPPORTED
    if isinstance(error, FileNotFoundError):
        return "The file names another one: put it where the name says"
    return _UNCERTAIN


def in_words(error: BaseException) -> str:
    """Return the type and message of another package's error in one short line."""
    words = " ".join(str(error).split()).rstrip(".")
    if len(words) > _MOST_CHARACTERS:
        words = f"{words[:_MOST_CHARACTERS]}..."
    name = type(error).__name__
    if name == "error":  # the name of the exceptions of zlib and struct
        name = f"{type(error).__module__}.error"
    return f"{name}: {words}" if words else name


def existing_file(path: str | os.PathLike[str]) -> Path:
    """Return the absolute path of an existing file or folder, which workers in other folders find.

    Anything else is refused, because to open a named pipe would wait forever.
    """
    try:
        name = os.fspath(path)
        file = Path(path).expanduser().resolve()
    except TypeError as error:
        if hasattr(path, "shape"):  # an array, whose numbers would hide the remedy
            raise ArgumentTypeError(
                f"a path must be a str or a pathlib.Path, got {type(path).__name__} of shape "
                f"{path.shape}: an array needs no opening; pass a dask array to run_udf, such as "
                "dask.array.from_array(data, chunks='auto')"
            ) from error
        raise ArgumentTypeError(
            f"a path must be a str or a pathlib.Path, got {path!r}: pass the name of a file"
        ) from error
    # a circle of links, a NUL character, an unknown user such as ~nobody
    except (OSError, ValueError, RuntimeError) as error:
        raise _invalid_path(path, error) from error
    if not name:
        raise FileFormatError("the path is empty (''): pass the name of a file")
    try:
        mode = file.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        folder = file.parent
        exists = "exists" if folder.is_dir() else "does not exist either"
        where = f"the folder {folder} {exists}"
        raise FileNotFoundError(f"there is no file {name!r} ({where}): check the path") from None
    except PermissionError as error:
        raise _not_permitted(file) from error
    except (OSError, ValueError) as error:  # from Python 3.13 on, circles of links fail only here
        raise _invalid_path(path, error) from error
    for is_kind, kind in _KINDS.items():
        if is_kind(mode):
            raise FileFormatError(
                f"expected a file, but {file} is {kind}: write its data to a file first"
            )
    if not os.access(file, os.R_OK | os.X_OK if stat.S_ISDIR(mode) else os.R_OK):
        raise _not_permitted(file)
    return file


def check_values(
    path: str | os.PathLike[str], shape: tuple[int, ...], dtype: np.dtype[Any], *, part: str = ""
) -> None:
    """Raise if an array in a file, as the file describes it, cannot contain frames."""
    where = f"{os.fspath(path)}, {part}," if part else os.fspath(path)
    if dtype.kind not in "biufcmM":
        raise FileFormatError(
            f"expected numbers, but {where} contains values of type {dtype}: write the numbers to "
            "a separate array"
        )
    if not shape:
        raise FileFormatError(
            f"expected an array of frames or spectra, but {where} contains a single value: check "
            "the path, or pass another dataset="
        )
    most_bytes = MOST_CHUNKS * chunk_bytes()
    if (
        len(shape) > MOST_DIMENSIONS
        or min(shape) < 0
        or max(shape) > most_bytes
        or math.prod(shape) * dtype.itemsize > most_bytes
    ):
        raise FileFormatError(
            f"{where} claims to have the shape {shape} of {dtype}: sizes must not be negative, and "
            f"at most {MOST_DIMENSIONS} dimensions and {MOST_CHUNKS:,} chunks of "
            f"{chunk_bytes():,} bytes are possible. {COPY_AGAIN}; if the array really is so large, "
            "increase dask's array.chunk-size"
        )


def _invalid_path(path: str | os.PathLike[str], error: Exception) -> FileFormatError:
    """Return the error for a path that the file system cannot follow."""
    return FileFormatError(
        f"{os.fspath(path)!r} is not a path to a file: {in_words(error)}. Check the name, and the "
        "targets of symbolic links in it (readlink -f)"
    )


def _not_permitted(path: str | os.PathLike[str]) -> FileFormatError:
    """Return the error for a path that the user must not read."""
    return FileFormatError(
        f"{os.fspath(path)} cannot be read by this user: ask its owner for the permission (ls -l "
        "shows the owner)"
    )
