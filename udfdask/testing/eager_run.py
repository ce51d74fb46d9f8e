"""Run the engine over a NumPy array without dask, so that each stage can be inspected or changed.

`check_udf` uses this run, which calls the functions of `chunk` and `merge` that tasks call: 1 ms a
run where dask needs 10 ms, and a check makes hundreds of runs. `udfdask.testing.reference` takes
the recipe and the instances of UDFs from the same functions, but computes everything itself.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from udfdask.backends.backend import NUMPY, Backend
from udfdask.backends.table import to_backend
from udfdask.chunk.neighborhoods.run_with_halo import LoadedChunk, finish_chunk, load_chunk
from udfdask.chunk.partial_result import Partial
from udfdask.chunk.run_chunk import run_chunk
from udfdask.geometry.halo import Box
from udfdask.geometry.seams import box_of, neighbors
from udfdask.geometry.tiling import TILE_BYTES
from udfdask.merge.finalize import finalize
from udfdask.merge.merge import merge_group, merge_partials
from udfdask.plan.recipe import Recipe, UDFRecipe
from udfdask.testing.recipes import make_recipe
from udfdask.types import AnyArray
from udfdask.udf import UDF

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
        words = [chunks_in_words(self.nav_chunks)]
        if self.sig_chunks is not None:
            words.append(f"signal chunks {self.sig_chunks}")
        if self.tile_bytes != TILE_BYTES:
            words.append(f"tiles of {self.tile_bytes} bytes")
        if self.roi is not None:
            words.append(f"a ROI of {int(self.roi.sum())} of {self.roi.size} frames")
        if self.fan_in != 8:
            words.append(f"split_every={self.fan_in}")
        if self.backend is not None:
            words.append(f"data as {self.backend.name}")
        return ", ".join(words)


ONE_CHUNK = Layout()
"""The whole dataset as one chunk."""


def chunks_in_words(nav_chunks: Chunks | None) -> str:
    """Return navigation chunks as text, as numbers of frames if chunks differ in one axis only."""
    if nav_chunks is None or all(len(c) == 1 for c in nav_chunks):
        return "one chunk"
    cut = [axis for axis, c in enumerate(nav_chunks) if len(c) > 1]
    if len(cut) > 1 or any(c[0] > 1 for c in nav_chunks[: cut[0]]):
        return f"navigation chunks {nav_chunks}"
    line = math.prod(c[0] for c in nav_chunks[cut[0] + 1 :])
    sizes = [n * line for n in nav_chunks[cut[0]]]
    if len(sizes) > 4 and len(set(sizes)) == 1:
        return f"{len(sizes)} chunks of {sizes[0]} frame{'s' if sizes[0] > 1 else ''}"
    return f"chunks of {', '.join(map(str, sizes[:-1]))} and {sizes[-1]} frames"


def declare(udfs: Sequence[UDF], data: AnyArray, sig_dims: int, layout: Layout) -> Recipe:
    """Return the recipe of a run; only the declaring methods of the UDFs are called."""
    return make_recipe(
        udfs,
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


def _window(box: Box) -> tuple[slice, ...]:
    """Return the index of some scan positions."""
    return tuple(slice(first, stop) for first, stop in box)


class EagerRun:
    """A run of the engine over the chunks of an array; merges and results are made on request.

    Several UDFs share the run, but partial results and results are those of the first UDF.
    """

    def __init__(
        self, udfs: Sequence[UDF], data: AnyArray, sig_dims: int, layout: Layout = ONE_CHUNK
    ) -> None:
        self.layout = layout
        self.data = data
        self.recipe = declare(udfs, data, sig_dims, layout)
        slots = self.recipe.aux_slots
        self._aux = [udfs[k]._kwargs[name].over(self.recipe.shape) for k, name in slots]
        self._loaded: dict[tuple[int, ...], LoadedChunk] = {}
        self.partials = [self._run(chunk) for chunk in range(self.recipe.grid.n_chunks)]
        """Partial results of the chunks, in navigation order."""

    @property
    def declared(self) -> UDFRecipe:
        """The declarations of the first UDF."""
        return self.recipe.udfs[0]

    def _run(self, chunk: int) -> Partial:
        """Return the partial result of one chunk."""
        grid = self.recipe.grid
        if self.recipe.halos([0]):
            partial = self._run_with_halo(chunk)
        else:
            bounds = box_of(grid, grid.index(chunk))
            partial = run_chunk(self.recipe, chunk, self._blocks(bounds), self._aux_of(bounds))[0]
        assert partial is not None  # only runs with several groups of UDFs have None
        return partial

    def _run_with_halo(self, chunk: int) -> Partial | None:
        """Return the partial result of one chunk, for which other chunks are loaded as well."""
        grid, halos = self.recipe.grid, self.recipe.halos([0])
        others = neighbors(halos, chunk, grid)
        margins = {other: self._load(other).margins[chunk] for other in others}
        index = grid.index(chunk)
        aux = [
            {k: values[_window(box_of(grid, k))] for k in (index, *others)} for values in self._aux
        ]
        return finish_chunk(self.recipe, chunk, self._load(index), margins, aux)[0]

    def _load(self, index: tuple[int, ...]) -> LoadedChunk:
        """Return what is left of a chunk after it was loaded, once."""
        if index not in self._loaded:
            grid, halos = self.recipe.grid, self.recipe.halos([0])
            needed_by = [c for c in range(grid.n_chunks) if index in neighbors(halos, c, grid)]
            bounds = box_of(grid, index)
            self._loaded[index] = load_chunk(
                self.recipe, index, needed_by, self._blocks(bounds), self._aux_of(bounds)
            )
        return self._loaded[index]

    def _aux_of(self, bounds: Box) -> list[AnyArray]:
        """Return the aux data of a chunk, given by its positions."""
        return [values[_window(bounds)] for values in self._aux]

    def _blocks(self, bounds: Box) -> list[Any]:
        """Return the blocks of a chunk, given by its positions, in C order of the signal chunks."""
        frames: Any = self.data[_window(bounds)]
        cuts = [
            [slice(stop - n, stop) for n, stop in zip(c, itertools.accumulate(c), strict=True)]
            for c in self.recipe.sig_chunks
        ]
        backend = self.layout.backend
        native = NUMPY if backend is None or backend.is_matrix else backend
        blocks = (frames[(..., *window)] for window in itertools.product(*cuts))
        return [to_backend(block, native, block.shape) for block in blocks]

    def with_changes(self, **changes: Any) -> Recipe:
        """Return the recipe with some declarations of the first UDF changed."""
        return replace(self.recipe, udfs=(replace(self.declared, **changes), *self.recipe.udfs[1:]))

    def fresh_buffers(self, partial: Partial | None = None) -> dict[str, AnyArray]:
        """Return the buffers into which a partial result is merged, by default the first one."""
        cls: Any = self.declared.cls
        idle = type(cls.__name__, (cls,), {"merge": lambda self, dest, src: None})
        first = self.partials[0] if partial is None else partial
        return merge_group(self.with_changes(cls=idle), 0, [first]).arrays

    def merged(self, recipe: Recipe | None = None) -> tuple[list[Partial], Partial | None]:
        """Return partial results with all nav rows, and the one with the merged other buffers."""
        used = self.recipe if recipe is None else recipe
        return used.udfs[0].merge.apply(
            self.partials,
            lambda step, partials: merge_partials(used, 0, partials, step.checked),
        )

    def results(self, recipe: Recipe | None = None) -> dict[str, AnyArray]:
        """Return the results by name, and valid masks if the UDF returned some.

        Nav results have the rows of the ROI; single ones without extra shape have shape (1,).
        """
        rows, last = self.merged(recipe)
        return self._finalized(self.recipe if recipe is None else recipe, rows, last)

    def finalize(self, merged: Partial) -> dict[str, AnyArray]:
        """Return the results of one partial result that all others have been merged into."""
        return self._finalized(self.recipe, [merged], merged)

    @staticmethod
    def _finalized(
        recipe: Recipe, rows: Sequence[Partial], last: Partial | None
    ) -> dict[str, AnyArray]:
        """Return the values of `get_results` for merged buffers, and its valid masks, by name."""
        # chunks that a tree has merged have the same partial result
        distinct = list(dict.fromkeys(rows)) if recipe.udfs[0].has_nav else []
        done = finalize(recipe, 0, None, distinct, last)
        masks = {f"valid mask of {name}": mask for name, mask in done.masks.items()}
        return {**done.arrays, **masks}
