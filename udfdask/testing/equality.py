"""Compare results and arrays, lazy or computed: values, shapes, dtypes and blocks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

import dask.array as da
import numpy as np
from dask.base import is_dask_collection
from dask.core import flatten
from dask.highlevelgraph import HighLevelGraph
from dask.local import get_sync

from udfdask.backends.table import to_host
from udfdask.results.result import Result
from udfdask.testing.differences import Tolerance, differing, show
from udfdask.types import AnyArray


def assert_eq(
    a: Any, b: Any, *, rtol: float = 1e-5, atol: float = 1e-8, check_dtype: bool = True
) -> None:
    """Assert that two arrays, or two sets of results, are equal.

    dask arrays are computed on the synchronous scheduler, and each block must have the shape and
    dtype that the array announces. Floats are compared with a tolerance for rounding, everything
    else exactly. NaN equals NaN, and NaT equals NaT.

    Parameters
    ----------
    a, b : array, Result, or mapping of str to array
        Two arrays (dask, NumPy, or anything that NumPy can convert), or two sets of results by
        name. For two `Result` objects, ``.raw`` and ``.valid_mask`` are compared as well.
    rtol : float
        Relative tolerance of floats.
    atol : float
        Absolute tolerance of floats, in their unit.
    check_dtype : bool
        Whether dtypes must be the same, including the byte order.

    Raises
    ------
    AssertionError
        If they differ; the message says where.

    Examples
    --------
    >>> import dask.array as da, numpy as np, udfdask as ud
    >>> from udfdask.testing import assert_eq, run_reference
    >>> from udfdask.udfs import SumSigUDF
    >>> x = da.ones((4, 6, 2, 2), chunks=(2, 3, 2, 2))
    >>> assert_eq(ud.run_udf(x, SumSigUDF()), run_reference(x, SumSigUDF()))
    >>> assert_eq(da.arange(4, chunks=2), np.array([0, 1, 2, 4]))
    Traceback (most recent call last):
    ...
    AssertionError: arrays differ at index (3,): 3 and 4 (1 of 4 values)
    """
    __tracebackhide__ = True
    within = (rtol, atol, check_dtype)
    if not isinstance(a, Mapping) and not isinstance(b, Mapping):
        (left,) = _computed([("the first array", a)])
        (right,) = _computed([("the second array", b)])
        _compare("arrays", left, right, *within)
        return
    for side in (a, b):
        if not isinstance(side, Mapping):
            raise AssertionError(  # noqa: TRY004  # tests expect AssertionError
                f"results cannot be compared with a {type(side).__name__}"
            )
    _compare_results(a, b, within)


def _compare_results(
    a: Mapping[str, Any], b: Mapping[str, Any], within: tuple[float, float, bool]
) -> None:
    """Compare two sets of results by name."""
    __tracebackhide__ = True
    if set(a) != set(b):
        raise AssertionError(f"the names differ: {sorted(a)} and {sorted(b)}")
    both = isinstance(a, Result) and isinstance(b, Result)
    for (label, left), (_, right) in zip(_parts(a, both), _parts(b, both), strict=True):
        _compare(label, left, right, *within)
    if isinstance(a, Result) and isinstance(b, Result):
        for name in a:
            kinds = [side.buffers[name].kind for side in (a, b)]
            if kinds[0] != kinds[1]:
                raise AssertionError(f"{name!r} has the kinds {kinds[0]} and {kinds[1]}")


def _parts(results: Mapping[str, Any], every: bool) -> list[tuple[str, AnyArray]]:
    """Return computed results with labels; with `every`, also `valid_mask` and `raw`."""
    lazy = [(repr(name), results[name]) for name in sorted(results)]
    if every:
        assert isinstance(results, Result)
        for name in sorted(results):
            lazy.append((f"valid_mask[{name!r}]", results.valid_mask[name]))
            lazy.append((f"raw[{name!r}]", results.raw[name]))
    return list(zip([label for label, _ in lazy], _computed(lazy), strict=True))


def _computed(named: list[tuple[str, Any]]) -> list[AnyArray]:
    """Return arrays as NumPy arrays; compute all dask arrays together and check their blocks."""
    lazy = {k: a for k, (_, a) in enumerate(named) if isinstance(a, da.Array)}
    done: dict[int, AnyArray] = {}
    if lazy:
        graph = HighLevelGraph.merge(*(a.__dask_graph__() for a in lazy.values()))
        keys: Any = [list(flatten([a.__dask_keys__()])) for a in lazy.values()]
        ready = da.Array.__dask_optimize__(graph, keys)
        for k, blocks in zip(lazy, get_sync(ready, keys), strict=True):
            done[k] = _assembled(named[k][0], lazy[k], blocks)
    for k, (_, array) in enumerate(named):
        if k not in done:
            # a dask collection of another type, such as a DataFrame column
            done[k] = to_host(
                array.compute(scheduler="sync") if is_dask_collection(array) else array
            )
    return [done[k] for k in range(len(named))]


def _assembled(label: str, array: da.Array, blocks: Any) -> AnyArray:
    """Return the blocks of a dask array as one array; raise if a block is not as announced."""
    __tracebackhide__ = True
    has_known_shape = not any(math.isnan(n) for sizes in array.chunks for n in sizes)
    places = itertools.product(*(range(len(sizes)) for sizes in array.chunks))
    grid = np.empty(array.numblocks, dtype=object)
    for place, block in zip(places, blocks, strict=True):
        block = to_host(block)  # noqa: PLW2901
        shape = tuple(sizes[i] for sizes, i in zip(array.chunks, place, strict=True))
        if has_known_shape and block.shape != shape:
            raise AssertionError(
                f"{label}: block {place} announces shape {shape} and has shape {block.shape}"
            )
        if block.dtype != array.dtype:
            raise AssertionError(
                f"{label}: block {place} announces dtype {array.dtype} and has dtype {block.dtype}"
            )
        grid[place] = block
    if array.ndim == 0:
        return np.asarray(grid[()])
    assembled: AnyArray = np.block(grid.tolist())
    return assembled.reshape(array.shape) if has_known_shape else assembled


def _compare(
    label: str, a: AnyArray, b: AnyArray, rtol: float, atol: float, check_dtype: bool
) -> None:
    """Raise if two NumPy arrays differ."""
    __tracebackhide__ = True
    if a.shape != b.shape:
        raise AssertionError(f"{label}: the shapes are {a.shape} and {b.shape}")
    if check_dtype and a.dtype != b.dtype:
        raise AssertionError(f"{label}: the dtypes are {a.dtype} and {b.dtype}")
    kinds = a.dtype.kind + b.dtype.kind
    if set(kinds) <= set("biufc") and set(kinds) & set("fc"):
        wrong = ~np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=True)
    elif a.dtype == b.dtype:
        wrong = differing(a, b, Tolerance())
    else:
        wrong = np.asarray(a != b)
    if wrong.any():
        index = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise AssertionError(
            f"{label} differ at index {index}: {show(a[index])} and {show(b[index])} "
            f"({np.count_nonzero(wrong)} of {wrong.size} values)"
        )
