"""What dask computes in place of labelled values that are no collections, such as signals."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from udfdask.graph.dask_internals import as_user_has_it, graph_array


@functools.singledispatch
def open_labelled(value: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Take a value; return what dask computes in its place, and what makes a value of the outcome.

    Doors register their types here; what goes to a cluster are bare arrays. An expression array is
    computed as a graph: dask would compute it apart from results, with another pass over the data.
    """
    return graph_array(value), as_user_has_it


def open_all(values: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Open all values in nested lists, tuples and dicts."""
    kind = type(values)
    if kind is dict:
        each = {key: open_all(value) for key, value in values.items()}
        return {key: bare for key, (bare, _) in each.items()}, lambda done: {
            key: close(done[key]) for key, (_, close) in each.items()
        }
    if kind not in (list, tuple):
        return open_labelled(values)
    opened = [open_all(value) for value in values]
    return kind(bare for bare, _ in opened), lambda done: kind(
        close(value) for (_, close), value in zip(opened, done, strict=True)
    )
