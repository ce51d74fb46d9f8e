"""Partial results of a chunk: what they hold, those of its parts joined, and how they are sent.

distributed sends arrays from where they are in memory. Objects of classes that it does not know are
pickled first, and their arrays are copied into the pickle: a worker that sent 160 MB of nav results
needed 480 MB. So each process that uses distributed registers how to send partial results.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from udfdask.base.types import AnyArray
from udfdask.chunk.frames import signal_windows
from udfdask.chunk.task_context import merge_context
from udfdask.kernels.overflow import add_exactly
from udfdask.plan.recipe import Recipe


class Sized:
    """An object with dictionaries of arrays: schedulers count these as memory of a worker."""

    @property
    def nbytes(self) -> int:
        """Size of the arrays in bytes; objects count as pointers."""
        parts = (part for part in vars(self).values() if isinstance(part, dict))
        return sum(int(array.nbytes) for part in parts for array in part.values())

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes


@dataclass(frozen=True, eq=False)
class Partial(Sized):
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

    @property
    def chunks(self) -> tuple[int, int]:
        """The first chunk, and the chunk after the last one."""
        return self.first, self.stop


Partials = tuple[Partial | None, ...]
"""The partial result of each UDF of a run over one chunk; None if another group of UDFs has it."""


@dataclass(frozen=True, eq=False)
class Finalized(Sized):
    """The results of one UDF after `get_results`."""

    arrays: dict[str, AnyArray]
    """Results by name."""
    masks: dict[str, AnyArray]
    """Masks of valid values, for the results that the UDF gave one."""
    chunks: tuple[int, int] | None
    """The first chunk whose rows nav arrays hold, and the chunk after the last one; None for the
    whole run in flattened order."""


def join_parts(recipe: Recipe, chunk: int, parts: Sequence[Partials]) -> Partials:
    """Return the partial results over a whole chunk from those over its signal chunks, in order.

    Nav and single buffers are added up, sig buffers are put next to each other. This is right for
    UDFs that promise `adds_signal_parts`.
    """
    recipe = recipe.now
    with merge_context(recipe):
        return tuple(
            _join(recipe, number, chunk, [part[number] for part in parts])
            for number in range(len(recipe.udfs))
        )


def _join(
    recipe: Recipe, number: int, chunk: int, parts: Sequence[Partial | None]
) -> Partial | None:
    """Return the partial result of a UDF over a whole chunk; None if another group has it."""
    ours = [part for part in parts if part is not None]
    if not ours:
        return None
    n_rows, sig = recipe.grid.count(chunk), recipe.shape.sig
    arrays = {}
    for name, spec in recipe.udfs[number].allocated.items():
        joined = spec.allocate(n_rows, sig, recipe.merge_backend(number))
        for window, part in zip(signal_windows(recipe.sig_chunks), ours, strict=True):
            if spec.kind == "sig":
                joined[window] = part.arrays[name]
            else:
                add_exactly(joined, part.arrays[name])
        arrays[name] = joined
    looked_beyond = any(part.looked_beyond for part in ours)
    return Partial(arrays, chunk, chunk + 1, ours[0].aux, looked_beyond)


def join_groups(groups: Sequence[Partials]) -> Partials:
    """Return the partial results of all UDFs over a chunk from those of each group."""
    return tuple(
        next((partial for partial in partials if partial is not None), None)
        for partials in zip(*groups, strict=True)
    )


def send_without_copies() -> None:
    """Tell distributed how to send partial results, if this process has imported distributed."""
    if sys.modules.get("distributed") is not None:
        _register()


@functools.cache
def _register() -> None:
    from distributed.protocol import register_generic  # type: ignore[attr-defined]

    for cls in (Partial, Finalized):
        register_generic(cls)


if "distributed" in sys.modules:
    # a worker has to know how to receive them as soon as it knows their classes
    send_without_copies()
