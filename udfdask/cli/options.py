"""Define the options of the commands, and convert their texts to values."""

from __future__ import annotations

import dataclasses
import functools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import click
import numpy as np

from udfdask.cli.descan_option import ShiftsFile, to_shifts
from udfdask.cli.udf_option import TypedUDF, to_detector, to_udf
from udfdask.descan import Descan
from udfdask.errors import UDFError
from udfdask.io.numpy_file import read_npy
from udfdask.io.opened_file import OpenedFile
from udfdask.io.remote_errors import without_secrets
from udfdask.io.remote_references import SUFFIXES as REFERENCES
from udfdask.plan.parse_size import parse_size
from udfdask.scheduling.time_limit.deadline import check_timeout
from udfdask.udf import UDF

_ORDER = "udfdask.typed"

_ONE_ARRAY = (".npy", ".toml")
"""Suffixes of files that hold one array."""

Index = tuple[int | slice, ...]
Mask = np.ndarray[Any, np.dtype[np.bool_]]


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


def to_timeout(text: str) -> str:
    """Check ``10 min``, ``90 s`` or a number of seconds."""
    try:
        check_timeout(text)
    except UDFError as error:
        raise click.BadParameter(str(error)) from None
    return text


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
        np.dtype(text)
    except (TypeError, ValueError, SyntaxError):
        text = ""
    if not text:
        raise click.BadParameter("write a type of NumPy, such as uint16, float32 or >u2")
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


def to_region(text: str) -> Index | Path:
    """Convert ``0:10,3`` to slices and ints, and ``mask.npy`` to the path of that file."""
    if text.endswith(".npy"):
        return Path(text)
    try:
        return tuple(_one_index(part) for part in text.split(","))
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is not a region: write a slice or a position for each navigation axis, "
            "such as 0:10,5:20 or 3,:, or the name of an .npy file with a boolean mask"
        ) from None


def read_mask(path: Path) -> Mask:
    """Return the mask in a file; raise BadParameter if there is none."""
    hint = "'--roi'"
    try:
        mask = read_npy(path)
    except (OSError, UDFError) as error:
        text = f"'{path}' cannot be read: {error}"
        raise click.BadParameter(text, param_hint=hint) from error
    if mask.dtype != np.bool_:
        text = f"'{path}' contains {mask.dtype}, but a mask must be boolean"
        raise click.BadParameter(text, param_hint=hint)
    return mask


def _one_index(text: str) -> int | slice:
    """Convert ``3`` to an int and ``start:stop:step`` to a slice; otherwise raise ValueError."""
    parts = text.strip().split(":")
    if len(parts) == 1:
        return int(parts[0])
    if len(parts) > 3:
        raise ValueError(text)
    bounds = [int(part) if part.strip() else None for part in parts]
    if len(bounds) == 3 and bounds[2] == 0:
        raise ValueError(text)
    return slice(*bounds)


def region_mask(region: Index | Mask, nav_shape: tuple[int, ...]) -> Mask:
    """Return a region as a mask of shape `nav_shape`; raise UsageError if it does not fit."""
    mask = region if isinstance(region, np.ndarray) else _indexed(region, nav_shape)
    if mask.shape != nav_shape:
        raise click.UsageError(
            f"--roi is a mask of shape {mask.shape}, but the scan has the shape {nav_shape}"
        )
    if not mask.any():
        raise click.UsageError(f"--roi selects no position of the scan of shape {nav_shape}")
    return mask


def _indexed(region: Index, nav_shape: tuple[int, ...]) -> Mask:
    """Return slices and positions as a mask of `nav_shape`; raise UsageError if they do not fit."""
    if len(region) > len(nav_shape):
        raise click.UsageError(
            f"--roi has {len(region)} parts, but the scan has the shape {nav_shape}: "
            "write one part for each navigation axis"
        )
    mask = np.zeros(nav_shape, np.bool_)
    try:
        mask[region] = True
    except IndexError as error:
        raise click.UsageError(f"--roi is outside the scan of shape {nav_shape}: {error}") from None
    return mask


