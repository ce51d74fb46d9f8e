"""Read the part of a scan, the axes and the shifts after ``--roi``, ``--axes`` and ``--descan``."""

from __future__ import annotations

import math
import re
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from udfdask.errors import UDFError
from udfdask.geometry.axes import Axis
from udfdask.geometry.units import Quantity, read_quantity
from udfdask.io.damaged_files import existing_file, reading
from udfdask.io.numpy_file import read_npy
from udfdask.io.opened_file import OpenedFile

Index = tuple[int | slice, ...]
Mask = np.ndarray[Any, np.dtype[np.bool_]]


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


EXAMPLE = '"y=2 nm, x=2 nm, ky=0.4 mrad, kx=0.4 mrad"'
"""An option for a 4D-STEM scan, for messages."""


def to_axes(text: str) -> tuple[Axis, ...]:
    """Convert ``y=2nm,E=0.5eV@400``: for each dimension a name, the step, and the first value."""
    return tuple(_axis(part.strip()) for part in text.split(","))


def _axis(text: str) -> Axis:
    """Convert ``E=0.5eV@400``, or ``frame`` for an axis that is only numbered."""
    found = re.fullmatch(r"([^\W\d]\w*)(?:\s*=\s*([^@]+?)\s*(?:@\s*(.+))?)?", text)
    if found is None:
        raise _bad(text)
    name, step, start = found.groups()
    if step is None:
        return Axis(name=name)
    try:
        scale = read_quantity(step)
        offset = 0.0 if start is None else float(start)
        if not isinstance(scale, Quantity) or not (scale.value and math.isfinite(offset)):
            raise _bad(text)  # a number of pixels, or positions that are no numbers
        return Axis(name=name, unit=scale.unit, scale=scale.value, offset=offset)
    except (ValueError, UDFError):
        raise _bad(text) from None


def _bad(text: str) -> click.BadParameter:
    """Return the error about one axis."""
    return click.BadParameter(
        f"{text!r} is not an axis: write NAME=STEP with a unit, and @ with the first value if it "
        f"is not 0, such as E=0.5eV@400; for a whole scan {EXAMPLE}"
    )


def with_axes(opened: OpenedFile, axes: tuple[Axis, ...] | None) -> OpenedFile:
    """Return an opened file with the axes that were typed; raise UsageError if they do not fit."""
    if axes is None:
        return opened
    if len(axes) != opened.array.ndim:
        raise click.UsageError(
            f"--axes has {len(axes)} axes, but the data of shape {opened.array.shape} have "
            f"{opened.array.ndim}: write one for each dimension, such as {EXAMPLE}"
        )
    names = [axis.name for axis in axes]
    if len(set(names)) < len(names):
        raise click.UsageError(f"--axes has the same name twice: {', '.join(names)}")
    return replace(opened, axes=axes)


SHIFTS = "raw_shifts"
"""The buffer of a center of mass that centers frames."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftsFile:
    """A file with the shifts of frames, as typed; it is not read yet."""

    path: Path
    """An .npy or .npz file."""
    name: str | None
    """Name of an array in an .npz file; None for the only one, or that of `com`."""

    def read(self) -> np.ndarray[Any, Any]:
        """Return the shifts; raise BadParameter if they cannot be read."""
        try:
            if self.path.suffix == ".npy":
                return read_npy(self.path)
            path = existing_file(self.path)
            with reading(path, "an .npz file"), zipfile.ZipFile(path), np.load(path) as arrays:
                names = list(arrays.files)
            name = self._choose(names)
            with reading(path, "an .npz file", part=name), np.load(path) as arrays:
                found: np.ndarray[Any, Any] = arrays[name]
                return found
        except (OSError, UDFError) as error:
            raise self._bad(f"'{self.path}' cannot be read: {error}") from error

    def _choose(self, names: list[str]) -> str:
        """Return the name of the array with the shifts; raise BadParameter if it is not clear."""
        if self.name is not None:
            if self.name in names:
                return self.name
            raise self._bad(f"'{self.path}' has no array {self.name!r}, but {', '.join(names)}")
        shifts = [name for name in names if re.search(rf"(^|_){SHIFTS}$", name)] or names
        if len(shifts) == 1:
            return shifts[0]
        raise self._bad(
            f"'{self.path}' has the arrays {', '.join(shifts) or '(none)'}: write which one, as "
            f"{self.path.name}:NAME"
        )

    def _bad(self, text: str) -> click.BadParameter:
        """Return the error with a text."""
        return click.BadParameter(text, param_hint="'--descan'")


def to_shifts(text: str) -> ShiftsFile:
    """Convert ``shifts.npy``, ``found.npz`` or ``found.npz:com_raw_shifts``."""
    found = re.fullmatch(r"(.+?\.(?:npy|npz))(?::(\w+))?", text)
    if found is None or (found[2] is not None and found[1].endswith(".npy")):
        raise click.BadParameter(
            f"{text!r} is not a file of shifts: write the name of an .npy file, or of an .npz file "
            "such as that of an earlier run with --udf com --out found.npz"
        )
    return ShiftsFile(path=Path(found[1]), name=found[2])
