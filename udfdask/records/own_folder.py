"""Check that a folder may become a journal or a cache: nothing else is ever written into."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from udfdask.errors import ArgumentTypeError, ArgumentValueError


def check_folder(
    path: str | os.PathLike[str], kind: str, mark: str, known: Collection[str]
) -> Path:
    """Return the absolute path of a folder that can be a journal or a cache; raise otherwise.

    `kind` is the word for it in messages. All files in it must be in `known`; a folder that is not
    empty must have the file `mark`, if that is not empty.
    """
    try:
        text = os.fspath(path)
    except TypeError:
        text = None
    if not isinstance(text, str):
        raise ArgumentTypeError(f"{kind} must be the path of a folder, not {path!r}")
    if not text.strip() or "\0" in text or "://" in text:
        raise ArgumentValueError(f"{kind} must be the path of a local folder, not {text!r}")
    folder = Path(text).expanduser().absolute()
    if not folder.parent.is_dir():
        raise FileNotFoundError(
            f"there is no folder {folder.parent} for the {kind} {folder.name}: create it first"
        )
    if folder.exists() and not folder.is_dir():
        raise ArgumentValueError(f"{folder} is not a folder, so it cannot be a {kind}")
    names = {entry.name for entry in os.scandir(folder)} if folder.is_dir() else set()
    if names.difference(known) or (names and mark and mark not in names):
        raise ArgumentValueError(
            f"{folder} is a folder with other files, so it cannot be a {kind}: choose the path of "
            "a new folder"
        )
    return folder
