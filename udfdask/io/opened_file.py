"""The value that opening a file returns, and how readers make it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import dask.array as da
import numpy as np

from udfdask.arrays.geometry.axes import Axis, default_axis_names
from udfdask.errors import ArgumentValueError
from udfdask.io.lazy_source import StoredArray, choose_chunks, lazy_array


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
    """The reader of the file, in words."""
    title: str
    """The title of the recording that the file contains, otherwise the name of the file."""
    axes: tuple[Axis, ...]
    """One axis for each dimension of `array`; in pixels if the file does not describe it."""


def open_source(
    source: StoredArray,
    *,
    sig_dims: int | None,
    chunks: Any,
    stored: tuple[int, ...] | None = None,
    prefix: str,
    reader: str,
    title: str,
    axes: Sequence[Axis | None] = (),
) -> OpenedFile:
    """Return the opened file of a source; `prefix` is the prefix of the array's name."""
    sig = choose_sig_dims(sig_dims, source.ndim)
    grid = choose_chunks(source, sig, chunks, stored=stored)
    array = lazy_array(source, grid, prefix=prefix)
    return opened_array(array, sig, reader=reader, title=title, axes=axes)


def opened_array(
    array: da.Array, sig_dims: int, *, reader: str, title: str, axes: Sequence[Axis | None] = ()
) -> OpenedFile:
    """Return the opened file of a lazy array; without `axes`, nothing is known about them."""
    return OpenedFile(
        array=array,
        sig_dims=sig_dims,
        reader=reader,
        title=title,
        axes=name_axes(axes or [None] * array.ndim, sig_dims),
    )


def choose_sig_dims(asked: int | None, ndim: int, *, known: int = 0) -> int:
    """Return the number of signal dimensions; `known` is what the file says, 0 for nothing."""
    if asked is None:
        return known or (1 if ndim <= 2 else 2)
    if not 1 <= asked <= ndim:
        raise ArgumentValueError(
            f"sig_dims must be from 1 to {ndim}, the number of dimensions in the file, got {asked}"
        )
    return asked


def name_axes(axes: Sequence[Axis | None], sig_dims: int) -> tuple[Axis, ...]:
    """Return axes with different names, made of what is known about each dimension."""
    named: dict[str, Axis] = {}
    for axis, default in zip(axes, default_axis_names(len(axes), sig_dims), strict=True):
        name = (axis.name if axis else "") or default
        while name in named:
            name += "_"
        named[name] = replace(axis, name=name) if axis else Axis(name=name)
    return tuple(named.values())


def axis_from_coordinate(name: str, values: Any, unit: Any) -> Axis:
    """Return the axis of a dimension with coordinate values; in pixels if they are uneven.

    A unit that is not text is ignored.
    """
    positions = np.asarray(values)
    if positions.dtype.kind not in "iuf" or positions.ndim != 1 or positions.size < 2:
        return Axis(name=name)
    with np.errstate(all="ignore"):  # damaged values can be anything, such as 1e308 and NaN
        positions = positions.astype(np.float64)
        step = float(positions[-1] - positions[0]) / (positions.size - 1)
        even = positions[0] + step * np.arange(positions.size)
        fits = np.allclose(positions, even, rtol=0, atol=1e-3 * abs(step))
    if not np.isfinite(step) or step == 0 or not fits:
        return Axis(name=name)
    unit = unit if isinstance(unit, str) else None
    return Axis(name=name, unit=unit, scale=step, offset=float(positions[0]))
