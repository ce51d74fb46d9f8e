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
from udfdask.geometry.axes import Axis
from udfdask.geometry.units import Quantity, as_quantity
from udfdask.io.memmap import read_npy
from udfdask.io.opened_file import OpenedFile
from udfdask.io.opening import open_file
from udfdask.results.named_results import numbered
from udfdask.udf import UDF


@dataclass(frozen=True, slots=True, kw_only=True)
class DataOptions:
    """A file or URL, the UDFs by the names of results, arguments of `open_file` and `run_udf`.

    `correct` says whether frames are corrected by what the file says about the detector.
    """

    file: str
    udfs: dict[str, UDF]
    opening: dict[str, Any]
    planning: dict[str, Any]
    correct: bool

    def open(self) -> OpenedFile:
        """Return the opened file."""
        return open_file(self.file, **self.opening)

    def options(self, opened: OpenedFile) -> dict[str, Any]:
        """Return the options of the run."""
        options = dict(self.planning)
        if (scale := options.pop("scale")) is not None:
            options["axes"] = _scaled(opened.axes, scale)
        return {**options, **({"corrections": opened.corrections} if self.correct else {})}

    def headline(self, opened: OpenedFile) -> str:
        """Return one line that describes the file."""
        array, n_nav = opened.array, opened.array.ndim - opened.sig_dims
        nav, frame = (" x ".join(map(str, s)) for s in (array.shape[:n_nav], array.shape[n_nav:]))
        name = without_secrets(self.file) if "://" in self.file else Path(self.file).name
        return f"{name}: {nav or 1} positions of {frame} {array.dtype}, read by {opened.reader}"


def not_empty(text: str) -> str:
    """Return the name of a file or folder; an empty one would be the current folder."""
    if not text:
        raise click.BadParameter("'' is no file or folder: is a shell variable empty?")
    return text


def _by_name(typed: Sequence[TypedUDF]) -> dict[str, UDF]:
    """Return UDFs by the names of their results: a second ``sum`` without a name is ``sum_2``."""
    given = [one.name for one in typed if one.is_named]
    named: dict[str, UDF] = {}
    for one in typed:
        if given.count(one.name) > 1:
            raise click.UsageError(f"two UDFs are called {one.name!r}: give them different names")
        named[one.name if one.is_named else numbered(one.name, (*named, *given))] = one.udf
    return named


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


def _to_scale(text: str) -> tuple[Quantity, ...]:
    """Convert ``0.5nm,0.5nm,1mrad,1mrad`` to the size of a pixel along each dimension."""
    try:
        return tuple(
            size if isinstance(size := as_quantity("scale", part), Quantity) else Quantity(size, "")
            for part in text.split(",")
        )
    except UDFError as error:
        raise click.BadParameter(str(error)) from error


def _scaled(axes: Sequence[Axis], scale: Sequence[Quantity]) -> tuple[Axis, ...]:
    """Return axes with other sizes of a pixel, whose position 0 stays at its pixel."""
    if len(scale) != len(axes):
        raise click.UsageError(
            f"--scale needs the size of a pixel along {', '.join(axis.name for axis in axes)}, "
            f"{len(axes)} in all, but has {len(scale)}"
        )
    return tuple(
        Axis(
            name=axis.name,
            unit=size.unit or None,
            scale=size.value,
            offset=0.0 if axis.values else axis.offset / axis.scale * size.value,
        )
        for axis, size in zip(axes, scale, strict=True)
    )


def _to_shape(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(",")))  # click tells users of a ValueError


def to_chunks(text: str) -> Any:
    """Convert ``4,4,-1,auto`` to a tuple; ``auto`` and ``64MiB`` stay strings."""
    if text == "auto" or text.endswith("B"):
        return text
    return tuple(part if part == "auto" else int(part) for part in text.split(","))


def _to_storage_option(text: str) -> tuple[str, Any]:
    """Convert ``anon=true`` or ``client_kwargs={...}`` to a name and a value."""
    name, value = text.split("=", 1)
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


_OPENING = {
    "nav_shape": (_to_shape, "Y,X", "Shape of the scan, if the file does not say it."),
    "sig_shape": (_to_shape, "Y,X", "Shape of a raw file's frame."),
    "dtype": (str, "TYPE", "Type of the values of a raw file: uint16, or '>u2'."),
    "offset": (int, "BYTES", "Size of the header of a raw file."),
    "sync_offset": (int, "FRAMES", "Frames to skip at the start, or missing there if negative."),
    "sig_dims": (int, "N", "Dimensions of a frame: 2 for images, 1 for spectra."),
    "dataset": (str, "NAME", "Dataset to read: a path in the file, or a signal's number or title."),
    "chunks": (to_chunks, "CHUNKS", "Size for each dimension (4,4,-1,-1; -1 is all), or 64MiB."),
}
_PLANNING = {
    "roi": (to_region, "REGION", "Part of the scan: y0:y1,x0:x1, a position, or mask.npy."),
    "scale": (_to_scale, "SIZES", "Size of a pixel along each dimension: 1nm,1nm,2mrad,2mrad."),
    "voltage": (str, "VOLTAGE", "Acceleration voltage of the electrons: '300 kV'."),
    "merge_small": (str, "SIZE", "Join neighboring small chunks into tasks of this size: 64MiB."),
    "max_memory": (str, "SIZE", "Refuse a run that needs more memory in one process, such as 2GB."),
}
_MULTIPLE = (
    click.option(
        "--correct",
        is_flag=True,
        help="Correct the broken pixels and the gain of the detector that the file lists.",
    ),
    click.option(
        "--storage-option",
        type=_to_storage_option,
        metavar="NAME=VALUE",
        multiple=True,
        help="Option for the server of a URL, such as anon=true; VALUE can be JSON.",
    ),
    click.option(
        "--udf",
        "typed",
        type=to_udf,
        metavar="NAME[:PARAMETER=VALUE,...]",
        multiple=True,
        default=("sum", "sumsig"),
        help="UDF to run, such as com:cy=64,cx=64; by default sum and sumsig. Can be given several "
        "times; all UDFs share one pass. `udfdask udfs` lists them. A class in Python code is a "
        "UDF too: mine.py:Peak:r=5, or module:Class. A name of your own for the results goes in "
        "front: BF=disk:r=5.",
    ),
)


def with_data_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options above to a command, which gets them as one argument `data`."""

    @functools.wraps(command)
    def decorated(
        file: str, typed: Sequence[TypedUDF], storage_option: Any, correct: bool, **options: Any
    ) -> None:
        opening = {name: options.pop(name) for name in _OPENING}
        opening = {name: value for name, value in opening.items() if value is not None}
        if storage_option:
            opening["storage_options"] = dict(storage_option)
        planning = {name: options.pop(name) for name in _PLANNING}
        how: dict[str, Any] = {"planning": planning, "correct": correct}
        data = DataOptions(file=file, opening=opening, udfs=_by_name(typed), **how)
        command(data, **options)

    for name, (convert, metavar, text) in reversed((_PLANNING | _OPENING).items()):
        option = f"--{name.replace('_', '-')}"
        decorated = click.option(option, type=convert, metavar=metavar, help=text)(decorated)
    for add in (*_MULTIPLE, click.argument("file", type=not_empty)):
        decorated = add(decorated)
    return decorated
