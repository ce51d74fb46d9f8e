"""Runs a plain function over every frame."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask.array as da

from udfdask.errors import ArgumentTypeError
from udfdask.plan.plan import check_is_array
from udfdask.run.run_udf import run_udf
from udfdask.udf import UDF


def map_frames(
    func: Callable[..., Any],
    array: da.Array,
    *,
    sig_dims: int = 2,
    roi: Any = None,
    output_shape: tuple[int, ...] | None = None,
    output_dtype: Any = None,
    ragged: bool = False,
    **kwargs: Any,
) -> da.Array:
    """Return what a function gives for every frame, lazily.

    Parameters
    ----------
    func : callable
        Called as ``func(frame, **kwargs)`` with each frame, shape `sig`, in the dtype that UDFs get
        (float32 or float64 for integers). Returns an array or scalar, always of the same shape.
    array : dask.array.Array, shape (*nav, *sig)
        The data.
    sig_dims : int
        Number of signal axes.
    roi : array-like, optional
        Which scan positions are processed, as in `run_udf`.
    output_shape : tuple of int, optional
        Shape of what `func` returns. If it or `output_dtype` is missing, `func` is called once at
        once on a frame of ones to find out.
    output_dtype : dtype-like, optional
        Dtype of what `func` returns.
    ragged : bool
        `func` returns something of another shape for each frame: the result has dtype object.
    **kwargs
        Parameters of `func`: constant ones, and `UDF.aux_data` of kind nav, of which `func` gets
        the value for its frame.

    Returns
    -------
    dask.array.Array, shape (*nav, *output_shape)
        One entry per frame, in the navigation chunks of `array`; fill outside the ROI.

    Raises
    ------
    UDFError
        As `run_udf` does, or if `func` returns something that is no array.

    Examples
    --------
    >>> import dask.array as da, numpy as np, udfdask as ud
    >>> x = da.ones((2, 3, 4, 5), chunks=(1, 3, 4, 5))
    >>> ud.map_frames(np.sum, x, axis=-1)
    dask.array<autoudf-result-nav, shape=(2, 3, 4), dtype=float64, chunksize=(1, 3, 4), ...>
    """
    from udfdask.udfs.auto import AutoUDF  # loads all ready-made UDFs

    _check_function(func, array)
    check_is_array(array, "map_frames")
    udf = AutoUDF(
        f=func,
        output_shape=output_shape,
        output_dtype=output_dtype,
        ragged=ragged,
        kwargs=kwargs,
    )
    result: da.Array = run_udf(array, udf, sig_dims=sig_dims, roi=roi)["result"]
    return result


def _check_function(func: Any, array: Any) -> None:
    """Raise if this is a UDF, or if function and array are swapped."""
    if isinstance(func, UDF) or (isinstance(func, type) and issubclass(func, UDF)):
        name = func.__name__ if isinstance(func, type) else type(func).__name__
        raise ArgumentTypeError(
            f"map_frames runs a plain function, got the UDF {name}: run_udf(array, {name}(...))"
        )
    if not callable(func) and callable(array):
        raise ArgumentTypeError(
            f"expected a function of a frame, got {type(func).__name__}: the function comes "
            "first, then the array: map_frames(func, array)"
        )
