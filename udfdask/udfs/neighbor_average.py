"""Windows of neighboring frames, and the average of the frames in them."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from udfdask.base.types import AnyArray
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.axes import Axis
from udfdask.geometry.halo import BOUNDARIES
from udfdask.masks import checks
from udfdask.udf.buffers import BufferSpec
from udfdask.udf.promises import Promises
from udfdask.udfs.shared.built_in import BuiltInUDF, check_choice, check_flag

if TYPE_CHECKING:
    from udfdask.kernels.cpu.neighbor_sums import Neighborhood

LARGEST = 1001
"""Largest size of a window along an axis, in frames."""

WINDOWS = '"circular", "rectangular", "gaussian" with std=, another window of scipy.signal'
"""What a window can be, for messages."""


class WindowUDF(BuiltInUDF):
    """A UDF that processes the frames in a window around each position."""

    def __init__(self, window: Any, shape: Any, boundary: str, **more: Any) -> None:
        check_choice("boundary", boundary, BOUNDARIES)
        # the name of a window, also with numbers, or an array of weights; and the number of frames
        # along all navigation axes, or along each
        self._kind, self._shape = _read_window(window, shape, more.get("std"))
        super().__init__(window=window, shape=shape, boundary=boundary, **more)
        self.halo = _half(self._shape)
        self.boundary = boundary

    def _weights_for(self, nav_dims: int) -> AnyArray:
        if isinstance(self._kind, np.ndarray):
            return self._kind
        shape = (self._shape,) * nav_dims if isinstance(self._shape, int) else self._shape
        if self._kind == "circular":
            places = np.indices(shape) - np.reshape(_half(shape), (-1, *[1] * len(shape)))
            inside: AnyArray = (places**2).sum(axis=0) <= (max(shape, default=0) // 2) ** 2
            return inside.astype(np.float64)
        lines = (_window(self._kind, n) for n in shape)
        return functools.reduce(np.multiply.outer, lines, np.ones(()))

    def _weights(self) -> AnyArray:
        """Return the weights for the data; raise if their scan has other axes."""
        shape, nav = self._shape, tuple(self.meta.dataset_shape.nav)
        if not isinstance(shape, int) and len(shape) != len(nav):
            raise ArgumentValueError(
                f"{type(self).__name__} has a window of shape {shape} for {len(shape)} "
                f"navigation axes, but the data have {len(nav)}, of shape {nav}"
            )
        return self._weights_for(len(nav))

    def _around(self, frames: Any, weights: AnyArray) -> tuple[Any, Neighborhood, Any]:
        """Return frames in a row, those to process, and the distances to neighbors with weight."""
        from udfdask.kernels.cpu.neighbor_sums import Neighborhood, distances, frames_of

        nav = self.meta.neighbor_mask.shape
        where = Neighborhood.of(self.meta.core, self.meta.core_mask, self.meta.neighbor_mask)
        used = np.argwhere(weights) - np.array(weights.shape) // 2
        return frames_of(frames, len(nav)), where, distances(used, nav)


class NeighborAverageUDF(WindowUDF):
    """Replace each frame by the weighted mean of the frames around it, which reduces noise.

    Parameters
    ----------
    window : str, tuple or array-like of numbers
        Weights of the neighbors. ``"circular"``: 1 up to the distance ``shape // 2``, 0 beyond;
        ``"rectangular"``: 1 everywhere; ``"gaussian"``, with `std`; another window of
        `scipy.signal.get_window`; or the weights themselves, an odd number along each axis.
    shape : int or tuple of int, optional
        Odd number of frames along all navigation axes, or along each of them; 3 by default.
    std : float, optional
        Standard deviation of ``window="gaussian"``, in frames.
    boundary : {"mask", "nearest", "reflect", "periodic"}
        What stands for frames beyond the ends of the scan. With "mask", their weights do not count.
    normalize : bool
        Divide by the sum of the weights of the neighbors that exist. If False, the result is the
        weighted sum, as for differences along the scan: weights can then be negative.
    dtype : dtype-like
        Floating dtype of the result, and of the computation; complex if the data are complex.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If a parameter is wrong, such as an even size, or weights are negative and `normalize` is
        True; in `run_udf`, if the data are not numbers or the window does not fit the scan.

    See Also
    --------
    NeighborSimilarityUDF : Shows where neighbors differ, so that averaging mixes them.

    Notes
    -----
    Buffer `intensity`, kind nav, extra shape `sig`, dtype `dtype`, in the unit of the data:
    ``intensity[p] = sum_k w[k] * frame[p + k] / sum_k w[k]`` over the neighbors k that exist.
    Frames outside of a region of interest are neighbors, too. A position without any neighbor of
    positive weight is NaN. The result is as large as the data, or larger: write it to a file with
    ``Result.to_zarr``.

    Examples
    --------
    >>> import dask.array as da, udfdask as ud
    >>> from udfdask.udfs import NeighborAverageUDF
    >>> x = da.arange(4 * 3, chunks=4).reshape(4, 1, 3)
    >>> ud.run_udf(x, NeighborAverageUDF("rectangular"))["intensity"][:, 0, 0].compute()
    array([1.5, 3. , 6. , 7.5], dtype=float32)
    """

    promises = Promises(declares_once=True)
    _writes_strided = True

    def __init__(
        self,
        window: Any = "circular",
        *,
        shape: Any = None,
        std: float | None = None,
        boundary: str = "mask",
        normalize: bool = True,
        dtype: Any = np.float32,
    ) -> None:
        normalize = check_flag("normalize", normalize)
        if checks.dtype(dtype).char not in "fd":
            raise ArgumentTypeError(f"dtype={dtype!r}: means need the dtype 'float32' or 'float64'")
        super().__init__(window, shape, boundary, std=std, normalize=normalize, dtype=dtype)
        dims = 1 if isinstance(self._shape, int) else len(self._shape)
        if normalize and (self._weights_for(dims) < 0).any():
            raise ArgumentValueError(
                "window has negative weights, whose sum can be 0: pass normalize=False"
            )

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        data, dtype = self.meta.input_dtype, np.dtype(self.params.dtype).newbyteorder("=")
        if data.kind not in "biufc":
            raise ArgumentTypeError(f"NeighborAverageUDF averages numbers, but the data are {data}")
        self._weights()  # raises if the window does not fit the scan
        if data.kind == "c":
            dtype = np.result_type(dtype, np.complex64)
        sig = tuple(self.meta.dataset_shape.sig)
        return {"intensity": self.buffer(kind="nav", extra_shape=sig, dtype=dtype)}

    def get_result_axes(self) -> Mapping[str, tuple[Axis, ...]]:
        return {"intensity": self.meta.axes[len(self.meta.dataset_shape.nav) :]}

    def get_result_units(self) -> Mapping[str, str | None]:
        return {"intensity": self.meta.unit if self.params.normalize else None}

    def get_shared_task_data(self) -> Mapping[str, Any]:
        return {"weights": self._weights()}

    def process_partition(self, frames: Any) -> None:
        from udfdask.kernels.cpu.neighbor_sums import sum_neighbors

        out, weights = self.results.intensity, self.task_data.weights
        if not out.size:
            return
        frames, where, steps = self._around(frames, weights)
        shares, nav_dims = weights[weights != 0], self.meta.neighbor_mask.ndim
        sum_neighbors(frames, where, steps, shares, self.params.normalize, out, nav_dims)


def _half(shape: Any) -> Any:
    return shape // 2 if isinstance(shape, int) else tuple(n // 2 for n in shape)


def _read_window(window: Any, shape: Any, std: Any) -> tuple[Any, int | tuple[int, ...]]:
    """Return the kind of a window, and its shape; raise if a parameter is wrong."""
    if not isinstance(window[0] if isinstance(window, tuple) and window else window, str):
        if shape is not None or std is not None:
            raise ArgumentValueError("an array of weights needs no shape and no std: leave it out")
        weights = _read_weights(window)
        return weights, weights.shape
    several = isinstance(shape, (tuple, list, np.ndarray))
    given = shape if several else (3 if shape is None else shape,)
    of = "an odd number of frames"
    sizes = tuple(checks.integer("shape", n, least=1, of=of) for n in given)
    if not sizes or any(n % 2 == 0 for n in sizes):
        raise ArgumentValueError(
            f"shape must be odd numbers of frames, such as 3 or (3, 5), not {shape!r}"
        )
    if max(sizes) > LARGEST:
        raise ArgumentValueError(f"shape can be at most {LARGEST} frames, not {shape!r}")
    if std is not None:
        if window != "gaussian":
            raise ArgumentValueError(f'std is for window="gaussian", not for window={window!r}')
        if isinstance(std, bool) or not isinstance(std, Real):
            raise ArgumentTypeError(f"std must be a number of frames, not {std!r}")
        if not 0 < float(std) < math.inf:
            raise ArgumentValueError(f"std must be a positive number of frames, not {std!r}")
        window = ("gaussian", float(std))
    for n in sizes if window != "circular" else ():
        if n > 1 and not np.delete(_window(window, n), n // 2).any():
            raise ArgumentValueError(
                f"window={window!r} of {n} frames has no weight other than that of the middle: "
                f"pass a larger {f'shape, such as {n + 2}' if std is None else 'std'}"
            )
    return window, sizes if several else sizes[0]


def _read_weights(window: Any) -> AnyArray:
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
    if not np.isfinite(weights).all() or not weights.any():
        raise ArgumentValueError("window has NaN or infinite weights, or no weight other than 0")
    return weights


def _window(kind: Any, n: int) -> AnyArray:
    """Return a window of scipy.signal along one axis; it is symmetric."""
    from scipy.signal import get_window

    try:
        weights: AnyArray = get_window(kind, n, fftbins=False)
        if not np.isfinite(weights).all():
            raise ValueError("its weights are not finite")  # noqa: TRY301
    except (TypeError, ValueError) as error:
        hint = "pass std= in frames" if kind == "gaussian" else str(error)
        raise ArgumentValueError(
            f"window={kind!r} cannot be used: {hint}; it must be {WINDOWS}, or an array of weights"
        ) from None
    return weights
