"""Say what to write where something that holds arrays is used as one array or as a number."""

from __future__ import annotations

from typing import Any, NoReturn

from udfdask.errors import ArgumentTypeError


class NotAnArray:
    """The base class of containers of arrays: NumPy would make an array that holds one object.

    `_no_array` returns the error of a use as one array or as a number.
    """

    __slots__ = ()

    def _no_array(self) -> ArgumentTypeError:
        raise NotImplementedError

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        raise self._no_array()

    def __float__(self) -> NoReturn:
        raise self._no_array()

    def __int__(self) -> NoReturn:
        raise self._no_array()


def element_of(name: str, results: list[str]) -> str:
    """Return the code of the first result of a mapping called `name`, and the other names."""
    others = f", or another of {results}" if results[1:] else ""
    return f"{name}[{results[0]!r}]{others}"
