"""Turn all errors of readers about damaged files into one error that names the file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike

from udfdask.errors import ArgumentTypeError, FileFormatError, UDFError

COPY_AGAIN = "Is the file complete? Copy it again from where it was recorded, or write it anew"
"""Advice if a part of a file is missing or damaged."""

_UNCERTAIN = (
    "It may be damaged, incomplete, or of a kind that this reader does not know: copy it again, or "
    "save it in another format with the program that wrote it"
)

_MOST_CHARACTERS = 300
"""Maximum length of another package's message; some contain long tables of bytes."""


@contextmanager
def reading(
    path: str | os.PathLike[str], reader: str, *, part: str = "", advice: str = ""
) -> Iterator[None]:
    """Turn the errors of a package that reads a file into a `FileFormatError` with its path.

    Use it only around calls of that package, so that errors in our own code keep their type. `part`
    describes the part of the file that is read.
    """
    try:
        yield
    except (UDFError, ImportError, MemoryError, Warning):
        # These do not mean that the file is damaged: our own errors, a missing package, too little
        # memory, and warnings that the user's filter turns into errors.
        raise
    except Exception as error:
        # Readers have no common base class of errors: 331 damaged zarr stores raised 14 types.
        where = f", {part}," if part else ""
        raise FileFormatError(
            f"{os.fspath(path)}{where} cannot be read as {reader}: {in_words(error)}. "
            f"{advice or _UNCERTAIN}"
        ) from error


def in_words(error: BaseException) -> str:
    """Return the type and message of another package's error in one short line."""
    words = " ".join(str(error).split()).rstrip(".")
    if len(words) > _MOST_CHARACTERS:
        words = f"{words[:_MOST_CHARACTERS]}..."
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def existing_file(path: str | os.PathLike[str]) -> Path:
    """Return the absolute path of an existing file or folder, which workers in other folders find.

    Anything else is refused, because to open a named pipe would wait forever.
    """
    try:
        file = Path(path).expanduser().resolve()
        exists = file.is_file() or file.is_dir()
    except TypeError as error:
        raise ArgumentTypeError(
            f"a path must be a str or a pathlib.Path, got {type(path).__name__}: pass the name of "
            "a file; an array needs no opening"
        ) from error
    except (OSError, ValueError, RuntimeError) as error:  # such as a circle of links
        raise FileFormatError(f"{path!r} is not a path to a file: {in_words(error)}") from error
    if not exists:
        also = "exists" if file.parent.is_dir() else "does not exist either"
        raise FileNotFoundError(
            f"there is no file {os.fspath(path)!r} (the folder {file.parent} {also}): check the "
            "path"
        )
    return file


def check_values(
    path: str | os.PathLike[str], shape: tuple[int, ...], dtype: DTypeLike, *, part: str = ""
) -> None:
    """Raise if an array in a file, as the file describes it, cannot contain frames."""
    where = f"{os.fspath(path)}, {part}," if part else os.fspath(path)
    if np.dtype(dtype).kind not in "biufcmM":
        raise FileFormatError(
            f"expected numbers, but {where} contains values of type {dtype}: write the numbers to "
            "a separate array"
        )
    if not shape:
        raise FileFormatError(
            f"expected an array of frames or spectra, but {where} contains a single value: check "
            "the path, or pass another dataset="
        )
