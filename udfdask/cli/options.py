"""Define the options of the commands, and convert their texts to values."""

from __future__ import annotations

import dataclasses
import functools
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from udfdask.cli.udf_option import NamedUDF, to_udf
from udfdask.errors import UDFError
from udfdask.io.numpy_file import read_npy
from udfdask.io.opened_file import OpenedFile
from udfdask.io.remote_errors import without_secrets
from udfdask.plan.parse_size import parse_size
from udfdask.scheduling.time_limit.deadline import check_timeout
from udfdask.udf import UDF
from udfdask.udfs import VirtualDetectorUDF

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


def to_size(text: str) -> str:
    """Check ``2 GB`` or a number of bytes."""
    try:
        parse_size(text, "--max-memory", "2 GB")
    except UDFError as error:
        raise click.BadParameter(str(error)) from None
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


def to_region(text: str) -> Index | Mask:
    """Convert ``0:10,3`` to slices and ints, and ``mask.npy`` to the mask in that file."""
    if text.endswith(".npy"):
        try:
            mask = read_npy(text)
        except (OSError, UDFError) as error:
            raise click.BadParameter(f"{text!r} cannot be read: {error}") from error
        if mask.dtype != np.bool_:
            raise click.BadParameter(f"{text!r} contains {mask.dtype}, but a mask must be boolean")
        return mask
    try:
        return tuple(_one_index(part) for part in text.split(","))
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is not a region: write a slice or a position for each navigation axis, "
            "such as 0:10,5:20 or 3,:, or the name of an .npy file with a boolean mask"
        ) from None


def to_detector(text: str) -> VirtualDetectorUDF:
    """Convert ``ring,ri=10,ro=20`` to a virtual detector."""
    shape: Any  # the UDF checks it
    shape, *settings = (part.strip() for part in text.split(","))
    try:
        pairs = (setting.partition("=") for setting in settings)
        numbers = {name.strip(): float(number) for name, _, number in pairs}
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is not a detector: write a shape and its numbers in pixels, such as "
            "disk,r=5 or ring,cx=64,cy=60,ri=10,ro=20"
        ) from None
    try:
        return VirtualDetectorUDF(shape, **numbers)
    except UDFError as error:
        raise click.BadParameter(str(error)) from error
    except TypeError:
        raise click.BadParameter(
            f"{text!r} is not a detector: one of its numbers is unknown"
        ) from None


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
        default=("sum", "sumsig"),
        show_default="sum and sumsig",
        help="UDF to run, such as com:cy=64,cx=64. Can be given several times; all UDFs share one "
        "pass. `udfdask udfs` lists them.",
    ),
    click.option(
        "--detector",
        "detectors",
        type=to_detector,
        metavar="DETECTOR",
        multiple=True,
        help="A virtual detector in the same pass: disk,r=5 or ring,cx=64,cy=60,ri=10,ro=20 in "
        "pixels.",
    ),
    click.option(
        "--sig-dims", type=int, help="Number of signal dimensions; by default as in the file."
    ),
    click.option(
        "--roi",
        type=to_region,
        metavar="REGION",
        help="Part of the scan: y0:y1,x0:x1, a position, or mask.npy.",
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
    click.option("--dtype", help="Type of the values in a raw file: uint16, >u2."),
    click.option(
        "--offset",
        type=click.IntRange(min=0),
        default=0,
        help="Bytes before the frames of a raw file.",
    ),
    click.option(
        "--max-memory",
        type=to_size,
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
    udfs: Sequence[NamedUDF]
    """UDFs to run."""
    detectors: Sequence[VirtualDetectorUDF]
    """Virtual detectors to run in the same pass."""
    sig_dims: int | None
    """Number of signal dimensions; None to use the file's."""
    roi: Index | Mask | None
    """Part of the scan; None for all."""
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
    max_memory: str | None
    """Memory that one process may need; None for any."""

    @property
    def opening(self) -> dict[str, Any]:
        """Arguments for `open_file`."""
        names = ("dataset", "nav_shape", "sig_shape", "dtype", "offset", "sig_dims", "chunks")
        options = {name: getattr(self, name) for name in names}
        return {**options, "storage_options": dict(self.storage_options)}

    @property
    def named_udfs(self) -> dict[str, UDF]:
        """All UDFs to run, by name: a second disk is called ``disk_2``."""
        once = {named.text: named for named in self.udfs}
        pairs: list[tuple[str, UDF]] = [(named.name, named.udf) for named in once.values()]
        pairs += [(str(detector.params.shape), detector) for detector in self.detectors]
        by_name: dict[str, UDF] = {}
        for plain, udf in pairs:
            name, n = plain, 1
            while name in by_name:
                n += 1
                name = f"{plain}_{n}"
            by_name[name] = udf
        return by_name

    def region(self, opened: OpenedFile) -> Any:
        """Return the region as a mask for the scan of an opened file; None for the whole scan."""
        nav_dims = opened.array.ndim - opened.sig_dims
        return None if self.roi is None else region_mask(self.roi, opened.array.shape[:nav_dims])

    @property
    def _name(self) -> str:
        """The name of the file, or the URL without passwords."""
        return self.file.name if isinstance(self.file, Path) else without_secrets(self.file)

    def headline(self, opened: OpenedFile) -> str:
        """Return one line that describes the file."""
        array, sig = opened.array, opened.sig_dims
        nav = " x ".join(map(str, array.shape[: array.ndim - sig])) or "1"
        frame = " x ".join(map(str, array.shape[array.ndim - sig :]))
        return f"{self._name}: {nav} positions of {frame} {array.dtype}, read by {opened.reader}\n"


def with_common_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options above to a command, which gets them as one argument `common`."""
    names = [field.name for field in dataclasses.fields(CommandOptions)]

    @functools.wraps(command)
    def with_one_argument(**options: Any) -> None:
        given = CommandOptions(**{name: options.pop(name) for name in names})
        command(given, **options)

    decorated: Callable[..., None] = with_one_argument
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated
