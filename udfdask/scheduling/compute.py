"""Compute several results together, in one pass over the data, and report progress."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any, Literal

from dask import base

from udfdask.config import cache_folder
from udfdask.scheduling.job import Job, make_job
from udfdask.scheduling.progress import Progress
from udfdask.tracebacks import own_lines_hidden

if TYPE_CHECKING:
    from udfdask.records.compute import Changing


def compute(
    *results: Any,
    progress: Progress = False,
    cache: str | os.PathLike[str] | None = None,
    **kwargs: Any,
) -> tuple[Any, ...]:
    """Compute results and dask arrays together, in one pass over the data.

    Parameters
    ----------
    *results : Result, dask.array.Array or nested lists, tuples and dicts of them
        Collections to compute. Other values are returned unchanged. After
        `import udfdask.hyperspy`, also signals: lazy signals are returned in memory.
    progress : bool, callable or ProgressReporter
        True for a progress bar that counts frames and bytes, on every scheduler. A function is
        called with a `ProgressState` at the start, during the computation and at the end; so are
        the methods of a `ProgressReporter`.
    cache : str or path-like, optional
        Folder in which partial results are kept during the computation, as with `udfdask.cache`.
        If the computation is interrupted, the same call goes on where it was: it loads and
        processes only chunks whose results are not there.
    **kwargs
        Passed to `dask.compute`: scheduler, optimize_graph; num_workers, pool, ... for the
        schedulers of one machine; workers, resources, retries, ... for a cluster. Options of the
        other kind have no effect.

    Returns
    -------
    tuple
        The computed values, in order: a `Result` with NumPy arrays for a `Result`.

    Raises
    ------
    ArgumentTypeError
        If `progress` has another type, no scheduler accepts a keyword argument, or a UDF is passed.
    ArgumentValueError
        If no worker of a cluster can load a block (see `udfdask.on_workers`), or a cluster has
        none of the `workers` in the keyword arguments. If `cache` is a folder with other files.
    FileNotFoundError
        If the parent folder of `cache` does not exist.
    DeviceError
        If a UDF needs a CUDA device, and no worker of a cluster has the resources ``CUDA=1``, or
        this machine has no device.

    Warns
    -----
    UDFWarning
        If `progress` raises an exception; with a cache, if results cannot be kept, and why.

    Notes
    -----
    On a cluster, tasks of UDFs that need a CUDA device, and tasks that load data only for them, run
    on workers with the resources ``CUDA=1``. All other tasks run anywhere.

    Progress counts each frame once, even if several results use it. It does not count arrays
    without UDFs, or results after `dask.optimize`.

    Examples
    --------
    >>> import dask.array as da, udfdask as ud
    >>> from udfdask.udfs import SumSigUDF, SumUDF
    >>> x = da.ones((3, 3, 2, 2), chunks=(1, 3, 2, 2))
    >>> total, sums = ud.run_udf(x, [SumUDF(), SumSigUDF()])
    >>> total, brightest = ud.compute(total, sums["intensity"].max())
    >>> brightest
    np.float64(4.0)
    """

    def compute_with(change: Changing | None) -> tuple[Any, ...]:
        job = make_job(compute, results, progress, kwargs)
        return _run(job if change is None else job.changed(change), "compute")

    with own_lines_hidden:
        folder = cache_folder() if cache is None else cache
        if folder is not None:
            from udfdask.records.compute import compute_with_cache

            return compute_with_cache(compute_with, folder)
        return compute_with(None)


def persist(*results: Any, progress: Progress = False, **kwargs: Any) -> tuple[Any, ...]:
    """Compute results and dask arrays together and keep them lazy, as blocks in memory.

    Parameters
    ----------
    *results : Result, dask.array.Array or nested lists, tuples and dicts of them
        Collections to compute.
    progress : bool, callable or ProgressReporter
        As in `compute`. On a cluster, tasks run in the background; with `progress`, this function
        waits until they have finished.
    **kwargs
        Passed to `dask.persist`.

    Returns
    -------
    tuple
        The same collections, backed by computed blocks.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError, DeviceError
        As `compute`.

    Warns
    -----
    UDFWarning
        As `compute`.

    Examples
    --------
    >>> import dask.array as da, udfdask as ud
    >>> from udfdask.udfs import SumUDF
    >>> (total,) = ud.persist(ud.run_udf(da.ones((3, 3, 2, 2)), SumUDF()))
    >>> total["intensity"].sum().compute()
    np.float64(36.0)
    """
    with own_lines_hidden:
        return _run(make_job(persist, results, progress, kwargs), "persist")


def _run(job: Job, name: Literal["compute", "persist"]) -> tuple[Any, ...]:
    """Return what dask's function of this name returns, as the user gave it; report progress."""
    if job.client is not None:
        from udfdask.scheduling.cluster_run import run_on_cluster

        return job.wrap(run_on_cluster(job, name))
    with contextlib.ExitStack() as stack:
        if job.counter is not None:
            from udfdask.scheduling.counter import counting_local_tasks, reporting_end

            stack.enter_context(reporting_end(job.counter))
            stack.enter_context(counting_local_tasks(job.counter))
        return job.wrap(getattr(base, name)(*job.collections, **job.options))
