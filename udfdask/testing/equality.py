"""Compares results and arrays, lazy or computed: values, shapes, dtypes, blocks."""

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

from udfdask.arrays.backends.convert import to_host
from udfdask.results.result import Result
from udfdask.testing.differences import Tolerance, differing, show
from udfdask.types import AnyArray


def assert_eq(
    a: Any, b: Any, *, rtol: float = 1e-5, atol: float = 1e-8, check_dtype: bool = True
) -> None:
    """Assert that two arrays, or two sets of results, are equal.

    Dask arrays are computed on the synchronous scheduler, and each of their blocks must have the
    shape and dtype that the array announces. Floats are equal to rounding, everything else exactly;
    NaN equals NaN, NaT equals NaT.

    Parameters
    ----------
    a, b : array, Result, or mapping of str to array
        What to compare: dask or NumPy arrays, or anything that NumPy makes an array of; or two sets
        of results by name. Of two `Result` objects `.raw` and `.valid_mask` are compared as well.
    rtol : float
        Relative tolerance of floats.
    atol : float
        Absolute tolerance of floats, in their unit.
    check_dtype : bool
        Whether dtypes must be the same, byte order included.

    Raises
    ------
    AssertionError
        If they differ, saying where.

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
        (left,), (right,) = (
            _computed([("the first array", a)]),
            _computed([("the second array", b)]),
        )
        _compare("arrays", left, right, *within)
        return
    for side in (a, b):
        if not isinstance(side, Mapping):
            raise AssertionError(  # noqa: TRY004  # what a test catches
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
    for left, right in zip(_parts(a, both), _parts(b, both), strict=True):
        _compare(left[0], left[1], right[1], *within)
    if isinstance(a, Result) and isinstance(b, Result):
        for name in a:
            kinds = [side.buffers[name].kind for side in (a, b)]
            if kinds[0] != kinds[1]:
                raise AssertionError(f"{name!r} has the kinds {kinds[0]} and {kinds[1]}")


def _parts(results: Mapping[str, Any], every: bool) -> list[tuple[str, AnyArray]]:
    """Return results by name, computed at once; with `every`, their rows and masks as well."""
    lazy = [(repr(name), results[name]) for name in sorted(results)]
    if every:
        assert isinstance(results, Result)
        for name in sorted(results):
            lazy.append((f"valid_mask[{name!r}]", results.valid_mask[name]))
            lazy.append((f"raw[{name!r}]", results.raw[name]))
    return list(zip([label for label, _ in lazy], _computed(lazy), strict=True))


def _computed(named: list[tuple[str, Any]]) -> list[AnyArray]:
    """Return arrays as NumPy arrays; dask arrays in one computation, their blocks checked."""
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
            found = array.compute(scheduler="sync") if is_dask_collection(array) else array
            done[k] = to_host(found)
    return [done[k] for k in range(len(named))]


def _assembled(label: str, array: da.Array, blocks: Any) -> AnyArray:
    """Return a dask array's blocks as one array; each must be as announced."""
    __tracebackhide__ = True
    known = not any(math.isnan(n) for sizes in array.chunks for n in sizes)
    places = itertools.product(*(range(len(sizes)) for sizes in array.chunks))
    grid = np.empty(array.numblocks, dtype=object)
    for place, block in zip(places, blocks, strict=True):
        found = to_host(block)
        shape = tuple(sizes[i] for sizes, i in zip(array.chunks, place, strict=True))
        if known and found.shape != shape:
            raise AssertionError(
                f"{label}: block {place} announces shape {shape} and has shape {found.shape}"
            )
        if found.dtype != array.dtype:
            raise AssertionError(
                f"{label}: block {place} announces dtype {array.dtype} and has dtype {found.dtype}"
            )
        grid[place] = found
    if array.ndim == 0:
        return np.asarray(grid[()])
    whole: AnyArray = np.block(grid.tolist())
    return whole.reshape(array.shape) if known else whole


def _compare(
    label: str, a: AnyArray, b: AnyArray, rtol: float, atol: float, check_dtype: bool
) -> None:
    """Raise where two NumPy arrays differ."""
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
