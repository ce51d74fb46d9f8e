"""Convert the texts after options to values, and refuse those that cannot be meant."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from udfdask.errors import UDFError
from udfdask.io.raw import file_dtype
from udfdask.plan.parse_size import parse_size


def to_path(text: str) -> Path:
    """Convert the name of a file or folder; an empty name would be the current folder."""
    if not text:
        raise click.BadParameter("'' is not a file name: is a shell variable empty?")
    return Path(text)


def to_source(text: str) -> Path | str:
    """Convert the name of a file or folder; a URL stays a text."""
    return text if "://" in text else to_path(text)


def to_storage_option(text: str) -> tuple[str, Any]:
    """Convert ``anon=true`` or ``client_kwargs={...}`` to a name and a value."""
    name, separator, value = text.partition("=")
    if not name or not separator:
        raise click.BadParameter(f"{text!r} is not NAME=VALUE: write for example anon=true")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def to_size(name: str, example: str) -> Callable[[str], str]:
    """Return a function that checks sizes such as ``2 GB``, for the option `name`."""

    def check(text: str) -> str:
        try:
            parse_size(text, name, example)
        except UDFError as error:
            raise click.BadParameter(str(error)) from None
        return text

    return check


def to_dtype(text: str) -> str:
    """Check ``uint16`` or ``>u2``."""
    try:
        file_dtype(text)
    except UDFError as error:
        raise click.BadParameter(str(error).replace("pass", "write")) from None
    return text


def to_shape(text: str) -> tuple[int, ...]:
    """Convert ``256,256`` to a tuple of ints."""
    try:
        sizes = tuple(int(part) for part in text.split(","))
    except ValueError:
        sizes = ()
    if not sizes or min(sizes) < 1:
        raise click.BadParameter(f"{text!r} is not a shape: write positive sizes such as 256,256")
    return sizes


def to_chunks(text: str) -> Any:
    """Convert ``4,4,-1,auto`` or ``64MiB`` to the form that dask accepts."""
    parts = [part.strip() for part in text.split(",")]
    try:
        sizes = tuple(part if part == "auto" else int(part) for part in parts)
    except ValueError:
        if re.fullmatch(r"\d+(\.\d+)? *[kMGT]?i?B", text, re.IGNORECASE):
            return text
        raise click.BadParameter(
            f"{text!r} are not chunks: write one size per dimension such as 4,4,-1,-1 "
            "(-1 is the whole dimension), or auto, or 64MiB"
        ) from None
    if any(isinstance(size, int) and size != -1 and size < 1 for size in sizes):
        raise click.BadParameter(
            f"{text!r} are not chunks: a size is positive, or -1 for the whole dimension"
        )
    return sizes[0] if len(sizes) == 1 else sizes
