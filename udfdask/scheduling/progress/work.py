"""Find the work of a computation: the chunks of data, and the tasks that process them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from dask import base

from udfdask.geometry.chunk_grid import Grid
from udfdask.graph.chunk_layers import ChunkBlockwise, ChunkLayerInfo, ChunkTasks
from udfdask.plan.recipe import Recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Chunks of data, and the chunk that each task processes."""

    frames: dict[Hashable, int]
    """Selected frames of each chunk."""
    nbytes: dict[Hashable, int]
    """Size of each chunk in bytes."""
    chunk_of: dict[Hashable, Hashable]
    """The chunk that each task processes; several tasks can process the same chunk."""

    def only(self, tasks: Iterable[Hashable]) -> Work:
        """Return the work of some tasks; tasks that are not in this work are ignored."""
        chunk_of = {key: self.chunk_of[key] for key in tasks if key in self.chunk_of}
        chunks = set(chunk_of.values())
        return Work(
            frames={chunk: n for chunk, n in self.frames.items() if chunk in chunks},
            nbytes={chunk: n for chunk, n in self.nbytes.items() if chunk in chunks},
            chunk_of=chunk_of,
        )


def work_of_run(recipe: Recipe) -> Work:
    """Return the work of one run; its tasks have the numbers of their chunks as keys."""
    numbers: list[Hashable] = list(range(recipe.grid.n_chunks))
    frames, nbytes = _sizes(recipe, recipe.grid)
    return Work(
        frames=dict(zip(numbers, frames, strict=True)),
        nbytes=dict(zip(numbers, nbytes, strict=True)),
        chunk_of={number: number for number in numbers},
    )


def work_of(results: Any) -> Work:
    """Return the work of a computation of nested collections.

    A chunk of several runs counts once, with the frames that at least one of them has selected.
    """
    work = Work(frames={}, nbytes={}, chunk_of={})
    for (array_name, _), visits in _visits(results).items():
        recipe, grid = visits[0].recipe, _joint_grid([v.recipe.grid for v in visits])
        chunks = [(array_name, grid.index(chunk)) for chunk in range(grid.n_chunks)]
        frames, nbytes = _sizes(recipe, grid)
        work.frames.update(zip(chunks, frames, strict=True))
        work.nbytes.update(zip(chunks, nbytes, strict=True))
        for visit in visits:
            index = visit.recipe.grid.index
            work.chunk_of.update({k: (array_name, index(c)) for k, c in visit.chunks.items()})
    return work


def _visits(results: Any) -> dict[tuple[str, int], list[ChunkLayerInfo]]:
    """Return the visits of all layers in graphs, by array and number of scan axes."""
    collections, _ = base.unpack_collections(results)
    layers: dict[str, Any] = {}
    for collection in collections:
        layers.update(getattr(collection.__dask_graph__(), "layers", {}))
    by_data: dict[tuple[str, int], list[ChunkLayerInfo]] = {}
    for layer in layers.values():
        if isinstance(layer, (ChunkBlockwise, ChunkTasks)):
            visits = layer.info
            # two runs with different numbers of scan axes have different frames
            data = (visits.array_name, len(visits.recipe.grid.shape))
            by_data.setdefault(data, []).append(visits)
    return by_data


def _joint_grid(grids: list[Grid]) -> Grid:
    """Return the grid of all frames that at least one of some grids of the same data selects."""
    rois = [grid.roi for grid in grids if grid.roi is not None]
    if len(rois) < len(grids):
        return replace(grids[0], roi=None)
    return replace(grids[0], roi=np.logical_or.reduce(rois))


def _sizes(recipe: Recipe, grid: Grid) -> tuple[list[int], list[int]]:
    """Return the number of selected frames and the size in bytes of each chunk of a grid."""
    frame = recipe.shape.sig.size * recipe.dtype.itemsize
    nbytes = [frames * frame for frames in grid.loaded.tolist()]
    return grid.counts.tolist(), nbytes
