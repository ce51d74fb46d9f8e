"""Assert that results and arrays are equal, lazy or computed, and that code is lazy."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import dask.array as da
import dask.config
import numpy as np
from dask.base import compute
from dask.local import get_sync

from udfdask.backends.table import to_host
from udfdask.base.names.naming import identity_of
from udfdask.base.types import AnyArray
from udfdask.geometry.chunk_grid import BoolArray
from udfdask.results.result import Result

Close = Callable[[AnyArray, AnyArray], Any]
"""Says which elements of two arrays of floats are equal but for rounding; NaN equals NaN."""


class UDFCheckError(AssertionError):
    """Raised if a UDF breaks a law of `check_udf`; the message says which law, and how.

    Attributes
    ----------
    law : str
        Name of the law, as in the argument `skip` of `check_udf`.

    Examples
    --------
    >>> from udfdask.testing import UDFCheckError
    >>> issubclass(UDFCheckError, AssertionError)
    True
    """

    law: str = ""


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
    AssertionError: arrays differ: 3 and 4 (at index 3; 1 of 4 values differ)
    """
    __tracebackhide__ = True
    names = [sorted(side) if isinstance(side, Mapping) else "an array" for side in (a, b)]
    if names[0] != names[1]:
        raise AssertionError(f"the names differ: {names[0]} and {names[1]}")
    both = isinstance(a, Result) and isinstance(b, Result)
    close = partial(np.isclose, rtol=rtol, atol=atol, equal_nan=True)
    left, right = (_computed(_parts(side, every=both)) for side in (a, b))
    if found := find_difference(left, right, close, check_dtype=check_dtype):
        raise AssertionError(f"{found.name} differ: {found.one} and {found.other} {found.where}")


@contextlib.contextmanager
def raise_if_dask_computes(allowed: int = 0) -> Iterator[None]:
    """Raise if dask computes anything inside the `with` block.

    Parameters
    ----------
    allowed : int
        Number of computations that are allowed; they run on the synchronous scheduler.

    Yields
    ------
    None
        Nothing.

    Raises
    ------
    AssertionError
        If there are more computations.

    Examples
    --------
    >>> import dask.array as da, udfdask as ud
    >>> from udfdask.testing import raise_if_dask_computes
    >>> from udfdask.udfs import SumUDF
    >>> with raise_if_dask_computes():
    ...     result = ud.run_udf(da.ones((4, 4, 2, 2)), SumUDF())
    >>> with raise_if_dask_computes():
    ...     result["intensity"].sum().compute()
    Traceback (most recent call last):
    ...
    AssertionError: dask computed something, 1 time(s), where 0 are allowed
    """
    seen = 0

    def get(graph: Any, keys: Any, **kwargs: Any) -> Any:
        nonlocal seen
        seen += 1
        if seen > allowed:
            raise AssertionError(
                f"dask computed something, {seen} time(s), where {allowed} are allowed"
            )
        return get_sync(graph, keys, **kwargs)

    with dask.config.set(scheduler=get):
        yield


def _parts(side: Any, every: bool) -> dict[str, Any]:
    """Return arrays by their names in messages; with `every`, also `valid_mask` and `raw`."""
    if not isinstance(side, Mapping):
        return {"arrays": side}
    parts = {repr(name): side[name] for name in sorted(side)}
    if every:
        more: Any = side
        parts |= {f"valid_mask[{name!r}]": more.valid_mask[name] for name in side}
        parts |= {f"raw[{name!r}]": more.raw[name] for name in side}
    return parts


def _computed(parts: Mapping[str, Any]) -> dict[str, AnyArray]:
    """Return arrays as NumPy arrays; compute all dask arrays together and check their blocks."""
    __tracebackhide__ = True
    blocks = {
        name: array.to_delayed(optimize_graph=False).ravel().tolist()
        if isinstance(array, da.Array)
        else array  # a dask collection of another type is computed as well
        for name, array in parts.items()
    }
    (done,) = compute(blocks, scheduler="sync")
    return {
        name: _assembled(name, array, done[name])
        if isinstance(array, da.Array)
        else to_host(done[name])
        for name, array in parts.items()
    }


def _assembled(name: str, array: da.Array, blocks: Any) -> AnyArray:
    """Return the blocks of a dask array as one array; raise if a block is not as announced."""
    __tracebackhide__ = True
    grid = np.empty(array.numblocks, dtype=object)
    for place, given in zip(np.ndindex(grid.shape), blocks, strict=True):
        block = grid[place] = to_host(given)
        shape = tuple(sizes[i] for sizes, i in zip(array.chunks, place, strict=True))
        for what, announced in (("shape", shape), ("dtype", array.dtype)):
            found = getattr(block, what)
            is_unknown = what == "shape" and any(map(math.isnan, shape))
            if found != announced and not is_unknown:
                raise AssertionError(
                    f"{name}: block {place} announces {what} {announced} and has {what} {found}"
                )
    return np.asarray(np.block(grid.tolist())) if array.ndim else np.asarray(grid[()])


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


class Difference(NamedTuple):
    """The first difference between two sets of results: name, two values and their place."""

    name: str
    one: str
    other: str
    where: str


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
            return Difference(name, there[0], there[1], "(a result is missing)")
        a, b = one[name], other[name]
        for what in ("shape", "dtype") if check_dtype else ("shape",):
            texts = [f"{what} {getattr(side, what)}" for side in (a, b)]
            if getattr(a, what) != getattr(b, what):
                return Difference(name, texts[0], texts[1], f"({what}s differ)")
        wrong = differing(a, b, close)
        if wrong.any():
            index = tuple(map(int, np.argwhere(wrong)[0]))
            count = f"{np.count_nonzero(wrong)} of {wrong.size} values differ"
            shown = index[0] if len(index) == 1 else index
            where = f"(at index {shown}; {count})" if wrong.size > 1 else f"({count})"
            return Difference(name, show(a[index]), show(b[index]), where)
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
        return np.array([not same(a, b) for a, b in pairs], dtype=bool).reshape(one.shape)
    wrong = np.asarray(one != other)
    if kinds <= set("mM"):
        wrong &= ~(np.isnat(one) & np.isnat(other))
    return wrong


def same(one: Any, other: Any) -> bool:
    """Return whether two objects of any type are equal; NaN equals NaN."""
    if one is other:
        return True
    if isinstance(one, (np.ndarray, np.generic)) or isinstance(other, (np.ndarray, np.generic)):
        return find_difference({"": np.asarray(one)}, {"": np.asarray(other)}, Tolerance()) is None
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
