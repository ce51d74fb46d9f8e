"""What a computation is: collections, the scheduler that runs them, and what was asked for."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypedDict

from dask import base

from udfdask.errors import ArgumentTypeError, unknown_arguments
from udfdask.graph.dask_internals.arrays import as_user_has_it, graph_array
from udfdask.libertem_udfs import udf_name
from udfdask.scheduling.progress import Progress, choose_reporter

if TYPE_CHECKING:
    from udfdask.records.compute import Changing
    from udfdask.scheduling.counter import ProgressCounter


class SchedulerOptions(TypedDict, total=False):
    """Options of the schedulers of one machine and of clusters.

    The same call can run on both, so the options of one kind are accepted by the other.
    """

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
    """Raise if neither `caller` nor a scheduler accepts an option: dask ignores unknown options.

    `get` is the scheduler's function, if it is known. A user's own one checks its options itself.
    """
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

    The accessors register their types here, so that only plain arrays are sent to a cluster. An
    expression array is computed as a graph; otherwise dask would compute it separately from other
    results, in a second pass over the data. A UDF is refused: dask would return it as it is.
    """
    if name := udf_name(value):
        raise ArgumentTypeError(
            f"expected results or dask arrays, got the UDF {name}, which has no data yet: run it "
            f"first, result = udfdask.run_udf(array, {name}(...)), and pass the result"
        )
    return graph_array(value), as_user_has_it


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Collections that are ready to be computed on a scheduler."""

    given: list[Any]
    """Nested collections, as the user gave them."""
    collections: tuple[Any, ...]
    """The same, or changed ones that give the same values: these are computed."""
    wrapped: Callable[[Any], Any]
    """Makes of the computed values what the user gave."""
    client: Any
    """The client of a cluster; None for schedulers of this process."""
    counter: ProgressCounter | None
    """Counts tasks; None if nobody asks for progress."""
    options: dict[str, Any]
    """Options of dask's `compute` or `persist`."""

    def changed(self, change: Changing) -> Job:
        """Return a job that computes changed collections."""
        collections, repack = base.unpack_collections(*self.collections)
        changed, stored = change(collections)
        if self.counter is not None:
            self.counter.note_stored(stored)
        return replace(self, collections=repack(changed))

    def wrap(self, values: Any) -> tuple[Any, ...]:
        """Return computed values as what the user gave."""
        return tuple(self.wrapped(values))


def make_job(
    caller: Callable[..., Any],
    results: tuple[Any, ...],
    progress: Progress,
    options: dict[str, Any],
) -> Job:
    """Return the job of a call of `caller`; raise if the scheduler does not have an option."""
    reporter = choose_reporter(progress)
    plain, wrapped = unwrap_all(results)
    collections, _ = base.unpack_collections(*plain)
    get = None
    if collections:
        scheduler = options.get("scheduler")
        get = base.get_scheduler(scheduler=scheduler, collections=collections)
    check_options(caller, options, get)
    counter = None
    if reporter is not None:
        from udfdask.scheduling.counter import ProgressCounter, work_of

        counter = ProgressCounter(work_of(plain), reporter)
    owner = getattr(get, "__self__", None)
    return Job(
        given=plain,
        collections=tuple(plain),
        wrapped=wrapped,
        client=owner if hasattr(owner, "scatter") else None,
        counter=counter,
        options=options,
    )
