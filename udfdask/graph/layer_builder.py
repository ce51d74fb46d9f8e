"""The layers of one run while they are being built."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import dask.array as da
from dask.base import tokenize

from udfdask.graph.chunk_layers import Key
from udfdask.graph.dask_internals import OutputTask, Task, TaskLayer, TaskRef, loaded_again
from udfdask.graph.shared_recipe import is_small, shared_recipe
from udfdask.plan.device_groups import Group, groups_of
from udfdask.plan.plan import Plan
from udfdask.plan.recipe import Recipe, UDFRecipe


class RunLayers:
    """Layers of tasks by name, and what all of them share.

    `given` is a recipe that is a task of its own, or what stands for one and is an argument of
    every task; by default the recipe of the plan is the one or the other. `token` makes the names
    of tasks, by default that of the plan.
    """

    def __init__(
        self, plan: Plan, array: da.Array, given: Any = None, token: str | None = None
    ) -> None:
        self.token = token or plan.token
        self.recipe = replace(plan.recipe, token=self.token)
        self.groups = groups_of(self.recipe)
        self.aux = plan.aux
        if plan.second_pass:
            # loads of its own: else every chunk stays in memory until the parameter is there
            array = loaded_again(array, self.token)
        self.array = array
        self.layers: dict[str, Any] = {}
        self.depends: dict[str, set[str]] = {}
        self.shared_layers: set[str] = set()
        """Layers that every task with a recipe depends on."""
        if given is None:
            given = self.recipe
            is_argument = is_small(self.recipe)
        else:
            is_argument = not isinstance(given, Recipe)
        self.shared = given if is_argument else self._recipe_task(given)

    def add(
        self,
        name: str,
        tasks: dict[Key, Task],
        depends: Iterable[str],
    ) -> None:
        """Add a layer."""
        self.layers[name] = TaskLayer(tasks)
        self.depends[name] = set(depends)

    def name(
        self, stage: str, udf: UDFRecipe | None = None, *rest: str, group: Group | None = None
    ) -> str:
        """Return the name of a layer of one UDF, a group or all, as dask shows it."""
        some = [u.name for u in self.recipe.udfs] if group is None else group.names
        who = [udf.name] if udf else sorted(set(some))[:3]
        if group is not None and group.needs_cuda:
            rest = ("cuda", *rest)
        token = tokenize(self.token, stage, None if udf is None else self.number(udf), rest)
        return "-".join([*who, *(str(r) for r in rest), stage, token]).lower()

    def number(self, udf: UDFRecipe) -> int:
        """Return the place of a UDF in the run."""
        return next(k for k, u in enumerate(self.recipe.udfs) if u is udf)

    def _recipe_task(self, recipe: Recipe) -> TaskRef:
        """Add a task that has a recipe; return a reference to it."""
        # a recipe has another token after each update of its parameters
        shared = shared_recipe(recipe, f"recipe-{recipe.token}")
        self.layers.update(shared.layers)
        self.depends.update(shared.dependencies)
        self.shared_layers.add(shared.key[0])
        return TaskRef(shared.key)

    def map(
        self,
        name: str,
        sources: Sequence[Key],
        make: Callable[[Key, TaskRef, int], tuple[Any, ...]],
    ) -> list[Key]:
        """Add one task per source; return their keys."""
        tasks: dict[Key, Task] = {}
        for c, source in enumerate(sources):
            key = (name, c)
            function, *args = make(key, TaskRef(source), c)
            tasks[key] = OutputTask(key, function, *args)
        self.add(name, tasks, {s[0] for s in sources} | self.shared_layers)
        return list(tasks)
