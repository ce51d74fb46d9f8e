"""Walk through a value and all objects that it refers to, without endless loops.

An object that the walk meets again is named by its number, in the order of the first meetings. So
objects can refer to each other or to themselves, and two objects with equal contents stay distinct.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

PLAIN = frozenset({bool, float, complex, str, bytes, type(None), type(...)})
FLAT = PLAIN | {int}
"""Types of values that are their own names and cannot contain references."""


class Walk:
    """Name values as nested tuples and lists of plain values.

    `describe` returns the name of a value that is not plain, and can call `name` for its parts.
    `unnamed` returns a substitute for an object that has no reliable name.
    """

    def __init__(self, unnamed: Callable[[Any], Any], describe: Callable[[Walk, Any], Any]) -> None:
        self.unnamed = unnamed
        self._describe = describe
        self._numbers: dict[int, int] = {}
        # keep the objects alive, because Python can reuse the id of a deleted object
        self._kept: list[Any] = []

    def name(self, value: Any) -> Any:
        """Return a value as nested tuples and lists of plain values."""
        kind = type(value)
        if kind in PLAIN:
            return value
        if kind is int:
            # most integers are small; Python limits the number of decimal digits
            return value if -1 << 63 < value < 1 << 63 else ("int", hex(value))
        return self._describe(self, value)

    def again(self, value: Any) -> Any:
        """Return the number of a value that was met before; otherwise number it and return None."""
        number = self._numbers.setdefault(id(value), len(self._numbers))
        if number == len(self._kept):
            self._kept.append(value)
            return None
        return ("again", number)

    def apart(self, value: Any) -> Any:
        """Name a value with a copy of this walk, so that the numbers of this walk do not change."""
        # plain values are not numbered: no copy saves 10 us for each item of a set of pixels
        if type(value) in FLAT or (type(value) is tuple and all(type(v) in FLAT for v in value)):
            return self.name(value)
        walk = Walk(self.unnamed, self._describe)
        walk._numbers, walk._kept = dict(self._numbers), list(self._kept)
        return walk.name(value)
