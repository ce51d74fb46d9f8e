"""The layers of one run while its graph is built, and the keys of their tasks.

The keys of a hundred thousand chunks take 10 MB, and the tasks that refer to them more. A client of
a cluster needs neither: it sends a few values per layer, and the scheduler lists the tasks. So keys
are made when they are asked for. All keys of a sequence belong to one layer.

All tasks get the recipe. A scheduler pickles each task by itself. So a small recipe is pickled once
and unpickled once per process: for each task again, that is half of the time of a tiny chunk. One
that is large, or needs values that are computed first, is a task that the others read from: a
cluster sends it to each worker once. This task is an input without axes of the blockwise layer of
chunks, so that dask still fuses chunks with blockwise loading. After slices and `from_delayed`, it
does not: processes would send every block twice. Therefore a small recipe is not a task.
"""

from __future__ import annotations

import itertools
import math
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import cloudpickle
import dask.array as da

from udfdask.base.config import inline_bytes
from udfdask.base.names.origins import is_found
from udfdask.base.once_per_process import OncePerProcess
from udfdask.geometry.chunk_grid import Grid
from udfdask.graph.dask_internals.layers import LazyLayer, loaded_again, with_data_inside
from udfdask.graph.dask_internals.tasks import Key, List, OutputTask, Task, TaskRef
from udfdask.graph.inputs import shared_recipe
from udfdask.plan.groups import Group, groups_of
from udfdask.plan.merge_tree import MergeTree
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
        self.makes_expressions = hasattr(array.dask.layers[array.name], "source")
        """Whether the data are an array of dask-array; results are of the same kind."""
        if plan.second_pass:
            # With shared loading, every chunk would stay in memory until the parameter is computed.
            array = loaded_again(array, self.token)
        if plan.joined is not None:
            from udfdask.graph.small_chunks import join_small_chunks  # most runs never need it

            halos = self.recipe.halos(range(len(self.recipe.udfs)))
            array = join_small_chunks(array, plan.joined, self.recipe.grid, halos)
        self.array = with_data_inside(array)
        self.layers: dict[str, Any] = {}
        self.depends: dict[str, set[str]] = {}
        self.recipe_layers: set[str] = set()
        """Layers that tasks get the recipe from; empty if it is an argument."""
        self.recipe_argument = replacement
        """The recipe, or a reference to the task that returns it."""
        if replacement is None:
            self.recipe_argument = pack_if_small(self.recipe) or self._recipe_task(self.recipe)
        elif isinstance(replacement, Recipe):
            self.recipe_argument = self._recipe_task(replacement)

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
    ) -> TaskKeys:
        """Add a task for each of some tasks, `function(result, *arguments)`; return their keys."""
        self.add(
            name, len(sources), layers_of_keys(sources), _for_each, sources, function, arguments
        )
        return numbered_keys(len(sources), name)

    def name(self, stage: str, number: int | None = None, group: Group | None = None) -> str:
        """Return the name of a layer of this run, see `layer_name`."""
        return layer_name(self.recipe, stage, number, group)

    def group_argument(self, group: Group, inputs: Iterable[str]) -> Group | None:
        """Return the argument that names a group of UDFs; None in most runs: all are one group."""
        if len(self.groups) == 1 and not group.needs_cuda:
            return None
        return replace(group, parameter_layers=tuple(sorted(inputs)))

    def own_slots(self, group: Group) -> list[bool]:
        """Return which of `recipe.aux_slots` a group of UDFs needs; frames are shifted for all."""
        return [number in (*group.numbers, DESCAN) for number, _ in self.recipe.aux_slots]

    def _recipe_task(self, recipe: Recipe) -> TaskRef:
        """Add a task that returns a recipe; return a reference to it."""
        # a progressive run gives the recipe a new token after each update of its parameters
        key, layers, dependencies = shared_recipe(recipe, f"recipe-{recipe.token}")
        self.layers.update(layers)
        self.depends.update(dependencies)
        self.recipe_layers.add(key[0])
        return TaskRef(key)


def _for_each(
    name: str, sources: Sequence[Key], function: Callable[..., Any], arguments: tuple[Any, ...]
) -> dict[Key, Task]:
    """Return the tasks of `RunLayers.add_for_each`."""
    return {
        (name, n): OutputTask((name, n), function, TaskRef(source), *arguments)
        for n, source in enumerate(sources)
    }


def blocks_at(recipe: Recipe, array_name: str, *index: int) -> Any:
    """Return references to all signal chunks of a navigation chunk, given by its place."""
    sigs = itertools.product(*(range(len(sizes)) for sizes in recipe.sig_chunks))
    return List(*(TaskRef((array_name, *index, *sig)) for sig in sigs))


