"""The options that say what a file holds, which part of it is processed, and by which UDFs."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from udfdask.cli.udf_option import TypedUDF, to_udf
from udfdask.errors import UDFError, without_secrets
from udfdask.io.numpy_file import read_npy
from udfdask.io.opened_file import OpenedFile
from udfdask.io.opening import open_file
from udfdask.udf import UDF


@dataclass(frozen=True, slots=True, kw_only=True)
class DataOptions:
    """A file, how to open it, and what to compute."""

    file: Path | str
    """The file to read, or its URL."""
    opening: dict[str, Any]
    """Arguments of `open_file`."""
    typed: Sequence[TypedUDF]
    """The UDFs, in the order in which they were typed."""
    planning: dict[str, Any]
    """Arguments of `run_udf`."""

    def open(self) -> OpenedFile:
        """Return the opened file."""
        return open_file(self.file, **self.opening)

    @property
    def udfs(self) -> dict[str, UDF]:
        """All UDFs by the names of their results: a second ``sum`` without a name is ``sum_2``."""
        typed = self.typed or [to_udf(name) for name in ("sum", "sumsig")]
        given = [one.name for one in typed if one.is_named]
        named: dict[str, UDF] = {}
        for one in typed:
            name, n = one.name, 1
            if given.count(name) > 1:
                raise click.UsageError(f"two UDFs are called {name!r}: give them different names")
            while not one.is_named and name in (*named, *given):
                n += 1
                name = f"{one.name}_{n}"
            named[name] = one.udf
        return named

    def headline(self, opened: OpenedFile) -> str:
        """Return one line that describes the file."""
        array, sig = opened.array, opened.sig_dims
        nav = " x ".join(map(str, array.shape[: array.ndim - sig])) or "1"
        frame = " x ".join(map(str, array.shape[array.ndim - sig :]))
        name = self.file.name if isinstance(self.file, Path) else without_secrets(self.file)
        return f"{name}: {nav} positions of {frame} {array.dtype}, read by {opened.reader}"


def to_path(text: str) -> Path:
    """Convert the name of a file or folder; an empty name would be the current folder."""
    if not text:
        raise click.BadParameter("'' is not a file name: is a shell variable empty?")
    return Path(text)


def _to_source(text: str) -> Path | str:
    """Convert the name of a file or folder; a URL stays a text."""
    return text if "://" in text else to_path(text)


def to_region(text: str) -> Any:
    """Convert ``0:10,3`` to slices and ints, and ``mask.npy`` to the mask in that file."""
    try:
        if text.endswith(".npy"):
            return read_npy(text)
    except (OSError, UDFError) as error:
        raise click.BadParameter(str(error)) from error
    index: list[Any] = []
    try:
        for part in text.split(","):
            ends = [int(end) if end.strip() else None for end in part.split(":")]
            index.append(slice(*ends) if len(ends) > 1 else int(part))
    except (ValueError, TypeError):
        raise click.BadParameter(
            f"{text!r} is not a region: write a slice or a position for each navigation axis, "
            "such as 0:10,5:20 or 3,:, or the name of an .npy file with a boolean mask"
        ) from None
    return (*index, Ellipsis)


def _to_shape(text: str) -> tuple[int, ...]:
    """Convert ``256,256`` to a tuple of ints."""
    return tuple(map(int, text.split(",")))  # click tells users of a ValueError


def to_chunks(text: str) -> Any:
    """Convert ``4,4,-1,auto`` to a tuple; ``auto`` and ``64MiB`` stay texts."""
    if text.endswith("B"):
        return text
    parts = [part.strip() for part in text.split(",")]
    sizes = tuple(part if part == "auto" else int(part) for part in parts)
    return sizes[0] if len(sizes) == 1 else sizes


def _to_storage_option(text: str) -> tuple[str, Any]:
    """Convert ``anon=true`` or ``client_kwargs={...}`` to a name and a value."""
    name, value = text.split("=", 1)
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


_OPENING = (
    click.option("--nav-shape", type=_to_shape, metavar="Y,X", help="Shape of a raw file's scan."),
    click.option("--sig-shape", type=_to_shape, metavar="Y,X", help="Shape of a raw file's frame."),
    click.option("--dtype", help="Type of the values of a raw file: uint16, or '>u2'."),
    click.option("--offset", default=0, metavar="BYTES", help="Size of the header of a raw file."),
    click.option(
        "--sync-offset",
        type=int,
        metavar="FRAMES",
        help="Frames to skip at the start of the file; if negative, positions without a frame "
        "there. The scan of --nav-shape may then have fewer or more positions than frames.",
    ),
    click.option(
        "--sig-dims",
        type=int,
        metavar="N",
        help="Dimensions of a frame: 2 for images, 1 for spectra; by default as in the file.",
    ),
    click.option(
        "--dataset", help="Dataset to read: a path in the file, or a signal's number or title."
    ),
    click.option(
        "--chunks",
        type=to_chunks,
        metavar="CHUNKS",
        help="How much is read at a time: a size for each dimension (4,4,-1,-1; -1 is all of it), "
        "or auto, or 64MiB.",
    ),
    click.option(
        "--storage-option",
        "storage_options",
        type=_to_storage_option,
        metavar="NAME=VALUE",
        multiple=True,
        help="Option for the server of a URL, such as anon=true. Can be given several times; a "
        "VALUE that is JSON is read as such.",
    ),
)
_PLANNING = (
    click.option(
        "--roi",
        type=to_region,
        metavar="REGION",
        help="Part of the scan: y0:y1,x0:x1, a position, or mask.npy.",
    ),
    click.option(
        "--merge-small",
        metavar="SIZE",
        help="Join neighboring small chunks into tasks of at least this size, such as 64MiB.",
    ),
    click.option(
        "--max-memory",
        metavar="SIZE",
        help="Memory of one process, such as 2GB. A run that needs more is refused before it "
        "starts, and the message says what would fit.",
    ),
)
_UDF = click.option(
    "--udf",
    "udfs",
    type=to_udf,
    metavar="NAME[:PARAMETER=VALUE,...]",
    multiple=True,
    show_default="sum and sumsig",
    help="UDF to run, such as com:cy=64,cx=64. Can be given several times; all UDFs share one "
    "pass. `udfdask udfs` lists them. A class in Python code is a UDF too: mine.py:Peak:r=5, "
    "or module:Class. A name of your own for the results goes in front: BF=disk:r=5.",
)


_NAMES = "nav_shape sig_shape dtype offset sync_offset sig_dims dataset chunks storage_options"


def with_data_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options above to a command, which gets them as one argument `data`."""

    @functools.wraps(command)
    def decorated(file: Path | str, udfs: Sequence[TypedUDF], **options: Any) -> None:
        opening = {name: options.pop(name) for name in _NAMES.split()}
        opening["storage_options"] = dict(opening["storage_options"]) or None
        planning = {name: options.pop(name) for name in ("roi", "merge_small", "max_memory")}
        data = DataOptions(file=file, opening=opening, typed=udfs, planning=planning)
        command(data, **options)

    for option in reversed((click.argument("file", type=_to_source), _UDF, *_PLANNING, *_OPENING)):
        decorated = option(decorated)
    return decorated
