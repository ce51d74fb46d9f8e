"""Read the part of a scan after ``--roi``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from udfdask.errors import UDFError
from udfdask.io.numpy_file import read_npy

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