def aux_at(grid: Grid, aux: Sequence[Any], index: tuple[int, ...], ours: Sequence[bool]) -> Any:
    """Return the aux data of a navigation chunk for some slots, None for all others.

    They are arrays, or references to the blocks of lazy ones: no task needs another chunk's rows.
    If no slot is needed, there are none.
    """
    if not any(ours):
        return ()

    def block(values: Any) -> Any:
        if isinstance(values, da.Array):
            return TaskRef((values.name, *index, *(0,) * (values.ndim - len(index))))
        return values[grid.window_at(index)]

    each = zip(aux, ours, strict=True)
    return List(*(block(values) if is_ours else None for values, is_ours in each))


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

    @property
    def distinct(self) -> Sequence[Key]:
        """The same keys, each once."""
        if self.key is not _merged_key or not self.n:
            return self
        layer, tree = self.arguments
        return [self[0]] if tree.gathers_rows else numbered_keys(tree.sizes[0], layer, 0)

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


def block_keys(layer: str, grid: Grid, sig_blocks: tuple[int, ...]) -> TaskKeys:
    """Return the keys of one task per block: chunk by chunk, then by signal chunk, in C order."""
    return TaskKeys(grid.n_chunks * math.prod(sig_blocks), _block_key, (layer, grid, sig_blocks))


def _block_key(number: int, layer: str, grid: Grid, sig_blocks: tuple[int, ...]) -> Key:
    place = []
    for n in reversed(sig_blocks):
        number, k = divmod(number, n)
        place.append(k)
    return (layer, *grid.index(number), *reversed(place))


def merged_row_keys(layer: str, tree: MergeTree) -> TaskKeys:
    """Return for each chunk the key of the merge that has its final nav rows."""
    return TaskKeys(tree.n_chunks, _merged_key, (layer, tree))


def _merged_key(number: int, layer: str, tree: MergeTree) -> Key:
    return (layer, *tree.merge_with_rows(number))


def layers_of_keys(*sequences: Sequence[Key]) -> set[str]:
    """Return the names of the layers of some sequences of keys, each of one layer."""
    return {keys[0][0] for keys in sequences if len(keys)}


GRID_BYTES = 512
"""Largest packed size of chunk grid and ROI in a recipe that is an argument of tasks.

The rest of a task takes three times as much: tasks must not grow with the scan.
"""

_received = OncePerProcess(16)
"""Packed recipes by their bytes: the tasks that a process receives share one, and its recipe, as
threads share the original."""


_bytes_of: WeakKeyDictionary[type, bytes] = WeakKeyDictionary()
"""For each class that was pickled by value, the packed recipe that gave it its attributes.

Such a class, for example one of a notebook, exists once per process: each recipe that is unpickled
gives it the attributes that it had when that recipe was packed.
"""


class PackedRecipe:
    """A recipe that tasks take as an argument; `now` returns the recipe."""

    __slots__ = ("_is_received", "_lock", "_packed", "_recipe")

    def __init__(self, packed: bytes | None, recipe: Recipe | None = None) -> None:
        self._packed = packed
        self._recipe = recipe
        self._is_received = False
        self._lock = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        if self._packed is None:  # raises the error of the object that cannot be pickled
            self._packed = cloudpickle.dumps(self._recipe)
        return (_shared, (self._packed,))

    @property
    def now(self) -> Recipe:
        """The recipe; a scheduler, which only passes it on, never unpickles it."""
        with self._lock:
            if self._recipe is None or self._is_outdated(self._recipe):
                packed = self._packed
                assert packed is not None
                self._recipe = pickle.loads(packed)
                self._is_received = True
                _bytes_of.update(dict.fromkeys(_by_value(self._recipe), packed))
            return self._recipe

    def _is_outdated(self, recipe: Recipe) -> bool:
        """Return whether another recipe has changed the attributes of a class since."""
        return self._is_received and any(
            _bytes_of.get(cls, self._packed) != self._packed for cls in _by_value(recipe)
        )


def _shared(packed: bytes) -> PackedRecipe:
    """Return the packed recipe that all tasks of this process with the same bytes share."""
    shared: PackedRecipe = _received.get(packed, lambda: PackedRecipe(packed))
    return shared


def _by_value(recipe: Recipe) -> list[type]:
    """Return the classes of UDFs that are not found in a module: they are pickled by value."""
    classes = (cls for udf in recipe.udfs for cls in udf.cls.__mro__)
    return [cls for cls in classes if not is_found(cls, cls.__qualname__)]


def pack_if_small(recipe: Recipe) -> PackedRecipe | None:
    """Return a recipe for each task; None if it, with the data in its objects, is too large."""
    limit = inline_bytes()
    if recipe.lazy_slots or recipe.grid.packed_size > GRID_BYTES or recipe.nbytes > limit:
        return None
    try:
        packed = cloudpickle.dumps(recipe)
    except Exception:  # noqa: BLE001  # an object that only threads can use may raise anything
        return PackedRecipe(None, recipe)
    return PackedRecipe(packed, recipe) if len(packed) <= limit else None
