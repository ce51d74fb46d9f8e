"""Write a computed result to a TIFF file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from udfdask.errors import missing_package
from udfdask.geometry.axes import Axis
from udfdask.io.named_variables import Variable, axes_of

_EXACT = 2**53
"""Integers up to this number are exact in float64."""

# tags of DigitalMicrograph for the last axis, the axis before it, and the axis of a stack
_UNITS, _OFFSETS, _SCALES = (65003, 65004, 65005), (65006, 65007, 65008), (65009, 65010, 65011)


def write_tiff(
    path: Path, variables: Mapping[str, Variable], axes: Sequence[Axis], attrs: Mapping[str, str]
) -> None:
    """Write a result to a TIFF file; `axes` are those of the data.

    A result of two dimensions is an image, and one of three dimensions is a stack of images. Axes
    are written for ImageJ, DigitalMicrograph and HyperSpy. Image programs do not read integers of
    64 bits, so these are written as float64, if no value changes.
    """
    tifffile = check_tifffile()
    (variable,) = (each for each in variables.values() if not each.mask_of)
    values = _readable(variable.values)
    own = list(axes_of(variable, axes))
    # an image has one scale: positions that are not evenly spaced are counted
    own = [axis if axis.values is None else Axis(name=axis.name) for axis in own]
    if values.ndim == 3 and len(variable.extra_axes) == 1:
        values, own = np.moveaxis(values, -1, 0), [own[-1], *own[:-1]]  # a stack of images
    tifffile.imwrite(
        path,
        np.ascontiguousarray(values),
        photometric="minisblack",
        software="udfdask",
        metadata=None,  # would be a second description, in place of that for ImageJ
        description=_imagej_description(own, values.shape),
        extratags=_digital_micrograph_tags(own),
        **_resolution(own),
    )


def check_tifffile() -> Any:
    """Return the package tifffile; raise if it is not installed."""
    try:
        import tifffile
    except ImportError as error:
        raise missing_package("tifffile", purpose="writing a TIFF file") from error
    return tifffile


def tiff_obstacle(variables: Mapping[str, Variable]) -> str:
    """Return why a TIFF file cannot hold these results; empty if it can."""
    if len(variables) != 1:
        names = ", ".join(variables) or "none"
        return f"a TIFF file holds one result, but there are {len(variables)}: {names}"
    ((name, variable),) = variables.items()
    if variable.values.dtype.kind not in "biuf":
        return f"{name} contains {variable.values.dtype} values, and a pixel is a real number"
    if variable.values.ndim not in (2, 3):
        return (
            f"an image has two dimensions, a stack of images three, and {name} has "
            f"{variable.values.ndim}"
        )
    return "" if variable.values.size else f"{name} is empty"


def _readable(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return values in a type that image programs read, if it holds them."""
    if values.dtype == np.bool_:
        return values.astype(np.uint8)
    if values.dtype == np.float16:
        return values.astype(np.float32)
    if values.dtype.kind in "iu" and values.dtype.itemsize == 8:
        low, high = int(values.min()), int(values.max())
        return values.astype(np.float64) if -_EXACT <= low <= high <= _EXACT else values
    return values


def _imagej_description(axes: Sequence[Axis], shape: Sequence[int]) -> str:
    """Return the description with which ImageJ knows the unit and the images of a stack."""
    unit = axes[-1].unit or "pixel"
    for letter, word in (("µ", "u"), ("\u03bc", "u"), ("Å", "A"), ("\u212b", "A")):
        unit = unit.replace(letter, word)
    lines = ["ImageJ=1.11a", f"unit={unit.encode('ascii', 'replace').decode()}"]
    if len(shape) == 3:
        lines += [f"images={shape[0]}", f"slices={shape[0]}", f"spacing={axes[0].scale}"]
    return "\n".join([*lines, ""])


def _digital_micrograph_tags(axes: Sequence[Axis]) -> list[tuple[int, str, int, Any, bool]]:
    """Return tags with the unit, offset and scale of each axis."""
    tags: list[tuple[int, str, int, Any, bool]] = []
    for axis, unit, offset, scale in zip(reversed(axes), _UNITS, _OFFSETS, _SCALES, strict=False):
        tags += [
            (unit, "s", 1, (axis.unit or "").encode("latin-1", "replace"), False),
            (offset, "d", 1, float(axis.offset), False),
            (scale, "d", 1, float(axis.scale), False),
        ]
    return tags


def _resolution(axes: Sequence[Axis]) -> dict[str, Any]:
    """Return pixels per unit along x and y, if a TIFF file can hold these numbers."""
    pixels = [1 / axis.scale if axis.scale else 0.0 for axis in (axes[-1], axes[-2])]
    if not all(1e-9 < number < 1e9 for number in pixels):
        return {}
    return {"resolution": tuple(pixels), "resolutionunit": "NONE"}
