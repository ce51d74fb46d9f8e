"""A sequence whose items are made when they are first asked for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TypeVar, overload

T_co = TypeVar("T_co", covariant=True)


class MadeOnce(Sequence[T_co]):
    """So many items, each of which `make` returns for its number, once.

    What `make` holds must not refer to the owner of the sequence: in a cycle, both would stay until
    the garbage collector comes.
    """

    __slots__ = ("_items", "_lock", "_make", "_n")

    def __init__(self, n: int, make: Callable[[int], T_co]) -> None:
        self._n = n
        self._make = make
        self._items: dict[int, T_co] = {}
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return self._n

    @overload
    def __getitem__(self, index: int) -> T_co: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T_co]: ...
    def __getitem__(self, index: int | slice) -> T_co | Sequence[T_co]:
        numbers = range(self._n)[index]
        if isinstance(numbers, range):
            return tuple(self[number] for number in numbers)
        with self._lock:
            if numbers not in self._items:
                self._items[numbers] = self._make(numbers)
            return self._items[numbers]
