"""What a chunk or a merge hands on: buffers over the rows of some neighbouring chunks."""

from __future__ import annotations

from typing import Any

from udfdask.types import AnyArray


class Partial:
    """The buffers of one UDF over the chunks `first` to `stop`; rows in the order of the chunks.

    With them go the same rows of its aux data, where a merge or `get_results` may ask for them.
    Nobody writes to its arrays: other tasks may hold them.
    """

    __slots__ = ("arrays", "aux", "first", "stop")

    def __init__(
        self, arrays: dict[str, AnyArray], first: int, stop: int, aux: dict[str, AnyArray]
    ) -> None:
        self.arrays = arrays
        self.first = first
        self.stop = stop
        self.aux = aux

    @property
    def nbytes(self) -> int:
        """Size of the arrays in bytes; objects by their pointers."""
        return sum(int(a.nbytes) for a in (*self.arrays.values(), *self.aux.values()))

    def __reduce__(self) -> tuple[Any, ...]:
        return (Partial, (self.arrays, self.first, self.stop, self.aux))


class Finished:
    """What `get_results` gave: arrays, and masks of valid data where the UDF said so.

    Nav arrays hold the rows of chunk `chunk`, or of the whole run in flattened order if that is
    None.
    """

    __slots__ = ("arrays", "chunk", "masks")

    def __init__(
        self, arrays: dict[str, AnyArray], masks: dict[str, AnyArray], chunk: int | None
    ) -> None:
        self.arrays = arrays
        self.masks = masks
        self.chunk = chunk

    @property
    def nbytes(self) -> int:
        """Size of the arrays in bytes; objects by their pointers."""
        both = (*self.arrays.values(), *self.masks.values())
        return sum(int(a.nbytes) for a in both)

    def __reduce__(self) -> tuple[Any, ...]:
        return (Finished, (self.arrays, self.masks, self.chunk))
