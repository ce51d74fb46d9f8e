"""Windows of neighboring frames, and their weights."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.axes import Axis
from udfdask.types import AnyArray
from udfdask.udfs.shared.built_in import BuiltInUDF

if TYPE_CHECKING:
    from udfdask.kernels.cpu.neighbor_sums import Neighborhood

LARGEST = 1001
"""Largest size of a window along an axis, in frames."""

WINDOWS = '"circular", "rectangular", "gaussian" with std=, another window of scipy.signal'
"""What a window can be, for messages."""


class Window(NamedTuple):
    """The window of a UDF, as parameters that have been checked."""

    kind: Any
    """Name of a window, tuple of a name and numbers, or array of weights, float64."""
    shape: int | tuple[int, ...]
    """Number of frames along all navigation axes, or along each; odd numbers."""

    @property
    def halo(self) -> int | tuple[int, ...]:
        """Number of frames on each side: for all navigation axes, or for each."""
        if isinstance(self.shape, int):
            return self.shape // 2
        return tuple(n // 2 for n in self.shape)

    def weights(self, nav_dims: int) -> AnyArray:
        """Return the weights for this number of navigation axes, float64."""
        if isinstance(self.kind, np.ndarray):
            return self.kind
        shape = (self.shape,) * nav_dims if isinstance(self.shape, int) else self.shape
        if self.kind == "circular":
            middle = np.reshape([n // 2 for n in shape], (-1, *[1] * len(shape)))
            places = np.indices(shape) - middle
            reach = max((n // 2 for n in shape), default=0)
            inside: AnyArray = (places**2).sum(axis=0) <= reach**2
            return inside.astype(np.float64)
        weights: AnyArray = np.ones(())
        for n in shape:
            weights = np.multiply.outer(weights, _window(self.kind, n))
        return weights


class WindowUDF(BuiltInUDF):
    """A UDF that processes the frames in a window around each position."""

    def __init__(self, window: Any, shape: Any, boundary: str, **more: Any) -> None:
        self._window = read_window(window, shape, more.get("std"))
        checked_boundary(boundary)
        super().__init__(window=window, shape=shape, boundary=boundary, **more)
        self.halo = self._window.halo
        self.boundary = boundary

    def _weights(self) -> AnyArray:
        """Return the weights for the data; raise if their scan has other axes."""
        shape, nav = self._window.shape, tuple(self.meta.dataset_shape.nav)
        if not isinstance(shape, int) and len(shape) != len(nav):
            raise ArgumentValueError(
                f"{type(self).__name__} has a window of shape {shape} for {len(shape)} "
                f"navigation axes, but the data have {len(nav)}, of shape {nav}: pass an odd size "
                "for each of them, or a single number for all"
            )
        return self._window.weights(len(nav))

    def _around(self, frames: Any, weights: AnyArray) -> tuple[Any, Neighborhood, Any]:
        """Return frames in a row, those to process, and the distances to neighbors with weight."""
        from udfdask.kernels.cpu.neighbor_sums import Neighborhood, distances, frames_of

        nav = self.meta.neighbor_mask.shape
        where = Neighborhood.of(self.meta.core, self.meta.core_mask, self.meta.neighbor_mask)
        used = np.argwhere(weights) - np.array(weights.shape) // 2
        return frames_of(frames, len(nav)), where, distances(used, nav)


def read_window(window: Any, shape: Any, std: Any) -> Window:
    """Return the window for parameters of a UDF, checked."""
    first = window[0] if isinstance(window, tuple) and window else window
    if not isinstance(first, str):
        for name, given in (("shape", shape), ("std", std)):
            if given is not None:
                raise ArgumentValueError(f"an array of weights needs no {name}: leave it out")
        weights = _weights(window)
        return Window(weights, weights.shape)
    shape = 3 if shape is None else shape
    sizes = _sizes(shape)
    if std is not None:
        if window != "gaussian":
            raise ArgumentValueError(f'std is for window="gaussian", not for window={window!r}')
        window = ("gaussian", _standard_deviation(std))
    if window != "circular":
        for n in sizes:
            weights = _window(window, n)
            if n > 1 and not np.delete(weights, n // 2).any():
                larger = "std" if std is not None else f"shape, such as {n + 2}"
                raise ArgumentValueError(
                    f"window={window!r} of {n} frames has no weight other than that of the middle: "
                    f"pass a larger {larger}"
                )
    return Window(window, sizes if isinstance(shape, (tuple, list, np.ndarray)) else sizes[0])


def window_axes(udf: BuiltInUDF, shape: tuple[int, ...]) -> tuple[Axis, ...]:
    """Return an axis for each axis of a window: the distance from the position.

    It has the unit of the navigation axis if this is evenly spaced, otherwise it counts frames.
    """
    axes = []
    for axis, n in zip(udf.meta.axes[: len(shape)], shape, strict=True):
        known = axis.is_calibrated and axis.values is None
        unit, scale = (axis.unit, axis.scale) if known else (None, 1.0)
        start = -(n // 2) * scale
        axes.append(Axis(name=f"{axis.name}_offset", unit=unit, scale=scale, offset=start))
    return tuple(axes)


def checked_boundary(boundary: Any) -> str:
    """Return the name of a boundary; raise if there is none of this name."""
    from udfdask.geometry.halo import BOUNDARIES

    if boundary not in BOUNDARIES:
        raise ArgumentValueError(
            f"boundary must be one of {', '.join(BOUNDARIES)}, not {boundary!r}"
        )
    return str(boundary)


def _sizes(shape: Any) -> tuple[int, ...]:
    """Return the sizes of a shape; raise if one is not odd."""
    given = tuple(shape) if isinstance(shape, (tuple, list, np.ndarray)) else (shape,)
    if not all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) for n in given):
        raise ArgumentTypeError(
            f"shape must be an odd number of frames, or one for each navigation axis, not {shape!r}"
        )
    sizes = tuple(map(int, given))
    if not sizes or any(n < 1 or n % 2 == 0 for n in sizes):
        raise ArgumentValueError(
            f"shape must be odd numbers of frames, such as 3 or (3, 5), not {shape!r}"
        )
    if max(sizes) > LARGEST:
        raise ArgumentValueError(f"shape can be at most {LARGEST} frames, not {shape!r}")
    return sizes


def _standard_deviation(std: Any) -> float:
    if isinstance(std, (bool, np.bool_)) or not isinstance(std, (int, float, np.number)):
        raise ArgumentTypeError(f"std must be a number of frames, not {std!r}")
    if not 0 < std < math.inf:
        raise ArgumentValueError(f"std must be a positive number of frames, not {std!r}")
    return float(std)


def _weights(window: Any) -> AnyArray:
    """Return weights that were given as an array, float64."""
    if hasattr(window, "__dask_graph__"):
        raise ArgumentTypeError("window must be an array in memory: call .compute() first")
    try:
        weights = np.array(window, np.float64)
    except (TypeError, ValueError):
        weights = np.zeros(())
    if weights.ndim == 0:
        raise ArgumentTypeError(f"window must be {WINDOWS}, or an array of weights, not {window!r}")
    if any(n % 2 == 0 for n in weights.shape):
        raise ArgumentValueError(
            f"window must have an odd number of weights along each axis, not {weights.shape}"
        )
    if not np.isfinite(weights).all():
        raise ArgumentValueError("window contains weights that are NaN or infinite")
    if not weights.any():
        raise ArgumentValueError("window contains no weight other than 0")
    return weights


def _window(kind: Any, n: int) -> AnyArray:
    """Return a window of scipy.signal along one axis; it is symmetric."""
    from scipy.signal import get_window

    try:
        weights: AnyArray = get_window(kind, n, fftbins=False)
    except (TypeError, ValueError) as error:
        hint = "pass std= in frames" if kind == "gaussian" else str(error)
        raise ArgumentValueError(
            f"window={kind!r} cannot be used: {hint}; it must be {WINDOWS}, or an array of weights"
        ) from None
    if not math.isfinite(weights.sum()):
        raise ArgumentValueError(f"window={kind!r} has weights that are not finite")
    return weights
