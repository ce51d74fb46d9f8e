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
from typing import Any, overload

import dask.array as da

from udfdask.geometry.chunk_grid import Grid
from udfdask.geometry.seams import box_of
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
        return NumberedKeys((name,), len(sources))

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


class TaskKeys(Sequence[Key]):
    """Keys by number, without a list of them."""

    __slots__ = ()

    def key(self, number: int) -> Key:
        """Return the key with a number from 0 to one less than the length."""
        raise NotImplementedError

    @property
    def distinct(self) -> Sequence[Key]:
        """The same keys, each once."""
        return self

    @overload
    def __getitem__(self, index: int) -> Key: ...
    @overload
    def __getitem__(self, index: slice) -> list[Key]: ...
    def __getitem__(self, index: int | slice) -> Key | list[Key]:
        numbers = range(len(self))[index]
        return self.key(numbers) if isinstance(numbers, int) else [*map(self.key, numbers)]

    def __iter__(self) -> Iterator[Key]:
        return map(self.key, range(len(self)))


@dataclass(frozen=True, slots=True)
class BlockKeys(TaskKeys):
    """Keys of one task per block of data, in the order of chunks, then of signal chunks."""

    layer: str
    """Name of the layer."""
    grid: Grid
    """Navigation chunks and ROI."""
    sig_blocks: tuple[int, ...]
    """Number of signal chunks along each signal axis."""

    def __len__(self) -> int:
        return self.grid.n_chunks * math.prod(self.sig_blocks)

    def key(self, number: int) -> Key:
        """Return the name of the layer and the place in dask's grid of blocks."""
        place = []
        for n in reversed(self.sig_blocks):
            number, k = divmod(number, n)
            place.append(k)
        return (self.layer, *self.grid.index(number), *reversed(place))


@dataclass(frozen=True, slots=True)
class NumberedKeys(TaskKeys):
    """Keys that end with a number that counts from 0."""

    start: Key
    """Name of the layer, and anything else that comes before the number."""
    n: int
    """How many there are."""

    def __len__(self) -> int:
        return self.n

    def key(self, number: int) -> Key:
        """Return the start of all keys and the number."""
        return (*self.start, number)


@dataclass(frozen=True, slots=True)
class SameKeys(TaskKeys):
    """One key several times: a task that has something for each chunk."""

    same: Key
    """The key."""
    n: int
    """How often."""

    def __len__(self) -> int:
        return self.n

    def key(self, number: int) -> Key:  # the same for each number
        """Return the key."""
        return self.same

    @property
    def distinct(self) -> Sequence[Key]:
        """The key once."""
        return (self.same,) if self.n else ()


@dataclass(frozen=True, slots=True)
class MergedRowKeys(TaskKeys):
    """For each chunk, the key of the merge that has its final nav rows."""

    layer: str
    """Name of the layer of merges."""
    tree: MergeTree
    """The merges."""

    def __len__(self) -> int:
        return self.tree.n_chunks

    def key(self, number: int) -> Key:
        """Return the key of the merge with the rows of a chunk."""
        return (self.layer, *self.tree.merge_with_rows(number))

    @property
    def distinct(self) -> Sequence[Key]:
        """The merges, each once, in the order of chunks."""
        if not self.tree.n_chunks:
            return ()
        if self.tree.gathers_rows:
            return (self.key(0),)
        return NumberedKeys((self.layer, 0), self.tree.sizes[0])


def layers_of_keys(*sequences: Sequence[Key]) -> set[str]:
    """Return the names of the layers of some sequences of keys, each of one layer."""
    return {keys[0][0] for keys in sequences if len(keys)}
