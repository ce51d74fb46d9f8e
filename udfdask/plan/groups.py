"""The UDFs of a run that share the task of a chunk."""

from __future__ import annotations

from dataclasses import dataclass

from udfdask.plan.recipe import Recipe

CUDA_CHUNK_LAYER = "-cuda-chunk-"
"""Part of the names of layers whose tasks need a device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """UDFs of a run that process a chunk in the same task.

    UDFs that need a CUDA device are a group of their own, or they would restrict all others to the
    workers that have one. A task of one of two groups returns None for the UDFs of the other, and
    is never fused with the loading of its block, or each of them would load it.
    """

    numbers: tuple[int, ...]
    """Their places in the run."""
    names: tuple[str, ...]
    """Names of their classes."""
    needs_cuda: bool
    """Whether they run on a CUDA device only."""
    parameter_layers: tuple[str, ...] = ()
    """Names of the layers with parameters, which their tasks read in addition to the data."""

    @property
    def resources(self) -> dict[str, float]:
        """The worker resources that their tasks need, as dask writes them."""
        return {"CUDA": 1} if self.needs_cuda else {}


def groups_of(recipe: Recipe) -> tuple[Group, ...]:
    """Return the groups of a run, the one that needs a device last; most runs have one group."""
    groups = []
    for needs_cuda in (False, True):
        numbers = tuple(k for k, u in enumerate(recipe.udfs) if u.needs_cuda is needs_cuda)
        if numbers:
            names = tuple(dict.fromkeys(recipe.udfs[k].name for k in numbers))
            groups.append(Group(numbers=numbers, names=names, needs_cuda=needs_cuda))
    return tuple(groups)
