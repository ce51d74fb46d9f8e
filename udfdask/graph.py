"""Builds the dask graph of a plan: map over chunks, merges, outputs. The only room with tasks.

Layers of a run over chunks c, for the UDF with number k::

    chunk   c -> payload, one partial per UDF             (fused with loading by dask)
    join    payloads of its signal chunks -> payload      (where each of them has a task)
    part    payload -> partial k                          (where payloads of others are heavy)
    merge   partials -> partial                           (tree, chain, rows or merge_all)
    finish  merged partials -> results                    (where there is a get_results)
    output  any of these -> blocks of one dask array
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import dask.array as da
import numpy as np
from dask._task_spec import DataNode, List, Task, TaskRef, convert_legacy_graph
from dask.base import tokenize
from dask.graph_manipulation import clone
from dask.highlevelgraph import HighLevelGraph, MaterializedLayer
from dask.utils import ensure_dict

from udfdask.auxdata import block_of
from udfdask.buffers import BufferSpec
from udfdask.chunk import join_parts, n_blocks, run_chunk
from udfdask.chunk_layers import ChunkBlockwise, ChunkTasks, Key
from udfdask.finish import (
    fill_block,
    finish,
    nav_block,
    nav_mask_block,
    visited_block,
    whole_mask,
    whole_result,
)
from udfdask.lazy_params import lazy_recipe
from udfdask.merge import empty, merge_all, merge_link, merge_tree
from udfdask.output_task import OutputTask
from udfdask.partial import Finished, Partial
from udfdask.plan import Plan
from udfdask.recipe import Recipe, UDFRecipe

HEAVY_PAYLOAD = 64 << 10
"""Bytes of other UDFs' results in a payload from which merges get a partial of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """The dask arrays of one UDF."""

    arrays: dict[str, da.Array]
    """Results by name, in data set shape."""
    masks: dict[str, da.Array]
    """Valid masks of the results of a get_results, which may have given its own."""
    visited: da.Array | None
    """For a UDF without results: true where its chunks have been processed."""


def build_graph(plan: Plan, array: da.Array) -> tuple[Outputs, ...]:
    """Return the dask arrays of every UDF of a plan."""
    return _Builder(plan, array).build()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tasks:
    """Optimised tasks and the keys of their results."""

    dsk: dict[Key, Any]
    """Tasks by key."""
    keys: list[Key]
    """Keys of the results."""


def build_chunks(plan: Plan, array: da.Array, given: Any, token: str) -> Tasks:
    """Return tasks that give the payload of each chunk, for whoever merges them outside of dask.

    Tasks take `given` as their recipe; `token` makes their names.
    """
    builder = _Builder(plan, array, given, token)
    keys = builder.chunks()
    source = builder.array.dask
    layers = {**source.layers, **builder.layers}
    return _optimized(layers, {**source.dependencies, **builder.depends}, keys)


def build_parameters(recipe: Recipe, token: str) -> Tasks | None:
    """Return tasks that give the recipe with its lazy parameters filled in; None without any."""
    lazy = lazy_recipe(recipe, f"recipe-{token}")
    return None if lazy is None else _optimized(lazy.layers, lazy.dependencies, [lazy.key])


def _optimized(
    layers: dict[str, Any], dependencies: Mapping[str, set[str]], keys: list[Key]
) -> Tasks:
    """Return layers as tasks, optimised as those of dask arrays are."""
    graph = da.Array.__dask_optimize__(HighLevelGraph(layers, dependencies), keys)
    return Tasks(dsk=dict(convert_legacy_graph(ensure_dict(graph))), keys=keys)


