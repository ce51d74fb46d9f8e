"""The UDFs of a run by what their tasks need: those that need a CUDA device, and the rest.

Each group has a task of its own for each chunk. In one task with UDFs that need a device the others
would have to run where the devices are, and nowhere else.

Like a `placement.Placement`, a group is an argument of its tasks, where `limits` finds it whatever
these are fused into.
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
