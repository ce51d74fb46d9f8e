"""Compare each frame with the frames around it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.axes import Axis
from udfdask.masks import checks
from udfdask.masks.given_masks import is_held_elsewhere
from udfdask.udf.buffers import BufferSpec
from udfdask.udf.promises import Promises
from udfdask.udfs.neighbor_average import WindowUDF
from udfdask.udfs.shared.built_in import check_flag

FLAT = 1e-13
"""Relative variance below which a frame is constant: sums in double precision are not closer."""


class NeighborSimilarityUDF(WindowUDF):
    """Compare each frame with the frames around it: the normalized dot product with each of them.

    The mean over the neighbors is a map of the sample: it is high inside of a crystal, and low at
    its boundaries and where there is only noise.

    Parameters
    ----------
    window : str or array-like of numbers
        The neighbors: ``"circular"``, those up to the distance ``shape // 2``; ``"rectangular"``,
        all in the window; or an array with an odd size along each navigation axis, where 0 leaves a
        neighbor out.
    shape : int or tuple of int, optional
        Odd number of frames along all navigation axes, or along each of them; 3 by default.
    zero_mean : bool
        Subtract from each frame its mean: a product then measures contrast, not brightness.
    normalize : bool
        Divide each product by the norms of both frames.
    mask : array-like of bool, shape sig, optional
        The pixels to compare, by default all. HyperSpy's masks have the opposite meaning.
    boundary : {"mask", "nearest", "reflect", "periodic"}
        What stands for frames beyond the ends of the scan. With "mask", they are missing.
    dtype : dtype-like
        Floating dtype of the results, which are computed in double precision.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If a parameter is wrong; in `run_udf`, if the data are not real numbers, or the window or
        the mask does not fit them.

    See Also
    --------
    NeighborAverageUDF : Averages similar neighbors.

    Notes
    -----
    Buffers of kind nav, dtype `dtype`:

    - `similarity`, extra shape: that of the window: ``dot(f, g) / (norm(f) * norm(g))`` of the
      frame f and each neighbor g. It is NaN where the neighbor is missing or not in the window.
    - `mean`: the mean over all neighbors that exist, without the frame itself; NaN if there is
      none. It is the average neighbor dot product map of kikuchipy.

    A frame that is 0 everywhere, or constant with `zero_mean`, has no direction: its normalized
    products are 0, also that with itself. Products with a frame that has a NaN are NaN.

    Examples
    --------
    >>> import dask.array as da, numpy as np, udfdask as ud
    >>> from udfdask.udfs import NeighborSimilarityUDF
    >>> x = da.from_array(np.array([[[1, 2, 3]], [[2, 4, 6]], [[3, 2, 1]]]), chunks=(2, 1, 3))
    >>> res = ud.run_udf(x, NeighborSimilarityUDF()).compute()
    >>> res["mean"]
    array([ 1.,  0., -1.], dtype=float32)
    >>> res["similarity"]
    array([[nan,  1.,  1.],
           [ 1.,  1., -1.],
           [-1.,  1., nan]], dtype=float32)
    """

    promises = Promises(declares_once=True)
    _mask_parameter = "mask"
    default_plots = ("mean",)

    def __init__(
        self,
        window: Any = "circular",
        *,
        shape: Any = None,
        zero_mean: bool = True,
        normalize: bool = True,
        mask: Any = None,
        boundary: str = "mask",
        dtype: Any = np.float32,
    ) -> None:
        if checks.dtype(dtype).kind != "f":
            raise ArgumentTypeError(f"dtype={dtype!r}: similarities need a floating dtype")
        flags = {"zero_mean": zero_mean, "normalize": normalize}
        flags = {name: check_flag(name, value) for name, value in flags.items()}
        super().__init__(window, shape, boundary, **flags, mask=_read_mask(mask), dtype=dtype)

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        data, dtype, mask = self.meta.input_dtype, self.params.dtype, self.params.mask
        if data.kind not in "biuf":
            raise ArgumentTypeError(
                f"{type(self).__name__} compares real numbers, not {data}: use dask.array.absolute"
            )
        sig = tuple(self.meta.dataset_shape.sig)
        if mask is not None and mask.shape != sig:
            raise ArgumentValueError(f"mask has the shape {mask.shape}, but frames have {sig}")
        similarity = self.buffer("nav", self._weights().shape, dtype)
        return {"similarity": similarity, "mean": self.buffer("nav", dtype=dtype)}

    def get_result_axes(self) -> Mapping[str, tuple[Axis, ...]]:
        """Describe the distance from the position, in frames if the scan is not evenly spaced."""
        axes, shape = [], self._weights().shape
        for axis, n in zip(self.meta.axes[: len(shape)], shape, strict=True):
            known = axis.is_calibrated and axis.values is None
            unit, scale = (axis.unit, axis.scale) if known else (None, 1.0)
            start = -(n // 2) * scale
            axes.append(Axis(name=f"{axis.name}_offset", unit=unit, scale=scale, offset=start))
        return {"similarity": tuple(axes)}

    def get_result_units(self) -> Mapping[str, str | None]:
        """Say that normalized products have no unit."""
        return dict.fromkeys(("similarity", "mean"), "" if self.params.normalize else None)

    def get_shared_task_data(self) -> Mapping[str, Any]:
        from udfdask.kernels.cpu.neighbor_products import cut_pixels

        pixels = cut_pixels(self.meta.dataset_shape.sig.size, self.params.mask)
        return {"window": self._weights(), "pixels": pixels}

    def process_partition(self, frames: Any) -> None:
        from udfdask.kernels.cpu.neighbor_products import multiply_neighbors

        window, mask = self.task_data.window, self.params.mask
        similarity, mean = self.results.similarity, self.results.mean
        if not mean.size:
            return
        n_pixels = self.meta.dataset_shape.sig.size if mask is None else int(mask.sum())
        flat, where, steps = self._around(frames, window)
        sums, squares, products = multiply_neighbors(flat, where, steps, self.task_data.pixels)
        frame, neighbor = where.places[:, np.newaxis], where.places[:, np.newaxis] + steps
        # sums of infinite pixels are not numbers
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            if self.params.zero_mean:
                means = sums / max(n_pixels, 1)
                products = products - n_pixels * means[frame] * means[neighbor]
                variances = squares - n_pixels * means**2
                squares = np.where(variances <= FLAT * squares, 0, variances)
            if self.params.normalize:
                norms = np.sqrt(squares)
                size = norms[frame] * norms[neighbor]
                products = np.divide(products, size, out=np.zeros_like(products), where=size != 0)
                # a rounding error must not make it larger than 1
                products = np.clip(products, -1, 1)
            elif self.params.zero_mean:
                products = np.where(squares[frame] * squares[neighbor] == 0, 0, products)
            exists = where.exists[neighbor]
            rows = np.full((len(products), window.size), np.nan)
            rows[:, np.flatnonzero(window)] = np.where(exists, products, np.nan)
            similarity[...] = rows.reshape(similarity.shape)
            total, count = np.zeros((2, len(products)))
            # one neighbor after the other: `sum` adds in another order if there are other rows
            for k in np.flatnonzero(steps):
                total += np.where(exists[:, k], products[:, k], 0)
                count += exists[:, k]
            mean[...] = (total / count).reshape(mean.shape)


def _read_mask(mask: Any) -> Any:
    """Return a mask as an array of bool, or unchanged if only an accessor can read it."""
    if mask is None or is_held_elsewhere(mask):
        return mask
    if hasattr(mask, "__dask_graph__"):
        raise ArgumentTypeError("mask must be an array in memory: call .compute() first")
    values = np.asarray(mask)
    if values.dtype.kind not in "biu" or (values.dtype.kind != "b" and values.max(initial=0) > 1):
        raise ArgumentTypeError(f"mask must be an array of bool, not of dtype {values.dtype}")
    if not values.any():
        raise ArgumentValueError("mask selects no pixel: it is True for the pixels to compare")
    return values.astype(bool)
