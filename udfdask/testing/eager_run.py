"""Run the engine over a NumPy array without dask, so that each stage can be inspected or changed.

`check_udf` uses this run, which calls the functions of `chunk` and `merge` that tasks call: 1 ms a
run where dask needs 10 ms, and a check makes hundreds of runs. `udfdask.testing.reference` takes
the recipe and the instances of UDFs from the same functions, but computes everything itself.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from udfdask.backends.backend import NUMPY, Backend
from udfdask.backends.table import to_backend
from udfdask.chunk.neighborhoods.run_with_halo import LoadedChunk, finish_chunk, load_chunk
from udfdask.chunk.partial_result import Partial
from udfdask.chunk.run_chunk import run_chunk
from udfdask.chunk.udf_instance import Instance
from udfdask.geometry.halo import Box
from udfdask.geometry.seams import box_of, neighbors
from udfdask.geometry.tiling import TILE_BYTES
from udfdask.merge.finalize import finalize
from udfdask.merge.merge import merge_partials
from udfdask.plan.merge_tree import MergeTree
from udfdask.plan.recipe import UDFRecipe
from udfdask.testing.recipes import make_recipe
from udfdask.types import AnyArray
from udfdask.udf import UDF
from udfdask.udf.base import overrides

Chunks = tuple[tuple[int, ...], ...]
"""Chunk sizes along each axis, as dask has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """One way to divide a dataset and to run UDFs over it."""

    nav_chunks: Chunks | None = None
    """Chunk sizes along each navigation axis, in frames; None for one chunk."""
    sig_chunks: Chunks | None = None
    """Chunk sizes along each signal axis, in pixels; None for one chunk."""
    tile_bytes: int = TILE_BYTES
    """Largest size of a tile in bytes."""
    roi: AnyArray | None = None
    """Region of interest, shape `nav`; None for all frames."""
    fan_in: int | bool = 8
    """Fan-in of merge trees; False for a merge in one step."""
    backend: Backend | None = None
    """The only array backend of the run; chunks have it too, unless it is a matrix type."""

    def __str__(self) -> str:
        words = ["one chunk" if self.nav_chunks is None else f"chunks {self.nav_chunks}"]
        if self.sig_chunks is not None:
            words.append(f"signal chunks {self.sig_chunks}")
        if self.tile_bytes != TILE_BYTES:
            words.append(f"tiles of {self.tile_bytes} bytes")
        if self.fan_in != 8:
            words.append(f"split_every={self.fan_in}")
        return ", ".join(words)


ONE_CHUNK = Layout()
"""The whole dataset as one chunk."""


class EagerRun:
    """A run of the engine over the chunks of an array; merges and results are made on request."""

    def __init__(self, udf: UDF, data: AnyArray, sig_dims: int, layout: Layout = ONE_CHUNK) -> None:
        self.layout = layout
        self.data = data
        self.recipe = make_recipe(
            [udf],
            shape=data.shape,
            dtype=data.dtype,
            sig_dims=sig_dims,
            nav_chunks=layout.nav_chunks,
            sig_chunks=layout.sig_chunks,
            roi=layout.roi,
            tile_bytes=layout.tile_bytes,
            split_every=layout.fan_in,
            backends=None if layout.backend is None else (layout.backend,),
        )
        aux = (name for _, name in self.recipe.aux_slots)
        self._aux = [udf._kwargs[name].over(self.recipe.shape) for name in aux]
        self._load = functools.cache(self._load_chunk)
        self.partials = [self._run(chunk) for chunk in range(self.recipe.grid.n_chunks)]
        """Partial results of the chunks, in navigation order."""

    @property
    def declared(self) -> UDFRecipe:
        """The declarations of the UDF."""
        return self.recipe.udfs[0]

    def _run(self, chunk: int) -> Partial:
        """Return the partial result of one chunk."""
        grid, halos = self.recipe.grid, self.recipe.halos([0])
        index = grid.index(chunk)
        bounds = box_of(grid, index)
        if halos:
            others = neighbors(halos, chunk, grid)
            margins = {other: self._load(other).margins[chunk] for other in others}
            around = [
                {k: _cut(values, box_of(grid, k)) for k in (index, *others)} for values in self._aux
            ]
            done = finish_chunk(self.recipe, chunk, self._load(index), margins, around)
        else:
            done = run_chunk(self.recipe, chunk, self._blocks(bounds), self._aux_of(bounds))
        assert done[0] is not None  # only runs with several groups of UDFs have None
        return done[0]

    def _load_chunk(self, index: tuple[int, ...]) -> LoadedChunk:
        """Return what is left of a chunk after it was loaded."""
        grid, halos = self.recipe.grid, self.recipe.halos([0])
        needed_by = [c for c in range(grid.n_chunks) if index in neighbors(halos, c, grid)]
        bounds = box_of(grid, index)
        blocks, aux = self._blocks(bounds), self._aux_of(bounds)
        return load_chunk(self.recipe, index, needed_by, blocks, aux)

    def _aux_of(self, bounds: Box) -> list[AnyArray]:
        """Return the aux data of a chunk, given by its positions."""
        return [_cut(values, bounds) for values in self._aux]

    def _blocks(self, bounds: Box) -> list[Any]:
        """Return the blocks of a chunk, given by its positions, in C order of the signal chunks."""
        frames: Any = _cut(self.data, bounds)
        cuts = [
            [slice(stop - n, stop) for n, stop in zip(c, itertools.accumulate(c), strict=True)]
            for c in self.recipe.sig_chunks
        ]
        backend = self.layout.backend
        native = NUMPY if backend is None or backend.is_matrix else backend
        blocks = (frames[(..., *window)] for window in itertools.product(*cuts))
        return [to_backend(block, native, block.shape) for block in blocks]

    def fresh_buffers(self) -> dict[str, AnyArray]:
        """Return the buffers into which the first partial result is merged."""
        first = self.partials[0]
        instance = Instance(self.recipe, 0, first.first, first.stop, first.aux)
        if self.declared.merge.mode != "all" and overrides(instance.udf, "preprocess"):
            instance.call("preprocess")
        return instance.arrays

    def results(self, merge: MergeTree | None = None) -> dict[str, AnyArray]:
        """Return the results by name, and valid masks if the UDF returned some.

        Nav results have the rows of the ROI; single ones without extra shape have shape (1,).
        `merge` is another way to merge, by default that of the run.
        """
        tree = merge or self.declared.merge
        recipe = replace(self.recipe, udfs=(replace(self.declared, merge=tree),))
        rows, last = tree.apply(
            self.partials,
            lambda step, partials: merge_partials(recipe, 0, partials, step.checked),
        )
        return self.finalize(rows, last)

    def finalize(self, rows: Sequence[Partial], last: Partial | None) -> dict[str, AnyArray]:
        """Return the results of partial results with all nav rows, and of the last merge."""
        # chunks that a tree has merged have the same partial result
        distinct = list(dict.fromkeys(rows)) if self.declared.has_nav else []
        done = finalize(self.recipe, 0, None, distinct, last)
        masks = {f"valid mask of {name}": mask for name, mask in done.masks.items()}
        return {**done.arrays, **masks}


def _cut(values: AnyArray, box: Box) -> AnyArray:
    """Return the values at some scan positions."""
    return values[tuple(slice(first, stop) for first, stop in box)]
