"""Joint computation of results: one pass, a progress bar, heavy parameters sent once."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

from dask import base
from dask.callbacks import Callback
from dask.highlevelgraph import HighLevelGraph

from udfdask.chunk_layers import ChunkBlockwise, ChunkTasks
from udfdask.scatter import scatter_recipes


@functools.singledispatch
def open_labelled(value: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Take a value; return what dask computes in its place, and what makes a value of the outcome.

    Doors register their types here; what goes to a cluster are bare arrays.
    """
    return value, lambda done: done


def _open_all(values: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Open all values in nested lists, tuples and dicts."""
    kind = type(values)
    if kind is dict:
        each = {key: _open_all(value) for key, value in values.items()}
        return {key: bare for key, (bare, _) in each.items()}, lambda done: {
            key: close(done[key]) for key, (_, close) in each.items()
        }
    if kind not in (list, tuple):
        return open_labelled(values)
    opened = [_open_all(value) for value in values]
    return kind(bare for bare, _ in opened), lambda done: kind(
        close(value) for (_, close), value in zip(opened, done, strict=True)
    )


def compute(*results: Any, progress: bool = False, **kwargs: Any) -> tuple[Any, ...]:
    """Compute results and dask arrays together, in one pass over the data.

    Parameters
    ----------
    *results : Result, dask.array.Array or nested lists, tuples and dicts of them
        What to compute. Anything else is passed through. With `udfdask.hyperspy` imported, also
        signals: lazy ones come back in memory.
    progress : bool
        Show a progress bar that counts frames (tasks, on a distributed cluster).
    **kwargs
        Passed on to `dask.compute`: scheduler, num_workers, resources, ...

    Returns
    -------
    tuple
        The computed values, in order: a `Result` with NumPy arrays for a `Result`.

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
    results, close = _open_all(results)
    client = _client(results, kwargs)
    if client is not None:
        results = scatter_parameters(results, client)
    with _bar(results, client) if progress else contextlib.nullcontext():
        if progress and client is not None:
            done = _compute_on(client, results, kwargs)
        else:
            done = base.compute(*results, **kwargs)
    return tuple(close(done))


def persist(*results: Any, progress: bool = False, **kwargs: Any) -> tuple[Any, ...]:
    """Compute results and dask arrays together and keep them lazy, as blocks in memory.

    Parameters
    ----------
    *results : Result, dask.array.Array or nested lists, tuples and dicts of them
        What to compute.
    progress : bool
        Show a progress bar that counts frames; not on a distributed cluster, where the work goes
        on in the background.
    **kwargs
        Passed on to `dask.persist`.

    Returns
    -------
    tuple
        The same collections, backed by computed blocks.

    Examples
    --------
    >>> import dask.array as da, udfdask as ud
    >>> from udfdask.udfs import SumUDF
    >>> (total,) = ud.persist(ud.run_udf(da.ones((3, 3, 2, 2)), SumUDF()))
    >>> total["intensity"].sum().compute()
    np.float64(36.0)
    """
    results, close = _open_all(results)
    client = _client(results, kwargs)
    if client is not None:
        results = scatter_parameters(results, client)
    with _bar(results, client) if progress and client is None else contextlib.nullcontext():
        done = base.persist(*results, **kwargs)
    return tuple(close(done))


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


def _compute_on(client: Any, results: Any, kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Compute on a cluster and show distributed's own bar meanwhile."""
    from distributed import progress as show

    collections, repack = base.unpack_collections(*results)
    options = {k: v for k, v in kwargs.items() if k != "scheduler"}
    futures = client.compute(collections, **options)
    show(futures, notebook=False, scheduler=client.scheduler.address)
    sys.stdout.write("\n")  # distributed's bar leaves the line open
    done: tuple[Any, ...] = repack(client.gather(futures))
    return done


@contextlib.contextmanager
def _bar(results: Any, client: Any) -> Iterator[None]:
    """Show a bar that counts the frames of finished chunk tasks on a local scheduler."""
    if client is not None:
        yield
        return
    from tqdm.auto import tqdm  # costs asyncio

    frames: dict[Any, float] = {}
    collections, _ = base.unpack_collections(*results)
    for collection in collections:
        graph = collection.__dask_graph__()
        for layer in getattr(graph, "layers", {}).values():
            if isinstance(layer, (ChunkBlockwise, ChunkTasks)):
                frames.update(layer.frames)
    with tqdm(total=round(sum(frames.values())), unit="frame", unit_scale=True) as bar:
        done = 0.0

        def posttask(key: Any, *_: Any) -> None:
            nonlocal done
            if key in frames:
                done += frames[key]
                bar.update(int(done) - bar.n)

        with Callback(posttask=posttask):
            yield
        bar.update(bar.total - bar.n)
