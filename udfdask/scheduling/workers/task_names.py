"""Describe tasks by the UDFs that they run and their chunks, for messages about single tasks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dask import base

from udfdask.graph.chunk_layers import ChunkBlockwise, ChunkLayerInfo, ChunkTasks
from udfdask.plan.recipe import Recipe

_LONGEST_NAME = 115
"""dask cuts the joined name of a fused task after this many letters, and adds a hash."""

_STAGES = {
    "merge": "merge of {udf}",
    "finish": "{udf}.get_results",
    "rows": "results of {udf}",
    "part": "partial results of {udf}",
}
"""Tasks of a single UDF after the chunks, by the stage in the names of their layers."""


class TaskNames:
    """Finds the UDFs and the chunk of a task of dask collections, or of layers by name.

    Nothing is listed before the first task is described: only errors need it.
    """

    def __init__(self, collections: Any = (), layers: Mapping[str, Any] | None = None) -> None:
        self._collections = collections
        self._layers = layers
        self._infos: dict[str, ChunkLayerInfo] | None = None

    def use(self, layers: Mapping[str, Any]) -> None:
        """Use other layers from now on."""
        self._layers, self._infos = layers, None

    def describe(self, key: Any) -> str:
        """Return the UDFs and the chunk of a task in words; other tasks keep dask's name."""
        if self._infos is None:
            self._infos = self._list()
        name, *place = key if isinstance(key, tuple) else (key,)
        for layer_name, info in self._infos.items():
            found = _of_layer(info, layer_name, str(name), tuple(place))
            if found:
                return found
        return f"task {key!r}"

    def _list(self) -> dict[str, ChunkLayerInfo]:
        """Return what the chunk tasks of each layer process."""
        layers = dict(self._layers or {})
        for collection in base.unpack_collections(self._collections)[0]:
            layers |= getattr(collection.__dask_graph__(), "layers", {})
        kinds = (ChunkBlockwise, ChunkTasks)
        return {name: layer.info for name, layer in layers.items() if isinstance(layer, kinds)}


def _of_layer(
    info: ChunkLayerInfo, layer_name: str, name: str, place: tuple[Any, ...]
) -> str | None:
    """Return a task in words if it belongs to the run of a layer; else None."""
    recipe = info.recipe
    numbers = range(len(recipe.udfs)) if info.group is None else info.group.numbers
    udfs = " and ".join(dict.fromkeys(recipe.udfs[k].name for k in numbers))
    if _ends_with(name, layer_name):
        chunk = info.chunks.get((layer_name, *place))
        if chunk is None:
            return None
        return f"{udfs} on {_chunk_in_words(recipe, recipe.grid.index(chunk))}"
    n_nav = len(recipe.grid.shape)
    if _ends_with(name, info.array_name) and len(place) >= n_nav:
        chunk = recipe.grid.chunk_at(place[:n_nav])
        # else another run needs this block
        if chunk < recipe.grid.n_chunks and recipe.grid.index(chunk) == place[:n_nav]:
            return f"loading of {_chunk_in_words(recipe, recipe.grid.index(chunk))} for {udfs}"
    stage = re.search(rf"-([a-z]+)-{re.escape(recipe.token)}(?:_(\d+))?$", name)
    if stage is None:
        return None
    if stage[1] == "load" and len(place) == n_nav:
        return f"{udfs} on the middle of {_chunk_in_words(recipe, place)}"
    if stage[1] == "join":
        return f"{udfs} on {_chunk_in_words(recipe, recipe.grid.index(place[0]))}"
    words = _STAGES.get(stage[1])
    return words.format(udf=recipe.udfs[int(stage[2])].name) if words and stage[2] else None


def _chunk_in_words(recipe: Recipe, index: tuple[int, ...]) -> str:
    """Return the index of a chunk, and its slices of the navigation axes."""
    start, shape = recipe.grid.bounds_at(index)
    slices = ", ".join(f"{a}:{a + n}" for a, n in zip(start, shape, strict=True))
    return f"chunk {index}, navigation [{slices}]"


def _ends_with(name: str, layer: str) -> bool:
    """Return whether a task belongs to a layer, or has been fused with what it reads.

    dask joins the names of fused tasks, the last one at the end.
    """
    if name == layer or name.endswith(f"-{layer}"):
        return True
    if len(name) < _LONGEST_NAME:
        return False
    joined = name[:_LONGEST_NAME]
    # a name that ends before its token could belong to any run of the same UDFs
    least = layer.rfind("-") + 4
    return any(joined.endswith(f"-{layer[:n]}") for n in range(least, len(layer)))
