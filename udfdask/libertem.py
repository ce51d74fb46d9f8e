"""What scripts and UDFs that were written for LiberTEM import, under the names it has there."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from udfdask.errors import UDFError
from udfdask.geometry.roi import Region
from udfdask.results.result import Result
from udfdask.run.run_udf import run_udf
from udfdask.scheduling.progress import Progress
from udfdask.udf.libertem_udfs import adapt
from udfdask.udfs import FEMUDF, CrystallinityUDF, LogsumUDF, StdDevUDF

if TYPE_CHECKING:
    from udfdask.results.result_array import ResultArray

__all__ = [
    "UDFException",
    "adapt",
    "count_nonzero",
    "prod",
    "run_analysis_crystall",
    "run_fem",
    "run_logsum",
    "run_stddev",
]

UDFException = UDFError
"""LiberTEM's name of `UDFError`."""


def run_stddev(
    array: Any, roi: Region | None = None, progress: Progress = False, **options: Any
) -> dict[str, Any]:
    """Compute mean, variance and standard deviation over all frames, as LiberTEM's `run_stddev`.

    Parameters
    ----------
    array, roi, progress, **options
        As in `udfdask.run_udf` and `udfdask.compute`.

    Returns
    -------
    dict
        `num_frames`, an int, and `varsum`, `sum`, `var`, `std` and `mean`, NumPy arrays of shape
        `sig`: see `udfdask.udfs.StdDevUDF`.

    Raises
    ------
    UDFError
        As in `udfdask.run_udf`.

    Examples
    --------
    >>> import dask.array as da
    >>> from udfdask.libertem import run_stddev
    >>> run_stddev(da.arange(8, chunks=4).reshape(4, 1, 2))["std"].round(3)
    array([[2.236, 2.236]])
    """
    result = run_udf(array, StdDevUDF(), roi=roi, **options).compute(progress=progress)
    names = ("varsum", "sum", "var", "std", "mean")
    arrays = {name: np.asarray(result[name]) for name in names}
    return {"num_frames": int(result["num_frames"]), **arrays}


def run_logsum(array: Any, roi: Region | None = None, **options: Any) -> Result[ResultArray]:
    """Sum the logarithms of all frames, as LiberTEM's `run_logsum`.

    Parameters
    ----------
    array, roi, **options
        As in `udfdask.run_udf`.

    Returns
    -------
    Result
        The computed result `logsum`, shape `sig`: see `udfdask.udfs.LogsumUDF`.

    Raises
    ------
    UDFError
        As in `udfdask.run_udf`.

    Examples
    --------
    >>> import dask.array as da
    >>> from udfdask.libertem import run_logsum
    >>> run_logsum(da.arange(8, chunks=4).reshape(4, 1, 2))["logsum"].round(3)
    array([[0.   , 2.773]], dtype=float32)
    """
    return run_udf(array, LogsumUDF(), roi=roi, **options).compute()


def run_fem(
    array: Any, center: Any, rad_in: Any, rad_out: Any, roi: Region | None = None, **options: Any
) -> Result[ResultArray]:
    """Compute the standard deviation of each frame in a ring, as LiberTEM's `run_fem`.

    Parameters
    ----------
    array, center, rad_in, rad_out, roi, **options
        As in `udfdask.run_udf` and `udfdask.udfs.FEMUDF`.

    Returns
    -------
    Result
        The computed result `intensity`, shape `nav`: see `udfdask.udfs.FEMUDF`.

    Raises
    ------
    UDFError
        As in `udfdask.run_udf`.

    Examples
    --------
    >>> import dask.array as da
    >>> from udfdask.libertem import run_fem
    >>> run_fem(da.ones((1, 2, 16, 16)), (8, 8), rad_in=2, rad_out=5)["intensity"].data
    array([[0., 0.]], dtype=float32)
    """
    udf = FEMUDF(center=center, rad_in=rad_in, rad_out=rad_out)
    return run_udf(array, udf, roi=roi, **options).compute()


def run_analysis_crystall(
    array: Any,
    rad_in: Any,
    rad_out: Any,
    real_center: Any = None,
    real_rad: Any = None,
    roi: Region | None = None,
    progress: Progress = False,
    **options: Any,
) -> Result[ResultArray]:
    """Integrate a ring of the spectrum of each frame, as LiberTEM's `run_analysis_crystall`.

    Parameters
    ----------
    array, rad_in, rad_out, real_center, real_rad, roi, progress, **options
        As in `udfdask.run_udf`, `udfdask.udfs.CrystallinityUDF` and `udfdask.compute`.

    Returns
    -------
    Result
        The computed result `intensity`, shape `nav`: see `udfdask.udfs.CrystallinityUDF`.

    Raises
    ------
    UDFError
        As in `udfdask.run_udf`.

    Examples
    --------
    >>> import dask.array as da
    >>> from udfdask.libertem import run_analysis_crystall
    >>> run_analysis_crystall(da.ones((1, 2, 16, 16)), rad_in=2, rad_out=5)["intensity"].data
    array([[0., 0.]], dtype=float32)
    """
    udf = CrystallinityUDF(rad_in, rad_out, real_center, real_rad)
    return run_udf(array, udf, roi=roi, **options).compute(progress=progress)


def count_nonzero(array: Any) -> int:
    """Return the number of True or nonzero entries of a dense or sparse array.

    Parameters
    ----------
    array : array-like or sparse array
        For example a ROI.

    Returns
    -------
    int
        The number.

    Examples
    --------
    >>> from udfdask.libertem import count_nonzero
    >>> count_nonzero([[True, False], [True, True]])
    3
    """
    if hasattr(array, "count_nonzero"):  # scipy.sparse
        return int(array.count_nonzero())
    if hasattr(array, "todense"):
        array = array.todense()
    return int(np.count_nonzero(np.asarray(array)))


def prod(values: Iterable[SupportsIndex]) -> int:
    """Return the product of integers as a Python int, which cannot overflow.

    Parameters
    ----------
    values : iterable of int
        Factors; NumPy integers are fine.

    Returns
    -------
    int
        The product, 1 for no factors.

    Examples
    --------
    >>> from udfdask.libertem import prod
    >>> prod((2**40, 2**40)) == 2**80
    True
    """
    return math.prod(int(v) for v in values)
