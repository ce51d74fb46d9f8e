"""Name the records of a run, and decide what it reads and what it computes.

Names are equal for equal data, UDF, parameters, code and chunk, in every process. A merge needs its
sources only if it is not stored itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from udfdask.backends.backend import NUMPY, DenseBackend
from udfdask.geometry.chunk_grid import BoolArray
from udfdask.names.origins import versions
from udfdask.plan.merge_tree import Merge
from udfdask.plan.recipe import DESCAN, Recipe

_DEPTHS = ("depth", "gathered_depth", "frame_depth")
"""The fields of a tiling that depend on the largest chunk of a run."""

NameOf = Callable[[Any], str]
"""Returns the name of any value, dask collections included; raises an UnnamedError."""

Action = Literal["compute", "read", "nothing"]


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
    action: Action = "nothing"
    """How the run gets it."""

    def decide(self, stored: Callable[[str], bool]) -> None:
        """Choose the action, and tell the sources whether they are needed."""
        if not self.wanted:
            return
        found = next(filter(stored, self.saved.names), None)
        if found is not None:
            self.saved = Saved(found, self.saved.on_device)
            self.action = "read"
            return
        self.action = "compute"
        for source in self.sources:
            source.wanted = True

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

    def decide(self, stored: Callable[[str], bool]) -> None:
        """Choose the action of each node; `stored` tells whether there is a record of a name."""
        for node in reversed([*self.chunks, *self.merges.values()]):
            node.decide(stored)


def look_up(recipe: Recipe, number: int, data: str, udf: str) -> Lookup:
    """Return the partial results of a UDF; `data` and `udf` are names of the data and the UDF."""
    declared, grid, udf = recipe.udfs[number], recipe.grid, with_versions(udf)
    backend = recipe.merge_backend(number)
    backends = ((name, spec.backend(backend)) for name, spec in declared.allocated.items())
    on_device = tuple((name, dense) for name, dense in backends if dense != NUMPY)
    names = ChunkNames(data, udf, number, recipe)
    chunks = [
        Node(Saved(names.name(c), on_device, names.of_run), c, c + 1) for c in range(grid.n_chunks)
    ]
    merges: dict[tuple[int, int], Node] = {}
    mode = declared.merge.mode

    def merge(step: Merge, sources: Sequence[Node]) -> Node:
        before = [source.saved.name for source in sources]
        name = merge_name(udf, names.of_run, mode, step.checked, before)
        first = sources[-1 if mode == "chain" else 0].first
        node = Node(Saved(name, on_device), first, sources[-1].stop, sources)
        merges[step.level, step.place] = node
        return node

    rows, last = declared.merge.apply(chunks, merge)
    for node in rows:
        node.has_rows = node.wanted = declared.has_nav or not declared.has_reduced
    if last is not None:
        last.wanted = True
    return Lookup(chunks, merges)


def udf_name(recipe: Recipe, number: int, aux: Sequence[Any], name_of: NameOf) -> str:
    """Return the name of a UDF in a run; chunks, ROI and versions are not part of it.

    `aux` holds the values of each of `recipe.aux_slots`.
    """
    udf = recipe.udfs[number]
    # All fields, so that a new one cannot be forgotten. Numbers of chunks are in the merge trees.
    # The sums that UDFs share do not depend on which other UDFs share them, see `TileSums`. The
    # depth of tiles depends on the ROI: `ChunkNames` adds it.
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


def with_versions(udf: str) -> str:
    """Return the name of a UDF together with the versions of the packages that run it."""
    return _digest("UDF", udf, versions())


class ChunkNames:
    """Names of the partial results of a UDF over the chunks of a run.

    They depend on the part of the ROI in the chunk only, so that they are valid for other ROIs too;
    those of a UDF with a halo also on all frames that can be neighbors. If the UDF looked beyond
    the chunk while it ran, the name of its record is followed by `of_run`.
    """

    def __init__(self, data: str, udf: str, number: int, recipe: Recipe) -> None:
        self._recipe = recipe
        roi, halo = recipe.grid.roi, recipe.udfs[number].halo
        usable = None if halo is None else _packed(recipe.grid.usable(halo.in_roi))
        self._start = ("chunk", data, udf, usable)
        all_frames = [_packed(mask) for mask in (roi, recipe.grid.present)]
        tilings = (recipe.tiling, recipe.sparse_tiling)
        self.of_run = f"-{_digest('run', all_frames, tilings)}"
        # The rows of a chunk are contiguous or not, depending on frames around the chunk.
        self._always = self.of_run if recipe.contiguous_nav and roi is not None else ""
        self._depths = [getattr(tiling, name) for tiling in tilings for name in _DEPTHS]

    def name(self, chunk: int) -> str:
        """Return the name of a chunk."""
        grid = self._recipe.grid
        mask, n_rows = grid.mask(chunk), grid.count(chunk)
        part = b"" if mask is None else np.packbits(mask).tobytes()
        # a tile that may have more frames than the chunk has all of them
        depths = [min(depth, n_rows) for depth in self._depths]
        return _digest(*self._start, grid.bounds(chunk), part, depths, self._always)


def _packed(mask: BoolArray | None) -> bytes | None:
    """Return a mask as bytes, with one bit per frame."""
    return None if mask is None else np.packbits(mask).tobytes()


def merge_name(udf: str, of_run: str, mode: str, checked: bool, sources: Sequence[str]) -> str:
    """Return the name of a merge of partial results, which belongs to one ROI."""
    return _digest("merge", udf, of_run, mode, checked, list(sources))


def _digest(*parts: Any) -> str:
    """Return a hash of plain values."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()
