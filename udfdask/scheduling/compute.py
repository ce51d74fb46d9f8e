"""Compute several results together, in one pass over the data, and report progress."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, TypeVar, overload

from dask import base

from udfdask.base.config import cache_folder
from udfdask.base.tracebacks import own_lines_hidden
from udfdask.errors import ArgumentTypeError, unknown_arguments
from udfdask.graph.dask_internals.expressions import in_one_graph
from udfdask.scheduling.progress import (
    Progress,
    ProgressCounter,
    choose_reporter,
    counting_local_tasks,
    work_of,
)
from udfdask.scheduling.run_log import RunLog, client_of, is_frisky
from udfdask.udf.libertem_udfs import udf_name

if TYPE_CHECKING:
    from udfdask.scheduling.records.compute import Changing

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class _Computes(Protocol[T_co]):
    """A collection, with the type of its value. That of a dask array is not known."""

    def compute(self) -> T_co: ...


class _Persists(Protocol[T_co]):
    """A collection, with the type that it has in memory."""

    def persist(self) -> T_co: ...


@overload
def compute(
    *results: _Computes[T],
    progress: Progress = ...,
    cache: str | os.PathLike[str] | None = ...,
    **kwargs: Any,
) -> tuple[T, ...]: ...
@overload
def compute(
    *results: Any,
    progress: Progress = ...,
    cache: str | os.PathLike[str] | None = ...,
    **kwargs: Any,
) -> tuple[Any, ...]: ...
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
        none of the `workers` in the keyword arguments, or all its workers have ended. If `cache`
        is a folder with other files.
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
    with own_lines_hidden:
        folder = cache_folder() if cache is None else cache
        return _run(compute, results, progress, kwargs, folder)


@overload
def persist(*results: _Persists[T], progress: Progress = ..., **kwargs: Any) -> tuple[T, ...]: ...
@overload
def persist(*results: Any, progress: Progress = ..., **kwargs: Any) -> tuple[Any, ...]: ...
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
        return _run(persist, results, progress, kwargs)


def _run(
    caller: Callable[..., Any],
    results: tuple[Any, ...],
    progress: Progress,
    options: dict[str, Any],
    cache: str | os.PathLike[str] | None = None,
) -> tuple[Any, ...]:
    """Return what dask's function with the name of `caller` returns, as the user gave it."""
    reporter, name = choose_reporter(progress), caller.__name__
    plain, wrap = unwrap_all(results)
    if caller is compute:
        plain = in_one_graph(plain)
    collections, repack = base.unpack_collections(*plain)
    get = None
    if collections:
        get = base.get_scheduler(scheduler=options.get("scheduler"), collections=collections)
    client = client_of(get)
    check_options(caller, options, get if client is None else None)
    work, log = functools.cache(lambda: work_of(plain)), RunLog()

    def run(change: Changing | None = None) -> tuple[Any, ...]:
        """Compute; `change` makes collections of the same values, computed in their place."""
        counter = None if reporter is None else ProgressCounter(work(), reporter)
        todo = plain
        if change is not None:
            changed, stored = change(collections)
            todo = repack(changed)
            if counter is not None:
                counter.stored = stored
        if client is None:
            with nullcontext() if counter is None else counting_local_tasks(counter):
                return tuple(getattr(base, name)(*todo, **options))
        # both are optional
        if is_frisky(client):
            from udfdask.scheduling.frisky_run import run_on_cluster
        else:
            from udfdask.scheduling.cluster_run import run_on_cluster
        done = run_on_cluster(name, todo, plain, client, counter, options)
        if caller is persist:  # tasks run on in the background, unless somebody waited for them
            log.end(status="sent" if counter is None else counter.status)
        return tuple(done)

    with log.running(name, get, work):
        if cache is None:
            done = run()
        else:
            from udfdask.scheduling.records.compute import compute_with_cache  # few runs need it

            done = compute_with_cache(run, cache)
    return tuple(wrap(done))


class SchedulerOptions(TypedDict, total=False):
    """Options of the schedulers of one machine and of clusters: the same call can run on both."""

    num_workers: int | None
    pool: Any
    initializer: Callable[[], object] | None
    func_dumps: Callable[[Any], bytes] | None
    func_loads: Callable[[bytes], Any] | None
    rerun_exceptions_locally: bool | None
    callbacks: Any
    chunksize: int | None
    cache: Any
    workers: Any
    allow_other_workers: bool
    resources: Mapping[str, float] | None
    retries: int
    priority: int
    fifo_timeout: Any
    actors: Any


OPTIONS = frozenset(SchedulerOptions.__annotations__)


def check_options(caller: Callable[..., Any], options: Mapping[str, Any], get: Any) -> None:
    """Raise if no scheduler has an option: dask ignores it. A user's own one is not checked."""
    function = getattr(get, "func", get)  # for an executor, `get` is a partial of dask's function
    is_dask = str(getattr(function, "__module__", "")).startswith(("dask.", "distributed."))
    if callable(get) and not is_dask:
        return
    known = OPTIONS.union(
        ("scheduler", "optimize_graph", "traverse"), inspect.signature(caller).parameters
    )
    if unknown := set(options) - known:
        remedy = f"Options that dask's schedulers take are {', '.join(sorted(OPTIONS))}"
        raise unknown_arguments(caller.__name__, unknown, known, remedy=remedy)


@functools.singledispatch
def unwrap(value: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Return the collection that dask computes for a value, and a function that wraps its result.

    The accessors register their types here, so that only plain arrays are sent to a cluster. dask
    would return a UDF as it is.
    """
    if name := udf_name(value):
        raise ArgumentTypeError(
            f"expected results or dask arrays, got the UDF {name}, which has no data yet: run it "
            f"first, result = udfdask.run_udf(array, {name}(...)), and pass the result"
        )
    return value, lambda done: done


def unwrap_all(values: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Unwrap all values in nested lists, tuples and dicts."""
    kind = type(values)
    if kind is dict:
        by_key = {key: unwrap_all(value) for key, value in values.items()}
        return {key: bare for key, (bare, _) in by_key.items()}, lambda done: {
            key: wrap(done[key]) for key, (_, wrap) in by_key.items()
        }
    if kind not in (list, tuple):
        return unwrap(values)
    unwrapped = [unwrap_all(value) for value in values]
    return kind(bare for bare, _ in unwrapped), lambda done: kind(
        wrap(value) for (_, wrap), value in zip(unwrapped, done, strict=True)
    )
