"""Find runs in the graphs of collections, name their partial results, and look these up.

Names are equal for equal data, UDF, parameters, code and chunk, in every process.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import dask.array as da
import numpy as np
from dask.base import is_dask_collection
from dask.highlevelgraph import HighLevelGraph

from udfdask.backends.backend import NUMPY, DenseBackend
from udfdask.base.names.naming import UnnamedError
from udfdask.base.names.origins import versions
from udfdask.base.targets import store_root
from udfdask.errors import ArgumentValueError
from udfdask.geometry.chunk_grid import BoolArray
from udfdask.graph.chunk_layers import ChunkBlockwise, ChunkLayerInfo, ChunkTasks
from udfdask.graph.dask_internals.layers import TaskLayer
from udfdask.graph.inputs import data_files
from udfdask.graph.run_layers import layer_name
from udfdask.plan.merge_tree import Merge
from udfdask.plan.recipe import DESCAN, Recipe
from udfdask.scheduling.records.data_names import DataNames
from udfdask.scheduling.records.folder import can_store
from udfdask.udf import UDF

_DEPTHS = ("depth", "gathered_depth", "frame_depth")
"""The fields of a tiling that depend on the largest chunk of a run."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run of UDFs, found in the graphs of collections."""

    layers: Mapping[str, Any]
    """All layers of the graphs in which it was found."""
    dependencies: Mapping[str, set[str]]
    """Names of the layers that each depends on."""
    chunk_layers: dict[str, ChunkLayerInfo]
    """Its chunk tasks: one layer for each group of UDFs."""

    @property
    def recipe(self) -> Recipe:
        """Its recipe."""
        return next(iter(self.chunk_layers.values())).recipe

    @property
    def aux(self) -> tuple[Any, ...]:
        """Values of each of `recipe.aux_slots`."""
        values: list[Any] = [None] * len(self.recipe.aux_slots)
        for info in self.chunk_layers.values():
            for place, (number, _) in enumerate(self.recipe.aux_slots):
                if number == DESCAN or number in info.numbers:
                    values[place] = info.aux[place]
        return tuple(values)

    def array(self) -> da.Array:
        """Return the data."""
        info, recipe = next(iter(self.chunk_layers.values())), self.recipe
        if info.blocks is None:
            graph = HighLevelGraph(self.layers, self.dependencies).cull_layers([info.array_name])
        else:
            graph = HighLevelGraph(
                {info.array_name: TaskLayer(info.blocks)}, {info.array_name: set()}
            )
        chunks = (*recipe.grid.nav_chunks, *recipe.sig_chunks)
        return da.Array(graph, info.array_name, chunks, dtype=recipe.dtype)

    def needs(self, number: int) -> bool:
        """Return whether the graph needs the partial results of a UDF."""
        recipe, udf = self.recipe, self.recipe.udfs[number]
        if not recipe.grid.n_chunks:
            return False
        has_chunks = any(number in info.numbers for info in self.chunk_layers.values())
        is_merged = udf.merge.mode != "none" and bool(udf.outputs)
        return has_chunks and (not is_merged or layer_name(recipe, "merge", number) in self.layers)


def find_runs(collections: Iterable[Any]) -> list[Run]:
    """Return the runs in the graphs of dask collections; none of those that dask has optimized."""
    layers: dict[str, Any] = {}
    dependencies: dict[str, set[str]] = {}
    for collection in collections:  # results of a run have different layers after the chunks
        graph = collection.__dask_graph__()
        layers |= getattr(graph, "layers", {})
        dependencies |= getattr(graph, "dependencies", {})
    found: dict[str, dict[str, ChunkLayerInfo]] = {}
    for name, layer in layers.items():
        if isinstance(layer, (ChunkBlockwise, ChunkTasks)):
            info = layer.info
            found.setdefault(info.recipe.token, {})[name] = info
    return [
        Run(layers=layers, dependencies=dependencies, chunk_layers=infos)
        for infos in found.values()
    ]


