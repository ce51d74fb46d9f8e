"""Predict the memory that loading a block needs, from the sizes in the layers of its graph."""

from __future__ import annotations

import math
from typing import Any

import dask.array as da

from udfdask.geometry.good_chunks import Chunks
from udfdask.graph.dask_internals.tasks import described_layer, described_task


def loading_memory(array: da.Array) -> tuple[int, int]:
    """Return the bytes of copies while a block is loaded, and of blocks that all loads share."""
    graph, copies, shared = array.dask, 0, 0
    block = _block_bytes(graph.layers[array.name])
    for name, layer in graph.layers.items():
        sources = [graph.layers[each] for each in graph.dependencies[name]]
        own, before = _block_bytes(layer), max(map(_block_bytes, sources), default=0)
        read = 0 if before else own * max(map(_decoded, (layer, *sources)))
        copies = max(copies, own + before + read - block)
        if len(sources) == 1 and before:
            shared = max(shared, _pieces(_chunks(layer), _chunks(sources[0])) * before)
    return copies, shared


def _decoded(layer: Any) -> int:
    """Return how many copies of a block a layer needs that reads, or holds, encoded chunks."""
    held: list[Any] = []
    if (described := described_layer(layer)) is not None:
        held = [value for kind, value in described.inputs if kind == "value"]
    elif len(layer) == 1:
        (task,) = dict(layer).values()
        held = [task, *(described_task(task) or ())]
    arrays = [one for one in held if hasattr(one, "dtype")]
    if any(getattr(one, "stored", None) for one in arrays):  # udfdask's own readers
        return 1
    # the arrays of zarr and h5py decode a chunk into an array of its own
    return 2 if any(getattr(one, "chunks", None) for one in arrays) else 0


def _pieces(chunks: Chunks, sources: Chunks) -> int:
    """Return the number of blocks that wait while a rechunk cuts and joins them; 0 for others."""
    if chunks == sources or [*map(sum, chunks)] != [*map(sum, sources)]:
        return 0
    largest = [(max(a, default=0), max(b, default=1)) for a, b in zip(chunks, sources, strict=True)]
    joined = math.prod(
        min(len(axis), -(-new // max(1, old)))
        for (new, old), axis in zip(largest, sources, strict=True)
    )
    return 2 * joined if any(new < old for new, old in largest) else joined


def _chunks(layer: Any) -> Chunks:
    """Return the chunks of a layer; none if it does not say them."""
    about = getattr(layer, "collection_annotations", None) or {}
    return about.get("chunks") or ()


def _block_bytes(layer: Any) -> int:
    """Return the size of the largest block of a layer; 0 if the layer holds no blocks."""
    sizes = [max(axis, default=0) for axis in _chunks(layer)]
    dtype = (getattr(layer, "collection_annotations", None) or {}).get("dtype")
    if not sizes or dtype is None or any(map(math.isnan, sizes)):
        return 0
    return math.prod(sizes) * int(dtype.itemsize)
