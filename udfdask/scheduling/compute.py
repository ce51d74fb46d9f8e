"""Compute several results together, in one pass over the data, and report progress."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dask import base

from udfdask.scheduling.progress.counter import (
    ProgressCounter,
    counting_local_tasks,
    reporting_end,
)
from udfdask.scheduling.progress.reporters import choose_reporter
from udfdask.scheduling.progress.state import Progress
from udfdask.scheduling.progress.work import work_of
from udfdask.scheduling.scheduler_options import check_options
from udfdask.scheduling.unwrap import unwrap_all
from udfdask.scheduling.workers.find_restrictions import device_udfs
from udfdask.scheduling.workers.lost_results import check_open, explaining_losses
from udfdask.scheduling.workers.restrict import ClusterOptions, restrict
from udfdask.scheduling.workers.wait_for_workers import check_device, check_workers

if TYPE_CHECKING:
    from udfdask.scheduling.progress.distributed import FutureWaiter


def compute(*results: Any, progress: Progress = False, **kwargs: Any) -> tuple[Any, ...]:
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
        If `progress` has another type, or no scheduler accepts a keyword argument.
    ArgumentValueError
        If no worker of a cluster can load a block (see `udfdask.io.on_workers`), or a cluster has
        none of the `workers` in the keyword arguments.
    DeviceError
        If a UDF needs a CUDA device, and no worker has the resources ``CUDA=1``: immediately or, if
        a cluster may still get workers, after `udfdask.resources-timeout`. If a scheduler of this
        machine would run such a UDF, and the machine has no device.
    ClusterError
        If the connection to the scheduler of a cluster is lost, or data that cannot be computed
        again are lost.

    Warns
    -----
    UDFWarning
        If `progress` raises an exception: the computation goes on, and `progress` is called again
        only at the end. If the computation waits for workers with a CUDA device.

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
    return _Job("compute", results, progress, kwargs).compute()


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
        As `compute`. If a cluster waits for workers with a CUDA device, this function waits too.

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
    return _Job("persist", results, progress, kwargs).persist()


class _Job:
    """Collections that are ready to be computed on a scheduler."""

    def __init__(
        self, caller: str, results: tuple[Any, ...], progress: Progress, kwargs: dict[str, Any]
    ) -> None:
        reporter = choose_reporter(progress)
        plain, self._wrap = unwrap_all(results)
        collections, _ = base.unpack_collections(*plain)
        get = _get(collections, kwargs)
        check_options(caller, kwargs, get)
        owner = getattr(get, "__self__", None)
        self._client: Any = owner if hasattr(owner, "scatter") else None
        self._counter = None if reporter is None else ProgressCounter(work_of(plain), reporter)
        self._options, self._check = ClusterOptions(options=kwargs), None
        if self._client is None:
            check_device(get, device_udfs(collections))
        else:
            check_workers(kwargs, self._client, bool(device_udfs(collections)))
            plain, self._options, self._check = restrict(plain, self._client, kwargs)
        self._collections = plain

    def compute(self) -> tuple[Any, ...]:
        """Return the computed values."""
        return self._run(base.compute, self._compute_on_cluster)

    def persist(self) -> tuple[Any, ...]:
        """Return persisted collections."""
        return self._run(base.persist, self._persist_on_cluster)

    def _run(
        self, run: Callable[..., Any], run_on_cluster: Callable[[FutureWaiter], Any]
    ) -> tuple[Any, ...]:
        """Return the values of dask's function, or of ours if a cluster has to be observed."""
        counter = self._counter
        counts = counter if counter is not None and counter.layer_names else None
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._options.annotated())
            if counter is not None:
                stack.enter_context(reporting_end(counter))
            stack.enter_context(explaining_losses(self._client))
            if self._client is not None and (counts or self._check):
                from udfdask.scheduling.progress.distributed import counting_on_cluster

                check = None if self._check is None else self._check.check
                counting = counting_on_cluster(self._client, counts, check)
                values = run_on_cluster(stack.enter_context(counting))
            else:
                if counter is not None:
                    stack.enter_context(counting_local_tasks(counter))
                values = run(*self._collections, **self._options.options)
        return tuple(self._wrap(values))

    def _compute_on_cluster(self, waiter: FutureWaiter) -> Any:
        """Return computed values; count tasks and check the workers meanwhile."""
        collections, repack = base.unpack_collections(*self._collections)
        futures = self._client.compute(collections, **self._options_of(self._client.compute))
        try:
            waiter.wait(futures)
            check_open(self._client)
            return repack(self._client.gather(futures))
        finally:
            # otherwise the cluster would go on as long as a traceback refers to the futures
            for future in futures:
                future.release()

    def _persist_on_cluster(self, waiter: FutureWaiter) -> Any:
        """Return persisted collections when suitable workers exist, or when all is counted.

        Errors of tasks are raised later, when the collections are used.
        """
        from distributed import futures_of

        # not dask.persist: dask 2025.12 would use the current client, and wait if it is another one
        collections, repack = base.unpack_collections(*self._collections)
        persisted = self._client.persist(collections, **self._options_of(self._client.persist))
        persisted = repack(persisted)
        futures = futures_of(persisted, client=self._client)
        try:
            if self._counter is None and self._check is not None:
                self._check.wait()
            elif self._counter is not None and not waiter.wait(futures):
                self._counter.end("failed")
        except BaseException:
            for future in futures:
                future.release()
            raise
        return persisted

    def _options_of(self, method: Any) -> dict[str, Any]:
        """Return the options that a client's method accepts.

        Options of local schedulers, such as num_workers, are dropped, as `dask.compute` does.
        """
        accepted = inspect.signature(method).parameters
        return {k: v for k, v in self._options.options.items() if k in accepted}


def _get(collections: Any, kwargs: dict[str, Any]) -> Any:
    """Return the `get` function of the scheduler of a computation; None without collections."""
    if not collections:
        return None
    return base.get_scheduler(scheduler=kwargs.get("scheduler"), collections=collections)