def names_of(run: Run, names: DataNames) -> tuple[str, list[str]]:
    """Return the names of the data and of all UDFs of a run; raise if it cannot be stored."""
    recipe, array = run.recipe, run.array()
    for udf in recipe.udfs:
        specs: list[tuple[str, Any]] = [*udf.allocated.items(), *udf.aux.items()]
        for name, spec in specs:
            if not can_store(spec.dtype):
                raise ArgumentValueError(
                    f"{udf.name} has {name!r} of dtype {spec.dtype}, which cannot be stored on disk"
                )
        if udf.cls._targets is not UDF._targets:
            raise ArgumentValueError(
                f"{udf.name} writes a file itself, which partial results do not contain"
            )
    what, remedy = "the data", "Open files with udfdask.io.open_file"
    try:
        lazy = [recipe.lazy_value(*slot) for slot in recipe.lazy_slots]
        lazy += [values for values in run.aux if is_dask_collection(values)]
        # all files of a zarr store count, not only its metadata
        paths = {store_root(Path(path)) for path in data_files(array, *lazy)}
        files = [(str(path), names.status(path)) for path in sorted(paths)]
        data = names.of_value((names.with_outside(lambda: names.name(array)), files))
        remedy, udfs = "Pass parameters that can be pickled", []
        for number, udf in enumerate(recipe.udfs):
            what = udf.name
            make = partial(_udf_name, recipe, number, run.aux, names.of_value)
            udfs.append(names.with_outside(make))
    except UnnamedError as error:
        thing = error.thing
        if not isinstance(thing, str):
            thing = f"a {type(thing).__module__}.{type(thing).__qualname__}"
        raise ArgumentValueError(
            f"cannot recognize {what}: {thing[:80]} has no name that is the same in every process. "
            f"{remedy}"
        ) from None
    return data, udfs


@dataclass(frozen=True, slots=True)
class Saved:
    """Where the partial result of a UDF is kept."""

    name: str
    """Name of its record."""
    on_device: tuple[tuple[str, DenseBackend], ...] = ()
    """Array backend of the buffers that are on a device."""
    of_run: str = ""
    """End of the name if the UDF looked beyond the chunk; empty for merges."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names that it can have: valid for any ROI, or for that of the run."""
        return (self.name, self.name + self.of_run) if self.of_run else (self.name,)


@dataclass(slots=True, eq=False)
class Node:
    """A partial result in the merge tree of a UDF: of one chunk, or merged."""

    saved: Saved
    """Where it is kept."""
    first: int
    """The first chunk."""
    stop: int
    """The chunk after the last one."""
    sources: Sequence[Node] = ()
    """The partial results that are merged."""
    has_rows: bool = False
    """Whether it has nav rows of the result, which are in no later merge."""
    wanted: bool = False
    """Whether the run needs it."""
    action: Literal["compute", "read", "nothing"] = "nothing"
    """How the run gets it."""

    @property
    def superfluous(self) -> tuple[str, ...]:
        """Names of the records that nobody needs after this merge."""
        without_rows = (source for source in self.sources if not source.has_rows)
        return tuple(name for source in without_rows for name in source.saved.names)


@dataclass(frozen=True, slots=True)
class Lookup:
    """The partial results of a UDF in a run."""

    chunks: list[Node]
    """Those of the chunks."""
    merges: dict[tuple[int, int], Node]
    """Those of merges, by level and place, in the order in which they are made."""


