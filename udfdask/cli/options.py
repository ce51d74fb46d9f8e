"""Define the options of the commands, and convert their texts to values."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from udfdask.cli.udf_option import AskedUDF, UDFType
from udfdask.errors import UDFError
from udfdask.io.numpy_file import read_npy
from udfdask.io.opened_file import OpenedFile
from udfdask.udf import UDF
from udfdask.udfs import VirtualDetectorUDF

Index = tuple[int | slice, ...]
Mask = np.ndarray[Any, np.dtype[np.bool_]]


class PathType(click.ParamType[Path]):
    """The name of a file or folder."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Convert a name to a path; refuse an empty name, which would be the current folder."""
        if value == "":
            self.fail("'' is not a file name: is a shell variable empty?", param, ctx)
        return Path(value)


class ShapeType(click.ParamType[tuple[int, ...]]):
    """A shape: ``256,256``."""

    name = "shape"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """Convert ``256,256`` to a tuple of ints."""
        if isinstance(value, tuple):
            return value
        try:
            sizes = tuple(int(part) for part in value.split(","))
        except ValueError:
            sizes = ()
        if not sizes or min(sizes) < 1:
            self.fail(f"{value!r} is not a shape: write positive sizes such as 256,256", param, ctx)
        return sizes


class ChunksType(click.ParamType[Any]):
    """Chunks: ``auto``, ``64MiB``, or one size per dimension, -1 for the whole dimension."""

    name = "chunks"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Convert ``4,4,-1,auto`` to the form that dask accepts."""
        if not isinstance(value, str):
            return value
        parts = [part.strip() for part in value.split(",")]
        try:
            sizes = tuple(part if part == "auto" else int(part) for part in parts)
        except ValueError:
            if re.fullmatch(r"\d+(\.\d+)? *[kMGT]?i?B", value, re.IGNORECASE):
                return value
            self.fail(
                f"{value!r} are not chunks: write one size per dimension such as 4,4,-1,-1 "
                "(-1 is the whole dimension), or auto, or 64MiB",
                param,
                ctx,
            )
        if any(isinstance(size, int) and size != -1 and size < 1 for size in sizes):
            self.fail(
                f"{value!r} are not chunks: a size is positive, or -1 for the whole dimension",
                param,
                ctx,
            )
        return sizes[0] if len(sizes) == 1 else sizes


class RegionType(click.ParamType[Index | Mask]):
    """A region of the scan: ``y0:y1,x0:x1`` like slices in Python, or a mask in an .npy file."""

    name = "region"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Index | Mask:
        """Convert ``0:10,3`` to slices and ints, and ``mask.npy`` to a mask."""
        if not isinstance(value, str):
            return value  # type: ignore[no-any-return]  # already converted
        if value.endswith(".npy"):
            return self._mask(value, param, ctx)
        try:
            return tuple(_one_index(part) for part in value.split(","))
        except ValueError:
            self.fail(
                f"{value!r} is not a region: write a slice or a position for each navigation axis, "
                "such as 0:10,5:20 or 3,:, or the name of an .npy file with a boolean mask",
                param,
                ctx,
            )

    def _mask(self, name: str, param: click.Parameter | None, ctx: click.Context | None) -> Mask:
        """Return the mask in a file."""
        try:
            mask = read_npy(name)
        except (OSError, UDFError) as error:
            self.fail(f"{name!r} cannot be read: {error}", param, ctx)
        if mask.dtype != np.bool_:
            self.fail(f"{name!r} contains {mask.dtype}, but a mask must be boolean", param, ctx)
        return mask


class DetectorType(click.ParamType[VirtualDetectorUDF]):
    """A virtual detector: ``ring,ri=10,ro=20``."""

    name = "detector"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> VirtualDetectorUDF:
        """Convert ``disk,r=5`` to a UDF."""
        if isinstance(value, VirtualDetectorUDF):
            return value
        shape, *settings = (part.strip() for part in value.split(","))
        try:
            numbers = {}
            for setting in settings:
                name, _, number = setting.partition("=")
                numbers[name.strip()] = float(number)
        except ValueError:
            self.fail(
                f"{value!r} is not a detector: write a shape and its numbers in pixels, such as "
                "disk,r=5 or ring,cx=64,cy=60,ri=10,ro=20",
                param,
                ctx,
            )
        try:
            return VirtualDetectorUDF(shape, **numbers)
        except UDFError as error:
            self.fail(str(error), param, ctx)
        except TypeError:
            self.fail(f"{value!r} is not a detector: one of its numbers is unknown", param, ctx)


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
    click.argument("file", type=PathType()),
    click.option(
        "--udf",
        "udfs",
        type=UDFType(),
        multiple=True,
        default=("sum", "sumsig"),
        show_default="sum and sumsig",
        help="UDF to run, such as com:cy=64,cx=64. Can be given several times; all UDFs share one "
        "pass. `udfdask udfs` lists them.",
    ),
    click.option(
        "--detector",
        "detectors",
        type=DetectorType(),
        multiple=True,
        help="A virtual detector in the same pass: disk,r=5 or ring,cx=64,cy=60,ri=10,ro=20 in "
        "pixels.",
    ),
    click.option(
        "--sig-dims", type=int, help="Number of signal dimensions; by default as in the file."
    ),
    click.option(
        "--roi", type=RegionType(), help="Part of the scan: y0:y1,x0:x1, a position, or mask.npy."
    ),
    click.option(
        "--chunks", type=ChunksType(), help="Chunks for reading: 4,4,-1,-1 or auto or 64MiB."
    ),
    click.option(
        "--dataset", help="Dataset to read: a path in the file, or a signal's number or title."
    ),
    click.option("--nav-shape", type=ShapeType(), help="Scan positions of a raw file: 256,256."),
    click.option("--sig-shape", type=ShapeType(), help="Detector pixels of a raw file: 128,128."),
    click.option("--dtype", help="Type of the values in a raw file: uint16, >u2."),
    click.option(
        "--offset",
        type=click.IntRange(min=0),
        default=0,
        help="Bytes before the frames of a raw file.",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The options that a user has typed."""

    file: Path
    """The file to read."""
    udfs: Sequence[AskedUDF]
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
    nav_shape: tuple[int, ...] | None
    """Scan positions of a raw file."""
    sig_shape: tuple[int, ...] | None
    """Detector pixels of a raw file."""
    dtype: str | None
    """Type of the values in a raw file."""
    offset: int
    """Bytes before the frames of a raw file."""

    @property
    def opening(self) -> dict[str, Any]:
        """Arguments for `open_file`."""
        names = ("dataset", "nav_shape", "sig_shape", "dtype", "offset", "sig_dims", "chunks")
        return {name: getattr(self, name) for name in names}

    @property
    def named_udfs(self) -> dict[str, UDF]:
        """All UDFs to run, by name: a second disk is called ``disk_2``."""
        once = {asked.text: asked for asked in self.udfs}
        pairs: list[tuple[str, UDF]] = [(asked.name, asked.udf) for asked in once.values()]
        pairs += [(str(detector.params.shape), detector) for detector in self.detectors]
        named: dict[str, UDF] = {}
        for plain, udf in pairs:
            name, n = plain, 1
            while name in named:
                n += 1
                name = f"{plain}_{n}"
            named[name] = udf
        return named

    def region(self, opened: OpenedFile) -> Any:
        """Return the region as a mask for the scan of an opened file; None for the whole scan."""
        nav_dims = opened.array.ndim - opened.sig_dims
        return None if self.roi is None else region_mask(self.roi, opened.array.shape[:nav_dims])

    def headline(self, opened: OpenedFile) -> str:
        """Return one line that describes the file."""
        array, sig = opened.array, opened.sig_dims
        nav = " x ".join(map(str, array.shape[: array.ndim - sig])) or "1"
        frame = " x ".join(map(str, array.shape[array.ndim - sig :]))
        return (
            f"{self.file.name}: {nav} positions of {frame} {array.dtype}, read by {opened.reader}\n"
        )


def takes_asked(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options above to a command, which gets them as one argument `asked`."""
    names = [field.name for field in dataclasses.fields(Asked)]

    @functools.wraps(command)
    def with_asked(**options: Any) -> None:
        asked = Asked(**{name: options.pop(name) for name in names})
        command(asked, **options)

    decorated: Callable[..., None] = with_asked
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated
