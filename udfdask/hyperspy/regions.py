"""Convert HyperSpy's ROIs, signals and masks to boolean arrays: of the scan, or of a frame."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.chunk_grid import BoolArray
from udfdask.geometry.roi import normalize_roi
from udfdask.hyperspy.data import aligned_data, lazy_signal_error
from udfdask.types import AnyArray


def read_roi(signal: Any, roi: Any, navigation_mask: Any) -> Any:
    """Combine a region (True = processed) and a mask (True = excluded), both optional.

    Return a region of interest as `udfdask.run_udf` takes it.
    """
    nav = tuple(axis.size for axis in signal.axes_manager.navigation_axes[::-1])
    region = _read_region(signal, roi, nav)
    if navigation_mask is None:
        return region
    selected = ~_read_mask(navigation_mask, nav)
    chosen = normalize_roi(region, nav)
    return selected if chosen is None else selected & chosen


def _read_region(signal: Any, roi: Any, nav: tuple[int, ...]) -> Any:
    """Return a region with HyperSpy's objects converted to arrays; True = processed."""
    from hyperspy.api import signals
    from hyperspy.roi import BaseROI

    if isinstance(roi, BaseROI):
        return _select(signal, roi, navigate=True)
    if isinstance(roi, signals.BaseSignal):
        return _from_nav_signal(roi, nav, "roi")
    names = tuple(axis.name for axis in signal.axes_manager.navigation_axes[::-1])
    dims = getattr(roi, "dims", ())
    if dims != names and set(dims) == set(names):  # a DataArray in another order
        return roi.transpose(*names)
    if isinstance(roi, np.ndarray) and roi.shape == nav[::-1] != nav:
        raise ArgumentValueError(
            f"the roi has shape {roi.shape}, which is (x, y), but arrays must have the order of "
            f"signal.data, here {nav}: pass roi.T"
        )
    return roi


def _read_mask(mask: Any, nav: tuple[int, ...]) -> BoolArray:
    """Return a navigation mask; True = excluded.

    Arrays are in HyperSpy's order (x, y), as in `s.decomposition(navigation_mask=...)`.
    """
    from hyperspy.api import signals

    if isinstance(mask, signals.BaseSignal):
        return _from_nav_signal(mask, nav, "navigation_mask")
    if isinstance(mask, da.Array):
        raise ArgumentTypeError("the navigation_mask is a dask array: pass mask.compute()")
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


def _from_nav_signal(mask: Any, nav: tuple[int, ...], what: str) -> BoolArray:
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
    return np.asarray(aligned_data(mask))


def mask_reader(signal: Any) -> Callable[[Any], Any]:
    """Return a function that converts ROIs and signals to masks of the frames of a signal.

    It returns all other values unchanged.
    """
    from hyperspy.api import signals
    from hyperspy.roi import BaseROI

    def read(mask: Any) -> Any:
        if isinstance(mask, BaseROI):
            return _select(signal, mask, navigate=False)
        return _from_sig_signal(signal, mask) if isinstance(mask, signals.BaseSignal) else mask

    return read


def _from_sig_signal(signal: Any, mask: Any) -> AnyArray:
    """Return the values of a signal over the pixels of a frame, such as ``signal.mean() > 5``."""
    manager, sig = mask.axes_manager, signal.axes_manager.signal_shape
    if manager.navigation_dimension or manager.signal_shape != sig:
        raise ArgumentValueError(
            f"the mask is {mask!r}, but the frames have signal axes of sizes {sig}: pass a signal "
            "with these signal axes only, such as signal.mean() > 5"
        )
    if isinstance(mask.data, da.Array):
        raise lazy_signal_error("mask", "the mask")
    return np.asarray(aligned_data(mask))


def _select(signal: Any, roi: Any, *, navigate: bool) -> BoolArray:
    """Return the scan positions, or the pixels of a frame, that a ROI of HyperSpy selects.

    HyperSpy itself slices a signal that holds the number of each position: its own rounding counts.
    """
    from hyperspy.api import signals
    from hyperspy.roi import Line2DROI

    kind, what = ("navigation", "positions") if navigate else ("signal", "pixels")
    if isinstance(roi, Line2DROI):
        raise ArgumentTypeError(
            f"{roi!r} does not select {what} but interpolates between them: use a "
            "RectangularROI, CircleROI or PolygonROI, or a boolean array"
        )
    manager = signal.axes_manager
    every = manager.navigation_axes if navigate else manager.signal_axes
    axes = _axes_of(signal, roi, every, navigate=navigate)
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
        raise ArgumentValueError(
            f"{roi!r} cannot select from the {kind} axes {every}: {error}"
        ) from error
    values = np.asarray(picked.data).ravel()
    mask = np.zeros(int(np.prod(shape)), dtype=bool)
    mask[values[np.isfinite(values)].astype(np.int64)] = True
    if not (navigate or mask.any()):
        ranges = [f"{axis.low_value:g} to {axis.high_value:g}" for axis in axes]
        raise ArgumentValueError(
            f"{roi!r} selects no pixel of the frames, whose signal axes go from "
            f"{' and '.join(ranges)} ({', '.join(map(str, axes))})"
        )
    own_axes = {id(axis) for axis in axes}
    spread = tuple(axis.size if id(axis) in own_axes else 1 for axis in every[::-1])
    return np.broadcast_to(mask.reshape(spread), tuple(axis.size for axis in every[::-1]))


def _axes_of(signal: Any, roi: Any, every: Any, *, navigate: bool) -> tuple[Any, ...]:
    """Return the axes of a ROI, x first: those of its plot, else the first ones."""
    for plotted, (_, axes) in roi.signal_map.items():
        if plotted is signal:
            if all(axis.navigate == navigate for axis in axes):
                return tuple(axes)
            remedy = (
                "lies in the signal axes, but a roi selects scan positions: for a region of the "
                "frames use signal.udf.virtual_image(roi), or signal.isig"
                if navigate
                else "lies in the navigation axes, but a detector selects pixels of the frames: "
                "for a region of the scan pass it as roi="
            )
            raise ArgumentValueError(f"{roi!r} of {signal!r} {remedy}")
    if len(every) < roi.ndim:
        kind = "navigation" if navigate else "signal"
        raise ArgumentValueError(
            f"{roi!r} needs {roi.ndim} {kind} axes, but {signal!r} has {len(every)}"
        )
    return tuple(every[: roi.ndim])
