"""What may be passed on to schedulers: dask drops all else without a word, misspelt names too."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypedDict

from udfdask.errors import unknown_arguments


class SchedulerOptions(TypedDict, total=False):
    """What the schedulers of one machine take, and those of clusters.

    One call may run here and on a cluster, so that options of the other kind pass.
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

_DASKS = frozenset({"scheduler", "optimize_graph", "traverse"})
"""What `dask.compute` itself takes."""

OWN = {
    "compute": {"progress"} | _DASKS,
    "persist": {"progress"} | _DASKS,
    "to_zarr": {"rename", "overwrite", "zarr_format", "progress"} | _DASKS,
}
"""What functions take besides that pass all the rest on to `dask.compute`."""


def check_options(
    caller: str, options: Mapping[str, Any], get: Any, own: Iterable[str] = ()
) -> None:
    """Raise on options that no scheduler takes; `get` is the scheduler, if it is known.

    `own` are the arguments of the caller if it is not in `OWN`. A function of somebody else's
    takes what its signature says.
    """
    known = OPTIONS.union(OWN.get(caller, ()), own, _taken_by(get))
    unknown = set(options) - known
    if unknown and not _takes_all(get):
        remedy = f"Options that dask's schedulers take are {', '.join(sorted(OPTIONS))}"
        raise unknown_arguments(caller, unknown, known, remedy=remedy)


def _parameters(get: Any) -> list[inspect.Parameter]:
    """Return the parameters of a scheduler that is somebody else's function; of dask's, none."""
    inner = getattr(get, "func", get)  # dask makes a partial of its own for an executor
    dasks = str(getattr(inner, "__module__", "")).startswith(("dask.", "distributed."))
    if dasks or not callable(get):
        return []
    try:
        return list(inspect.signature(get).parameters.values())
    except ValueError:  # compiled, without a signature
        return []


def _taken_by(get: Any) -> set[str]:
    """Return the names of the arguments of somebody else's scheduler."""
    return {parameter.name for parameter in _parameters(get)}


def _takes_all(get: Any) -> bool:
    """Return whether somebody else's scheduler takes any argument."""
    return any(parameter.kind is parameter.VAR_KEYWORD for parameter in _parameters(get))
