"""Keys of the tasks of a layer, made when they are asked for.

The keys of a hundred thousand chunks take 10 MB, and the tasks that refer to them more. A client of
a cluster needs neither: it sends a few values per layer, and the scheduler lists the tasks.

All keys of a sequence belong to one layer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

from udfdask.geometry.chunk_grid import Grid
from udfdask.plan.merge_tree import MergeTree

Key = tuple[Any, ...]


class TaskKeys(Sequence[Key]):
    """Keys by number, without a list of them."""

    __slots__ = ()

    def key(self, number: int) -> Key:
        """Return the key with a number from 0 to one less than the length."""
        raise NotImplementedError

    @property
    def distinct(self) -> Sequence[Key]:
        """The same keys, each once."""
        return self

    @overload
    def __getitem__(self, index: int) -> Key: ...
    @overload
    def __getitem__(self, index: slice) -> list[Key]: ...
    def __getitem__(self, index: int | slice) -> Key | list[Key]:
        numbers = range(len(self))[index]
        return self.key(numbers) if isinstance(numbers, int) else [*map(self.key, numbers)]

    def __iter__(self) -> Iterator[Key]:
        return map(self.key, range(len(self)))


@dataclass(frozen=True, slots=True)
class BlockKeys(TaskKeys):
    """Keys of one task per block of data, in the order of chunks, then of signal chunks."""

    layer: str
    """Name of the layer."""
    grid: Grid
    """Navigation chunks and ROI."""
    sig_blocks: tuple[int, ...]
    """Number of signal chunks along each signal axis."""

    def __len__(self) -> int:
        return self.grid.n_chunks * math.prod(self.sig_blocks)

    def key(self, number: int) -> Key:
        """Return the name of the layer and the place in dask's grid of blocks."""
        place = []
        for n in reversed(self.sig_blocks):
            number, k = divmod(number, n)
            place.append(k)
        return (self.layer, *self.grid.index(number), *reversed(place))


@dataclass(frozen=True, slots=True)
class NumberedKeys(TaskKeys):
    """Keys that end with a number that counts from 0."""

    start: Key
    """Name of the layer, and anything else that comes before the number."""
    n: int
    """How many there are."""

    def __len__(self) -> int:
        return self.n

    def key(self, number: int) -> Key:
        """Return the start of all keys and the number."""
        return (*self.start, number)


@dataclass(frozen=True, slots=True)
class SameKeys(TaskKeys):
    """One key several times: a task that has something for each chunk."""

    same: Key
    """The key."""
    n: int
    """How often."""

    def __len__(self) -> int:
        return self.n

    def key(self, number: int) -> Key:  # the same for each number
        """Return the key."""
        return self.same

    @property
    def distinct(self) -> Sequence[Key]:
        """The key once."""
        return (self.same,) if self.n else ()


@dataclass(frozen=True, slots=True)
class MergedRowKeys(TaskKeys):
    """For each chunk, the key of the merge that has its final nav rows."""

    layer: str
    """Name of the layer of merges."""
    tree: MergeTree
    """The merges."""

    def __len__(self) -> int:
        return self.tree.n_chunks

    def key(self, number: int) -> Key:
        """Return the key of the merge with the rows of a chunk."""
        return (self.layer, *self.tree.merge_with_rows(number))

    @property
    def distinct(self) -> Sequence[Key]:
        """The merges, each once, in the order of chunks."""
        if not self.tree.n_chunks:
            return ()
        if self.tree.gathers_rows:
            return (self.key(0),)
        return NumberedKeys((self.layer, 0), self.tree.sizes[0])


def layers_of_keys(*sequences: Sequence[Key]) -> set[str]:
    """Return the names of the layers of some sequences of keys, each of one layer."""
    return {keys[0][0] for keys in sequences if len(keys)}
