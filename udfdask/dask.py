"""Importing this module adds the accessor `udf` to dask arrays: ``array.udf.run_udf(...)``.

Arrays of the package dask-array get it, too, if that is imported first.
"""

from __future__ import annotations

import sys
from typing import Any

import dask.array as da

from udfdask.run.map_frames import map_frames as map_on_array
from udfdask.run.progressive import run_udf_iter as iterate_on_array
from udfdask.run.run_udf import explain as explain_on_array
from udfdask.run.run_udf import run_udf as run_on_array

__all__ = ["ArrayAccessor"]


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

    __slots__ = ("array",)

    array: da.Array
    """The data, shape (*nav, *sig)."""

    # the functions take data with a description, and an array has none
    sig_dims = axes = unit = None

    def __init__(self, array: da.Array) -> None:
        self.array = array

    def __repr__(self) -> str:
        return f"<ArrayAccessor of {self.array!r}>"

    run_udf = run_on_array
    run_udf_iter = iterate_on_array
    map_frames = map_on_array
    explain = explain_on_array


class _AccessorAttribute:
    """The attribute `udf` of dask arrays: the accessor, or on the class, the accessor's class."""

    def __get__(self, array: da.Array | None, owner: type) -> Any:
        return ArrayAccessor if array is None else ArrayAccessor(array)


# there is no registry of accessors for arrays
_kinds: list[Any] = [da.Array]
if "dask_array" in sys.modules:
    _kinds.append(sys.modules["dask_array"].Array)
for _kind in _kinds:
    _kind.udf = _AccessorAttribute()
