"""What tasks return: the buffers of a UDF over some chunks, and results after `get_results`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from udfdask.types import AnyArray


@dataclass(frozen=True, slots=True, eq=False)
class Partial:
    """The partial result of one UDF: its buffers over the rows of some neighboring chunks.

    No task writes to the arrays: other tasks may have the same objects.
    """

    arrays: dict[str, AnyArray]
    """Buffers by name; rows in the order of the chunks."""
    first: int
    """The first chunk."""
    stop: int
    """The chunk after the last one."""
    aux: dict[str, AnyArray]
    """The same rows of aux data, if a merge or `get_results` may need them."""
    looked_beyond: bool = False
    """Whether the UDF used `meta.roi` or other things that depend on the ROI outside its chunk."""
    generation: int = 0
    """`Recipe.generation` of the parameters of a chunk, or `MIXED`; 0 after merges."""

    @property
    def nbytes(self) -> int:
        """Size of the arrays in bytes; objects count as pointers."""
        return sum(int(a.nbytes) for a in (*self.arrays.values(), *self.aux.values()))


MIXED = -2
"""Generation of a chunk whose tasks did not all have the same parameters."""


def common_generation(partials: Iterable[Partial]) -> int:
    """Return the generation of partial results over one chunk; `MIXED` if they have several."""
    generations = {partial.generation for partial in partials}
    return generations.pop() if len(generations) == 1 else MIXED


Partials = tuple[Partial | None, ...]
"""The partial result of each UDF of a run over one chunk; None if another group of UDFs has it."""


@dataclass(frozen=True, slots=True, eq=False)
class Finalized:
    """The results of one UDF after `get_results`."""

    arrays: dict[str, AnyArray]
    """Results by name."""
    masks: dict[str, AnyArray]
    """Masks of valid values, for the results that the UDF gave one."""
    chunk: int | None
    """The chunk whose rows nav arrays hold; None for the whole run in flattened order."""

    @property
    def nbytes(self) -> int:
        """Size of the arrays in bytes; objects count as pointers."""
        return sum(int(a.nbytes) for a in (*self.arrays.values(), *self.masks.values()))
