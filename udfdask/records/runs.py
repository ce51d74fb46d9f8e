"""Find runs in the graphs of collections, and name their data and UDFs.

The names are the same in every process, so that other processes find the partial results.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from dask.base import is_dask_collection
from dask.highlevelgraph import HighLevelGraph

from udfdask.errors import ArgumentValueError
from udfdask.graph.chunk_layers import ChunkBlockwise, ChunkLayerInfo, ChunkTasks
from udfdask.graph.dask_internals.arrays import GraphArray
from udfdask.graph.dask_internals.layers import TaskLayer
from udfdask.graph.inputs import data_files
from udfdask.graph.result_tasks import layers_of
from udfdask.graph.run_layers import layer_name
from udfdask.names.naming import UnnamedError
from udfdask.plan.recipe import DESCAN, Recipe
from udfdask.records.data_names import DataNames, FileStatus
from udfdask.records.lookup import udf_name, with_versions
from udfdask.records.record_file import can_store
from udfdask.udf import UDF
from udfdask.writing.stores import store_root

RUN = "udfdask_run"
"""Attribute of a file or store that a run with ``resume`` has written: the name of the run."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run of UDFs, found in the graphs of collections."""

    layers: Mapping[str, Any]
    """All layers of the graph in which it was found."""
    dependencies: Mapping[str, Iterable[str]]
    """Names of the layers that each depends on."""
    chunk_layers: dict[str, ChunkLayerInfo]
    """Its chunk tasks: one layer for each group of UDFs."""

    @property
    def info(self) -> ChunkLayerInfo:
        """Its first layer of chunk tasks."""
        return next(iter(self.chunk_layers.values()))

    @property
    def recipe(self) -> Recipe:
        """Its recipe."""
        return self.info.recipe

    @property
    def aux(self) -> tuple[Any, ...]:
        """Values of each of `recipe.aux_slots`."""
        values: list[Any] = [None] * len(self.recipe.aux_slots)
        for info in self.chunk_layers.values():
            for place, (number, _) in enumerate(self.recipe.aux_slots):
                if number == DESCAN or number in info.numbers:
                    values[place] = info.aux[place]
        return tuple(values)

    @cached_property
    def array(self) -> GraphArray:
        """The data."""
        name, recipe = self.info.array_name, self.recipe
        if self.info.blocks is None:
            graph = layers_of(self.layers, self.dependencies, [name])
        else:
            graph = HighLevelGraph({name: TaskLayer(self.info.blocks)}, {name: set()})
        chunks = (*recipe.grid.nav_chunks, *recipe.sig_chunks)
        return GraphArray(graph, name, chunks, dtype=recipe.dtype)

    def needs(self, number: int) -> bool:
        """Return whether the graph needs the partial results of a UDF."""
        recipe = self.recipe
        if recipe.grid.n_chunks == 0:
            return False
        has_chunks = any(number in info.numbers for info in self.chunk_layers.values())
        if recipe.udfs[number].merge.mode == "none" or not recipe.udfs[number].outputs:
            return has_chunks
        return has_chunks and layer_name(recipe, "merge", number) in self.layers


def find_runs(collections: Iterable[Any]) -> list[Run]:
    """Return the runs in the graphs of dask collections; none of those that dask has optimized."""
    found: dict[str, Run] = {}
    for collection in collections:
        graph = collection.__dask_graph__()
        for name, layer in getattr(graph, "layers", {}).items():
            if not isinstance(layer, (ChunkBlockwise, ChunkTasks)):
                continue
            info = layer.info
            token = info.recipe.token
            before = found.get(token)
            # several results of a run have different layers after the chunks
            found[token] = Run(
                layers={**(before.layers if before else {}), **graph.layers},
                dependencies={**(before.dependencies if before else {}), **graph.dependencies},
                chunk_layers={**(before.chunk_layers if before else {}), name: info},
            )
    return list(found.values())


def names_of(run: Run, names: DataNames) -> tuple[str, list[str]]:
    """Return the names of the data and of all UDFs of a run; raise if it cannot be stored."""
    recipe = run.recipe
    _check_storable(recipe)
    try:
        data = names.with_outside(lambda: names.name(run.array))
        used = [(str(path), status) for path, status in _files(run, names).items()]
        data = names.of_value((data, used))
    except UnnamedError as error:
        raise ArgumentValueError(
            f"cannot recognize the data: they depend on {_short(error.thing)}, which has no name "
            "that is the same in every process. Open files with udfdask.io.open_file"
        ) from None
    udfs = []
    for number, udf in enumerate(recipe.udfs):
        try:
            made = partial(udf_name, recipe, number, run.aux, names.of_value)
            udfs.append(names.with_outside(made, udf.kwargs))
        except UnnamedError as error:
            raise ArgumentValueError(
                f"cannot recognize {udf.name}: it depends on {_short(error.thing)}, which has no "
                "name that is the same in every process. Pass parameters that can be pickled"
            ) from None
    return data, udfs


def name_of_runs(runs: Sequence[Run], more: Any) -> str:
    """Return a name of runs, the same in every process; empty without runs.

    `more` is what else the name depends on. Raise an ArgumentValueError as `names_of`.
    """
    names = DataNames()
    found = []
    for run in runs:
        data, udfs = names_of(run, names)
        grid = run.recipe.grid
        frames = [None if mask is None else np.asarray(mask) for mask in (grid.roi, grid.present)]
        found.append((data, [with_versions(udf) for udf in udfs], frames))
    return names.of_value((found, more)) if found else ""


def _check_storable(recipe: Recipe) -> None:
    """Raise if the partial results of a UDF cannot be stored, or are not all that it makes."""
    for udf in recipe.udfs:
        dtypes = [(name, spec.dtype) for name, spec in udf.allocated.items()]
        dtypes += [(name, aux.dtype) for name, aux in udf.aux.items()]
        for name, dtype in dtypes:
            if not can_store(dtype):
                raise ArgumentValueError(
                    f"{udf.name} has {name!r} of dtype {dtype}, which cannot be stored on disk"
                )
        if udf.cls._targets is not UDF._targets:
            raise ArgumentValueError(
                f"{udf.name} writes a file itself, which partial results do not contain"
            )


def _files(run: Run, names: DataNames) -> dict[Path, FileStatus]:
    """Return the files that the data come from."""
    recipe = run.recipe
    lazy = [recipe.lazy_value(*slot) for slot in recipe.lazy_slots]
    lazy += [values for values in run.aux if is_dask_collection(values)]
    # all files of a zarr store count, not only its metadata
    paths = {store_root(Path(path)) for path in data_files(run.array, *lazy)}
    return {path: names.status(path) for path in sorted(paths)}


def _short(value: Any) -> str:
    """Return a short text for a value."""
    if isinstance(value, str):
        return value if len(value) < 80 else f"{value[:77]}..."
    return f"a {type(value).__module__}.{type(value).__qualname__}"
