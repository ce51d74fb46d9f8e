"""Join partial results over one chunk: of its signal chunks, or of groups of UDFs."""

from __future__ import annotations

from collections.abc import Sequence

from udfdask.chunk.device_context import merge_device
from udfdask.chunk.frames.source import signal_windows
from udfdask.chunk.partial_result import Partial, Partials, common_generation
from udfdask.plan.recipe import Recipe


def join_parts(recipe: Recipe, chunk: int, parts: Sequence[Partials]) -> Partials:
    """Return the partial results over a whole chunk from those over its signal chunks, in order.

    Nav and single buffers are added up, sig buffers are put next to each other. This is right for
    UDFs that promise `adds_signal_parts`.
    """
    recipe = recipe.now
    with merge_device(recipe):
        return tuple(
            _join(recipe, number, chunk, [part[number] for part in parts])
            for number in range(len(recipe.udfs))
        )


def _join(
    recipe: Recipe, number: int, chunk: int, parts: Sequence[Partial | None]
) -> Partial | None:
    """Return the partial result of a UDF over a whole chunk; None if another group has it."""
    from udfdask.kernels.overflow import add_exactly  # few runs have a task per signal chunk

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
    generation = common_generation(ours)
    return Partial(arrays, chunk, chunk + 1, ours[0].aux, looked_beyond, generation)


def join_groups(groups: Sequence[Partials]) -> Partials:
    """Return the partial results of all UDFs over a chunk from those of each group."""
    return tuple(
        next((partial for partial in partials if partial is not None), None)
        for partials in zip(*groups, strict=True)
    )
