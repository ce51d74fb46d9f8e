"""Joint computation of results: one pass, its progress told, heavy parameters sent once."""

from __future__ import annotations

from typing import Any

from dask import base
from dask.highlevelgraph import HighLevelGraph

from udfdask.reporting.cluster import counted_on
from udfdask.reporting.local import counted_here
from udfdask.reporting.reporters import choose_reporter
from udfdask.reporting.state import Progress
from udfdask.reporting.tally import Tally, ended
from udfdask.reporting.work import work_of
from udfdask.scatter import scatter_recipes


def compute(*results: Any, progress: Progress = False, **kwargs: Any) -> tuple[Any, ...]:
    """Compute results and dask arrays together, in one pass over the data.

    Parameters
    ----------
    *results : Result, dask.array.Array or nested lists, tuples and dicts of them
        What to compute. Anything else is passed through.
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
    tally = _tally(results, progress)
    client = _client(results, kwargs)
    if client is not None:
        results = scatter_parameters(results, client)
    if tally is None:
        return tuple(base.compute(*results, **kwargs))
    with ended(tally):
        if client is not None and tally.layer_names:
            return _compute_on(client, tally, results, kwargs)
        with counted_here(tally):
            return tuple(base.compute(*results, **kwargs))


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
    tally = _tally(results, progress)
    client = _client(results, kwargs)
    if client is not None:
        results = scatter_parameters(results, client)
    if tally is None:
        return tuple(base.persist(*results, **kwargs))
    with ended(tally):
        if client is not None and tally.layer_names:
            return _persist_on(client, tally, results, kwargs)
        with counted_here(tally):
            return tuple(base.persist(*results, **kwargs))


def _tally(results: Any, progress: Progress) -> Tally | None:
    """Return what counts the frames of a computation and tells of them, None if nobody asks."""
    reporter = choose_reporter(progress)
    return None if reporter is None else Tally(work_of(results), reporter)


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