class _Builder:
    """The layers of one run while they are being built."""

    def __init__(
        self, plan: Plan, array: da.Array, given: Any = None, token: str | None = None
    ) -> None:
        self.token = token or plan.token
        self.recipe = replace(plan.recipe, token=self.token)
        self.aux = plan.aux
        if plan.second_pass:
            # loads of its own: else every chunk stays in memory until the parameter is there
            array = clone(array, seed=self.token)
        self.array = array
        self.layers: dict[str, Any] = {}
        self.depends: dict[str, set[str]] = {}
        self.shared = self._recipe_argument() if given is None else given

    def build(self) -> tuple[Outputs, ...]:
        """Return the outputs of every UDF."""
        n = range(self.recipe.grid.n_chunks)
        payloads = self.chunks()
        return tuple(self._udf(k, [payloads[c] for c in n]) for k in range(len(self.recipe.udfs)))

    def _add(
        self,
        name: str,
        tasks: dict[Key, Task],
        depends: Iterable[str],
    ) -> None:
        """Add a layer."""
        self.layers[name] = MaterializedLayer(tasks)
        self.depends[name] = set(depends)

    def _name(self, stage: str, udf: UDFRecipe | None = None, *rest: str) -> str:
        """Return the name of a layer, as dask shows it."""
        who = [udf.name] if udf else sorted({u.name for u in self.recipe.udfs})[:3]
        token = tokenize(self.token, stage, None if udf is None else self._number(udf), rest)
        return "-".join([*who, *(str(r) for r in rest), stage, token]).lower()

    def _number(self, udf: UDFRecipe) -> int:
        """Return the place of a UDF in the run."""
        return next(k for k, u in enumerate(self.recipe.udfs) if u is udf)

    def _recipe_argument(self) -> Any:
        """Return what tasks take as recipe: the value, or a task that fills lazy parameters in."""
        lazy = lazy_recipe(self.recipe, self._name("recipe"))
        if lazy is None:
            return self.recipe
        self.layers.update(lazy.layers)
        self.depends.update(lazy.dependencies)
        return TaskRef(lazy.key)

    @property
    def _shared_layers(self) -> set[str]:
        """Layers that every task with a recipe depends on."""
        return {self._name("recipe")} if type(self.shared) is TaskRef else set()

    def _blocks(self, chunk: int) -> list[TaskRef]:
        """Return the keys of the blocks of a chunk, in C order of the signal chunks."""
        index = self.recipe.grid.index(chunk)
        counts = [range(len(c)) for c in self.recipe.sig_chunks]
        return [TaskRef((self.array.name, *index, *s)) for s in itertools.product(*counts)]

    def _aux(self, chunk: int) -> Any:
        """Return the aux data of a chunk: arrays, and keys of lazy ones."""
        grid = self.recipe.grid
        pieces: list[Any] = []
        for values in self.aux:
            if isinstance(values, da.Array):
                extra = (0,) * (values.ndim - len(grid.shape))
                pieces.append(TaskRef((values.name, *grid.index(chunk), *extra)))
            else:
                pieces.append(block_of(values, grid, chunk))
        return List(*pieces)

    def _aux_layers(self) -> set[str]:
        """Add the layers of lazy aux data; return those that tasks read from."""
        lazy = [values for values in self.aux if isinstance(values, da.Array)]
        for values in lazy:
            self.layers.update(values.dask.layers)
            self.depends.update({n: set(d) for n, d in values.dask.dependencies.items()})
        return {values.name for values in lazy}

    def chunks(self) -> list[Key]:
        """Add the tasks that see the data; return the key of each chunk's payload."""
        name = self._name("chunk")
        n = n_blocks(self.recipe)
        chunks = range(self.recipe.grid.n_chunks)
        others = self._shared_layers | self._aux_layers()
        aux = [self._aux(c) for c in chunks] if self.aux else None
        if n > 1 and not self.recipe.by_sig_chunk:
            tasks: dict[Key, Task] = {}
            for c in chunks:
                more = () if aux is None else (aux[c],)
                blocks = List(*self._blocks(c))
                tasks[name, c] = Task((name, c), run_chunk, self.shared, c, blocks, *more)
            counts = self.recipe.grid.counts.tolist()
            self.layers[name] = ChunkTasks(tasks, dict(zip(tasks, counts, strict=True)))
            self.depends[name] = {self.array.name, *others}
            return list(tasks)
        inline = not isinstance(self.shared, TaskRef)
        layer = ChunkBlockwise(name, self.recipe, self.array, self.shared if inline else None)
        data = _data(self.array)
        written = data is not None or aux is not None or not inline
        self.layers[name] = layer.as_tasks(self.shared, data, aux) if written else layer
        loads = {self.array.name} if data is None else set()
        self.depends[name] = loads | others
        keys = list(layer.places)
        return self._joined(keys, n) if self.recipe.by_sig_chunk else keys

    def _joined(self, keys: list[Key], n: int) -> list[Key]:
        """Add one task per chunk that joins its `n` signal chunks; return their keys."""
        groups = [keys[k : k + n] for k in range(0, len(keys), n)]
        name = self._name("join")
        tasks: dict[Key, Task] = {}
        for c, group in enumerate(groups):
            key = (name, c)
            tasks[key] = OutputTask(key, join_parts, self.shared, c, List(*map(TaskRef, group)))
        self._add(name, tasks, {keys[0][0], *self._shared_layers} if keys else set())
        return list(tasks)

    def _udf(self, number: int, payloads: list[Key]) -> Outputs:
        """Add merges, get_results and outputs of one UDF."""
        udf = self.recipe.udfs[number]
        sources = payloads
        if self._is_heavy(number):
            sources = self._map(
                self._name("part", udf), payloads, lambda key, src, c: (_part, number, src)
            )
        rows, whole = self._merge(number, udf, sources)
        if udf.finish:
            rows, whole = self._finish(number, udf, rows, whole)
        return self._outputs(number, udf, rows, whole, payloads)

    def _is_heavy(self, number: int) -> bool:
        """Return whether what other UDFs put into a payload is worth a task to leave it behind."""
        recipe = self.recipe
        if len(recipe.udfs) == 1 or not recipe.grid.n_chunks:
            return False
        n_rows = int(recipe.grid.counts.max())
        return (
            sum(
                s.nbytes(n_rows, recipe.shape.sig)
                for k, u in enumerate(recipe.udfs)
                if k != number
                for s in u.allocated.values()
            )
            > HEAVY_PAYLOAD
        )

    def _map(
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
        self._add(name, tasks, {s[0] for s in sources} | self._shared_layers)
        return list(tasks)

    def _merge(
        self, number: int, udf: UDFRecipe, sources: list[Key]
    ) -> tuple[list[Key], Key | None]:
        """Add the merges; return where the nav rows of each chunk are, and all the rest."""
        if udf.merge == "none":
            return sources, None
        if not sources:
            key = (self._name("merge", udf), 0)
            self._add(
                key[0], {key: OutputTask(key, empty, self.shared, number)}, self._shared_layers
            )
            return [], key
        if udf.merge == "rows":
            links = self._map(
                self._name("merge", udf),
                sources,
                lambda key, src, c: (_link, self.shared, number, None, src),
            )
            return links, links[-1]
        if udf.merge == "chain":
            return self._chain(number, udf, sources)
        return self._tree(number, udf, sources)

    def _chain(self, number: int, udf: UDFRecipe, sources: list[Key]) -> tuple[list[Key], Key]:
        """Add merges one after another."""
        name = self._name("merge", udf)
        tasks: dict[Key, Task] = {}
        before: Any = None
        for c, source in enumerate(sources):
            key = (name, c)
            tasks[key] = OutputTask(key, _link, self.shared, number, before, TaskRef(source))
            before = TaskRef(key)
        self._add(name, tasks, {s[0] for s in sources} | self._shared_layers)
        return list(tasks), key

    def _tree(self, number: int, udf: UDFRecipe, sources: list[Key]) -> tuple[list[Key], Key]:
        """Add a tree of merges; nav rows are final after the first level of one by `merge`."""
        name = self._name("merge", udf)
        fan_in = udf.split_every or len(sources)
        tasks: dict[Key, Task] = {}
        level, keys, rows = 0, sources, list(sources)
        while level == 0 or len(keys) > 1:
            nodes: list[Key] = []
            for start in range(0, len(keys), fan_in):
                key = (name, level, start // fan_in)
                # the ends of a scan may be empty, where an average of averages cannot be told
                end = start == 0 or start + fan_in >= len(keys)
                group = List(*map(TaskRef, keys[start : start + fan_in]))
                check = level == 0 and end and udf.split_every is not None
                tasks[key] = OutputTask(key, _node, self.shared, number, group, check)
                nodes.append(key)
            if level == 0:
                rows = [nodes[c // fan_in] for c in range(len(sources))]
            keys, level = nodes, level + 1
        self._add(name, tasks, {s[0] for s in sources} | self._shared_layers)
        if udf.merge == "all":
            rows = [keys[0]] * len(sources)
        return rows, keys[0]

    def _finish(
        self, number: int, udf: UDFRecipe, rows: list[Key], whole: Key | None
    ) -> tuple[list[Key], Key]:
        """Add the calls of get_results; return where each chunk's results and the rest are."""
        name = self._name("finish", udf)
        rest = TaskRef(whole) if whole and udf.has_whole else None
        depends = {k[0] for k in rows if udf.has_nav} | ({whole[0]} if rest and whole else set())
        tasks: dict[Key, Task] = {}
        if udf.elementwise and rows:
            for c, source in enumerate(rows):
                key = (name, c)
                given = List(TaskRef(source)) if udf.has_nav else List()
                tasks[key] = OutputTask(key, _finish, self.shared, number, c, given, rest)
            self._add(name, tasks, depends | self._shared_layers)
            return list(tasks), (name, 0)
        key = (name, 0)
        # neighbours share a source where a tree has merged them
        distinct = [k for k, _ in itertools.groupby(rows)] if udf.has_nav else []
        given = List(*map(TaskRef, distinct))
        tasks[key] = OutputTask(key, _finish, self.shared, number, None, given, rest)
        self._add(name, tasks, depends | self._shared_layers)
        return [key] * len(rows), key

    def _outputs(
        self, number: int, udf: UDFRecipe, rows: list[Key], whole: Key | None, payloads: list[Key]
    ) -> Outputs:
        """Return the dask arrays of a UDF."""
        arrays, masks = {}, {}
        for name, spec in udf.outputs.items():
            what = (self.shared, number, name)
            if spec.kind == "nav":
                layer = self._name("nav", udf, name)
                arrays[name] = self._nav_array(
                    layer, rows, spec, spec.dtype, spec.fill, nav_block, what
                )
            else:
                assert whole is not None
                layer = self._name(spec.kind, udf, name)
                arrays[name] = self._whole_array(layer, whole, spec, spec.dtype, whole_result, what)
            if udf.finish:
                layer = self._name("mask", udf, name)
                flag = np.dtype(bool)
                if spec.kind == "nav":
                    masks[name] = self._nav_array(
                        layer, rows, spec, flag, False, nav_mask_block, what
                    )
                else:
                    assert whole is not None
                    masks[name] = self._whole_array(layer, whole, spec, flag, whole_mask, what)
        visited = None
        if not arrays:
            spec = BufferSpec(kind="nav", extra_shape=(), dtype=np.dtype(bool))
            visited = self._nav_array(
                self._name("visited", udf),
                payloads,
                spec,
                spec.dtype,
                False,
                visited_block,
                (self.shared,),
            )
        return Outputs(arrays=arrays, masks=masks, visited=visited)

    def _nav_array(
        self,
        name: str,
        sources: list[Key],
        spec: BufferSpec,
        dtype: np.dtype[Any],
        fill: Any,
        function: Callable[..., Any],
        what: tuple[Any, ...],
    ) -> da.Array:
        """Return a dask array over nav, a block from each chunk and fill where there is none."""
        grid, extra = self.recipe.grid, spec.extra_shape
        zeros = (0,) * len(extra)
        tasks: dict[Key, Task] = {}
        for c, source in enumerate(sources):
            key = (name, *grid.index(c), *zeros)
            tasks[key] = OutputTask(key, function, *what, c, TaskRef(source))
        if len(sources) < math.prod(grid.numblocks):
            for place in itertools.product(*map(range, grid.numblocks)):
                key = (name, *place, *zeros)
                if key not in tasks:
                    sizes = tuple(n[i] for n, i in zip(grid.nav_chunks, place, strict=True))
                    tasks[key] = Task(key, fill_block, (*sizes, *extra), dtype, fill)
        chunks = (*grid.nav_chunks, *((n,) for n in extra))
        return self._array(name, tasks, {s[0] for s in sources}, chunks, dtype)

    def _whole_array(
        self,
        name: str,
        source: Key,
        spec: BufferSpec,
        dtype: np.dtype[Any],
        function: Callable[..., Any],
        what: tuple[Any, ...],
    ) -> da.Array:
        """Return a dask array of one block from one task."""
        shape = spec.shape(0, self.recipe.shape.sig)
        if spec.kind == "single":
            shape = spec.extra_shape
        key = (name, *(0 for _ in shape))
        tasks: dict[Key, Task] = {key: OutputTask(key, function, *what, TaskRef(source))}
        return self._array(name, tasks, {source[0]}, tuple((n,) for n in shape), dtype)

    def _array(
        self,
        name: str,
        tasks: dict[Key, Task],
        depends: set[str],
        chunks: tuple[tuple[int, ...], ...],
        dtype: np.dtype[Any],
    ) -> da.Array:
        """Return a dask array whose graph holds just the layers that it needs."""
        self._add(name, tasks, depends | self._shared_layers)
        own_layers = self.array.dask
        layers: dict[str, Any] = {}
        dependencies: dict[str, set[str]] = {}
        todo = [name]
        while todo:
            layer = todo.pop()
            if layer in layers:
                continue
            if layer in self.layers:
                layers[layer], dependencies[layer] = self.layers[layer], self.depends[layer]
            else:
                layers[layer] = own_layers.layers[layer]
                dependencies[layer] = set(own_layers.dependencies[layer])
            todo.extend(dependencies[layer])
        graph = HighLevelGraph(layers, dependencies)
        meta = np.empty((0,) * len(chunks), dtype=dtype)
        return da.Array(graph, name, chunks, meta=meta)


def _data(array: da.Array) -> Mapping[Key, Any] | None:
    """Return the blocks of an array if they lie in its graph, so that nothing has to load them."""
    layer: Any = array.dask.layers[array.name]
    first = next(iter(layer.values()), None) if isinstance(layer, MaterializedLayer) else None
    return layer.mapping if isinstance(first, (np.ndarray, DataNode)) else None


def _part(number: int, payload: tuple[Partial, ...]) -> Partial:
    """Return the partial of one UDF out of a payload."""
    return payload[number]


def _of(source: Any, number: int) -> Any:
    """Return the partial of a UDF: the thing itself, or out of a payload."""
    return source[number] if isinstance(source, tuple) else source


def _link(recipe: Recipe, number: int, before: Any, source: Any) -> Partial:
    """Merge one chunk behind those before it."""
    return merge_link(recipe, number, before, _of(source, number))


def _node(recipe: Recipe, number: int, sources: list[Any], check: bool) -> Partial:
    """Merge a group of neighbours."""
    partials = [_of(source, number) for source in sources]
    if recipe.udfs[number].merge == "all":
        return merge_all(recipe, number, partials, check)
    return merge_tree(recipe, number, partials)


def _finish(
    recipe: Recipe, number: int, chunk: int | None, rows: list[Any], whole: Any
) -> Finished:
    """Call get_results."""
    partials = [_of(source, number) for source in rows]
    return finish(recipe, number, chunk, partials, None if whole is None else _of(whole, number))
