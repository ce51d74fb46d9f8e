"""Check that shifts and fill value fit the frames of a run."""

from __future__ import annotations

import math
from numbers import Number
from typing import Any

import numpy as np

from udfdask.backends.backend import NUMPY
from udfdask.backends.table import backend_of, to_backend, to_host
from udfdask.descan.option import Descan
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.chunk_grid import BoolArray
from udfdask.geometry.labels import check_in_pixels
from udfdask.geometry.shapes import Shape
from udfdask.types import AnyArray

NUMBERS = "biufc"
"""Kinds of the dtypes of data that can be shifted."""


def checked_shifts(descan: Descan, shape: Shape) -> Any:
    """Return shifts as a NumPy or dask array of real numbers, shape (*nav, sig dims).

    Values of dask arrays are checked in tasks (`FrameShifts`).
    """
    shifts = _array(descan.shifts)
    if shifts.dtype.kind not in "iuf":
        raise ArgumentTypeError(
            f"descan has shifts of dtype {shifts.dtype}, expected real numbers in pixels"
        )
    nav, n = tuple(shape.nav), len(shape.sig)
    if n == 1 and shifts.shape == nav:
        return shifts[..., np.newaxis]
    if any(map(math.isnan, shifts.shape)):
        raise ArgumentValueError(
            f"descan has shifts of unknown shape {shifts.shape}: call compute_chunk_sizes() first"
        )
    if shifts.shape != (*nav, n):
        raise ArgumentValueError(
            f"descan has shifts of shape {tuple(shifts.shape)}, but a scan of shape {nav} with "
            f"{n} signal ax{'is' if n == 1 else 'es'} needs {(*nav, n)}: one shift for each frame "
            f"and signal axis{_remedy(tuple(shifts.shape), nav, n)}"
        )
    return shifts


def _remedy(given: tuple[int, ...], nav: tuple[int, ...], n: int) -> str:
    """Return the call that makes the right shape out of a shape, if there is one."""
    if given == (n, *nav):
        return "; np.moveaxis(shifts, 0, -1) moves the axis"
    if given == (n,):
        return f"; np.broadcast_to(shift, {(*nav, n)}) has the same shift for all frames"
    if given == (math.prod(nav), n):
        return f"; shifts.reshape({(*nav, n)}) has the shape of the scan"
    return ""


def _array(shifts: Any) -> Any:
    """Return shifts as a NumPy or dask array."""
    check_in_pixels("descan", shifts, "raw_shifts")
    if isinstance(getattr(shifts, "_meta", shifts), np.ma.MaskedArray):
        raise ArgumentTypeError(
            "descan has masked shifts: fill them, with array.filled(np.nan) or dask.array.ma.filled"
        )
    if hasattr(shifts, "__dask_graph__"):
        if not isinstance(getattr(shifts, "chunks", None), tuple) or hasattr(shifts, "dims"):
            raise _not_an_array(shifts)
        if backend_of(shifts._meta).is_sparse:
            return shifts.map_blocks(_dense, meta=np.empty((0,) * shifts.ndim, shifts.dtype))
        return shifts
    if isinstance(shifts, (list, tuple, np.ndarray, Number)):
        try:
            return np.asarray(shifts)
        except ValueError as error:
            raise ArgumentValueError(f"descan has shifts that are no array: {error}") from None
    if backend_of(shifts).on_device:
        return to_host(shifts)
    raise _not_an_array(shifts)


def _dense(block: Any) -> AnyArray:
    dense: AnyArray = to_backend(block, NUMPY, block.shape)
    return dense


def _not_an_array(shifts: Any) -> ArgumentTypeError:
    kind = type(shifts).__name__
    remedy = (
        "pass its .data, in the order of the axes of the data"
        if hasattr(shifts, "data")
        else "convert it with np.asarray(...)"
    )
    if shifts is Descan:
        kind, remedy = "class", "write Descan(shifts)"
    elif kind.startswith("Delayed"):
        remedy = "make it an array with dask.array.from_delayed"
    elif kind == "Result":
        remedy = 'pass one of its arrays, such as result["raw_shifts"]'
    return ArgumentTypeError(
        f"descan takes a NumPy or dask array, or a udfdask.descan.Descan, not a {kind}: {remedy}"
    )


def check_known(shifts: AnyArray, roi: BoolArray | None) -> str:
    """Return a warning if selected frames have no shift, else an empty text.

    `shifts` is a NumPy array of shape (*nav, sig dims). Raise if a selected shift is infinite.
    """
    selected = shifts if roi is None else shifts[roi]
    if np.isinf(selected).any():
        infinite = np.isinf(shifts).any(axis=-1)
        place = np.argwhere(infinite if roi is None else infinite & roi)[0].tolist()
        raise ArgumentValueError(
            f"descan has an infinite shift at scan position {tuple(place)}: pass NaN for frames "
            "to leave empty, or roi= to leave them out"
        )
    lost = int(np.isnan(selected).any(axis=-1).sum())
    if not lost:
        return ""
    return (
        f"descan has no shift (NaN) for {lost} of {selected[..., 0].size} frames, which become "
        "empty: leave them out with roi=np.isfinite(shifts).all(axis=-1)"
    )


def check_fill(fill: Any, dtype: np.dtype[Any]) -> None:
    """Raise if the dtype of shifted frames cannot hold the fill value."""
    try:
        with np.errstate(all="ignore"):
            held = dtype.kind == "c" or (
                not isinstance(fill, (complex, np.complexfloating))
                and (dtype.kind == "f" or bool(np.asarray(fill).astype(dtype) == fill))
            )
    except (TypeError, ValueError, OverflowError):
        held = False
    if not held:
        raise ArgumentValueError(
            f"descan has fill={fill!r}, which frames of dtype {dtype} cannot hold: convert the data"
        )


def check_numbers(dtype: np.dtype[Any]) -> None:
    """Raise if data cannot be shifted."""
    if dtype.kind not in NUMBERS:
        raise ArgumentTypeError(f"descan needs data that are numbers, not {dtype}")
