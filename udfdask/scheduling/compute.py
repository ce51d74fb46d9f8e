"""Joint computation of results: one pass, its progress told."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from typing import Any

from dask import base

from udfdask.scheduling.progress.counter import Tally, counted_here, ended
from udfdask.scheduling.progress.distributed import Watch, counted_on
from udfdask.scheduling.progress.reporters import choose_reporter
from udfdask.scheduling.progress.state import Progress
from udfdask.scheduling.progress.work import work_of
from udfdask.scheduling.scheduler_options import check_options
from udfdask.scheduling.unwrap import open_all
from udfdask.scheduling.workers.find_restrictions import needy_udfs
from udfdask.scheduling.workers.lost_results import check_open, told_in_words
from udfdask.scheduling.workers.restrict import Orders, pin
from udfdask.scheduling.workers.wait_for_workers import check_device, check_workers


def compute(*results: Any, progress: Progress = False, **kwargs: Any) -> tuple[Any, ...]:
    """Compute results and dask arrays together, in one pass over the data.

    Parameters
    ----------
    *results : Result, dask.array.Array or nested lists, tuples and dicts of them
        What to compute. Anything else is passed through. With `udfdask.hyperspy` imported, also
        signals: lazy ones come back in memory.
    progress : bool, callable or ProgressReporter
        Show a progress bar that counts frames and bytes, on every scheduler. Or call a function
        with a `ProgressState`, or the methods of a `ProgressReporter`, as the computation starts,
        gets on and ends.
    **kwargs
        Passed on to `dask.compute`: scheduler, optimize_graph; num_workers, pool, ... for the
        schedulers of one machine; workers, resources, retries, ... for a cluster. Those of the
        other kind have no effect.

    Returns
    -------
    tuple
        The computed values, in order: a `Result` with NumPy arrays for a `Result`.

    Raises
    ------
    ArgumentTypeError
        If `progress` is none of these, or there is a keyword argument that no scheduler takes.
    ArgumentValueError
        If no worker of a cluster may load a block (see `udfdask.io.on_workers`), or a cluster has
        none of the `workers` that are asked for.
    DeviceError
        If a UDF needs a CUDA device, and there is none: no worker has the resources ``CUDA=1``, at
        once or, where workers may still come, after `udfdask.resources-timeout`; or a scheduler of
        this machine is to run it, which has no device.
    ClusterError
        If the connection to the scheduler of a cluster is lost, or data that cannot be computed
        again.

    Warns
    -----
    UDFWarning
        If the function or an object given as `progress` raises an exception: it is told no more
        than the end, and the computation goes on. If workers with a CUDA device are waited for.

    Notes
    -----
    On a cluster, tasks of UDFs that need a CUDA device run on workers with the resources
    ``CUDA=1``, and what loads data for these alone; all other tasks run anywhere.

    A frame counts once, however many results are made of it. Arrays that no UDF is run over do not
    count, nor does a result that `dask.optimize` has been called on.

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
        What to compute.
    progress : bool, callable or ProgressReporter
        As in `compute`. On a distributed cluster, where the work goes on in the background, it is
        waited for if its progress is told.
    **kwargs
        Passed on to `dask.persist`.

    Returns
    -------
    tuple
        The same collections, backed by computed blocks.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError, DeviceError
        As `compute` does. On a cluster that waits for workers with a CUDA device, so does this.

    Warns
    -----
    UDFWarning
        As `compute` does.

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
    """Collections that are ready to be computed, where, and who is told of it."""

    def __init__(
        self, caller: str, results: tuple[Any, ...], progress: Progress, kwargs: dict[str, Any]
    ) -> None:
        reporter = choose_reporter(progress)
        bare, self._close = open_all(results)
        get = _get(bare, kwargs)
        check_options(caller, kwargs, get)
        owner = getattr(get, "__self__", None)
        self._client: Any = owner if hasattr(owner, "scatter") else None
        self._tally = None if reporter is None else Tally(work_of(bare), reporter)
        self._orders, self._guard = Orders(options=kwargs), None
        if self._client is None:
            check_device(get, needy_udfs(bare))
        else:
            check_workers(kwargs, self._client, bool(needy_udfs(bare)))
            bare, self._orders, self._guard = pin(bare, self._client, kwargs)
        self._bare = bare

    def compute(self) -> tuple[Any, ...]:
        """Return values of the kinds that were given."""
        return self._run(base.compute, self._compute_on_cluster)

    def persist(self) -> tuple[Any, ...]:
        """Return collections of the kinds that were given."""
        return self._run(base.persist, self._persist_on_cluster)

    def _run(self, here: Callable[..., Any], watched: Callable[[Watch], Any]) -> tuple[Any, ...]:
        """Return what comes out; whoever asked is told how far it is."""
        tally = self._tally
        counted = tally if tally is not None and tally.layer_names else None
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._orders.annotated())
            if tally is not None:
                stack.enter_context(ended(tally))
            stack.enter_context(told_in_words(self._client))
            if self._client is not None and (counted or self._guard):
                look = None if self._guard is None else self._guard.look
                done = watched(stack.enter_context(counted_on(self._client, counted, look)))
            else:
                if tally is not None:
                    stack.enter_context(counted_here(tally))
                done = here(*self._bare, **self._orders.options)
        return tuple(self._close(done))

    def _compute_on_cluster(self, watch: Watch) -> Any:
        """Compute, and look meanwhile how it is getting on."""
        collections, repack = base.unpack_collections(*self._bare)
        futures = self._client.compute(collections, **self._known_to(self._client.compute))
        try:
            watch.wait(futures)
            check_open(self._client)
            return repack(self._client.gather(futures))
        finally:
            # or the cluster goes on for as long as somebody keeps a traceback
            for future in futures:
                future.release()

    def _persist_on_cluster(self, watch: Watch) -> Any:
        """Persist; wait until the workers are there that it needs, or until it has been counted.

        What fails is raised when it is read.
        """
        from distributed import futures_of

        # dask 2025.12 asks for the current client, and waits for the results if it is another one
        collections, repack = base.unpack_collections(*self._bare)
        done = self._client.persist(collections, **self._known_to(self._client.persist))
        done = repack(done)
        futures = futures_of(done, client=self._client)
        try:
            if self._tally is None and self._guard is not None:
                self._guard.wait()
            elif self._tally is not None and not watch.wait(futures):
                self._tally.end("failed")
        except BaseException:
            for future in futures:
                future.release()
            raise
        return done

    def _known_to(self, method: Any) -> dict[str, Any]:
        """Return the options that a client's method takes.

        What local schedulers alone know, such as num_workers, `dask.compute` drops as well.
        """
        known = inspect.signature(method).parameters
        return {k: v for k, v in self._orders.options.items() if k in known}


def _get(results: Any, kwargs: dict[str, Any]) -> Any:
    """Return the `get` of the scheduler that a computation would use; None without anything."""
    collections, _ = base.unpack_collections(*results)
    if not collections:
        return None
    return base.get_scheduler(scheduler=kwargs.get("scheduler"), collections=collections)
