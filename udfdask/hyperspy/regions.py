"""Convert HyperSpy's ROIs and signals to boolean arrays: of the scan, or of a frame."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.chunk_grid import BoolArray
from udfdask.hyperspy.data import aligned_data, lazy_signal_error
from udfdask.types import AnyArray


def read_roi(signal: Any, roi: Any) -> Any:
    """Return a region of the scan with HyperSpy's objects converted to arrays."""
    from hyperspy.api import signals
    from hyperspy.roi import BaseROI

    if isinstance(roi, BaseROI):
        return _select(signal, roi, navigate=True)
    if isinstance(roi, signals.BaseSignal):
        manager = roi.axes_manager
        # `s.sum("sig") > 5` and its transpose, an image, give the same array
        axes = manager.signal_axes or manager.navigation_axes
        alone = not (manager.signal_axes and manager.navigation_axes)
        nav = signal.axes_manager.navigation_shape
        _check_mask(roi, alone and tuple(axis.size for axis in axes) == nav, nav, "roi")
        if roi.data.dtype != bool:
            raise ArgumentTypeError(
                f"the roi is {roi!r} of dtype {roi.data.dtype}, expected booleans: compare it with "
                "a number, as in mask > 0"
            )
        return np.asarray(aligned_data(roi))
    axes = signal.axes_manager.navigation_axes[::-1]
    names, shape = tuple(axis.name for axis in axes), tuple(axis.size for axis in axes)
    dims = getattr(roi, "dims", ())
    if dims != names and set(dims) == set(names):  # a DataArray in another order
        return roi.transpose(*names)
    if isinstance(roi, np.ndarray) and roi.shape == shape[::-1] != shape:
        raise ArgumentValueError(
            f"the roi has shape {roi.shape}, which is (x, y), but arrays must have the order of "
            f"signal.data, here {shape}: pass roi.T"
        )
    return roi


def mask_reader(signal: Any) -> Callable[[Any], Any]:
    """Return a function that converts ROIs and signals to masks of the frames of a signal.

    It returns all other values unchanged.
    """
    from hyperspy.api import signals
    from hyperspy.roi import BaseROI

    def read(mask: Any) -> Any:
        if isinstance(mask, BaseROI):
            return _select(signal, mask, navigate=False)
        if not isinstance(mask, signals.BaseSignal):
            return mask
        manager, sig = mask.axes_manager, signal.axes_manager.signal_shape
        fits = not manager.navigation_dimension and manager.signal_shape == sig
        _check_mask(mask, fits, sig, "mask")
        found: AnyArray = np.asarray(aligned_data(mask))
        return found

    return read


def _check_mask(mask: Any, fits: bool, sizes: tuple[int, ...], what: str) -> None:
    """Raise unless a signal has axes of these sizes only, and is in memory."""
    if not fits:
        of, example = (
            ("navigation", "signal.sum('sig') > 5")
            if what == "roi"
            else ("signal", "signal.mean() > 5")
        )
        raise ArgumentValueError(
            f"the {what} is {mask!r}, but the data have {of} axes of sizes {sizes}: pass a signal "
            f"with these axes only, such as {example}"
        )
    if isinstance(mask.data, da.Array):
        raise lazy_signal_error(what, "roi=mask" if what == "roi" else "the mask")


def _select(signal: Any, roi: Any, *, navigate: bool) -> BoolArray:
    """Return the scan positions, or the pixels of a frame, that a ROI of HyperSpy selects.

    HyperSpy itself slices a signal that holds the number of each position: its own rounding counts.
    """
    from hyperspy.api import signals
    from hyperspy.roi import Line2DROI

    kind, what = ("navigation", "positions") if navigate else ("signal", "pixels")
    if isinstance(roi, Line2DROI):
        raise ArgumentTypeError(f"{roi!r} does not select {what} but interpolates between them")
    manager = signal.axes_manager
    every = manager.navigation_axes if navigate else manager.signal_axes
    axes = _axes_of(signal, roi, every, kind)
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
        raise ArgumentValueError(
            f"{roi!r} selects no pixel of the frames, whose signal axes are {every}"
        )
    own_axes = {id(axis) for axis in axes}
    spread = tuple(axis.size if id(axis) in own_axes else 1 for axis in every[::-1])
    return np.broadcast_to(mask.reshape(spread), tuple(axis.size for axis in every[::-1]))


def _axes_of(signal: Any, roi: Any, every: Any, kind: str) -> tuple[Any, ...]:
    """Return the axes of a ROI, x first: those of its plot, else the first ones."""
    for plotted, (_, axes) in roi.signal_map.items():
        if plotted is signal:
            if all(axis.navigate == (kind == "navigation") for axis in axes):
                return tuple(axes)
            raise ArgumentValueError(
                f"{roi!r} of {signal!r} is not drawn over {kind} axes: pass a region of the scan "
                "as roi=, and a region of the frames to signal.udf.virtual_image(roi)"
            )
    if len(every) < roi.ndim:
        raise ArgumentValueError(
            f"{roi!r} needs {roi.ndim} {kind} axes, but {signal!r} has {len(every)}"
        )
    return tuple(every[: roi.ndim])
