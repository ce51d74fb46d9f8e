"""Sends heavy recipes to a cluster once, instead of with every task."""

from __future__ import annotations

from typing import Any

from dask.highlevelgraph import HighLevelGraph, MaterializedLayer

from udfdask.chunk_layers import ChunkBlockwise, ChunkTasks
from udfdask.config import scatter_bytes
from udfdask.recipe import Recipe


def scatter_recipes(graph: HighLevelGraph, client: Any, sent: dict[int, Any]) -> HighLevelGraph:
    """Return a graph in which recipes that are heavy on the wire are futures of a cluster.

    A scheduler hands each task to a worker by itself, the recipe with it. `sent` remembers the
    futures of recipes that other graphs hold too.
    """
    limit = scatter_bytes()
    layers: dict[str, Any] = dict(graph.layers)
    for name, layer in graph.layers.items():
        if isinstance(layer, ChunkBlockwise):
            recipe: Any = layer.recipe
        else:
            tasks = layer.mapping if isinstance(layer, MaterializedLayer) else {}
            first = next(iter(tasks.values()), None)
            recipe = next((a for a in getattr(first, "args", ()) if isinstance(a, Recipe)), None)
        if recipe is None or recipe.nbytes < limit:
            continue
        if id(recipe) not in sent:
            sent[id(recipe)] = scattered(recipe, client)
        future = sent[id(recipe)]
        if isinstance(layer, ChunkBlockwise):
            layers[name] = layer.as_tasks(future)
            continue
        light = {
            key: type(t)(key, t.func, *(future if a is recipe else a for a in t.args))
            for key, t in tasks.items()
        }
        if isinstance(layer, ChunkTasks):
            layers[name] = ChunkTasks(light, layer.visits)
        else:
            layers[name] = MaterializedLayer(light)
    if all(layers[n] is layer for n, layer in graph.layers.items()):
        return graph
    return HighLevelGraph(layers, graph.dependencies)


def scattered(recipe: Recipe, client: Any) -> Any:
    """Return a recipe as a future of a cluster; as it is where there is no worker to hold it.

    A cluster waits for a worker then, but an adaptive one starts none for data alone.
    """
    return client.scatter(recipe, hash=False) if client.nthreads() else recipe
