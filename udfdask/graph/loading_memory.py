"""Find out how much memory the loading of one chunk needs, from the layers of an array.

Nothing is loaded. Layers say which blocks they make, and what from. dask runs blockwise layers as
one task for each block, which releases each array when the next one has been made from it. Other
layers, such as those of a rechunk, have tasks of their own; blocks that several of them need stay
in memory until the last of them has run.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Mapping
from typing import Any

from dask.highlevelgraph import HighLevelGraph

from udfdask.graph.dask_internals.arrays import GraphArray, blocks_in_memory
from udfdask.graph.dask_internals.contents import (
    described_layer,
    described_task,
    reads_slices,
    sliced_key,
    task_contents,
)
from udfdask.plan.memory import LoadingMemory
from udfdask.plan.plan import Plan
from udfdask.plan.recipe import Recipe

Node = Any
"""A layer, or the key of a task."""


def loading_memory(array: GraphArray, plan: Plan) -> LoadingMemory:
    """Return what loading the data of a task of a run needs in addition to these data.

    Slices and rechunks list their tasks: 10,000 chunks take half a second.
    """
    found = loading_memory_of_layers(array)
    if found is not None:
        return found
    # each task of joined chunks runs the tasks of its own chunks
    return LoadingMemory() if plan.joined else _from_tasks(array, plan.recipe)


def loading_memory_of_layers(array: GraphArray) -> LoadingMemory | None:
    """Return the same if the layers alone say it, which takes no time; else None."""
    if blocks_in_memory(array) is not None:
        return LoadingMemory(in_memory=True)
    graph = array.dask
    sizes = _sizes(graph)
    if all(described_layer(graph.layers[name]) for name in _arrays_below(graph, array.name, sizes)):
        depends = {name: [d for d in graph.dependencies[name] if sizes[d]] for name in sizes}
        extras = {name: _source_bytes(graph, name, size) for name, size in sizes.items()}
        loads = _Loads(depends, sizes.__getitem__, extras.__getitem__, lambda name: False)
        block = sizes[array.name]
        # the blocks of a chunk are loaded one after another
        return LoadingMemory(extra=max(0, loads.peak(array.name) - block))
    return None


def blocks_of_layers(array: GraphArray) -> int:
    """Return the number of blocks of the layer of an array that has most of them."""
    about = (getattr(layer, "collection_annotations", None) for layer in array.dask.layers.values())
    chunks = [found["chunks"] for found in about if found and found.get("chunks")]
    return max((math.prod(map(len, one)) for one in (array.chunks, *chunks)), default=1)


def _sizes(graph: HighLevelGraph) -> dict[str, int]:
    """Return the size of the largest block of each layer."""
    return {name: _block_bytes(layer) for name, layer in graph.layers.items()}


def _arrays_below(graph: HighLevelGraph, name: str, sizes: Mapping[str, int]) -> set[str]:
    """Return the layers of blocks that a layer is computed from, and the layer itself."""
    found, todo = set(), [name]
    while todo:
        layer = todo.pop()
        if layer not in found and sizes[layer]:
            found.add(layer)
            todo.extend(graph.dependencies[layer])
    return found


def _block_bytes(layer: Any) -> int:
    """Return the size of the largest block of a layer; 0 if the layer holds no blocks."""
    about = getattr(layer, "collection_annotations", None) or {}
    if not about.get("chunks") or about.get("dtype") is None:
        return 0
    sizes = [max(axis, default=0) for axis in about["chunks"]]
    if any(math.isnan(size) for size in sizes):
        return 0
    return math.prod(sizes) * int(about["dtype"].itemsize)


class _Loads:
    """Which nodes are computed from which, and how large they are."""

    def __init__(
        self,
        depends: Mapping[Node, Collection[Node]],
        size: Callable[[Node], int],
        extra: Callable[[Node], int],
        is_view: Callable[[Node], bool],
    ) -> None:
        self.depends, self.size, self.extra, self.is_view = depends, size, extra, is_view

    def peak(self, node: Node, shared: Collection[Node] = ()) -> int:
        """Return the memory to compute a node and all that it needs, depth first.

        Each node is computed once, and released after the last one that needs it. `shared` nodes
        are counted elsewhere.
        """
        order = self._depth_first(node, shared)
        needed = {key: self._sources(key, shared) for key in order}
        uses: dict[Node, int] = dict.fromkeys(order, 0)
        for sources in needed.values():
            for source in sources:
                uses[source] += 1
        alive = highest = 0
        for key in order:
            view = self.is_view(key)
            alive += 0 if view else self.size(key)
            highest = max(highest, alive + (0 if view else self.extra(key)))
            done = [] if view else list(needed[key])  # a view keeps what it is a view of
            while done:
                source = done.pop()
                uses[source] -= 1
                if not uses[source]:
                    alive -= 0 if self.is_view(source) else self.size(source)
                    done += needed[source] if self.is_view(source) else []
        return highest

    def _sources(self, node: Node, shared: Collection[Node]) -> list[Node]:
        """Return what a node is computed from, in an order that is always the same."""
        return sorted((k for k in self.depends.get(node, ()) if k not in shared), key=str)

    def _depth_first(self, node: Node, shared: Collection[Node]) -> list[Node]:
        """Return a node after all that it needs."""
        order: dict[Node, None] = {}
        todo = [node]
        while todo:
            if todo[-1] in order:
                todo.pop()
                continue
            missing = [key for key in self._sources(todo[-1], shared) if key not in order]
            if missing:
                todo.extend(reversed(missing))
            else:
                order[todo.pop()] = None
        return list(order)


def _source_bytes(graph: HighLevelGraph, name: str, block: int) -> int:
    """Return what a layer needs while it reads a block from a file or store, beyond the block.

    `block` is the size of the block in bytes.
    """
    layer = described_layer(graph.layers[name])
    if layer is None:
        return 0
    sources = [value for kind, value in layer.inputs if kind == "value"]
    for kind, key in layer.inputs:
        if kind == "key" and (
            holder := graph.layers.get(key[0] if isinstance(key, tuple) else key)
        ):
            sources.extend(_values_of(holder))
    return max((decoding_bytes(source, block) for source in sources), default=0)


def _values_of(layer: Any) -> list[Any]:
    """Return the objects that are in a layer as data, such as a file from which others read."""
    if described_layer(layer) is not None:
        return []
    values: list[Any] = []
    for task in dict(layer).values():
        about = described_task(task)
        values.extend((task,) if about is None else task_contents(task) or ())
    return values


def decoding_bytes(source: Any, block: int) -> int:
    """Return what a stored array needs to decode the chunks of a block, beyond the block.

    udfdask's own readers decode a chunk into the block: they need its encoded bytes, which are
    fewer than those of the chunk. The arrays of zarr and h5py decode it into an array of its own.
    """
    stored, copies = getattr(source, "stored", None), 1
    if stored is None:
        stored, copies = getattr(source, "chunks", None), 2
    if not stored or not hasattr(source, "dtype"):
        return 0
    try:
        chunk = math.prod(int(n) for n in stored) * int(source.dtype.itemsize)
    except TypeError:  # the chunks of a dask array have several sizes along an axis
        return 0
    return copies * min(chunk, block)


def _from_tasks(array: GraphArray, recipe: Recipe) -> LoadingMemory:
    """Return the memory for loading, where some blocks may be needed by several chunks."""
    # the graph caches the answer; a new one, so that the user's graph does not keep it in memory
    graph = HighLevelGraph(array.dask.layers, array.dask.dependencies)
    # a block that a cluster holds seems to need itself: its future has the same key
    depends = {key: needs - {key} for key, needs in graph.get_all_dependencies().items()}
    slices = _slicing_layers(array.dask)
    # dask reads only the slice from a file or store
    sizes = {
        n: 0 if n in slices.values() and reads_slices(array.dask.layers[n]) else s
        for n, s in _sizes(array.dask).items()
    }
    # a slice of less than half a block is a copy; tasks of a layer without blocks are parts of one
    views = {n for n in sizes if not sizes[n] or sizes.get(slices.get(n, n), 0) < 2 * sizes[n]}
    views = {n for n in views if n in slices or not sizes[n]}
    blocks = _sizes(array.dask)
    extras = {name: _source_bytes(array.dask, name, size) for name, size in blocks.items()}
    loads = _Loads(
        depends,
        lambda key: sizes.get(_layer_of(key), 0),
        lambda key: extras.get(_layer_of(key), 0),
        lambda key: _layer_of(key) in views or _layer_of(key) not in sizes,
    )
    order = [
        (array.name, *recipe.grid.index(c), *sig)
        for c in range(recipe.grid.n_chunks)
        for sig in _sig_places(recipe)
    ]
    per_task = 1 if recipe.by_sig_chunk else recipe.n_blocks
    first = _first_use(order, depends, per_task)
    last = _last_use(first, depends, loads)
    cut = _cut_into_copies(first, depends, loads)
    shared = {key for key, task in last.items() if task > first[key] and loads.size(key)}
    shared = {key for key in shared if not loads.is_view(key)}
    block = sizes[array.name]
    peak = max((loads.peak(key, shared) for key in order), default=block)
    held = max((_held_by_view(key, shared, loads) for key in order), default=0)
    held = max(0, held - block)
    return LoadingMemory(
        extra=max(0, peak - block - held),
        held=held,
        waiting=_most_alive(shared, first, last, lambda key: loads.size(key) * (1 + (key in cut))),
    )


def _held_by_view(key: Node, shared: Collection[Node], loads: _Loads) -> int:
    """Return the size of the block that a block is a view of; its own size if it is no view."""
    while loads.is_view(key):
        sources = [source for source in loads.depends.get(key, ()) if loads.size(source)]
        if len(sources) != 1:
            return loads.size(key)
        if sources[0] in shared:
            return 0
        key = sources[0]
    return loads.size(key)


def _layer_of(key: Any) -> Any:
    return key[0] if isinstance(key, tuple) else key


def _sig_places(recipe: Recipe) -> list[tuple[int, ...]]:
    """Return the places of the signal chunks in their grid."""
    return list(itertools.product(*(range(len(sizes)) for sizes in recipe.sig_chunks)))


def _slicing_layers(graph: HighLevelGraph) -> dict[str, str]:
    """Return the layers that only slice blocks, each with the layer of these blocks."""
    found = {}
    for name, layer in graph.layers.items():
        if described_layer(layer) is None:
            key = sliced_key(next(iter(layer.values()), None))
            if key is not None:
                found[name] = _layer_of(key)
    return found


def _first_use(
    order: list[Node], depends: Mapping[Node, Collection[Node]], per_task: int
) -> dict[Node, int]:
    """Return the number of the first chunk task that needs each node."""
    first: dict[Node, int] = {}
    for number, key in enumerate(order):
        todo = [key]
        while todo:
            node = todo.pop()
            if node not in first:
                first[node] = number // per_task
                todo.extend(depends.get(node, ()))
    return first


def _last_use(
    first: Mapping[Node, int], depends: Mapping[Node, Collection[Node]], loads: _Loads
) -> dict[Node, int]:
    """Return the number of the last chunk task for which each node must be in memory."""
    last = dict(first)
    # later nodes first: a view keeps what it is a view of
    for node in sorted(first, key=first.__getitem__, reverse=True):
        until = last[node] if loads.is_view(node) else first[node]
        for source in depends.get(node, ()):
            last[source] = max(last[source], until)
    return last


def _cut_into_copies(
    nodes: Collection[Node], depends: Mapping[Node, Collection[Node]], loads: _Loads
) -> set[Node]:
    """Return the blocks that a rechunk cuts into pieces, which are copies."""
    pieces: dict[Node, int] = {}
    for node in nodes:
        if loads.is_view(node) and not loads.size(node):
            for source in depends.get(node, ()):
                pieces[source] = pieces.get(source, 0) + 1
    return {node for node, number in pieces.items() if number > 1}


def _most_alive(
    shared: Collection[Node],
    first: Mapping[Node, int],
    last: Mapping[Node, int],
    size: Callable[[Node], int],
) -> int:
    """Return the largest size of all shared nodes that are in memory at the same time."""
    changes: dict[int, int] = {}
    for node in shared:
        changes[first[node]] = changes.get(first[node], 0) + size(node)
        changes[last[node] + 1] = changes.get(last[node] + 1, 0) - size(node)
    alive = most = 0
    for task in sorted(changes):
        alive += changes[task]
        most = max(most, alive)
    return most
