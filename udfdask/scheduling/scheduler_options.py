"""What may be passed on to schedulers: dask drops all else without a word, misspelt names too."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping
from typing import Any

from udfdask.errors import ArgumentTypeError

OPTIONS = frozenset(
    "num_workers pool initializer func_dumps func_loads rerun_exceptions_locally callbacks "
    "chunksize cache workers allow_other_workers resources retries priority fifo_timeout "
    "actors".split()
)
"""What the schedulers of one machine take, and those of clusters.

One call may run here and on a cluster, so that options of the other kind pass.
"""

OWN = {
    "compute": frozenset({"progress", "scheduler", "optimize_graph", "traverse"}),
    "persist": frozenset({"progress", "scheduler", "optimize_graph", "traverse"}),
    "run_udf_iter": frozenset(
        "sig_dims roi corrections backends split_every plots progress scheduler".split()
    ),
    "to_zarr": frozenset(
        "rename overwrite zarr_format progress scheduler optimize_graph traverse".split()
    ),
}
"""What else each function takes."""


def check_options(caller: str, options: Mapping[str, Any], get: Any) -> None:
    """Raise on options that no scheduler takes; `get` is the scheduler, if it is known.

    A function of somebody else's takes what its signature says.
    """
    known = OPTIONS | OWN[caller] | _taken_by(get)
    unknown = sorted(set(options) - known)
    if not unknown or _takes_all(get):
        return
    guesses = [difflib.get_close_matches(name, known, n=1) for name in unknown]
    meant = ", ".join(repr(found[0]) for found in guesses if found)
    raise ArgumentTypeError(
        f"{caller}() has no argument {', '.join(map(repr, unknown))}"
        + (f"; did you mean {meant}?" if meant else ".")
        + f" Options that dask's schedulers take are {', '.join(sorted(OPTIONS))}"
    )


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
