"""Convert HyperSpy's ROIs and signals to masks of a frame."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np

from udfdask.errors import ArgumentValueError
from udfdask.hyperspy.data import aligned_data, lazy_signal_error
from udfdask.hyperspy.regions import check_selects, pixels_of_roi
from udfdask.types import AnyArray


def mask_reader(signal: Any) -> Callable[[Any], Any]:
    """Return a function that converts ROIs and signals to masks of the frames of a signal.

    It returns all other values unchanged.
    """
    from hyperspy.api import signals
    from hyperspy.roi import BaseROI

    def read(mask: Any) -> Any:
        if isinstance(mask, BaseROI):
            return _from_roi(signal, mask)
        return _from_signal(signal, mask) if isinstance(mask, signals.BaseSignal) else mask

    return read


def _from_roi(signal: Any, roi: Any) -> AnyArray:
    """Return the pixels of a frame that HyperSpy selects with a ROI in the signal axes."""
    check_selects(roi, "pixels", "a boolean mask, or weights with ApplyMasksUDF")
    axes = signal.axes_manager.signal_axes
    for plotted, (_, chosen) in roi.signal_map.items():
        if plotted is signal:
            if any(axis.navigate for axis in chosen):
                raise ArgumentValueError(
                    f"{roi!r} lies in the navigation axes of {signal!r}, but a detector selects "
                    "pixels of the frames: for a region of the scan pass it as roi="
                )
            return _some_pixels(roi, tuple(chosen), axes)
    if len(axes) < roi.ndim:
        raise ArgumentValueError(
            f"{roi!r} needs {roi.ndim} signal axes, but {signal!r} has {len(axes)}"
        )
    return _some_pixels(roi, tuple(axes[: roi.ndim]), axes)


def _some_pixels(roi: Any, chosen: tuple[Any, ...], axes: tuple[Any, ...]) -> AnyArray:
    """Return the pixels that a ROI selects along some of the signal axes; raise if there is none.

    `chosen` are the axes of the ROI, `axes` all signal axes.
    """
    mask = pixels_of_roi(roi, chosen, axes, navigate=False)
    if not mask.any():
        ranges = [f"{axis.low_value:g} to {axis.high_value:g}" for axis in chosen]
        raise ArgumentValueError(
            f"{roi!r} selects no pixel of the frames, whose signal axes go from "
            f"{' and '.join(ranges)} ({', '.join(map(str, chosen))})"
        )
    return mask


def _from_signal(signal: Any, mask: Any) -> AnyArray:
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
