"""Finds where two sets of results differ: exactly for all but floats, to rounding for those."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from udfdask.arrays.geometry.chunk_grid import BoolArray
from udfdask.types import AnyArray

ROUNDING = 1000.0
"""Units of rounding, of the largest value of an array, that a different order may cost."""

NEAR = 0.3
"""Share of the largest value by which floats may be apart and yet differ by rounding alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """How far floats may be apart."""

    eps: float = 0.0
    """Precision of what they were computed in, if that is coarser than their own."""
    data: float = 0.0
    """Largest absolute value of the data, 0 if they are whole numbers, whose sums are exact."""

    def of(self, scale: float, dtype: np.dtype[Any]) -> float:
        """Return how far values of a dtype may be apart where the largest is `scale`."""
        eps = max(self.eps, float(np.finfo(dtype).eps))
        return min(ROUNDING * eps, 1e-2) * scale + 8 * eps * self.data


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Where two sets of results differ first."""

    name: str
    """Name of the buffer."""
    one: str
    """What the first has there."""
    other: str
    """What the second has there."""
    index: tuple[int, ...] | None
    """Where in the array; None if they differ as a whole, in shape or dtype."""
    count: str
    """How many values differ, in words."""

    @property
    def where(self) -> str:
        """The place, in words."""
        if self.index is None:
            return f"({self.count})"
        if len(self.index) == 0 or self.index == (0,):
            return f"({self.count})"
        shown = self.index[0] if len(self.index) == 1 else self.index
        return f"(at index {shown}; {self.count})"


def find_difference(
    one: Mapping[str, AnyArray], other: Mapping[str, AnyArray], tolerance: Tolerance
) -> Difference | None:
    """Return the first difference between two sets of arrays by name, None if they agree."""
    for name in dict.fromkeys((*one, *other)):
        if name not in one or name not in other:
            texts = ["a result" if name in side else "nothing" for side in (one, other)]
            return _as_a_whole(name, texts[0], texts[1], count="a result is missing")
        a, b = one[name], other[name]
        if a.shape != b.shape:
            return _as_a_whole(name, f"shape {a.shape}", f"shape {b.shape}", count="shapes differ")
        if a.dtype != b.dtype:
            return _as_a_whole(name, f"dtype {a.dtype}", f"dtype {b.dtype}", count="dtypes differ")
        wrong = differing(a, b, tolerance)
        if wrong.any():
            index = tuple(int(i) for i in np.argwhere(wrong)[0])
            return Difference(
                name=name,
                one=show(a[index]),
                other=show(b[index]),
                index=index,
                count=f"{np.count_nonzero(wrong)} of {wrong.size} values differ"
                + _rounding(a, b, tolerance),
            )
    return None


def _rounding(one: AnyArray, other: AnyArray, tolerance: Tolerance) -> str:
    """Return what helps where floats are nearly equal, "" where they are not."""
    if one.dtype.kind not in "fc" or not tolerance.data:
        return ""
    finite = np.isfinite(one) & np.isfinite(other)
    if not finite.all() or np.abs(one - other).max() > NEAR * np.abs(one).max():
        return ""
    return "; if that is rounding, a wider dtype of the buffers helps"


def _as_a_whole(name: str, one: str, other: str, *, count: str) -> Difference:
    """Return a difference that has no place."""
    return Difference(name=name, one=one, other=other, index=None, count=count)


def differing(one: AnyArray, other: AnyArray, tolerance: Tolerance) -> BoolArray:
    """Return which elements of two arrays of one shape and dtype differ."""
    dtype = one.dtype
    if dtype.names is not None:
        wrong = np.zeros(one.shape, dtype=bool)
        for field in dtype.names:
            each = differing(one[field], other[field], tolerance)
            wrong |= each.any(axis=tuple(range(one.ndim, each.ndim)))
        return wrong
    if dtype.kind in "fc":
        return _apart(one, other, tolerance)
    if dtype.kind == "O":
        pairs = zip(one.ravel(), other.ravel(), strict=True)
        flat = np.fromiter((not same(a, b) for a, b in pairs), dtype=bool, count=one.size)
        return flat.reshape(one.shape)
    wrong = np.asarray(one != other)
    if dtype.kind in "mM":
        wrong &= ~(np.isnat(one) & np.isnat(other))
    return wrong


def _apart(one: AnyArray, other: AnyArray, tolerance: Tolerance) -> BoolArray:
    """Return which floats are further apart than rounding; NaN equals NaN."""
    with np.errstate(all="ignore"):
        finite = np.isfinite(one) & np.isfinite(other)
        sizes = np.maximum(np.abs(one), np.abs(other))[finite]
        scale = float(sizes.max()) if sizes.size else 0.0
        near = finite & (np.abs(one - other) <= tolerance.of(scale, one.dtype))
    equal = (one == other) | (np.isnan(one) & np.isnan(other))
    return np.asarray(~(near | equal))


def same(one: Any, other: Any) -> bool:
    """Return whether two objects of any type are equal; NaN equals NaN."""
    if one is other:
        return True
    if isinstance(one, (np.ndarray, np.generic)) or isinstance(other, (np.ndarray, np.generic)):
        a, b = np.asarray(one), np.asarray(other)
        return a.shape == b.shape and a.dtype == b.dtype and not differing(a, b, Tolerance()).any()
    if type(one) is not type(other):
        return False
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    try:
        if bool(one == other):
            return True
        return bool(one != one) and bool(other != other)  # NaN
    except Exception:  # noqa: BLE001  # objects of users compare as they like
        return _same_bytes(one, other)


def _same_bytes(one: Any, other: Any) -> bool:
    """Return whether two objects look the same when pickled; True if they cannot be."""
    try:
        return pickle.dumps(one) == pickle.dumps(other)
    except Exception:  # noqa: BLE001  # nothing can be said about them
        return True


def show(value: Any) -> str:
    """Return a value for a message, short."""
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."
