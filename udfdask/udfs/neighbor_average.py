"""Average each frame with the frames around it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.axes import Axis
from udfdask.masks import checks
from udfdask.udf.buffers import BufferSpec
from udfdask.udf.promises import Promises
from udfdask.udfs.shared.built_in import check_flag
from udfdask.udfs.shared.neighbor_windows import WindowUDF


class NeighborAverageUDF(WindowUDF):
    """Replace each frame by the weighted mean of the frames around it, which reduces noise.

    Parameters
    ----------
    window : str, tuple or array-like of numbers
        Weights of the neighbors. ``"circular"``: 1 up to the distance ``shape // 2`` from the
        position, 0 beyond; ``"rectangular"``: 1 everywhere; ``"gaussian"``, with `std`; another
        window of `scipy.signal.get_window`, multiplied along the navigation axes; or the weights
        themselves, with an odd size along each navigation axis.
    shape : int or tuple of int, optional
        Odd number of frames in the window: along all navigation axes, or along each of them; 3 by
        default. An array of weights has its own shape.
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
        If a parameter has a wrong type or value, such as an even size, or weights are negative and
        `normalize` is True; in `run_udf`, if the data are not numbers, or the window has another
        number of axes than the scan.

    See Also
    --------
    NeighborSimilarityUDF : Shows where neighbors differ, so that averaging mixes them.

    Notes
    -----
    Buffer `intensity`, kind nav, extra shape `sig`, dtype `dtype`, in the unit of the data::

        intensity[p] = sum_k w[k] * frame[p + k] / sum_k w[k]

    over the neighbors k that exist. Frames outside of a region of interest are neighbors, too. A
    position without any neighbor of positive weight is NaN. The result is as large as the data, or
    larger: write it to a file with ``Result.to_zarr``.

    Examples
    --------
    >>> import dask.array as da, udfdask as ud
    >>> from udfdask.udfs import NeighborAverageUDF
    >>> x = da.arange(4 * 3, chunks=4).reshape(4, 1, 3)
    >>> ud.run_udf(x, NeighborAverageUDF("rectangular"))["intensity"].compute()
    array([[[1.5, 2.5, 3.5]],
    <BLANKLINE>
           [[3. , 4. , 5. ]],
    <BLANKLINE>
           [[6. , 7. , 8. ]],
    <BLANKLINE>
           [[7.5, 8.5, 9.5]]], dtype=float32)
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
