"""Compare results and arrays, lazy or computed: values, shapes, dtypes and blocks."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from dask.base import is_dask_collection
from dask.core import flatten
from dask.highlevelgraph import HighLevelGraph
from dask.local import get_sync

from udfdask.backends.table import to_host
from udfdask.geometry.chunk_grid import BoolArray
from udfdask.names.naming import identity_of
from udfdask.results.result import Result
from udfdask.types import AnyArray

Close = Callable[[AnyArray, AnyArray], Any]
"""Says which elements of two arrays of floats are equal but for rounding; NaN equals NaN."""


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
    AssertionError: arrays differ at index (3,): 3 and 4 (1 of 4 values differ)
    """
    __tracebackhide__ = True
    if isinstance(a, Mapping) != isinstance(b, Mapping):
        raise AssertionError(
            f"a {type(a).__name__} cannot be compared with a {type(b).__name__}: only one of them "
            "holds results by name"
        )
    if isinstance(a, Mapping) and set(a) != set(b):
        raise AssertionError(f"the names differ: {sorted(a)} and {sorted(b)}")
    both = isinstance(a, Result) and isinstance(b, Result)
    close = partial(np.isclose, rtol=rtol, atol=atol, equal_nan=True)
    left, right = (_computed(_parts(side, every=both)) for side in (a, b))
    if difference := find_difference(left, right, close, check_dtype=check_dtype):
        raise AssertionError(difference.between(difference.name))


def _parts(side: Any, every: bool) -> dict[str, Any]:
    """Return arrays by their names in messages; with `every`, also `valid_mask` and `raw`."""
    if not isinstance(side, Mapping):
        return {"arrays": side}
    parts = {repr(name): side[name] for name in sorted(side)}
    if every:
        assert isinstance(side, Result)
        for name in sorted(side):
            parts[f"valid_mask[{name!r}]"] = side.valid_mask[name]
            parts[f"raw[{name!r}]"] = side.raw[name]
    return parts


def _computed(parts: Mapping[str, Any]) -> dict[str, AnyArray]:
    """Return arrays as NumPy arrays; compute all dask arrays together and check their blocks."""
    __tracebackhide__ = True
    lazy = {name: a for name, a in parts.items() if isinstance(a, da.Array)}
    done: dict[str, AnyArray] = {}
    if lazy:
        graph = HighLevelGraph.merge(*(a.__dask_graph__() for a in lazy.values()))
        keys: Any = [list(flatten([a.__dask_keys__()])) for a in lazy.values()]
        ready = da.Array.__dask_optimize__(graph, keys)
        for name, blocks in zip(lazy, get_sync(ready, keys), strict=True):
            done[name] = _assembled(name, lazy[name], blocks)
    for name, array in parts.items():
        if name not in lazy:
            # a dask collection of another type, such as a DataFrame column
            is_lazy = is_dask_collection(array)
            done[name] = to_host(array.compute(scheduler="sync") if is_lazy else array)
    return {name: done[name] for name in parts}


