"""Split the UDFs of a run into two groups: those that need a CUDA device, and the others.

Each group has its own task for each chunk. In one task, UDFs that need a device would restrict all
others to the workers that have one.

Like a `Placement`, a group is an argument of its tasks, so that `find_restrictions` finds it also
in fused tasks. Only graphs with two groups, or with one that needs a device, have this argument.
The result of a chunk task has one entry per UDF, None for those of the other group, so that a merge
finds a partial result by the number of its UDF. With two groups, two tasks read each block. These
are never fused with its loading: if dask optimized two collections separately, each of them would
load the block again.
"""

from __future__ import annotations

from dataclasses import dataclass

from udfdask.plan.recipe import Recipe

CUDA_CHUNK_LAYER = "-cuda-chunk-"
"""Part of the names of layers whose tasks need a device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """UDFs of a run that process a chunk in the same task."""

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
