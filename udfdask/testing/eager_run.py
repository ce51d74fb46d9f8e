"""Run the engine over a NumPy array without dask, so that each stage can be inspected or changed.

`check_udf` uses this run, which calls the functions of `chunk` and `merge` that tasks call: 1 ms a
run where dask needs 10 ms, and a check makes hundreds of runs.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from udfdask.backends.backend import NUMPY, Backend
from udfdask.backends.table import to_backend
from udfdask.base.types import AnyArray
from udfdask.chunk.finalize import finalize
from udfdask.chunk.frames import signal_windows
from udfdask.chunk.halo_chunk import LoadedChunk, finish_chunk, load_chunk
from udfdask.chunk.merge import merge_partials
from udfdask.chunk.partial_result import Partial
from udfdask.chunk.run_chunk import run_chunk
from udfdask.chunk.udf_instance import Instance
from udfdask.corrections import CorrectionSet
from udfdask.corrections.correction_set import checked
from udfdask.geometry.axes import Calibration, in_pixels
from udfdask.geometry.chunk_grid import BoolArray, Grid
from udfdask.geometry.halo import Box, box_of, neighbors
from udfdask.geometry.shapes import Shape
from udfdask.geometry.tiling import TILE_BYTES
from udfdask.plan import make_recipe as plan_recipe
from udfdask.plan.arguments import Settings
from udfdask.plan.declarations import declare
from udfdask.plan.merge_tree import MergeTree
from udfdask.plan.recipe import Data, DescanRecipe, Recipe
from udfdask.udf import UDF
from udfdask.udf.base import overrides

Chunks = tuple[tuple[int, ...], ...]
"""Chunk sizes along each axis, as dask has them."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """One way to divide a dataset and to run UDFs over it; None for one chunk or all frames."""

    nav_chunks: Chunks | None = None
    sig_chunks: Chunks | None = None
    tile_bytes: int = TILE_BYTES
    roi: AnyArray | None = None
    split_every: int | bool = 8
    backends: tuple[Backend] | None = None
    """The only array backend of the run; chunks have it too, unless it is a matrix type."""

    def __str__(self) -> str:
        words = ["one chunk" if self.nav_chunks is None else f"chunks {self.nav_chunks}"]
        if self.sig_chunks is not None:
            words.append(f"signal chunks {self.sig_chunks}")
        if self.tile_bytes != TILE_BYTES:
            words.append(f"tiles of {self.tile_bytes} bytes")
        if self.split_every != 8:
            words.append(f"split_every={self.split_every}")
        return ", ".join(words)


ONE_CHUNK = Layout()


def make_recipe(
    udfs: Sequence[UDF],
    *,
    shape: Sequence[int],
    dtype: Any,
    sig_dims: int = 2,
    nav_chunks: Sequence[Sequence[int]] | None = None,
    sig_chunks: Sequence[Sequence[int]] | None = None,
    roi: BoolArray | None = None,
    corrections: CorrectionSet | None = None,
    descan: DescanRecipe | None = None,
    native: Backend = NUMPY,
    calibration: Calibration | None = None,
    **settings: Any,
) -> Recipe:
    """Return the recipe of a run; chunk sizes as dask has them, one chunk by default.

    ``run_chunk(make_recipe(udfs, shape=..., dtype=...), 0, [array])`` processes a whole array.
    `settings` are those of `Settings`.
    """
    full, data_dtype = Shape(shape, sig_dims=sig_dims), np.dtype(dtype)
    sizes = [[n] for n in full.sig] if sig_chunks is None else sig_chunks
    data = Data(
        shape=full,
        dtype=data_dtype,
        grid=Grid.of([[n] for n in full.nav] if nav_chunks is None else nav_chunks, roi),
        sig_chunks=tuple(tuple(map(int, axis)) for axis in sizes),
        corrections=None if corrections is None else checked(corrections, full.sig, data_dtype),
        descan=descan,
        native=native,
    )
    chosen = Settings(**settings)
    known = calibration or in_pixels(len(full), sig_dims)
    declared = [declare(udf, data, known, chosen) for udf in udfs]
    return plan_recipe.make_recipe(declared, data, chosen)


class EagerRun:
    """A run of the engine over the chunks of an array; merges and results are made on request."""

    def __init__(
        self,
        udf: UDF,
        data: AnyArray,
        sig_dims: int,
        layout: Layout = ONE_CHUNK,
        calibration: Calibration | None = None,
    ) -> None:
        self.data = data
        about: dict[str, Any] = {"shape": data.shape, "dtype": data.dtype}
        about["calibration"] = calibration
        self.recipe = make_recipe([udf], sig_dims=sig_dims, **about, **vars(layout))
        self.declared = self.recipe.udfs[0]
        native = layout.backends[0] if layout.backends else NUMPY
        self._native = NUMPY if native.is_matrix else native
        self._aux = [udf._kwargs[k].over(self.recipe.shape) for _, k in self.recipe.aux_slots]
        self._load = functools.cache(self._load_chunk)
        self.partials = [self._run(chunk) for chunk in range(self.recipe.grid.n_chunks)]
        """Partial results of the chunks, in navigation order."""

    def _run(self, chunk: int) -> Partial:
        grid, halos = self.recipe.grid, self.recipe.halos([0])
        index = grid.index(chunk)
        if halos:
            others = neighbors(halos, chunk, grid)
            margins = {other: self._load(other).margins[chunk] for other in others}
            around = {k: self._inputs(k)[1] for k in (index, *others)}
            done = finish_chunk(self.recipe, chunk, self._load(index), margins, around)
        else:
            done = run_chunk(self.recipe, chunk, *self._inputs(index))
        assert done[0] is not None  # only runs with several groups of UDFs have None
        return done[0]

    def _load_chunk(self, index: tuple[int, ...]) -> LoadedChunk:
        """Return what is left of a chunk after it was loaded."""
        grid, halos = self.recipe.grid, self.recipe.halos([0])
        needed_by = [c for c in range(grid.n_chunks) if index in neighbors(halos, c, grid)]
        return load_chunk(self.recipe, index, needed_by, *self._inputs(index))

    def _inputs(self, index: tuple[int, ...]) -> tuple[list[Any], list[AnyArray]]:
        """Return the blocks of a chunk, in C order of the signal chunks, and its aux data."""
        box = box_of(self.recipe.grid, index)
        frames: Any = _cut(self.data, box)
        blocks = (frames[(..., *window)] for window in signal_windows(self.recipe.sig_chunks))
        ready = [to_backend(block, self._native, block.shape) for block in blocks]
        return ready, [_cut(values, box) for values in self._aux]

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
        return self.finalize(
            *tree.apply(
                self.partials,
                lambda step, partials: merge_partials(recipe, 0, partials, step.checked),
            )
        )

    def finalize(self, rows: Sequence[Partial], last: Partial | None) -> dict[str, AnyArray]:
        """Return the results of partial results with all nav rows, and of the last merge."""
        # chunks that a tree has merged have the same partial result
        distinct = list(dict.fromkeys(rows)) if self.declared.has_nav else []
        done = finalize(self.recipe, 0, None, distinct, last)
        masks = {f"valid mask of {name}": mask for name, mask in done.masks.items()}
        return {**done.arrays, **masks}


def _cut(values: AnyArray, box: Box) -> AnyArray:
    return values[tuple(slice(first, stop) for first, stop in box)]
