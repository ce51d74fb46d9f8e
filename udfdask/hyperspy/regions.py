"""Convert HyperSpy's ROIs and signals to boolean arrays: of the scan, or of a frame."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
from hyperspy.api import signals
from hyperspy.roi import BaseROI, Line2DROI

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.chunk_grid import BoolArray
from udfdask.geometry.labels import plain_array


def read_roi(signal: Any, roi: Any) -> Any:
    """Return a region of the scan with HyperSpy's objects converted to arrays."""
    names = tuple(axis.name for axis in signal.axes_manager.navigation_axes[::-1])
    dims = getattr(roi, "dims", ())
    if dims != names and set(dims) == set(names):  # a DataArray in another order
        return roi.transpose(*names)
    return _read(signal, roi, navigate=True)


def read_mask(signal: Any, mask: Any) -> Any:
    """Return a mask of frames with HyperSpy's objects converted to arrays."""
    return _read(signal, mask, navigate=False)


def _read(signal: Any, mask: Any, *, navigate: bool) -> Any:
    """Return a ROI or a signal as an array over the scan or a frame, all other values unchanged."""
    if isinstance(mask, BaseROI):
        return _select(signal, mask, navigate=navigate)
    if not isinstance(mask, signals.BaseSignal):
        return mask
    own, manager = mask.axes_manager, signal.axes_manager
    sizes = manager.navigation_shape if navigate else manager.signal_shape
    example = 'signal.sum("sig") > 5' if navigate else "signal.mean() > 5"
    # of the scan, `s.sum("sig") > 5` and its transpose, an image, give the same array
    shape = own.signal_shape or (own.navigation_shape if navigate else ())
    if shape != sizes or (own.signal_shape and own.navigation_shape):
        raise ArgumentValueError(
            f"the {'roi' if navigate else 'mask'} is {mask!r}: pass a signal with axes of the "
            f"sizes {sizes} only, such as {example}"
        )
    if isinstance(mask.data, da.Array):
        raise lazy_signal_error("roi" if navigate else "mask")
    if navigate and mask.data.dtype != bool:
        raise ArgumentTypeError(
            f"the roi is {mask!r} of dtype {mask.data.dtype}, expected booleans, as in mask > 0"
        )
    return np.asarray(plain_array(mask))


def _select(signal: Any, roi: Any, *, navigate: bool) -> BoolArray:
    """Return the scan positions, or the pixels of a frame, that a ROI of HyperSpy selects.

    HyperSpy itself slices a signal that holds the number of each position: its own rounding counts.
    """
    manager = signal.axes_manager
    every = manager.navigation_axes if navigate else manager.signal_axes
    what = f"the {'navigation' if navigate else 'signal'} axes {every}"
    if isinstance(roi, Line2DROI) or len(every) < roi.ndim:
        raise ArgumentTypeError(f"{roi!r} does not select positions along {what}")
    axes = every[: roi.ndim]
    for plotted, (_, on_axes) in roi.signal_map.items():
        if plotted is signal:
            axes = on_axes
    if any(axis not in every for axis in axes):
        raise ArgumentValueError(
            f"{roi!r} is drawn over other axes: pass a region of the scan as roi=, and a region of "
            "the frames to VirtualDetectorUDF(roi)"
        )
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
        raise ArgumentValueError(f"{roi!r} cannot select from {what}: {error}") from error
    values = np.asarray(picked.data).ravel()
    mask = np.zeros(int(np.prod(shape)), dtype=bool)
    mask[values[np.isfinite(values)].astype(np.int64)] = True
    if not (navigate or mask.any()):
        raise ArgumentValueError(f"{roi!r} selects no pixel of the frames, along {what}")
    spread = tuple(axis.size if axis in order else 1 for axis in every[::-1])
    return np.broadcast_to(mask.reshape(spread), tuple(axis.size for axis in every[::-1]))


def lazy_signal_error(what: str) -> ArgumentTypeError:
    """Return the error about a lazy signal whose values must be known before a run."""
    # `roi=mask.compute()` would be None, which means all positions
    return ArgumentTypeError(
        f"the {what} is a lazy signal: write mask.compute() on a line of its own, which changes "
        "the signal in place and returns None, then pass mask"
    )