_OPTIONS = (
    click.argument("file", type=to_source),
    click.option(
        "--udf",
        "udfs",
        type=to_udf,
        metavar="NAME[:PARAMETER=VALUE,...]",
        multiple=True,
        show_default="sum and sumsig, if there is no --detector",
        help="UDF to run, such as com:cy=64,cx=64. Can be given several times; all UDFs share one "
        "pass. `udfdask udfs` lists them. A class in Python code is a UDF too: mine.py:Peak:r=5, "
        "or module:Class.",
    ),
    click.option(
        "--detector",
        "detectors",
        type=to_detector,
        metavar="DETECTOR",
        multiple=True,
        help="A virtual detector in the same pass: disk,r=5 or ring,cx=64,cy=60,ri=10,ro=20.",
    ),
    click.option(
        "--sig-dims",
        type=click.IntRange(min=1),
        help="Number of signal dimensions; by default as in the file.",
    ),
    click.option(
        "--roi",
        type=to_region,
        metavar="REGION",
        help="Part of the scan: y0:y1,x0:x1, a position, or mask.npy.",
    ),
    click.option(
        "--descan",
        type=to_shifts,
        metavar="FILE[:NAME]",
        help="Shift frames back before all UDFs: an .npy file of shape (*nav, 2) in pixels, or the "
        ".npz file of an earlier run of com.",
    ),
    click.option(
        "--descan-subpixel",
        is_flag=True,
        help="Shift frames by parts of a pixel, with linear interpolation; by default, shifts are "
        "rounded.",
    ),
    click.option(
        "--chunks",
        type=to_chunks,
        metavar="CHUNKS",
        help="Chunks for reading: 4,4,-1,-1 or auto or 64MiB.",
    ),
    click.option(
        "--dataset", help="Dataset to read: a path in the file, or a signal's number or title."
    ),
    click.option(
        "--storage-option",
        "storage_options",
        type=to_storage_option,
        metavar="NAME=VALUE",
        multiple=True,
        help="Option for the server of a URL, such as anon=true. Can be given several times; a "
        "VALUE that is JSON is read as such.",
    ),
    click.option(
        "--nav-shape", type=to_shape, metavar="SHAPE", help="Scan positions of a raw file: 256,256."
    ),
    click.option(
        "--sig-shape",
        type=to_shape,
        metavar="SHAPE",
        help="Detector pixels of a raw file: 128,128.",
    ),
    click.option(
        "--dtype",
        type=to_dtype,
        metavar="TYPE",
        help="Type of the values in a raw file: uint16, >u2.",
    ),
    click.option(
        "--offset",
        type=click.IntRange(min=0),
        default=0,
        help="Bytes before the frames of a raw file.",
    ),
    click.option(
        "--sync-offset",
        type=int,
        metavar="FRAMES",
        help="Frames to skip at the start of the file; if negative, positions without a frame "
        "there. The scan of --nav-shape may then have fewer or more positions than frames.",
    ),
    click.option(
        "--merge-small",
        type=to_size("--merge-small", "64 MiB"),
        metavar="SIZE",
        help="Join neighboring small chunks into tasks of at least this size, such as 64MiB.",
    ),
    click.option(
        "--max-memory",
        type=to_size("--max-memory", "2 GB"),
        metavar="SIZE",
        help="Memory of one process, such as 2GB. A run that needs more is refused before it "
        "starts, and the message says what would fit.",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOptions:
    """The options that a user has typed."""

    file: Path | str
    """The file to read, or its URL."""
    udfs: Sequence[TypedUDF]
    """UDFs to run."""
    detectors: Sequence[TypedUDF]
    """Virtual detectors to run in the same pass."""
    sig_dims: int | None
    """Number of signal dimensions; None to use the file's."""
    roi: Index | Path | None
    """Part of the scan, or the file of a mask; None for all."""
    descan: ShiftsFile | None
    """The file with the shifts of the frames; None to leave frames where they are."""
    descan_subpixel: bool
    """Whether frames are shifted by parts of a pixel."""
    chunks: Any
    """Chunks for reading; None to use the file's."""
    dataset: str | None
    """Dataset of the file."""
    storage_options: Sequence[tuple[str, Any]]
    """Names and values of options for the server of a URL."""
    nav_shape: tuple[int, ...] | None
    """Scan positions of a raw file."""
    sig_shape: tuple[int, ...] | None
    """Detector pixels of a raw file."""
    dtype: str | None
    """Type of the values in a raw file."""
    offset: int
    """Bytes before the frames of a raw file."""
    sync_offset: int | None
    """Number of the frame at the first position; None if each position has one."""
    merge_small: str | None
    """Size from which chunks are not joined; None to join none."""
    max_memory: str | None
    """Memory that one process may need; None for any."""
    typed: Sequence[str]
    """The names "udfs" and "detectors" in the order in which these options were typed."""

    @property
    def opening(self) -> dict[str, Any]:
        """Arguments for `open_file`."""
        names = "dataset nav_shape sig_shape dtype offset sync_offset sig_dims chunks".split()
        options = {name: getattr(self, name) for name in names}
        return {**options, "storage_options": dict(self.storage_options)}

    @property
    def sources(self) -> tuple[str, ...]:
        """The input files, which no output replaces."""
        shifts = () if self.descan is None else (str(self.descan.path),)
        return (str(self.file), *shifts)

    @property
    def planning(self) -> dict[str, Any]:
        """Arguments for `run_udf`."""
        return {"max_memory": self.max_memory, "merge_small": self.merge_small}

    def check(self) -> None:
        """Raise UsageError if the options do not describe a file. This reads nothing."""
        self._check_raw()
        is_raw, suffix = self.dtype is not None, PurePath(self._name).suffix.lower()
        if self.dataset is not None and (is_raw or suffix in _ONE_ARRAY):
            kind = "a raw file" if is_raw else f"a {suffix} file"
            raise click.UsageError(f"{kind} holds one array and no datasets: leave out --dataset")
        if self.storage_options and isinstance(self.file, Path) and suffix not in REFERENCES:
            raise click.UsageError(
                f"--storage-option is for a URL, but {self._name} is a file on this machine: "
                "leave it out"
            )

    def _check_raw(self) -> None:
        """Raise UsageError if only a part of the description of a raw file was typed."""
        raw = {
            "--nav-shape": self.nav_shape,
            "--sig-shape": self.sig_shape,
            "--dtype": self.dtype,
        }
        missing = [name for name, value in raw.items() if value is None]
        only_nav = self.sig_shape is None and self.dtype is None and not self.offset
        if self.sync_offset is not None and only_nav:
            return  # --nav-shape is the scan of any file then
        if missing and (len(missing) < len(raw) or self.offset):
            raise click.UsageError(
                "a raw file needs --nav-shape, --sig-shape and --dtype, but "
                f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing. For any "
                "other file, leave out these options and --offset"
            )

    def read_files(self) -> Inputs:
        """Return the UDFs, the region and the shifts. This reads the files that options name."""
        if self.descan_subpixel and self.descan is None:
            raise click.UsageError("--descan-subpixel needs --descan with the file of the shifts")
        udfs: dict[str, UDF] = {}
        for typed in self._in_order():
            name, n = typed.name, 1
            while name in udfs:
                n += 1
                name = f"{typed.name}_{n}"
            udfs[name] = typed.make()
        roi = read_mask(self.roi) if isinstance(self.roi, Path) else self.roi
        descan = None
        if self.descan is not None:
            descan = Descan(self.descan.read(), subpixel=self.descan_subpixel)
        return Inputs(udfs=udfs, roi=roi, descan=descan)

    def _in_order(self) -> list[TypedUDF]:
        """Return all UDFs in the order in which they were typed."""
        if not self.udfs and not self.detectors:
            return [to_udf(name) for name in ("sum", "sumsig")]
        by_option = {"udfs": iter(self.udfs), "detectors": iter(self.detectors)}
        return [next(by_option[name]) for name in self.typed]

    @property
    def _name(self) -> str:
        """The name of the file, or the URL without passwords."""
        return self.file.name if isinstance(self.file, Path) else without_secrets(self.file)

    def headline(self, opened: OpenedFile) -> str:
        """Return one line that describes the file."""
        array, sig = opened.array, opened.sig_dims
        nav = " x ".join(map(str, array.shape[: array.ndim - sig])) or "1"
        frame = " x ".join(map(str, array.shape[array.ndim - sig :]))
        return f"{self._name}: {nav} positions of {frame} {array.dtype}, read by {opened.reader}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """What the options say, after the files that they name have been read."""

    udfs: Mapping[str, UDF]
    """UDFs to run by the names of their results: a second ``sum`` is called ``sum_2``."""
    roi: Index | Mask | None
    """Part of the scan; None for all."""
    descan: Descan | None
    """Shifts of the frames; None to leave them where they are."""

    def region(self, opened: OpenedFile) -> Mask | None:
        """Return the region as a mask for the scan of an opened file; None for the whole scan."""
        nav_dims = opened.array.ndim - opened.sig_dims
        return None if self.roi is None else region_mask(self.roi, opened.array.shape[:nav_dims])


class RunCommand(click.Command):
    """A command that knows in which order the options for UDFs were typed."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, and remember the order."""
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        ctx.meta[_ORDER] = [p.name for p in order if p.name in ("udfs", "detectors")]
        return super().parse_args(ctx, args)


def with_common_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options above to a `RunCommand`, which gets them as one argument `common`."""
    names = [field.name for field in dataclasses.fields(CommandOptions) if field.name != "typed"]

    @functools.wraps(command)
    def with_one_argument(**options: Any) -> None:
        values = {name: options.pop(name) for name in names}
        typed = click.get_current_context().meta[_ORDER]
        command(CommandOptions(**values, typed=typed), **options)

    decorated: Callable[..., None] = with_one_argument
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated
