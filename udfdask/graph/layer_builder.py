"""Collect the layers of one run while its graph is built."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import dask.array as da

from udfdask.geometry.seams import box_of
from udfdask.graph.dask_internals.arrays import GraphArray, loaded_again
from udfdask.graph.dask_internals.layers import LazyLayer
from udfdask.graph.dask_internals.tasks import List, Task, TaskRef
from udfdask.graph.recipes_of_tasks import pack_if_small, shared_recipe
from udfdask.graph.task_keys import Key
from udfdask.plan.device_groups import Group, groups_of
from udfdask.plan.plan import Plan
from udfdask.plan.recipe import DESCAN, Recipe


class RunLayers:
    """Layers of tasks by name, and the recipe that all tasks get.

    By default, tasks get the recipe of the plan: as an argument if it is small, else from a task.
    Progressive runs pass a `replacement`: a recipe, which becomes a task, or anything else, which
    becomes an argument of every task.
    `token` makes the names of tasks, by default that of the plan.
    """

    def __init__(
        self, plan: Plan, array: da.Array, replacement: Any = None, token: str | None = None
    ) -> None:
        self.token = token or plan.token
        self.recipe = replace(plan.recipe, token=self.token)
        self.groups = groups_of(self.recipe)
        self.aux = plan.aux
        if plan.second_pass:
            # With shared loading, every chunk would stay in memory until the parameter is computed.
            array = loaded_again(array, self.token)
        if plan.joined is not None:
            from udfdask.graph.small_chunks import join_small_chunks  # most runs never need it

            halos = self.recipe.halos(range(len(self.recipe.udfs)))
            array = join_small_chunks(array, plan.joined, self.recipe.grid, halos)
        self.array = array
        self.layers: dict[str, Any] = {}
        self.depends: dict[str, set[str]] = {}
        self.recipe_layers: set[str] = set()
        """Layers that tasks get the recipe from; empty if it is an argument."""
        self.recipe_argument = self._recipe_argument(replacement)
        """The recipe, or a reference to the task that returns it."""

    def add(
        self,
        name: str,
        n: int,
        depends: Iterable[str],
        make: Callable[..., dict[Key, Task]],
        *arguments: Any,
    ) -> None:
        """Add a layer of `n` tasks, which `make(name, *arguments)` lists when they are needed."""
        self.layers[name] = LazyLayer(n, make, name, *arguments)
        self.depends[name] = set(depends)

    def name(self, stage: str, number: int | None = None, group: Group | None = None) -> str:
        """Return the name of a layer of this run, see `layer_name`."""
        return layer_name(self.recipe, stage, number, group)

    def group_argument(self, group: Group, inputs: Iterable[str]) -> Group | None:
        """Return the argument that names a group of UDFs; None in most runs, which have one group.

        `inputs` are the layers that its tasks read, besides the data.
        """
        if len(self.groups) == 1 and not group.needs_cuda:
            return None
        return replace(group, parameter_layers=tuple(sorted(inputs)))

    def blocks_at(self, index: tuple[int, ...]) -> Any:
        """Return references to all signal chunks of a navigation chunk, given by its place."""
        sigs = itertools.product(*(range(len(sizes)) for sizes in self.recipe.sig_chunks))
        return List(*(TaskRef((self.array.name, *index, *sig)) for sig in sigs))

    def own_slots(self, group: Group) -> list[bool]:
        """Return which of `recipe.aux_slots` a group of UDFs needs; frames are shifted for all."""
        return [number in (*group.numbers, DESCAN) for number, _ in self.recipe.aux_slots]

    def aux_at(self, index: tuple[int, ...], values: Any) -> Any:
        """Return the aux data of a navigation chunk, or a reference to the block of lazy ones."""
        if isinstance(values, GraphArray):
            extra = (0,) * (values.ndim - len(index))
            return TaskRef((values.name, *index, *extra))
        return values[tuple(slice(*span) for span in box_of(self.recipe.grid, index))]

    def _recipe_argument(self, replacement: Any) -> Any:
        """Return the argument that gives the recipe to tasks."""
        if replacement is None:
            return pack_if_small(self.recipe) or self._recipe_task(self.recipe)
        return self._recipe_task(replacement) if isinstance(replacement, Recipe) else replacement

    def _recipe_task(self, recipe: Recipe) -> TaskRef:
        """Add a task that returns a recipe; return a reference to it."""
        # a progressive run gives the recipe a new token after each update of its parameters
        shared = shared_recipe(recipe, f"recipe-{recipe.token}")
        self.layers.update(shared.layers)
        self.depends.update(shared.dependencies)
        self.recipe_layers.add(shared.key[0])
        return TaskRef(shared.key)


def layer_name(
    recipe: Recipe, stage: str, number: int | None = None, group: Group | None = None
) -> str:
    """Return the name of a layer of one UDF, a group of UDFs, or all, as dask shows it."""
    udfs = [udf.name for udf in recipe.udfs]
    if number is not None:
        shown = [udfs[number]]
    else:
        shown = sorted(set(udfs if group is None else group.names))[:3]
    device = ["cuda"] if group is not None and group.needs_cuda else []
    token = recipe.token if number is None else f"{recipe.token}_{number}"
    return "-".join([*shown, *device, stage, token]).lower()
