"""Run one ready-made UDF and compute its results, under the names that LiberTEM has."""

from __future__ import annotations

from typing import Any, Unpack

import dask.array as da
import numpy as np

from udfdask.results.result import Result
from udfdask.run.described_data import DescribedData
from udfdask.run.options import RunOptions, check_names, forwards
from udfdask.run.run_udf import run_udf
from udfdask.scheduling.progress import Progress
from udfdask.udf import UDF


@forwards(RunOptions, run_udf)
def run_stddev(
    array: da.Array | DescribedData,
    roi: Any = None,
    progress: Progress = False,
    *,
    sig_dims: int | None = None,
    **options: Unpack[RunOptions],
) -> dict[str, Any]:
    """Compute mean, variance and standard deviation over all frames, as LiberTEM's `run_stddev`.

    Parameters
    ----------
    array, roi
        As in `run_udf`.
    progress : bool, callable or ProgressReporter
        Show a progress bar, or call a progress callback: see `udfdask.compute`.
    sig_dims, **options
        As in `run_udf`.

    Returns
    -------
    dict
        `num_frames`, an int, and `varsum`, `sum`, `var`, `std` and `mean`, NumPy arrays of shape
        `sig`: see `udfdask.udfs.StdDevUDF`.

    Raises
    ------
    UDFError
        As in `run_udf`.

    Examples
    --------
    >>> import dask.array as da
    >>> from udfdask.libertem import run_stddev
    >>> run_stddev(da.arange(8, chunks=4).reshape(4, 1, 2))["std"].round(3)
    array([[2.236, 2.236]])
    """
    from udfdask.udfs.stddev import StdDevUDF

    check_names(run_stddev, options)
    result = _run(array, StdDevUDF(), roi, progress, sig_dims, options)
    return {
        "num_frames": int(result["num_frames"]),
        **{name: np.asarray(result[name]) for name in ("varsum", "sum", "var", "std", "mean")},
    }


@forwards(RunOptions, run_udf)
def run_logsum(
    array: da.Array | DescribedData,
    roi: Any = None,
    *,
    sig_dims: int | None = None,
    **options: Unpack[RunOptions],
) -> Result:
    """Sum the logarithms of all frames, as LiberTEM's `run_logsum`.

    Parameters
    ----------
    array, roi, sig_dims, **options
        As in `run_udf`.

    Returns
    -------
    Result
        The computed result `logsum`, shape `sig`: see `udfdask.udfs.LogsumUDF`.

    Raises
    ------
    UDFError
        As in `run_udf`.

    Examples
    --------
    >>> import dask.array as da
    >>> from udfdask.libertem import run_logsum
    >>> run_logsum(da.arange(8, chunks=4).reshape(4, 1, 2))["logsum"].round(3)
    array([[0.   , 2.773]], dtype=float32)
    """
    from udfdask.udfs.logsum import LogsumUDF

    check_names(run_logsum, options)
    return _run(array, LogsumUDF(), roi, False, sig_dims, options)


@forwards(RunOptions, run_udf)
def run_fem(
    array: da.Array | DescribedData,
    center: Any,
    rad_in: Any,
    rad_out: Any,
    roi: Any = None,
    *,
    sig_dims: int | None = None,
    **options: Unpack[RunOptions],
) -> Result:
    """Compute the standard deviation of each frame in a ring, as LiberTEM's `run_fem`.

    Parameters
    ----------
    array
        As in `run_udf`.
    center : tuple of float
        Center of the ring, (y, x) in pixels, as LiberTEM reads it.
    rad_in, rad_out : float
        Radii in pixels; the ring is ``rad_in < d <= rad_out``.
    roi, sig_dims, **options
        As in `run_udf`.

    Returns
    -------
    Result
        The computed result `intensity`, shape `nav`: see `udfdask.udfs.FEMUDF`.

    Raises
    ------
    UDFError
        As in `run_udf`, or if a parameter of the UDF is invalid.

    Examples
    --------
    >>> import dask.array as da
    >>> from udfdask.libertem import run_fem
    >>> x = da.ones((2, 3, 16, 16))
    >>> run_fem(x, center=(8, 8), rad_in=2, rad_out=5)["intensity"].data
    array([[0., 0., 0.],
           [0., 0., 0.]], dtype=float32)
    """
    from udfdask.udfs.fem import FEMUDF

    check_names(run_fem, options)
    udf = FEMUDF(center=center, rad_in=rad_in, rad_out=rad_out)
    return _run(array, udf, roi, False, sig_dims, options)


@forwards(RunOptions, run_udf)
def run_analysis_crystall(
    array: da.Array | DescribedData,
    rad_in: Any,
    rad_out: Any,
    real_center: Any = None,
    real_rad: Any = None,
    roi: Any = None,
    progress: Progress = False,
    *,
    sig_dims: int | None = None,
    **options: Unpack[RunOptions],
) -> Result:
    """Integrate a ring of the spectrum of each frame, as LiberTEM's `run_analysis_crystall`.

    Parameters
    ----------
    array
        As in `run_udf`.
    rad_in, rad_out : float
        Radii of the ring in the Fourier transform, in bins.
    real_center : tuple of float, optional
        Center of the disk that is set to zero first, (y, x) in pixels; by default there is none.
    real_rad : float, optional
        Radius of this disk in pixels.
    roi
        As in `run_udf`.
    progress : bool, callable or ProgressReporter
        Show a progress bar, or call a progress callback: see `udfdask.compute`.
    sig_dims, **options
        As in `run_udf`.

    Returns
    -------
    Result
        The computed result `intensity`, shape `nav`: see `udfdask.udfs.CrystallinityUDF`.

    Raises
    ------
    UDFError
        As in `run_udf`, or if a parameter of the UDF is invalid.

    Examples
    --------
    >>> import dask.array as da
    >>> from udfdask.libertem import run_analysis_crystall
    >>> run_analysis_crystall(da.ones((2, 3, 16, 16)), rad_in=2, rad_out=5)["intensity"].data
    array([[0., 0., 0.],
           [0., 0., 0.]], dtype=float32)
    """
    from udfdask.udfs.crystallinity import CrystallinityUDF

    check_names(run_analysis_crystall, options)
    udf = CrystallinityUDF(rad_in, rad_out, real_center, real_rad)
    return _run(array, udf, roi, progress, sig_dims, options)


def _run(
    array: Any, udf: UDF, roi: Any, progress: Progress, sig_dims: int | None, options: RunOptions
) -> Result:
    """Return the computed result of a UDF."""
    return run_udf(array, udf, sig_dims=sig_dims, roi=roi, **options).compute(progress=progress)
