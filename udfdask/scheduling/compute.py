"""Compute several results together, in one pass over the data, and report progress."""

from __future__ import annotations

import contextlib
import inspect
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from dask import base

from udfdask.config import cache_folder
from udfdask.errors import ArgumentTypeError
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

# Modules of clusters and time limits are imported where they are used: most runs have neither.
if TYPE_CHECKING:
    from udfdask.scheduling.progress.distributed import FutureWaiter
    from udfdask.scheduling.time_limit.deadline import Deadline, Timeout
    from udfdask.scheduling.time_limit.task_names import TaskNames


def compute(
    *results: Any,
    progress: Progress = False,
    timeout: Timeout = None,
    journal: str | os.PathLike[str] | None = None,
    identity: str | None = None,
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
    timeout : float, str or datetime.timedelta, optional
        Time limit of the computation: seconds, or a text such as ``"10 min"``. At its end, tasks
        that have not started are canceled, and the error names the UDFs and chunks that are
        running. By default there is no limit.
    journal : str or path-like, optional
        Folder in which partial results are saved during the computation. If the computation is
        interrupted, the same call goes on where it was: it loads and processes only chunks whose
        results are not saved. All workers must be able to write to the folder. It is not removed.
    identity : str, optional
        With `journal` or `udfdask.cache`: a text that you change whenever the data change, for
        arrays whose content udfdask cannot recognize in another process.
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
        If `progress` or `timeout` has another type, or no scheduler accepts a keyword argument.
        With `journal`, if a buffer has objects.
    ArgumentValueError
        If `timeout` is not a positive time, or the scheduler is a function that is not dask's.
        If no worker of a cluster can load a block (see `udfdask.io.on_workers`), or a cluster has
        none of the `workers` in the keyword arguments. With `journal`, if the data have no name
        that is the same in every process: pass `identity`. With `identity`, if results are made
        from several arrays of the same shape, dtype and chunks.
    JournalError
        If the journal belongs to another run (other data, UDFs, parameters, code, region of
        interest, corrections or versions), or another process uses it.
    DeviceError
        If a UDF needs a CUDA device, and no worker has the resources ``CUDA=1``: immediately or, if
        a cluster may still get workers, after `udfdask.resources-timeout`. If a scheduler of this
        machine would run such a UDF, and the machine has no device.
    ClusterError
        If the connection to the scheduler of a cluster is lost, or data that cannot be computed
        again are lost.
    RunTimeoutError
        If the computation takes longer than `timeout`; also a TimeoutError.

    Warns
    -----
    UDFWarning
        If `progress` raises an exception: the computation goes on, and `progress` is called again
        only at the end. If the computation waits for workers with a CUDA device. With
        `udfdask.cache`, if results cannot be kept, and why.

    Notes
    -----
    On a cluster, tasks of UDFs that need a CUDA device, and tasks that load data only for them, run
    on workers with the resources ``CUDA=1``. All other tasks run anywhere.

    Progress counts each frame once, even if several results use it. It does not count arrays
    without UDFs, or results after `dask.optimize`.

    A running task cannot be stopped. After a timeout, a thread of this process or of a worker is
    busy until its task ends; the process can end before. The scheduler ``"processes"`` ends its
    processes. The scheduler ``"synchronous"`` checks the time only between tasks. On a cluster, if
    worker processes end while they run a task, a note on dask's KilledWorker names the UDF, the
    chunk and, if it was that, the memory limit.

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
    deadline = None
    if timeout is not None:
        from udfdask.scheduling.time_limit.deadline import deadline_of

        deadline = deadline_of(timeout)

    def compute_with(change: Changing | None) -> tuple[Any, ...]:
        return _Job("compute", results, progress, kwargs, deadline, change).compute()

    if journal is not None:
        from udfdask.scheduling.recorded_compute import compute_with_journal

        return compute_with_journal(compute_with, journal, identity)
    folder = cache_folder()
    if folder is not None:
        from udfdask.scheduling.recorded_compute import compute_with_cache

        return compute_with_cache(compute_with, folder, identity)
    if identity is not None:
        raise ArgumentTypeError(
            "identity= names the data for a journal or a cache: pass journal= too, or choose a "
            "folder with udfdask.cache"
        )
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


Changing = Callable[[list[Any], Any], tuple[list[Any], dict[Any, bool]]]
"""Takes collections and the client of their cluster, or None.

Returns changed collections, and `stored_tasks` of `graph.recorded_graph`.
"""


class _Job:
    """Collections that are ready to be computed on a scheduler."""

    def __init__(
        self,
        caller: str,
        results: tuple[Any, ...],
        progress: Progress,
        kwargs: dict[str, Any],
        deadline: Deadline | None = None,
        change: Changing | None = None,
    ) -> None:
        reporter = choose_reporter(progress)
        plain, self._wrap = unwrap_all(results)
        collections, repack = base.unpack_collections(*plain)
        self._get = get = _get(collections, kwargs)
        self._deadline = deadline
        self._given = plain
        check_options(caller, kwargs, get)
        owner = getattr(get, "__self__", None)
        self._client: Any = owner if hasattr(owner, "scatter") else None
        self._counter = None if reporter is None else ProgressCounter(work_of(plain), reporter)
        self._options: dict[str, Any] = kwargs
        self._annotated: AbstractContextManager[Any] = contextlib.nullcontext()
        self._check: Any = None
        if change is not None:
            changed, stored = change(collections, self._client)
            plain = repack(changed)
            if self._counter is not None:
                self._counter.note_stored(stored)
        on_device = device_udfs(collections)
        if self._client is not None:
            from udfdask.scheduling.workers.restrict import restrict
            from udfdask.scheduling.workers.wait_for_workers import check_workers

            check_workers(kwargs, self._client, bool(on_device))
            plain, options, self._check = restrict(plain, self._client, kwargs)
            self._options, self._annotated = options.options, options.annotated()
        elif on_device:
            from udfdask.scheduling.workers.wait_for_workers import check_device

            check_device(get, on_device)
        self._collections = plain
        self._futures: list[Any] = []

    @property
    def _names(self) -> TaskNames:
        """Finds the UDFs and the chunk of a task."""
        from udfdask.scheduling.time_limit.task_names import TaskNames

        return TaskNames(self._given)

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
            stack.enter_context(self._annotated)
            if counter is not None:
                stack.enter_context(reporting_end(counter))
            if self._client is not None:
                from udfdask.scheduling.workers.killed_workers import explaining_killed_workers
                from udfdask.scheduling.workers.lost_results import explaining_losses

                stack.enter_context(explaining_losses(self._client))
                stack.enter_context(explaining_killed_workers(self._client, self._names))
            if self._client is not None and (counts or self._check or self._deadline):
                from udfdask.scheduling.progress.distributed import counting_on_cluster

                counting = counting_on_cluster(self._client, counts, self._check_cluster)
                values = run_on_cluster(stack.enter_context(counting))
            else:
                if counter is not None:
                    stack.enter_context(counting_local_tasks(counter))
                options = self._options
                if self._deadline is not None:
                    from udfdask.scheduling.time_limit.local_deadline import ending_at

                    ending = ending_at(self._deadline, self._names, self._get, options)
                    get, options = stack.enter_context(ending)
                    options["scheduler"] = get
                values = run(*self._collections, **options)
        return tuple(self._wrap(values))

    def _check_cluster(self) -> None:
        """Check the workers and the time while the caller waits for futures."""
        if self._check is not None:
            self._check.check()
        if self._deadline is not None and not self._deadline.left:
            from udfdask.scheduling.workers.running_tasks import timeout_error

            raise timeout_error(self._deadline, self._client, self._futures, self._names)

    def _compute_on_cluster(self, waiter: FutureWaiter) -> Any:
        """Return computed values; count tasks, check the workers and the time meanwhile."""
        from udfdask.scheduling.workers.lost_results import check_open

        collections, repack = base.unpack_collections(*self._collections)
        futures = self._client.compute(collections, **self._options_of(self._client.compute))
        self._futures = futures
        try:
            waiter.wait(futures)
            check_open(self._client)
            return repack(self._gather(futures))
        finally:
            # otherwise the cluster would go on as long as a traceback refers to the futures
            for future in futures:
                future.release()

    def _gather(self, futures: Any) -> Any:
        """Return the values of futures; a worker that holds one may hang."""
        if self._deadline is None:
            return self._client.gather(futures)
        from udfdask.scheduling.time_limit.deadline import NoAnswerError, answer_within

        try:
            return answer_within(self._deadline.left, lambda: self._client.gather(futures))
        except NoAnswerError:
            remedy = (
                "The results exist, but the workers have not sent all of them. A longer timeout= "
                "gives them more time"
            )
            raise self._deadline.error([], remedy) from None

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
        return {k: v for k, v in self._options.items() if k in accepted}


def _get(collections: Any, kwargs: dict[str, Any]) -> Any:
    """Return the `get` function of the scheduler of a computation; None without collections."""
    if not collections:
        return None
    return base.get_scheduler(scheduler=kwargs.get("scheduler"), collections=collections)
