"""The layers of one run while its graph is built, and the keys of their tasks.

The keys of a hundred thousand chunks take 10 MB, and the tasks that refer to them more. A client of
a cluster needs neither: it sends a few values per layer, and the scheduler lists the tasks. So keys
are made when they are asked for. All keys of a sequence belong to one layer.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import dask.array as da

from udfdask.geometry.chunk_grid import Grid
from udfdask.geometry.halo import box_of
from udfdask.graph.dask_internals.arrays import GraphArray, loaded_again
from udfdask.graph.dask_internals.layers import LazyLayer
from udfdask.graph.dask_internals.tasks import Key, List, OutputTask, Task, TaskRef
from udfdask.graph.recipes_of_tasks import pack_if_small, shared_recipe
from udfdask.plan.merge_tree import MergeTree
from udfdask.plan.plan import Plan
from udfdask.plan.recipe import DESCAN, Group, Recipe, groups_of


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

    def add_for_each(
        self, name: str, sources: Sequence[Key], function: Callable[..., Any], *arguments: Any
    ) -> Sequence[Key]:
        """Add a task for each of some tasks, `function(result, *arguments)`; return their keys."""
        self.add(
            name, len(sources), layers_of_keys(sources), _for_each, sources, function, arguments
        )
        return numbered_keys(len(sources), name)

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

    def aux_at(self, index: tuple[int, ...], ours: Sequence[bool]) -> Any:
        """Return the aux data of a navigation chunk for some slots, None for all others.

        They are arrays, or references to the blocks of lazy ones: no task needs another chunk's
        rows. If no slot is needed, return None.
        """
        if not any(ours):
            return None

        def block(values: Any) -> Any:
            if isinstance(values, GraphArray):
                extra = (0,) * (values.ndim - len(index))
                return TaskRef((values.name, *index, *extra))
            return values[tuple(slice(*span) for span in box_of(self.recipe.grid, index))]

        each = zip(self.aux, ours, strict=True)
        return List(*(block(values) if is_ours else None for values, is_ours in each))

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


def _for_each(
    name: str, sources: Sequence[Key], function: Callable[..., Any], arguments: tuple[Any, ...]
) -> dict[Key, Task]:
    """Return the tasks of `RunLayers.add_for_each`."""
    return {
        (name, n): OutputTask((name, n), function, TaskRef(source), *arguments)
        for n, source in enumerate(sources)
    }


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


@dataclass(frozen=True, slots=True)
class TaskKeys(Sequence[Key]):
    """Keys by number, without a list of them."""

    n: int
    """How many there are."""
    key: Callable[..., Key]
    """Returns the key with a number from 0 to `n - 1`."""
    arguments: tuple[Any, ...]
    """Arguments of `key` after the number."""
    each_once: Sequence[Key] | None = None
    """The same keys, each once; None if all are different."""

    @property
    def distinct(self) -> Sequence[Key]:
        """The same keys, each once."""
        return self if self.each_once is None else self.each_once

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, index: Any) -> Any:
        numbers = range(self.n)[index]
        if isinstance(numbers, int):
            return self.key(numbers, *self.arguments)
        return [self.key(number, *self.arguments) for number in numbers]

    def __iter__(self) -> Iterator[Key]:
        return (self.key(number, *self.arguments) for number in range(self.n))


def numbered_keys(n: int, *start: Any) -> TaskKeys:
    """Return keys that end with a number; they start with the name of the layer."""
    return TaskKeys(n, _numbered, start)


def _numbered(number: int, *start: Any) -> Key:
    return (*start, number)


def same_keys(n: int, key: Key) -> TaskKeys:
    """Return one key several times: a task that has something for each chunk."""
    return TaskKeys(n, _same, key, (key,) if n else ())


def _same(_: int, *key: Any) -> Key:
    return key


def block_keys(layer: str, grid: Grid, sig_blocks: tuple[int, ...]) -> TaskKeys:
    """Return the keys of one task per block of data: chunk by chunk, then by signal chunk.

    `sig_blocks` is the number of signal chunks along each signal axis.
    """
    return TaskKeys(grid.n_chunks * math.prod(sig_blocks), _block_key, (layer, grid, sig_blocks))


def _block_key(number: int, layer: str, grid: Grid, sig_blocks: tuple[int, ...]) -> Key:
    place = []
    for n in reversed(sig_blocks):
        number, k = divmod(number, n)
        place.append(k)
    return (layer, *grid.index(number), *reversed(place))


def merged_row_keys(layer: str, tree: MergeTree) -> TaskKeys:
    """Return for each chunk the key of the merge that has its final nav rows."""
    each_once: Sequence[Key] = ()
    if tree.n_chunks and tree.gathers_rows:
        each_once = (_merged_key(0, layer, tree),)
    elif tree.n_chunks:
        each_once = numbered_keys(tree.sizes[0], layer, 0)
    return TaskKeys(tree.n_chunks, _merged_key, (layer, tree), each_once)


def _merged_key(number: int, layer: str, tree: MergeTree) -> Key:
    return (layer, *tree.merge_with_rows(number))


def layers_of_keys(*sequences: Sequence[Key]) -> set[str]:
    """Return the names of the layers of some sequences of keys, each of one layer."""
    return {keys[0][0] for keys in sequences if len(keys)}
