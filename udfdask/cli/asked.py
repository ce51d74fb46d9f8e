"""The options by which every command is told what to read and what to run on it."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from udfdask.cli.options import (
    ChunksType,
    DetectorType,
    Index,
    Mask,
    PathType,
    RegionType,
    ShapeType,
    region_mask,
)
from udfdask.cli.udf_option import AskedUDF, UDFType
from udfdask.io.opened_file import OpenedFile
from udfdask.udf import UDF
from udfdask.udfs import VirtualDetectorUDF

_OPTIONS = (
    click.argument("file", type=PathType()),
    click.option(
        "--udf",
        "udfs",
        type=UDFType(),
        multiple=True,
        default=("sum", "sumsig"),
        show_default="sum and sumsig",
        help="What to run, such as com:cy=64,cx=64; may be given several times, all run in one "
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
        "--sig-dims", type=int, help="Number of signal dimensions; by default the file's."
    ),
    click.option(
        "--roi", type=RegionType(), help="Part of the scan: y0:y1,x0:x1, a position, or mask.npy."
    ),
    click.option(
        "--chunks", type=ChunksType(), help="Chunks to read in: 4,4,-1,-1 or auto or 64MiB."
    ),
    click.option(
        "--dataset", help="Which dataset: a path in the file, or a signal's number or title."
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
    """What a user has asked for."""

    file: Path
    """The file to read."""
    udfs: Sequence[AskedUDF]
    """UDFs to run."""
    detectors: Sequence[VirtualDetectorUDF]
    """Virtual detectors to run in the same pass."""
    sig_dims: int | None
    """Number of signal dimensions; None for those of the file."""
    roi: Index | Mask | None
    """Part of the scan; None for all."""
    chunks: Any
    """Chunks to read in; None for those of the file."""
    dataset: str | None
    """Which dataset of the file."""
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
        """All that is to be run, by what it is called: the second disk is ``disk_2``."""
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
        """Return the mask of the region in the scan of an opened file, None for all of it."""
        nav_dims = opened.array.ndim - opened.sig_dims
        return None if self.roi is None else region_mask(self.roi, opened.array.shape[:nav_dims])

    def headline(self, opened: OpenedFile) -> str:
        """Return a line about the file."""
        array, sig = opened.array, opened.sig_dims
        nav = " x ".join(map(str, array.shape[: array.ndim - sig])) or "1"
        frame = " x ".join(map(str, array.shape[array.ndim - sig :]))
        return (
            f"{self.file.name}: {nav} positions of {frame} {array.dtype}, read by {opened.reader}\n"
        )


def takes_asked(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options above, as one argument `asked`."""
    names = [field.name for field in dataclasses.fields(Asked)]

    @functools.wraps(command)
    def with_asked(**options: Any) -> None:
        asked = Asked(**{name: options.pop(name) for name in names})
        command(asked, **options)

    decorated: Callable[..., None] = with_asked
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated
