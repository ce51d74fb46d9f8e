"""Check the options of schedulers: dask silently ignores unknown options, even misspelled ones."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypedDict

from udfdask.errors import unknown_arguments


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

_DASK_OPTIONS = frozenset({"scheduler", "optimize_graph", "traverse"})
"""Options of `dask.compute` itself."""


def check_options(caller: Callable[..., Any], options: Mapping[str, Any], get: Any) -> None:
    """Raise if neither `caller` nor a scheduler accepts an option.

    `get` is the scheduler's function, if it is known. A user's own one checks its options itself.
    """
    function = getattr(get, "func", get)  # for an executor, `get` is a partial of dask's function
    is_dask = str(getattr(function, "__module__", "")).startswith(("dask.", "distributed."))
    if callable(get) and not is_dask:
        return
    known = OPTIONS.union(_DASK_OPTIONS, inspect.signature(caller).parameters)
    if unknown := set(options) - known:
        remedy = f"Options that dask's schedulers take are {', '.join(sorted(OPTIONS))}"
        raise unknown_arguments(caller.__name__, unknown, known, remedy=remedy)
