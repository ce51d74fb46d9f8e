"""Convert every form of a region of interest (ROI) to one boolean mask of the scan."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.chunk_grid import BoolArray
from udfdask.geometry.labeled_values import is_lazy
from udfdask.tracebacks import warn_user

ADVICE = (
    "a roi is a boolean array of the navigation shape (True = processed), a position (y, x), "
    "slices such as np.s_[3:7, 9:12], or a list of ((y, x), True or False)"
)

COMPUTE_FIRST = (
    "write roi = roi.compute() on a line of its own, which returns the mask (only for a lazy "
    "HyperSpy signal it returns None), then pass roi=roi"
)
"""What to do with a lazy ROI that is an array of dask or xarray."""

_OF_SIGNALS = (
    "regions and masks of HyperSpy are for the run of a signal: import udfdask.hyperspy, then "
    "signal.udf.run_udf(udf, roi=roi)"
)

ABSENT_LAYER = "absent-frames-"
"""Prefix of the layers of arrays in which absent frames are zeros."""


def normalize_roi(roi: Any, nav: tuple[int, ...]) -> BoolArray | None:
    """Return a ROI as a fresh, read-only boolean array of navigation shape; None for all frames."""
    if roi is None:
        return None
    mask = _as_mask(roi, nav)
    mask.flags.writeable = False  # UDFs see it as meta.roi
    return mask


def empty_roi_warning(roi: Any, mask: BoolArray | None) -> str:
    """Return a warning if a ROI selects no position of a scan that has some; else an empty text.

    `roi` is what the user passed, `mask` what it means.
    """
    if mask is None or not mask.size or mask.any():
        return ""
    shown = f" {roi}" if isinstance(roi, (tuple, slice)) else ""
    return (
        f"the roi{shown} selects no position of the scan, whose shape is {mask.shape}: no frame is "
        "processed, and results hold only fill values. Correct it, or pass roi=None for all "
        "positions"
    )


def only_present(
    roi: BoolArray | None, present: BoolArray | None, nav: tuple[int, ...]
) -> BoolArray | None:
    """Return the selected positions that have a frame; None for all.

    `present` has the positions with a frame, None if all have one. It may have fewer axes than
    `nav` if the run has other signal axes than the file.
    """
    if present is None or (present.size and present.all()):
        return roi
    if present.shape != nav[: present.ndim]:
        raise ArgumentValueError(
            f"the mask of the positions that have a frame has the shape {present.shape}, but the "
            f"run has the navigation shape {nav}: sig_dims cannot be larger than in the opened file"
        )
    more = (1,) * (len(nav) - present.ndim)
    mask = np.broadcast_to(present.reshape(present.shape + more), nav).copy()
    if roi is not None:
        mask &= roi
    mask.flags.writeable = False
    return mask


def lost_absence_warning(layers: Iterable[str], has_roi: bool, sees_neighbors: bool) -> str:
    """Return a warning if an array has absent frames that the run would use; else an empty text.

    `layers` are the names of the layers of an array of which nobody says what is absent.
    `sees_neighbors` says whether UDFs see frames outside of a region of interest.
    """
    # in these layers, absent frames are zeros
    lacks_frames = any(layer.startswith(ABSENT_LAYER) for layer in layers)
    if (has_roi and not sees_neighbors) or not lacks_frames:
        return ""
    what = "take these zeros for neighbors" if has_roi else "process these zeros"
    remedy = "axes=opened" if sees_neighbors else "roi=opened.present"
    return (
        "the array was made with sync_offset, and positions without a frame are zeros in it: this "
        f"run would {what}. Pass the opened file in place of its array, a part of it such as "
        f"opened[2:5], or {remedy} together with the array"
    )


def none_present_warning(roi: BoolArray | None, present: BoolArray | None) -> str:
    """Return a warning if no selected position has a frame; else an empty text."""
    if roi is None or present is None or not roi.size or roi.any():
        return ""
    return (
        f"none of the selected positions has a frame: {np.count_nonzero(present)} of "
        f"{present.size} positions of the scan, whose shape is {present.shape}, have one. No frame "
        "is processed, and results hold only fill values. Check sync_offset and the roi"
    )


def _as_mask(roi: Any, nav: tuple[int, ...]) -> BoolArray:
    """Return a ROI as a fresh boolean array of navigation shape."""
    if isinstance(roi, (slice, type(Ellipsis))):
        roi = (roi,)
    # SciPy's todense returns a np.matrix, which keeps two axes: its toarray comes first
    for method in ("toarray", "todense"):
        if hasattr(roi, method):
            roi = np.asarray(getattr(roi, method)())
    if is_lazy(roi):
        raise ArgumentTypeError(f"the roi is a lazy dask collection: {COMPUTE_FIRST}; {ADVICE}")
    if getattr(roi, "_lazy", False) and hasattr(roi, "axes_manager"):
        raise ArgumentTypeError(
            "the roi is a lazy signal of HyperSpy: write roi.compute() on a line of its own, which "
            f"changes roi and returns None, then pass roi=roi; {_OF_SIGNALS}"
        )
    if isinstance(roi, dict):
        raise ArgumentTypeError(
            "the roi is a dictionary of names, and only a DataArray has names: import "
            "udfdask.xarray, then data_array.udf.run_udf(udf, roi=...), or pass slices such as "
            "np.s_[3:7, 9:12]"
        )
    if isinstance(roi, tuple) and roi and any(isinstance(r, (slice, type(Ellipsis))) for r in roi):
        return _from_index(roi, nav)
    if isinstance(roi, tuple) and roi and all(_is_int(r) for r in roi):
        return _from_index(tuple(_position(roi, nav)), nav)
    if isinstance(roi, list) and roi and all(_is_entry(r) for r in roi):
        return _from_entries(roi, nav)
    if isinstance(roi, list) and roi and all(_is_position(r) for r in roi):
        raise ArgumentTypeError(
            f"the roi is a list of positions, {roi[0]} first: write [({roi[0]}, True), ...]; "
            f"{ADVICE}"
        )
    return _from_array(roi, nav)


def _is_int(value: Any) -> bool:
    """Return whether a value is an integer and not a bool."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_))


