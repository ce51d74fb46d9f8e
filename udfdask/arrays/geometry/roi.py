"""Regions of interest: every way to say which scan positions are processed, as one mask."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from udfdask.arrays.geometry.chunk_grid import BoolArray
from udfdask.errors import ArgumentTypeError, ArgumentValueError, UDFWarning

ADVICE = (
    "a roi is a boolean array of the navigation shape (True = processed), a position (y, x), "
    "slices such as np.s_[3:7, 9:12], or a list of ((y, x), True or False)"
)


def normalize_roi(roi: Any, nav: tuple[int, ...]) -> BoolArray | None:
    """Return a ROI as a fresh, read-only boolean array of navigation shape; None for all frames."""
    if roi is None:
        return None
    mask = _as_mask(roi, nav)
    mask.flags.writeable = False  # UDFs see it as meta.roi
    return mask


def _as_mask(roi: Any, nav: tuple[int, ...]) -> BoolArray:
    """Return a ROI as a fresh boolean array of navigation shape."""
    if isinstance(roi, (slice, type(Ellipsis))):
        roi = (roi,)
    if hasattr(roi, "todense") or hasattr(roi, "toarray"):
        # scipy has toarray, pydata sparse todense; both dense NumPy arrays
        roi = np.asarray(roi.toarray() if hasattr(roi, "toarray") else roi.todense())
    if hasattr(roi, "__dask_graph__"):
        raise ArgumentTypeError(f"the roi is a lazy dask collection: compute it first; {ADVICE}")
    if isinstance(roi, tuple) and roi and any(isinstance(r, (slice, type(Ellipsis))) for r in roi):
        return _from_index(roi, nav)
    if isinstance(roi, tuple) and roi and all(_is_int(r) for r in roi):
        return _from_index(tuple(_position(roi, nav)), nav)
    if isinstance(roi, list) and roi and all(_is_entry(r) for r in roi):
        return _from_entries(roi, nav)
    if isinstance(roi, list) and roi and all(_is_place(r) for r in roi):
        raise ArgumentTypeError(
            f"the roi is a list of positions, {roi[0]} first: write [({roi[0]}, True), ...]; "
            f"{ADVICE}"
        )
    return _from_array(roi, nav)


def _is_int(value: Any) -> bool:
    """Return whether a value is an integer, but no bool."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_))


def _is_entry(entry: Any) -> bool:
    """Return whether a value looks like ((y, x), True)."""
    return isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], tuple)


def _is_place(entry: Any) -> bool:
    """Return whether a value looks like (y, x)."""
    return isinstance(entry, tuple) and len(entry) > 0 and all(_is_int(i) for i in entry)


def _position(position: tuple[Any, ...], nav: tuple[int, ...]) -> tuple[int, ...]:
    """Return a scan position, checked to lie inside the scan."""
    if len(position) != len(nav) or not all(_is_int(i) for i in position):
        raise ArgumentValueError(
            f"the roi position {position} needs one integer for each of the {len(nav)} navigation "
            f"axes of shape {nav}; {ADVICE}"
        )
    if not all(-n <= i < n for i, n in zip(position, nav, strict=True)):
        raise ArgumentValueError(
            f"the roi position {position} lies outside the scan of shape {nav}"
        )
    return tuple(int(i) for i in position)


def _from_index(index: tuple[Any, ...], nav: tuple[int, ...]) -> BoolArray:
    """Return the mask of an index of slices and ints."""
    mask = np.zeros(nav, dtype=bool)
    try:
        mask[index] = True
    except (IndexError, TypeError) as e:
        raise ArgumentValueError(
            f"the roi {index} does not index a scan of shape {nav}: {e}; {ADVICE}"
        ) from None
    return mask


def _from_entries(entries: list[Any], nav: tuple[int, ...]) -> BoolArray:
    """Return the mask of positions that are switched on or off, in their order."""
    first = bool(entries[0][1])
    mask = np.zeros(nav, dtype=bool) if first else np.ones(nav, dtype=bool)
    for position, value in entries:
        mask[_position(position, nav)] = bool(value)
    return mask


def _from_array(roi: Any, nav: tuple[int, ...]) -> BoolArray:
    """Return the mask given as an array of navigation shape, or as a flat one of that size.

    Axes of extent 1 do not matter. Any other shape is in another order than the scan.
    """
    if isinstance(roi, np.ma.MaskedArray):
        raise ArgumentTypeError(
            "the roi is a masked array, whose mask would be lost: pass roi.filled(False), or "
            f"roi.filled(True); {ADVICE}"
        )
    try:
        mask = np.asarray(roi)
    except (TypeError, ValueError) as e:  # such as nested lists of different lengths
        raise ArgumentValueError(f"the roi is no array: {e}; {ADVICE}") from None
    if mask.dtype.kind in "OSUV":
        raise ArgumentTypeError(f"cannot use {type(roi).__name__} as a roi; {ADVICE}")
    if mask.dtype.kind not in "biufc":
        raise ArgumentTypeError(f"the roi has dtype {mask.dtype}, expected booleans; {ADVICE}")
    axes = _without_ones(mask.shape)
    if mask.size != math.prod(nav) or (len(axes) > 1 and axes != _without_ones(nav)):
        hint = ""
        if isinstance(roi, list) and mask.shape == (len(nav),):
            hint = f"for one position write the tuple {tuple(roi)}; "
        elif mask.shape == nav[::-1]:
            hint = "if it is transposed, as HyperSpy's (x, y) order is, pass roi.T; "
        raise ArgumentValueError(
            f"the roi has shape {mask.shape}, but the navigation shape of the data is {nav}: "
            f"expected that shape, or a flat mask of {math.prod(nav)} positions in C order; "
            f"{hint}{ADVICE}"
        )
    if mask.dtype != bool:
        if np.isnan(mask).any():
            raise ArgumentValueError(
                "the roi holds NaN, which is neither True nor False: compare it with something, "
                f"as in values > 0; {ADVICE}"
            )
        warnings.warn(
            f"the roi has dtype {mask.dtype} and is cast to bool (True where it is not 0)",
            UDFWarning,
            stacklevel=5,
        )
        mask = mask.astype(bool)
    return np.array(mask.reshape(nav), dtype=bool)


def _without_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape without axes of extent 1."""
    return tuple(n for n in shape if n != 1)


def count_nonzero(array: Any) -> int:
    """Return the number of True or non-zero entries, dense or sparse.

    Parameters
    ----------
    array : array-like or sparse array
        For instance a ROI.

    Returns
    -------
    int
        How many entries are not zero.

    Examples
    --------
    >>> import udfdask as ud
    >>> ud.count_nonzero([[True, False], [True, True]])
    3
    """
    if hasattr(array, "count_nonzero"):  # scipy.sparse
        return int(array.count_nonzero())
    if hasattr(array, "todense"):
        array = array.todense()
    return int(np.count_nonzero(np.asarray(array)))
