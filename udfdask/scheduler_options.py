"""Keyword arguments that schedulers take: any other is a mistake, which dask would ignore."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from udfdask.errors import ArgumentTypeError

OPTIONS = frozenset(
    "num_workers pool initializer func_dumps func_loads rerun_exceptions_locally "
    "workers allow_other_workers resources retries priority fifo_timeout actors".split()
)
"""What may be passed on to the schedulers of one machine and to those of clusters."""

COMPUTE_OPTIONS = OPTIONS | {"scheduler", "optimize_graph", "traverse", "chunksize"}
"""What may be passed on to `dask.compute`."""


def check_options(
    options: Mapping[str, Any], known: frozenset[str], who: str, own: tuple[str, ...] = ()
) -> None:
    """Raise on options that no scheduler takes.

    `who` is the function that was called, `own` are the names of its other arguments.
    """
    if callable(options.get("scheduler")):
        return  # it may take anything
    unknown = sorted(set(options) - known)
    if unknown:
        similar = difflib.get_close_matches(unknown[0], [*own, *known], n=1)
        meant = f": did you mean {similar[0]!r}?" if similar else ";"
        raise ArgumentTypeError(
            f"{who}() has no argument {', '.join(map(repr, unknown))}{meant} schedulers take "
            f"{', '.join(sorted(known))}"
        )
