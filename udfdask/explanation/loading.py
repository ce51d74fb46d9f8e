"""The memory that loading the data needs, from the sizes of the blocks in a graph."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from udfdask.geometry.good_chunks import Chunks
from udfdask.graph.dask_internals.arrays import GraphArray, blocks_in_memory
from udfdask.graph.dask_internals.tasks import described_layer, described_task


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadingMemory:
    """What loading the data of a task needs in addition to the data themselves."""

    copies: int = 0
    """Bytes of a larger or of another block, which a block of the data is made from."""
    shared: int = 0
    """Bytes of blocks that later tasks need too, in the whole process."""
    in_memory: bool = False
    """Whether the data are in memory before the run."""


def loading_memory(array: GraphArray) -> LoadingMemory:
    """Return what loading needs, from the sizes of the blocks in the layers of an array."""
    if blocks_in_memory(array) is not None:
        return LoadingMemory(in_memory=True)
    graph = array.dask
    block = _block_bytes(graph.layers[array.name])
    largest, shared = block, 0
    for name, layer in graph.layers.items():
        sources = [graph.layers[each] for each in graph.dependencies[name]]
        sizes = [_block_bytes(source) for source in sources]
        own = _block_bytes(layer)
        read = 0 if any(sizes) else own * max(map(_decoded, (layer, *sources)))
        largest = max(largest, own + max(sizes, default=0) + read)
        if len(sources) == 1 and sizes[0]:
            shared = max(shared, _pieces(_chunks(layer), _chunks(sources[0])) * sizes[0])
    return LoadingMemory(copies=largest - block, shared=shared)


def _decoded(layer: Any) -> int:
    """Return how many copies of a block a layer needs that reads, or holds, encoded chunks."""
    described = described_layer(layer)
    if described is not None:
        held = [value for kind, value in described.inputs if kind == "value"]
    else:
        tasks = map(described_task, dict(layer).values()) if len(layer) == 1 else ()
        held = [value for task in tasks if task is not None for value in task]
        held += list(dict(layer).values())[:1]
    arrays = [one for one in held if hasattr(one, "dtype")]
    if any(getattr(one, "stored", None) for one in arrays):  # udfdask's own readers
        return 1
    # the arrays of zarr and h5py decode a chunk into an array of its own
    return 2 if any(getattr(one, "chunks", None) for one in arrays) else 0


def _pieces(chunks: Chunks, sources: Chunks) -> int:
    """Return the number of blocks that wait while a rechunk cuts and joins them; 0 for others."""
    if chunks == sources or [*map(sum, chunks)] != [*map(sum, sources)]:
        return 0
    joined = math.prod(
        min(len(axis), -(-max(sizes, default=0) // max(1, max(axis, default=1))))
        for sizes, axis in zip(chunks, sources, strict=True)
    )
    is_cut = any(max(a) < max(b) for a, b in zip(chunks, sources, strict=True) if a and b)
    return 2 * joined if is_cut else joined


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
    return 0 if any(map(math.isnan, sizes)) else math.prod(sizes) * int(about["dtype"].itemsize)
