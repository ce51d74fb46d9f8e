"""Importing this module adds the accessor `udf` to dask arrays: ``array.udf.run_udf(...)``."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Unpack

import dask.array as da

from udfdask.geometry.roi import Region
from udfdask.run.map_frames import map_frames
from udfdask.run.options import IMAGE, DetectorOptions, forwards, make_detector
from udfdask.run.progressive import run_udf_iter
from udfdask.run.run_udf import explain, run_udf
from udfdask.udfs.virtual_detector import VirtualDetectorUDF

__all__ = ["ArrayAccessor"]


def _with_array(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that calls a function with the array of the accessor, and its options."""

    @functools.wraps(function)
    def call(self: ArrayAccessor, *args: Any, **kwargs: Any) -> Any:
        return function(self._array, *args, **kwargs)

    signature = inspect.signature(function)
    array, *rest = signature.parameters.values()
    own = array.replace(name="self", annotation=array.empty)
    call.__signature__ = signature.replace(parameters=[own, *rest])  # type: ignore[attr-defined]
    return call


class ArrayAccessor:
    """Runs UDFs over a dask array, as ``array.udf``.

    The methods `run_udf`, `run_udf_iter`, `map_frames` and `explain` call the functions of the same
    names in `udfdask` with the array.

    Examples
    --------
    >>> import dask.array as da, numpy as np, udfdask.dask
    >>> from udfdask.udfs import SumSigUDF
    >>> x = da.ones((4, 6, 8, 8), chunks=(2, 6, 8, 8))
    >>> binned = da.coarsen(np.sum, x, {2: 2, 3: 2})
    >>> bright = binned.udf.run_udf(SumSigUDF(), sig_dims=2)["intensity"] > 10
    >>> bright.sum().compute()
    np.int64(24)
    """

    __slots__ = ("_array",)

    def __init__(self, array: da.Array) -> None:
        self._array = array

    def __repr__(self) -> str:
        return f"<ArrayAccessor of {self._array!r}>"

    run_udf = _with_array(run_udf)
    run_udf_iter = _with_array(run_udf_iter)
    map_frames = _with_array(map_frames)
    explain = _with_array(explain)

    @forwards(DetectorOptions, VirtualDetectorUDF, run_udf)
    def virtual_image(
        self,
        detector: Any = "disk",
        *,
        sig_dims: int | None = None,
        roi: Region | None = None,
        **options: Unpack[DetectorOptions],
    ) -> da.Array:
        """Return the image of a virtual detector, lazily: the sum of its pixels in each frame.

        Parameters
        ----------
        detector : {"disk", "ring", "rect", "point", "window"} or array of bool, shape `sig`
            Shape of the detector, or a mask, as in `udfdask.udfs.VirtualDetectorUDF`.
        sig_dims, roi, **options
            As in `udfdask.run_udf`.

        Returns
        -------
        dask.array.Array, shape nav
            The image.

        Raises
        ------
        UDFError
            As in `udfdask.run_udf`, or if the detector is invalid.

        Examples
        --------
        >>> import dask.array as da, udfdask.dask
        >>> x = da.ones((2, 3, 16, 16), chunks=(1, 3, 16, 16), dtype="uint16")
        >>> x.udf.virtual_image("ring", ri=4, ro=7).compute()
        array([[100, 100, 100],
               [100, 100, 100]])
        """
        udf, run = make_detector(self.virtual_image, detector, options)
        image: da.Array = self.run_udf(udf, sig_dims=sig_dims, roi=roi, **run)[IMAGE]
        return image


class _AccessorAttribute:
    """The attribute `udf` of dask arrays: the accessor, or on the class, the accessor's class."""

    def __get__(self, array: da.Array | None, owner: type) -> Any:
        return ArrayAccessor if array is None else ArrayAccessor(array)


# dask has no registry of accessors for arrays
da.Array.udf = _AccessorAttribute()  # type: ignore[attr-defined]
