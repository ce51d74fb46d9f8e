"""Read the axes after ``--axes``, for files that do not describe theirs."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import click

from udfdask.errors import UDFError
from udfdask.geometry.axes import Axis
from udfdask.geometry.units import Quantity, read_quantity
from udfdask.io.opened_file import OpenedFile

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
