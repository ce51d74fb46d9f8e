"""The options that a user has typed, and the UDFs and arrays that they describe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import click

from udfdask.cli.data_options import Index, Mask, ShiftsFile, read_mask, region_mask, with_axes
from udfdask.cli.udf_option import TypedUDF, to_udf
from udfdask.descan import Descan
from udfdask.errors import without_secrets
from udfdask.geometry.axes import Axis
from udfdask.io.opened_file import OpenedFile
from udfdask.io.opening import open_file
from udfdask.io.remote_location import REFERENCES
from udfdask.udf import UDF

_ONE_ARRAY = (".npy", ".toml")
"""Suffixes of files that hold one array."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOptions:
    """The options that a user has typed."""

    file: Path | str
    """The file to read, or its URL."""
    udfs: Sequence[TypedUDF]
    """UDFs to run."""
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
    axes: tuple[Axis, ...] | None
    """One axis for each dimension; None for those of the file."""
    sync_offset: int | None
    """Number of the frame at the first position; None if each position has one."""
    merge_small: str | None
    """Size from which chunks are not joined; None to join none."""
    max_memory: str | None
    """Memory that one process may need; None for any."""

    def open(self) -> OpenedFile:
        """Return the opened file, with the axes of the options."""
        names = "dataset nav_shape sig_shape dtype offset sync_offset sig_dims chunks".split()
        options: dict[str, Any] = {name: getattr(self, name) for name in names}
        options["storage_options"] = dict(self.storage_options)
        return with_axes(open_file(self.file, **options), self.axes)

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
        udfs = {name: each.make() for name, each in self._by_name().items()}
        roi = read_mask(self.roi) if isinstance(self.roi, Path) else self.roi
        descan = None
        if self.descan is not None:
            descan = Descan(self.descan.read(), subpixel=self.descan_subpixel)
        return Inputs(udfs=udfs, roi=roi, descan=descan)

    def _by_name(self) -> dict[str, TypedUDF]:
        """Return all UDFs by the names of their results, in the order in which they were typed."""
        order = self.udfs or [to_udf(name) for name in ("sum", "sumsig")]
        given = [typed.name for typed in order if typed.is_named]
        for name in given:
            if given.count(name) > 1:
                raise click.UsageError(f"two UDFs are called {name!r}: give them different names")
        named: dict[str, TypedUDF] = {}
        for typed in order:
            name, n = typed.name, 1
            while not typed.is_named and name in (*named, *given):
                n += 1
                name = f"{typed.name}_{n}"
            named[name] = typed
        return named

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
    """UDFs to run by the names of their results: a second ``sum`` without a name is ``sum_2``."""
    roi: Index | Mask | None
    """Part of the scan; None for all."""
    descan: Descan | None
    """Shifts of the frames; None to leave them where they are."""

    def region(self, opened: OpenedFile) -> Mask | None:
        """Return the region as a mask for the scan of an opened file; None for the whole scan."""
        nav_dims = opened.array.ndim - opened.sig_dims
        return None if self.roi is None else region_mask(self.roi, opened.array.shape[:nav_dims])
