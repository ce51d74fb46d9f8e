"""Arrays over graphs, loaded again, and their blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from dask._task_spec import DataNode, GraphNode
from dask.array.core import Array as GraphArray
from dask.array.core import concatenate3
from dask.base import clone_key
from dask.graph_manipulation import clone
from dask.highlevelgraph import HighLevelGraph
from dask.highlevelgraph import MaterializedLayer as TaskLayer

__all__ = ["GraphArray"]


def loaded_again(array: Any, seed: str) -> GraphArray:
    """Return the same data from tasks with other names, which follow from the seed.

    dask's `clone` does not rename the inputs of tasks that are listed one by one, such as those of
    slices and of a rechunk. They would be read in the first pass, or be missing if that does not
    need them.
    """
    twin = clone(array, seed=seed)
    layers = {
        name: _with_cloned_inputs(layer, seed) if type(layer) is TaskLayer else layer
        for name, layer in twin.dask.layers.items()
    }
    graph = HighLevelGraph(layers, twin.dask.dependencies)
    return GraphArray(graph, twin.name, twin.chunks, meta=twin._meta)


def _with_cloned_inputs(layer: Mapping[Any, Any], seed: str) -> TaskLayer:
    """Return a cloned layer whose tasks have their new key and read cloned tasks."""
    tasks = {
        key: task.substitute({need: clone_key(need, seed) for need in task.dependencies}, key)
        if isinstance(task, GraphNode)
        else task
        for key, task in layer.items()
    }
    return TaskLayer(tasks)


def blocks_in_memory(array: Any) -> Mapping[Any, Any] | None:
    """Return the blocks of an array if they are in its graph as data; else None."""
    layer: Any = array.dask.layers[array.name]
    if not isinstance(layer, TaskLayer):
        return None
    # the layer of random numbers, for example, has data and tasks that read them
    all_data = all(isinstance(block, (np.ndarray, DataNode)) for block in layer.values())
    return layer.mapping if all_data else None


def join_blocks(blocks: Any) -> Any:
    """Return one array from nested lists of blocks, of any array type that dask knows."""
    return concatenate3(blocks)
