"""Joint computation of results: one pass, its progress told, heavy parameters sent once."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from dask import base
from dask.highlevelgraph import HighLevelGraph

from udfdask.pinning import pin
from udfdask.reporting.cluster import counted_on
from udfdask.reporting.local import counted_here
from udfdask.reporting.reporters import choose_reporter
from udfdask.reporting.state import Progress
from udfdask.reporting.tally import Tally, ended
from udfdask.reporting.work import work_of
from udfdask.scatter import scatter_recipes
from udfdask.unwrapping import open_all


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
        Passed on to `dask.compute`: scheduler, num_workers, resources, ...

    Returns
    -------
    tuple
        The computed values, in order: a `Result` with NumPy arrays for a `Result`.

    Raises
    ------
    ArgumentTypeError
        If `progress` is none of these.

    Warns
    -----
    UDFWarning
        If the function or an object given as `progress` raises an exception: it is told no more
        than the end, and the computation goes on.

    Notes
    -----
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
    return _Job(results, progress, kwargs).run(base.compute, _compute_on)


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
    ArgumentTypeError
        If `progress` is none of these.

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
    return _Job(results, progress, kwargs).run(base.persist, _persist_on)


class _Job:
    """Collections that are ready to be computed, where, and who is told of it."""

    def __init__(
        self, results: tuple[Any, ...], progress: Progress, kwargs: dict[str, Any]
    ) -> None:
        reporter = choose_reporter(progress)
        bare, self._close = open_all(results)
        self._client = _client(bare, kwargs)
        self._tally = None if reporter is None else Tally(work_of(bare), reporter)
        self._placed: contextlib.AbstractContextManager[None] = contextlib.nullcontext()
        if self._client is not None:
            bare = scatter_parameters(bare, self._client)
            loose = bool(kwargs.get("allow_other_workers"))
            bare, self._placed = pin(bare, self._client, loose=loose)
        self._bare, self._kwargs = bare, kwargs

    def run(self, here: Callable[..., Any], on_cluster: Callable[..., Any]) -> tuple[Any, ...]:
        """Return what comes out, as values of the kind that were given."""
        with self._placed:
            done = self._counted(here, on_cluster)
        return tuple(self._close(done))

    def _counted(self, here: Callable[..., Any], on_cluster: Callable[..., Any]) -> Any:
        """Return what comes out; whoever asked is told how far it is."""
        if self._tally is None:
            return here(*self._bare, **self._kwargs)
        with ended(self._tally):
            if self._client is not None and self._tally.layer_names:
                return on_cluster(self._client, self._tally, self._bare, self._kwargs)
            with counted_here(self._tally):
                return here(*self._bare, **self._kwargs)


def _client(results: Any, kwargs: dict[str, Any]) -> Any:
    """Return the distributed client that a computation would use, or None."""
    collections, _ = base.unpack_collections(*results)
    if not collections:
        return None
    get = base.get_scheduler(scheduler=kwargs.get("scheduler"), collections=collections)
    owner = getattr(get, "__self__", None)
    return owner if hasattr(owner, "scatter") else None


def scatter_parameters(results: Any, client: Any) -> tuple[Any, ...]:
    """Return collections in whose graphs heavy recipes are replaced by scattered futures."""
    collections, repack = base.unpack_collections(*results)
    sent: dict[int, Any] = {}
    replaced = []
    for collection in collections:
        graph = collection.__dask_graph__()
        light = scatter_recipes(graph, client, sent) if isinstance(graph, HighLevelGraph) else graph
        if light is graph:
            replaced.append(collection)
        else:
            rebuild, state = collection.__dask_postpersist__()
            replaced.append(rebuild(light, *state))
    packed: tuple[Any, ...] = repack(replaced)
    return packed


def _compute_on(client: Any, tally: Tally, results: Any, kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Compute on a cluster and count meanwhile."""
    collections, repack = base.unpack_collections(*results)
    options = {k: v for k, v in kwargs.items() if k != "scheduler"}
    with counted_on(client, tally) as watch:
        futures = client.compute(collections, **options)
        try:
            watch.wait(futures)
            done: tuple[Any, ...] = repack(client.gather(futures))
        finally:
            # or the cluster goes on for as long as somebody keeps a traceback
            for future in futures:
                future.release()
    return done


def _persist_on(client: Any, tally: Tally, results: Any, kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Persist on a cluster and count until all is there; what fails is raised when it is read."""
    from distributed import futures_of

    with counted_on(client, tally) as watch:
        done: tuple[Any, ...] = base.persist(*results, **kwargs)
        if not watch.wait(futures_of(done, client=client)):
            tally.end("failed")
    return done
