"""Find where two sets of results differ: floats beyond rounding, other values at all."""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from udfdask.geometry.chunk_grid import BoolArray
from udfdask.types import AnyArray

ROUNDING = 1000.0
"""Allowed difference of floats, in units of rounding of the largest value of the array.

Another order of the same sum changes its last digits. Broken UDFs are far above this limit.
"""

NEAR = 0.3
"""Largest difference, as a share of the largest value, that rounding alone may explain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """The allowed difference of floats."""

    eps: float = 0.0
    """Machine epsilon of the input dtype, if it is coarser than that of the results."""
    data: float = 0.0
    """Largest absolute value of the data; 0 for whole numbers, because their sums are exact."""

    def of(self, scale: float, dtype: np.dtype[Any]) -> float:
        """Return the allowed difference of values of a dtype whose largest one is `scale`."""
        eps = max(self.eps, float(np.finfo(dtype).eps))
        return min(ROUNDING * eps, 1e-2) * scale + 8 * eps * self.data


@dataclass(frozen=True, slots=True)
class Difference:
    """The first difference between two sets of results."""

    name: str
    """Name of the buffer."""
    one: str
    """The value in the first set, as text."""
    other: str
    """The value in the second set, as text."""
    index: tuple[int, ...] | None
    """Index in the array; None if shape, dtype or the presence of the result differ."""
    count: str
    """How many values differ, as text."""

    @property
    def where(self) -> str:
        """The index and the number of differing values, as text."""
        if self.index is None or self.index in ((), (0,)):
            return f"({self.count})"
        shown = self.index[0] if len(self.index) == 1 else self.index
        return f"(at index {shown}; {self.count})"


def find_difference(
    one: Mapping[str, AnyArray], other: Mapping[str, AnyArray], tolerance: Tolerance
) -> Difference | None:
    """Return the first difference between two sets of arrays by name; None if they agree."""
    for name in dict.fromkeys((*one, *other)):
        if name not in one or name not in other:
            texts = ["a result" if name in side else "nothing" for side in (one, other)]
            return Difference(name, texts[0], texts[1], None, "a result is missing")
        a, b = one[name], other[name]
        for what in ("shape", "dtype"):
            values = [getattr(side, what) for side in (a, b)]
            if values[0] != values[1]:
                texts = [f"{what} {value}" for value in values]
                return Difference(name, texts[0], texts[1], None, f"{what}s differ")
        wrong = differing(a, b, tolerance)
        if wrong.any():
            index = tuple(int(i) for i in np.argwhere(wrong)[0])
            count = f"{np.count_nonzero(wrong)} of {wrong.size} values differ"
            hint = _rounding_hint(a, b, tolerance)
            return Difference(name, show(a[index]), show(b[index]), index, count + hint)
    return None


def _rounding_hint(one: AnyArray, other: AnyArray, tolerance: Tolerance) -> str:
    """Return a hint for floats that are nearly equal, otherwise ""."""
    if one.dtype.kind not in "fc" or not tolerance.data:
        return ""
    finite = np.isfinite(one) & np.isfinite(other)
    if not finite.all() or np.abs(one - other).max() > NEAR * np.abs(one).max():
        return ""
    return "; if that is rounding, a wider dtype of the buffers helps"


def differing(one: AnyArray, other: AnyArray, tolerance: Tolerance) -> BoolArray:
    """Return which elements differ between two arrays of the same shape and dtype."""
    dtype = one.dtype
    if dtype.names is not None:
        wrong = np.zeros(one.shape, dtype=bool)
        for field in dtype.names:
            each = differing(one[field], other[field], tolerance)
            wrong |= each.any(axis=tuple(range(one.ndim, each.ndim)))
        return wrong
    if dtype.kind in "fc":
        return _beyond_rounding_hint(one, other, tolerance)
    if dtype.kind == "O":
        pairs = zip(one.ravel(), other.ravel(), strict=True)
        flat = np.fromiter((not same(a, b) for a, b in pairs), dtype=bool, count=one.size)
        return flat.reshape(one.shape)
    wrong = np.asarray(one != other)
    if dtype.kind in "mM":
        wrong &= ~(np.isnat(one) & np.isnat(other))
    return wrong


def _beyond_rounding_hint(one: AnyArray, other: AnyArray, tolerance: Tolerance) -> BoolArray:
    """Return which floats differ by more than rounding; NaN equals NaN."""
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
    except Exception:  # noqa: BLE001  # comparing users' objects can raise anything
        with contextlib.suppress(Exception):
            return pickle.dumps(one) == pickle.dumps(other)
        return True  # they cannot be compared at all


def show(value: Any) -> str:
    """Return a value as a short text for a message."""
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."