def _assembled(name: str, array: da.Array, blocks: Any) -> AnyArray:
    """Return the blocks of a dask array as one array; raise if a block is not as announced."""
    __tracebackhide__ = True
    has_known_shape = not any(math.isnan(n) for sizes in array.chunks for n in sizes)
    grid = np.empty(array.numblocks, dtype=object)
    for place, given in zip(np.ndindex(grid.shape), blocks, strict=True):
        block = to_host(given)
        shape = tuple(sizes[i] for sizes, i in zip(array.chunks, place, strict=True))
        for what, announced in (("shape", shape), ("dtype", array.dtype)):
            found = getattr(block, what)
            if found != announced and (has_known_shape or what == "dtype"):
                raise AssertionError(
                    f"{name}: block {place} announces {what} {announced} and has {what} {found}"
                )
        grid[place] = block
    if array.ndim == 0:
        return np.asarray(grid[()])
    assembled: AnyArray = np.block(grid.tolist())
    return assembled.reshape(array.shape) if has_known_shape else assembled


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Compares floats of results whose sums were made in another order.

    Broken UDFs are far above the allowed difference.
    """

    eps: float = 0.0
    """Machine epsilon of the input dtype, if it is coarser than that of the results."""
    data: float = 0.0
    """Largest absolute value of the data; 0 for whole numbers, because their sums are exact."""

    def __call__(self, one: AnyArray, other: AnyArray) -> BoolArray:
        """Return which floats are equal but for rounding; the largest one sets the scale."""
        eps = max(self.eps, float(np.finfo(one.dtype).eps))
        with np.errstate(all="ignore"):
            finite = np.isfinite(one) & np.isfinite(other)
            scale = float(np.maximum(np.abs(one), np.abs(other))[finite].max(initial=0))
            allowed = min(1000 * eps, 1e-2) * scale + 8 * eps * self.data
            near = finite & (np.abs(one - other) <= allowed)
        return np.asarray(near | (one == other) | (np.isnan(one) & np.isnan(other)))


@dataclass(frozen=True, slots=True)
class Difference:
    """The first difference between two sets of results: a buffer, its two values and their place.

    `index` is None if shape, dtype or the presence of the result differ.
    """

    name: str
    one: str
    other: str
    count: str
    index: tuple[int, ...] | None = None

    @property
    def where(self) -> str:
        """The index and the number of differing values, as text."""
        if self.index is None or self.index in ((), (0,)):
            return f"({self.count})"
        shown = self.index[0] if len(self.index) == 1 else self.index
        return f"(at index {shown}; {self.count})"

    def between(self, what: str) -> str:
        """Return the difference of two things as text."""
        at = "" if self.index is None else f" at index {self.index}"
        return f"{what} differ{at}: {self.one} and {self.other} ({self.count})"


def find_difference(
    one: Mapping[str, AnyArray],
    other: Mapping[str, AnyArray],
    close: Close,
    *,
    check_dtype: bool = True,
) -> Difference | None:
    """Return the first difference between two sets of arrays by name; None if they agree."""
    for name in dict.fromkeys((*one, *other)):
        if name not in one or name not in other:
            there = ["a result" if name in side else "nothing" for side in (one, other)]
            return Difference(name, there[0], there[1], "a result is missing")
        a, b = one[name], other[name]
        for what in ("shape", "dtype") if check_dtype else ("shape",):
            values = [getattr(side, what) for side in (a, b)]
            if values[0] != values[1]:
                texts = [f"{what} {value}" for value in values]
                return Difference(name, texts[0], texts[1], f"{what}s differ")
        wrong = differing(a, b, close)
        if wrong.any():
            index = tuple(int(i) for i in np.argwhere(wrong)[0])
            count = f"{np.count_nonzero(wrong)} of {wrong.size} values differ"
            return Difference(name, show(a[index]), show(b[index]), count, index)
    return None


def differing(one: AnyArray, other: AnyArray, close: Close = Tolerance()) -> BoolArray:
    """Return which elements of two arrays of the same shape differ."""
    kinds = {one.dtype.kind, other.dtype.kind}
    if one.dtype.names is not None and one.dtype == other.dtype:
        wrong = np.zeros(one.shape, dtype=bool)
        for field in one.dtype.names:
            each = differing(one[field], other[field], close)
            wrong |= each.any(axis=tuple(range(one.ndim, each.ndim)))
        return wrong
    if kinds <= set("biufc") and kinds & set("fc"):
        return ~np.asarray(close(one, other))
    if kinds == {"O"}:
        pairs = zip(one.ravel(), other.ravel(), strict=True)
        flat = np.fromiter((not same(a, b) for a, b in pairs), dtype=bool, count=one.size)
        return flat.reshape(one.shape)
    wrong = np.asarray(one != other)
    if kinds <= set("mM"):
        wrong &= ~(np.isnat(one) & np.isnat(other))
    return wrong


def same(one: Any, other: Any) -> bool:
    """Return whether two objects of any type are equal; NaN equals NaN."""
    if one is other:
        return True
    if isinstance(one, (np.ndarray, np.generic)) or isinstance(other, (np.ndarray, np.generic)):
        a, b = np.asarray(one), np.asarray(other)
        return a.shape == b.shape and a.dtype == b.dtype and not differing(a, b).any()
    if type(one) is not type(other):
        return False
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    with contextlib.suppress(Exception):  # comparing users' objects can raise anything
        if bool(one == other):
            return True
    return identity_of(one) == identity_of(other)


def show(value: Any) -> str:
    """Return a value as a short text for a message."""
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."
