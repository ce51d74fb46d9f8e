"""Convert every form of a region of interest (ROI) to one boolean mask of the scan."""

from __future__ import annotations

import math
from types import EllipsisType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from udfdask.base.tracebacks import warn_user
from udfdask.base.types import is_lazy
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.chunk_grid import BoolArray

Region: TypeAlias = ArrayLike | slice | tuple[int | slice | EllipsisType, ...]
"""A boolean array of shape nav, a position, slices, or a list of ((y, x), True or False)."""

ADVICE = (
    "a roi is a boolean array of the navigation shape (True = processed), a position (y, x), "
    "slices such as np.s_[3:7, 9:12], or a list of ((y, x), True or False)"
)

COMPUTE_FIRST = (
    "write roi = roi.compute() on a line of its own, which returns the mask (only for a lazy "
    "HyperSpy signal it returns None), then pass roi=roi"
)
"""What to do with a lazy ROI."""

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


def only_present(
    roi: BoolArray | None, present: BoolArray | None, nav: tuple[int, ...]
) -> BoolArray | None:
    """Return the selected positions that have a frame; None for all.

    `present` has fewer axes than `nav` if the run has other signal axes than the file.
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


def empty_warning(given: Any, selected: BoolArray | None, mask: BoolArray | None) -> str:
    """Return a warning if a run has no frames, although the scan has positions; else "".

    `given` is the user's ROI, `selected` what it means, and `mask` those of it with a frame.
    """
    if mask is None or not mask.size or mask.any():
        return ""
    rest = "no frame is processed, and results hold only fill values"
    if selected is None or selected.any():
        return f"none of the selected positions has a frame: {rest}. Check sync_offset and the roi"
    shown = f" {given}" if isinstance(given, (tuple, slice)) else ""
    return f"the roi{shown} selects no position of the scan, whose shape is {mask.shape}: {rest}"


def absence_warning(has_roi: bool, sees_neighbors: bool) -> str:
    """Return the warning that zeros of absent frames are processed, or seen as neighbors."""
    use = "take these zeros for neighbors" if has_roi else "process these zeros"
    remedy = "axes=opened" if sees_neighbors else "roi=opened.present"
    return (
        "the array was made with sync_offset, and positions without a frame are zeros in it: this "
        f"run would {use}. Pass the opened file in place of its array, or {remedy} together with "
        "the array"
    )


def _as_mask(roi: Any, nav: tuple[int, ...]) -> BoolArray:
    # SciPy's todense returns a np.matrix, which keeps two axes: its toarray comes first
    for method in ("toarray", "todense"):
        if hasattr(roi, method):
            roi = np.asarray(getattr(roi, method)())
    if is_lazy(roi):
        raise ArgumentTypeError(f"the roi is a lazy dask collection: {COMPUTE_FIRST}; {ADVICE}")
    if getattr(roi, "_lazy", False):
        raise ArgumentTypeError(f"the roi is a lazy signal of HyperSpy: {_OF_SIGNALS}")
    parts = roi if isinstance(roi, tuple) else (roi,)
    if any(isinstance(part, (slice, type(Ellipsis))) for part in parts):
        return _from_index(parts, nav)
    if _is_position(roi):
        return _from_index(_position(roi, nav), nav)
    if isinstance(roi, list) and roi:
        if all(isinstance(r, tuple) and len(r) == 2 and isinstance(r[0], tuple) for r in roi):
            return _from_entries(roi, nav)
        if all(map(_is_position, roi)):
            raise ArgumentTypeError(
                f"the roi is a list of positions: write [({roi[0]}, True), ...]; {ADVICE}"
            )
    return _from_array(roi, nav)


def _is_position(value: Any) -> bool:
    return (
        isinstance(value, tuple)
        and len(value) > 0
        and all(isinstance(i, (int, np.integer)) and not isinstance(i, bool) for i in value)
    )


def _position(position: Any, nav: tuple[int, ...]) -> tuple[int, ...]:
    """Return a scan position as ints; raise if it lies outside the scan."""
    if not _is_position(position) or len(position) != len(nav):
        raise ArgumentValueError(
            f"the roi position {position} needs one integer for each of the {len(nav)} navigation "
            f"axes of shape {nav}; {ADVICE}"
        )
    if not all(-n <= i < n for i, n in zip(position, nav, strict=True)):
        raise ArgumentValueError(
            f"the roi position {position} lies outside the scan of shape {nav}"
        )
    return tuple(map(int, position))


def _from_index(index: tuple[Any, ...], nav: tuple[int, ...]) -> BoolArray:
    mask = np.zeros(nav, dtype=bool)
    try:
        mask[index] = True
    except (IndexError, TypeError) as error:
        raise ArgumentValueError(
            f"the roi {index} does not index a scan of shape {nav}: {error}; {ADVICE}"
        ) from None
    return mask


def _from_entries(entries: list[Any], nav: tuple[int, ...]) -> BoolArray:
    """Return the mask of positions that are switched on or off, one after another."""
    mask = np.full(nav, not entries[0][1])
    for position, value in entries:
        mask[_position(position, nav)] = bool(value)
    return mask


def _from_array(roi: Any, nav: tuple[int, ...]) -> BoolArray:
    """Return the mask from an array of navigation shape, or from a flat array of that size.

    Axes of extent 1 are ignored. Another shape of the right size would select other frames.
    """
    if isinstance(roi, np.ma.MaskedArray):
        raise ArgumentTypeError(
            "the roi is a masked array, but its mask would be lost: pass roi.filled(False) or "
            "roi.filled(True)"
        )
    advice = ADVICE
    if "hyperspy" in (cls.__module__.partition(".")[0] for cls in type(roi).__mro__):
        advice = f"{_OF_SIGNALS}; for an array, {ADVICE}"
    try:
        mask = np.asarray(roi)
    except (TypeError, ValueError) as error:  # such as nested lists of different lengths
        raise ArgumentValueError(f"the roi is not an array: {error}; {ADVICE}") from None
    if mask.dtype.kind not in "biufc":
        raise ArgumentTypeError(
            f"cannot use {type(roi).__name__} of dtype {mask.dtype} as a roi; {advice}"
        )
    axes, wanted = ([n for n in shape if n != 1] for shape in (mask.shape, nav))
    if mask.size != math.prod(nav) or (len(axes) > 1 and axes != wanted):
        transposed = "if it is transposed, pass roi.T; " if mask.shape == nav[::-1] else ""
        raise ArgumentValueError(
            f"the roi has shape {mask.shape}, but the navigation shape of the data is {nav}: "
            f"expected that shape, or a flat mask of {math.prod(nav)} positions in C order; "
            f"{transposed}{advice}"
        )
    if mask.dtype != bool:
        if np.isnan(mask).any():
            raise ArgumentValueError(
                "the roi contains NaN, which is neither True nor False: pass a comparison such as "
                "values > 0"
            )
        warn_user(f"the roi has dtype {mask.dtype} and is cast to bool (True where it is not 0)")
    return np.array(mask.reshape(nav), dtype=bool)
