"""What opening a file gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np

from udfdask.arrays.geometry.axes import Axis, default_axis_names
from udfdask.errors import ArgumentValueError


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedFile:
    """A file that has been opened lazily.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from udfdask.io import open_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "scan.npy"
    ...     np.save(path, np.ones((3, 4, 8, 8), np.uint8))
    ...     opened = open_file(path)
    >>> opened.array.shape, opened.sig_dims, opened.reader
    ((3, 4, 8, 8), 2, 'NumPy')
    >>> [axis.name for axis in opened.axes]
    ['y', 'x', 'sig_y', 'sig_x']
    """

    array: da.Array
    """The data, shape (*nav, *sig)."""
    sig_dims: int
    """Number of trailing dimensions that are the signal: 2 for detector frames, 1 for spectra."""
    reader: str
    """What read the file, in words."""
    title: str
    """The recording's title as the file gives it, otherwise the file's name."""
    axes: tuple[Axis, ...]
    """One axis per dimension of `array`; one that the file says nothing about counts pixels."""


def choose_sig_dims(asked: int | None, ndim: int, *, known: int = 0) -> int:
    """Take what the user asks for, the array's dimensions, and what the file says, 0 if nothing.

    Return how many dimensions are signal.
    """
    if asked is None:
        return known or (1 if ndim <= 2 else 2)
    if not 1 <= asked <= ndim:
        raise ArgumentValueError(
            f"sig_dims must be from 1 to {ndim}, the number of dimensions in the file, got {asked}"
        )
    return asked


def name_axes(axes: Sequence[Axis | None], sig_dims: int) -> tuple[Axis, ...]:
    """Take what is known of each dimension; return axes whose names are there and all different."""
    names: list[str] = []
    for axis, default in zip(axes, default_axis_names(len(axes), sig_dims), strict=True):
        name = axis.name if axis is not None and axis.name else default
        while name in names:
            name += "_"
        names.append(name)
    return tuple(
        Axis(name=name)
        if axis is None
        else Axis(name=name, unit=axis.unit, scale=axis.scale, offset=axis.offset)
        for axis, name in zip(axes, names, strict=True)
    )


def axis_from_coordinate(name: str, values: Any, unit: str | None) -> Axis:
    """Take a dimension's coordinate values, shape (n,); return its axis, in pixels if uneven."""
    positions = np.asarray(values)
    if positions.dtype.kind not in "iuf" or positions.ndim != 1 or positions.size < 2:
        return Axis(name=name)
    with np.errstate(all="ignore"):  # what is damaged may be anything, up to 1e308 and NaN
        positions = positions.astype(np.float64)
        step = float(positions[-1] - positions[0]) / (positions.size - 1)
        even = positions[0] + step * np.arange(positions.size)
        fits = np.allclose(positions, even, rtol=0, atol=1e-3 * abs(step))
    if not np.isfinite(step) or step == 0 or not fits:
        return Axis(name=name)
    return Axis(name=name, unit=unit, scale=step, offset=float(positions[0]))
