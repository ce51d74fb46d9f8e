"""The UDFs of a run in two groups: those that need a CUDA device, and the rest.

Each group has its own task for each chunk. In one task, UDFs that need a device would bind all
others to the workers that have one.

Like a `Placement`, a group is an argument of its tasks, so that `find_restrictions` finds it
whatever they are fused into. Only graphs with two groups, or with one that needs a device, have
this argument. A partial result has the length of all UDFs, with None for those of the other group,
so that a merge finds a partial by the number of its UDF. Two tasks then read a block. They are
never fused with its loading: two collections that dask optimizes alone would each get a loading of
their own.
"""

from __future__ import annotations

from dataclasses import dataclass

from udfdask.plan.recipe import Recipe

NEEDY = "-cuda-chunk-"
"""What the names of layers have in them whose tasks need a device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """UDFs of a run that see a chunk in the same task."""

    numbers: tuple[int, ...]
    """Their places in the run."""
    names: tuple[str, ...]
    """Names of their classes."""
    needs_cuda: bool
    """Whether they run on a CUDA device alone."""
    beside: tuple[str, ...] = ()
    """Names of the layers of parameters, which their tasks read beside the data."""

    @property
    def resources(self) -> dict[str, float]:
        """What a worker must have for them, as dask writes it."""
        return {"CUDA": 1} if self.needs_cuda else {}


def groups_of(recipe: Recipe) -> tuple[Group, ...]:
    """Return the groups of a run, that which needs a device last; in most runs there is one."""
    found = []
    for needs_cuda in (False, True):
        numbers = tuple(k for k, u in enumerate(recipe.udfs) if u.needs_cuda is needs_cuda)
        if numbers:
            names = tuple(dict.fromkeys(recipe.udfs[k].name for k in numbers))
            found.append(Group(numbers=numbers, names=names, needs_cuda=needs_cuda))
    return tuple(found)