def look_up(
    recipe: Recipe, number: int, data: str, udf: str, stored: Callable[[str], bool]
) -> Lookup:
    """Return the partial results of a UDF, and what the run does about each of them.

    `data` and `udf` are names; `stored` tells whether there is a record of a name.
    Names of chunks depend on the ROI inside of the chunk, with a halo on all frames that can be
    neighbors. If the UDF looked beyond the chunk while it ran, the name of the run follows.
    """
    declared, grid, udf = recipe.udfs[number], recipe.grid, _digest("UDF", udf, versions())
    backend = recipe.merge_backend(number)
    backends = ((name, spec.backend(backend)) for name, spec in declared.allocated.items())
    on_device = tuple((name, dense) for name, dense in backends if dense != NUMPY)
    tilings = (recipe.tiling, recipe.sparse_tiling)
    of_run = f"-{_digest('run', _packed(grid.roi), _packed(grid.present), tilings)}"
    # The rows of a chunk are contiguous or not, depending on frames around the chunk.
    always = of_run if recipe.contiguous_nav and grid.roi is not None else ""
    usable = None if declared.halo is None else _packed(grid.usable(declared.halo.in_roi))
    depths = [getattr(tiling, name) for tiling in tilings for name in _DEPTHS]

    def chunk(k: int) -> Node:
        # a tile that may have more frames than the chunk has all of them
        tiles = [min(depth, grid.count(k)) for depth in depths]
        part = (grid.bounds(k), _packed(grid.mask(k)), tiles, always)
        return Node(Saved(_digest("chunk", data, udf, usable, *part), on_device, of_run), k, k + 1)

    def merge(step: Merge, sources: Sequence[Node]) -> Node:
        before = [source.saved.name for source in sources]
        name = _digest("merge", udf, of_run, declared.merge.mode, step.checked, before)
        first = sources[-1 if declared.merge.mode == "chain" else 0].first
        node = Node(Saved(name, on_device), first, sources[-1].stop, sources)
        merges[step.level, step.place] = node
        return node

    chunks, merges = [chunk(k) for k in range(grid.n_chunks)], dict[tuple[int, int], Node]()
    rows, last = declared.merge.apply(chunks, merge)
    for node in rows:
        node.has_rows = node.wanted = declared.has_nav or not declared.has_reduced
    if last is not None:
        last.wanted = True
    for node in reversed([*chunks, *merges.values()]):  # sources come earlier
        if not node.wanted:
            continue
        found = next(filter(stored, node.saved.names), None)
        if found is not None:
            node.action, node.saved = "read", Saved(found, on_device)
            continue
        node.action = "compute"
        for source in node.sources:
            source.wanted = True
    return Lookup(chunks, merges)


def _udf_name(
    recipe: Recipe, number: int, aux: Sequence[Any], name_of: Callable[[Any], str]
) -> str:
    """Return the name of a UDF in a run; chunks, ROI and versions are not part of it.

    `aux` holds the values of each of `recipe.aux_slots`.
    """
    udf = recipe.udfs[number]
    # All fields, so that a new one cannot be forgotten. Numbers of chunks are in the merge trees.
    # The sums that UDFs share do not depend on which other UDFs share them, see `TileSums`. The
    # depth of tiles depends on the ROI: `look_up` adds it.
    nothing: Any = None
    no_depths: Any = dict.fromkeys(_DEPTHS, 0)
    alone = replace(
        recipe,
        grid=nothing,
        tiling=replace(recipe.tiling, **no_depths),
        sparse_tiling=replace(recipe.sparse_tiling, **no_depths),
        udfs=(replace(udf, merge=nothing, progressive_merge=nothing),),
        summed=(0,) if number in recipe.summed else (),
        token="",
    )
    # other UDFs of the run decide these: how rows are cut into tiles
    together = (recipe.contiguous_nav, sorted({u.backend.dense.name for u in recipe.udfs}))
    ours = (number, DESCAN)
    values = [v for (k, _), v in zip(recipe.aux_slots, aux, strict=True) if k in ours]
    return name_of((alone, udf.merge.mode, udf.carries_aux, together, values))


def _packed(mask: BoolArray | None) -> bytes | None:
    """Return a mask as bytes, with one bit per frame."""
    return None if mask is None else np.packbits(mask).tobytes()


def _digest(*parts: Any) -> str:
    """Return a hash of plain values."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()
