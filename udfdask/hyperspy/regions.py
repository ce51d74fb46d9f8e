"""Convert HyperSpy's regions and masks to boolean arrays of navigation shape."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.chunk_grid import BoolArray
from udfdask.geometry.roi import normalize_roi
from udfdask.hyperspy.data import lazy_signal_error


def read_roi(signal: Any, roi: Any, navigation_mask: Any) -> Any:
    """Combine a region (True = processed) and a mask (True = excluded), both optional.

    Return a region of interest as `udfdask.run_udf` takes it.
    """
    nav = tuple(axis.size for axis in signal.axes_manager.navigation_axes[::-1])
    region = _read_region(signal, roi, nav)
    if navigation_mask is None:
        return region
    selected = ~_read_mask(signal, navigation_mask, nav)
    chosen = normalize_roi(region, nav)
    return selected if chosen is None else selected & chosen


def _read_region(signal: Any, roi: Any, nav: tuple[int, ...]) -> Any:
    """Return a region with HyperSpy's objects converted to arrays; True = processed."""
    from hyperspy.api import signals
    from hyperspy.roi import BaseROI

    if isinstance(roi, BaseROI):
        return _from_hyperspy_roi(signal, roi)
    if isinstance(roi, signals.BaseSignal):
        return _from_signal(roi, nav, "roi")
    dims, names = getattr(roi, "dims", ()), _navigation_names(signal)
    if dims != names and set(dims) == set(names):  # a DataArray in another order
        return roi.transpose(*names)
    if isinstance(roi, np.ndarray) and roi.shape == nav[::-1] != nav:
        raise ArgumentValueError(
            f"the roi has shape {roi.shape}, which is (x, y), but arrays must have the order of "
            f"signal.data, here {nav}: pass roi.T"
        )
    return roi


def _navigation_names(signal: Any) -> tuple[Any, ...]:
    """Return the names of the navigation axes of a signal, in the order of its array."""
    return tuple(axis.name for axis in signal.axes_manager.navigation_axes[::-1])


def _from_signal(mask: Any, nav: tuple[int, ...], what: str) -> BoolArray:
    """Return the values of a boolean signal over navigation positions.

    Its axes may be navigation axes or signal axes: `s.sum("sig") > 5` and its transpose, an image,
    give the same array.
    """
    manager = mask.axes_manager
    sides = manager.navigation_axes, manager.signal_axes
    axes = sides[0] if not len(sides[1]) else sides[1]
    shape = tuple(axis.size for axis in axes[::-1])
    if (len(sides[0]) and len(sides[1])) or shape != nav:
        raise ArgumentValueError(
            f"the {what} is {mask!r}, but the data have navigation axes of sizes {nav[::-1]}: pass "
            "a signal with these axes only, such as signal.sum('sig') > 5"
        )
    if isinstance(mask.data, da.Array):
        raise lazy_signal_error(what, f"{what}=mask")
    if mask.data.dtype != bool:
        raise ArgumentTypeError(
            f"the {what} is {mask!r} of dtype {mask.data.dtype}, expected booleans: compare it "
            "with a number, as in mask > 0"
        )
    order = tuple(axis.index_in_array for axis in axes[::-1])
    return np.asarray(mask.data).transpose(order)


def _read_mask(signal: Any, mask: Any, nav: tuple[int, ...]) -> BoolArray:
    """Return a navigation mask; True = excluded.

    Arrays are in HyperSpy's order (x, y), as in `s.decomposition(navigation_mask=...)`.
    """
    from hyperspy.api import signals

    if isinstance(mask, signals.BaseSignal):
        return _from_signal(mask, nav, "navigation_mask")
    if isinstance(mask, da.Array):
        raise ArgumentTypeError(
            "the navigation_mask is a dask array: write mask = mask.compute() on a line of its "
            "own, then pass navigation_mask=mask"
        )
    array = np.asarray(mask)
    if array.dtype != bool:
        raise ArgumentTypeError(
            f"the navigation_mask has dtype {array.dtype}, expected booleans or a signal of them; "
            "True = excluded"
        )
    if array.shape != nav[::-1]:
        hint = (
            "; this one looks like (y, x): pass mask.T, or a signal" if array.shape == nav else ""
        )
        raise ArgumentValueError(
            f"the navigation_mask has shape {array.shape}, but HyperSpy takes arrays of "
            f"axes_manager.navigation_shape, {nav[::-1]}, in (x, y) order{hint}"
        )
    return array.T


def _from_hyperspy_roi(signal: Any, roi: Any) -> BoolArray:
    """Return the mask of navigation positions that a ROI of HyperSpy selects."""
    check_selects(roi, "positions", "a boolean array")
    nav_axes = signal.axes_manager.navigation_axes
    return pixels_of_roi(roi, _axes_of(signal, roi), nav_axes, navigate=True)


def check_selects(roi: Any, what: str, other: str) -> None:
    """Raise if a ROI of HyperSpy does not select positions or pixels but interpolates."""
    from hyperspy.roi import Line2DROI

    if isinstance(roi, Line2DROI):
        raise ArgumentTypeError(
            f"{roi!r} does not select {what} but interpolates between them: use a "
            f"RectangularROI, CircleROI or PolygonROI, or {other}"
        )


def pixels_of_roi(
    roi: Any, axes: tuple[Any, ...], every: tuple[Any, ...], *, navigate: bool
) -> BoolArray:
    """Return the mask that a ROI of HyperSpy selects, in the order of the array.

    `axes` are the axes of the ROI, x first; `every` are all navigation axes or all signal axes.
    HyperSpy itself slices a signal that holds the number of each position: its own rounding counts.
    """
    from hyperspy.api import signals

    order = sorted(axes, key=lambda axis: axis.index_in_array)
    shape = tuple(axis.size for axis in order)
    numbers = signals.BaseSignal(
        np.arange(np.prod(shape), dtype=np.float64).reshape(shape),
        axes=[{**axis.get_axis_dictionary(), "navigate": navigate} for axis in order],
    )
    own = numbers.axes_manager._axes
    try:
        picked = roi(numbers, axes=tuple(own[order.index(axis)] for axis in axes))
    except (ValueError, IndexError, NotImplementedError) as error:
        kind = "navigation" if navigate else "signal"
        raise ArgumentValueError(
            f"{roi!r} cannot select from the {kind} axes {every}: {error}"
        ) from error
    values = np.asarray(picked.data).ravel()
    mask = np.zeros(int(np.prod(shape)), dtype=bool)
    mask[values[np.isfinite(values)].astype(np.int64)] = True
    own_axes = {id(axis) for axis in axes}
    spread = tuple(axis.size if id(axis) in own_axes else 1 for axis in every[::-1])
    return np.broadcast_to(mask.reshape(spread), tuple(axis.size for axis in every[::-1]))


def _axes_of(signal: Any, roi: Any) -> tuple[Any, ...]:
    """Return the navigation axes of a ROI: those of its plot, else the first ones, x first."""
    nav_axes = signal.axes_manager.navigation_axes
    for plotted, (_, axes) in roi.signal_map.items():
        if plotted is signal:
            if all(axis.navigate for axis in axes):
                return tuple(axes)
            raise ArgumentValueError(
                f"{roi!r} lies in the signal axes of {signal!r}, but a roi selects scan positions: "
                "for a region of the frames use signal.udf.virtual_image(roi), or signal.isig"
            )
    if len(nav_axes) < roi.ndim:
        raise ArgumentValueError(
            f"{roi!r} needs {roi.ndim} navigation axes, but {signal!r} has {len(nav_axes)}"
        )
    return tuple(nav_axes[: roi.ndim])