def _is_entry(entry: Any) -> bool:
    """Return whether a value looks like ((y, x), True)."""
    return isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], tuple)


def _is_position(entry: Any) -> bool:
    """Return whether a value looks like (y, x)."""
    return isinstance(entry, tuple) and len(entry) > 0 and all(_is_int(i) for i in entry)


def _position(position: tuple[Any, ...], nav: tuple[int, ...]) -> tuple[int, ...]:
    """Return a scan position as ints; raise if it lies outside the scan."""
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
    mask = np.zeros(nav, dtype=bool)
    try:
        mask[index] = True
    except (IndexError, TypeError) as e:
        raise ArgumentValueError(
            f"the roi {index} does not index a scan of shape {nav}: {e}; {ADVICE}"
        ) from None
    return mask


def _from_entries(entries: list[Any], nav: tuple[int, ...]) -> BoolArray:
    """Return the mask of positions that are switched on or off, one after another."""
    first = bool(entries[0][1])
    mask = np.zeros(nav, dtype=bool) if first else np.ones(nav, dtype=bool)
    for position, value in entries:
        mask[_position(position, nav)] = bool(value)
    return mask


def _from_array(roi: Any, nav: tuple[int, ...]) -> BoolArray:
    """Return the mask from an array of navigation shape, or from a flat array of that size.

    Axes of extent 1 are ignored. Any other shape is refused, even with the right size: its order
    differs from that of the scan, so that it would select other frames.
    """
    if isinstance(roi, np.ma.MaskedArray):
        raise ArgumentTypeError(
            "the roi is a masked array, but its mask would be lost: pass roi.filled(False) or "
            f"roi.filled(True); {ADVICE}"
        )
    try:
        mask = np.asarray(roi)
    except (TypeError, ValueError) as e:  # such as nested lists of different lengths
        raise ArgumentValueError(f"the roi is not an array: {e}; {ADVICE}") from None
    if mask.dtype.kind in "OSUV":
        advice = f"{_OF_SIGNALS}; for an array, {ADVICE}" if _is_of_hyperspy(roi) else ADVICE
        raise ArgumentTypeError(f"cannot use {type(roi).__name__} as a roi; {advice}")
    if mask.dtype.kind not in "biufc":
        raise ArgumentTypeError(f"the roi has dtype {mask.dtype}, expected booleans; {ADVICE}")
    axes = _without_ones(mask.shape)
    if mask.size != math.prod(nav) or (len(axes) > 1 and axes != _without_ones(nav)):
        hint = ""
        if isinstance(roi, list) and mask.shape == (len(nav),):
            hint = f"for one position write the tuple {tuple(roi)}; "
        elif _is_of_hyperspy(roi):
            hint = f"{_OF_SIGNALS}; for an array, "
        elif mask.shape == nav[::-1]:
            hint = "if it is transposed, as in HyperSpy's (x, y) order, pass roi.T; "
        raise ArgumentValueError(
            f"the roi has shape {mask.shape}, but the navigation shape of the data is {nav}: "
            f"expected that shape, or a flat mask of {math.prod(nav)} positions in C order; "
            f"{hint}{ADVICE}"
        )
    if mask.dtype != bool:
        if np.isnan(mask).any():
            raise ArgumentValueError(
                "the roi contains NaN, which is neither True nor False: pass a comparison such as "
                f"values > 0; {ADVICE}"
            )
        warn_user(f"the roi has dtype {mask.dtype} and is cast to bool (True where it is not 0)")
        mask = mask.astype(bool)
    return np.array(mask.reshape(nav), dtype=bool)


def _is_of_hyperspy(roi: Any) -> bool:
    """Return whether a value is a signal or a region of HyperSpy, which is perhaps not imported."""
    modules = [cls.__module__.partition(".")[0] for cls in type(roi).__mro__]
    return "hyperspy" in modules


def _without_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(n for n in shape if n != 1)


def count_nonzero(array: Any) -> int:
    """Return the number of True or nonzero entries of a dense or sparse array.

    Parameters
    ----------
    array : array-like or sparse array
        For example a ROI.

    Returns
    -------
    int
        Number of entries that are not zero.

    Examples
    --------
    >>> from udfdask.libertem import count_nonzero
    >>> count_nonzero([[True, False], [True, True]])
    3
    """
    if hasattr(array, "count_nonzero"):  # scipy.sparse
        return int(array.count_nonzero())
    if hasattr(array, "todense"):
        array = array.todense()
    return int(np.count_nonzero(np.asarray(array)))
