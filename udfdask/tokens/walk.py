"""A walk through a value and all that it refers to, which comes to an end.

Whatever is met a second time is named by its number, counted from the first: objects may refer to
each other, or to themselves, and two with the same name are told apart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

PLAIN = frozenset({bool, float, complex, str, bytes, type(None), type(...)})
FLAT = PLAIN | {int}
"""Types of values that are their own names, in which nothing can lead back."""


class Walk:
    """Names values as nested tuples and lists of plain ones.

    `describe` gives the name of what is not plain, and may call `name` for its parts; `unnamed`
    gives what stands for an object that cannot be named for certain.
    """

    def __init__(self, unnamed: Callable[[Any], Any], describe: Callable[[Walk, Any], Any]) -> None:
        self.unnamed = unnamed
        self._describe = describe
        self._numbers: dict[int, int] = {}
        # an id that is free again would be taken for the object that had it
        self._kept: list[Any] = []

    def name(self, value: Any) -> Any:
        """Return a value as nested tuples and lists of plain values."""
        kind = type(value)
        if kind in PLAIN:
            return value
        if kind is int:
            # most are small, and the decimal digits of large ones are limited in number
            return value if -1 << 63 < value < 1 << 63 else ("int", hex(value))
        return self._describe(self, value)

    def again(self, value: Any) -> Any:
        """Return the number of what has been met before; else give it one and return None."""
        number = self._numbers.setdefault(id(value), len(self._numbers))
        if number == len(self._kept):
            self._kept.append(value)
            return None
        return ("again", number)

    def apart(self, value: Any) -> Any:
        """Return a name by a walk that goes on from here, and leaves no numbers behind."""
        # nothing in it can be numbered: saves 10 us for each pixel of a set of them
        if type(value) in FLAT or (type(value) is tuple and all(type(v) in FLAT for v in value)):
            return self.name(value)
        walk = Walk(self.unnamed, self._describe)
        walk._numbers, walk._kept = dict(self._numbers), list(self._kept)
        return walk.name(value)
