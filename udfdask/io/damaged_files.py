"""Turn all errors of readers about damaged files into one error that names the file."""

from __future__ import annotations

import lzma
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

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

_MOST_CHARACTERS = 300
"""Maximum length of another package's message; some contain long tables of bytes."""


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
        exists, is_file = file.exists(), file.is_file() or file.is_dir()
    except TypeError as error:
        raise ArgumentTypeError(
            f"a path must be a str or a pathlib.Path, got {type(path).__name__}: pass the name of "
            "a file; an array needs no opening"
        ) from error
    except PermissionError as error:
        raise _not_permitted(path) from error
    # a circle of links, a NUL character, an unknown user such as ~nobody
    except (OSError, ValueError, RuntimeError) as error:
        raise FileFormatError(f"{path!r} is not a path to a file: {in_words(error)}") from error
    if not name:
        raise FileFormatError("the path is empty (''): pass the name of a file")
    if not exists:
        folder = file.parent
        also = "exists" if folder.is_dir() else "does not exist either"
        where = f"the folder {folder} {also}"
        raise FileNotFoundError(f"there is no file {name!r} ({where}): check the path")
    if not is_file:
        raise FileFormatError(f"expected a file, but {file} is a pipe, a socket or a device")
    if not os.access(file, os.R_OK):
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


def _not_permitted(path: str | os.PathLike[str]) -> FileFormatError:
    """Return the error for a path that the user must not read."""
    return FileFormatError(
        f"{os.fspath(path)} cannot be read by this user: ask its owner for the permission (ls -l "
        "shows the owner)"
    )
