"""Find out how much memory the loading of one chunk needs, from the layers of an array.

Nothing is loaded, and no task is looked at but one of each layer. dask computes a block step by
step: each step holds its block and all blocks that it is computed from. The largest step counts.
Blocks that a rechunk cuts wait until the last of their pieces is used, and the pieces are copies.
"""

from __future__ import annotations

import math
from operator import ge
from typing import Any

from dask.highlevelgraph import HighLevelGraph

from udfdask.explanation.memory import LoadingMemory
from udfdask.graph.dask_internals.arrays import GraphArray, blocks_in_memory
from udfdask.graph.dask_internals.contents import (
    described_layer,
    described_task,
    reads_slices,
    sliced_key,
    task_contents,
)
from udfdask.plan.small_chunks import Chunks


def loading_memory(array: GraphArray) -> LoadingMemory:
    """Return what loading the data of a task needs in addition to these data.

    It is an upper bound: not all steps of a block hold all of their sources.
    """
    if blocks_in_memory(array) is not None:
        return LoadingMemory(in_memory=True)
    graph, block = array.dask, _block_bytes(array.dask.layers[array.name])
    largest, before, waiting, held = block, 0, 0, 0
    ways: dict[str, set[Way]] = {}
    todo: list[tuple[str, Way, bool]] = [(array.name, None, False)]
    while todo:
        name, way, is_below_cut = todo.pop()
        known = ways.setdefault(name, set())
        if way in known or len(known) > 1:
            continue
        known.add(way)
        if len(known) > 1:  # computed for one chunk, and needed again for another
            waiting += math.prod(map(len, _chunks(graph.layers[name]))) * _block_bytes(
                graph.layers[name]
            )
            continue
        step = _Step(graph, name)
        for number, source in enumerate(step.sources):
            after = way if step.is_local else (name, number)
            todo.append((source, after, is_below_cut or step.is_cut))
        waiting += step.waiting
        if is_below_cut:  # when its blocks are made, the pieces do not exist yet
            before = max(before, step.holds)
        else:
            largest = max(largest, step.holds)
        if name == array.name:
            held = max(0, step.view_of - block)
    extra = max(0, largest - block - held, before - waiting - block)
    return LoadingMemory(extra=extra, held=held, waiting=waiting)


Way = tuple[str, int] | None
"""The last layer on the way to another one whose blocks need several, and the number of its source;
None if each block needs only the blocks in its place."""


class _Step:
    """The memory of one layer, for one of its blocks."""

    def __init__(self, graph: HighLevelGraph, name: str) -> None:
        layer, self.view_of, self.waiting, self.is_cut = graph.layers[name], 0, 0, False
        parts = {d: _block_bytes(graph.layers[d]) for d in sorted(graph.dependencies[name])}
        self.sources = [source for source, size in parts.items() if size]
        own, largest = _block_bytes(layer), max(parts.values(), default=0)
        self.is_local = described_layer(layer) is not None or not self.sources
        self.holds = own + sum(parts.values()) + _source_bytes(graph, name, own)
        if self.is_local:
            return
        if sliced_key(next(iter(layer.values()), None)) is not None:
            self.is_local, (source, *_) = True, self.sources
            if reads_slices(graph.layers[source]):
                self.holds = own + _source_bytes(graph, source, own)  # only the slice is read
            elif 2 * own >= largest:  # a smaller slice is a copy
                # a view of a view keeps the block of the first one
                self.holds = self.view_of = max(largest, _Step(graph, source).view_of)
            return
        self.holds = own + largest
        if len(self.sources) > 1:
            return
        chunks, made_from = _chunks(layer), _chunks(graph.layers[self.sources[0]])
        shape, before = [*map(sum, chunks)], [*map(sum, made_from)]
        if shape == before:  # a rechunk
            joined, self.is_cut = _overlap(chunks, made_from), _overlap(made_from, chunks) > 1
            self.holds = own if self.is_cut else own + joined * largest
            self.waiting = 2 * joined * largest if self.is_cut else 0
        elif len(shape) == len(before) and all(map(ge, shape, before)):
            # borders of neighbors are added: blocks wait for the next line of blocks
            line = [len(axis) for axis in made_from if len(axis) > 1][1:]
            self.waiting = 2 * (math.prod(line) + 2) * largest
        else:
            self.is_local = [*map(len, chunks)] == [*map(len, made_from)]


def _overlap(chunks: Chunks, sources: Chunks) -> int:
    """Return the number of source blocks from which a block is made, if it is a rechunk."""
    if len(chunks) != len(sources):
        return 1
    return math.prod(
        min(len(axis), -(-max(sizes, default=0) // max(1, max(axis, default=1))))
        for sizes, axis in zip(chunks, sources, strict=True)
    )


def _chunks(layer: Any) -> Chunks:
    """Return the chunks of a layer; none if it does not say them."""
    about = getattr(layer, "collection_annotations", None) or {}
    return about.get("chunks") or ()


def _block_bytes(layer: Any) -> int:
    """Return the size of the largest block of a layer; 0 if the layer holds no blocks."""
    about = getattr(layer, "collection_annotations", None) or {}
    if not about.get("chunks") or about.get("dtype") is None:
        return 0
    sizes = [max(axis, default=0) for axis in about["chunks"]]
    if any(math.isnan(size) for size in sizes):
        return 0
    return math.prod(sizes) * int(about["dtype"].itemsize)


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
