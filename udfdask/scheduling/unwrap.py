"""Replace values that dask cannot compute, such as signals, by dask arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from udfdask.errors import ArgumentTypeError
from udfdask.graph.dask_internals.arrays import as_user_has_it, graph_array
from udfdask.libertem_udfs import udf_name


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
