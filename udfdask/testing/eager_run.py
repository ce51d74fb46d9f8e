"""Runs the engine over a NumPy array without dask: each stage at hand, to look at or to change."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from udfdask.arrays.backends.backend import Backend
from udfdask.arrays.backends.convert import to_backend
from udfdask.arrays.backends.dense_backends import NUMPY
from udfdask.arrays.geometry.tiling import TILE_BYTES
from udfdask.chunk.partial_result import Partial
from udfdask.chunk.run_chunk import Partials, run_chunk
from udfdask.merge.finalize import finalize
from udfdask.merge.merge import merge_partials
from udfdask.plan.make_recipe import make_recipe
from udfdask.plan.recipe import Recipe, UDFRecipe
from udfdask.types import AnyArray
from udfdask.udf import UDF
from udfdask.udf.aux_data import block_of

Chunks = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """One way to cut a data set and to run UDFs over it."""

    nav_chunks: Chunks | None = None
    """Chunk sizes along each navigation axis, in frames; None for one chunk."""
    sig_chunks: Chunks | None = None
    """Chunk sizes along each signal axis, in pixels; None for one chunk."""
    tile_bytes: int = TILE_BYTES
    """How large a tile may be, in bytes."""
    roi: AnyArray | None = None
    """Which frames are processed, shape `nav`."""
    fan_in: int | bool = 8
    """Fan-in of merge trees, False for a merge in one step."""
    backwards: bool = False
    """Whether chunks are processed from the last to the first."""
    backend: Backend | None = None
    """The only array backend that UDFs are given, of which chunks are if they can be."""

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
        if self.backwards:
            words.append("processed from the last to the first")
        if self.backend is not None:
            words.append(f"data as {self.backend.name}")
        return ", ".join(words)


def chunks_in_words(nav_chunks: Chunks | None) -> str:
    """Return navigation chunks in words: frames of each where only one axis is cut."""
    if nav_chunks is None or all(len(c) == 1 for c in nav_chunks):
        return "one chunk"
    cut = [axis for axis, c in enumerate(nav_chunks) if len(c) > 1]
    others = [c[0] for axis, c in enumerate(nav_chunks) if axis not in cut]
    if len(cut) > 1 or any(n > 1 for n in others[: cut[0]]):
        return f"navigation chunks {nav_chunks}"
    each = 1
    for n in others:
        each *= n
    sizes = [n * each for n in nav_chunks[cut[0]]]
    if len(sizes) > 4 and len(set(sizes)) == 1:
        return f"{len(sizes)} chunks of {sizes[0]} frame{'s' if sizes[0] > 1 else ''}"
    return f"chunks of {', '.join(map(str, sizes[:-1]))} and {sizes[-1]} frames"


class PlainRun:
    """UDFs run over all chunks of an array; merges and results are made when asked for."""

    def __init__(
        self, udfs: Sequence[UDF], data: AnyArray, sig_dims: int, layout: Layout | None = None
    ) -> None:
        self.layout = Layout() if layout is None else layout
        self.data = data
        self.recipe = self.declare(udfs, data, sig_dims, self.layout)
        order = list(range(self.recipe.grid.n_chunks))
        if self.layout.backwards:
            order.reverse()
        slots = self.recipe.aux_slots
        self.aux = [udfs[k]._kwargs[name].over(self.recipe.shape) for k, name in slots]
        done = {c: self._run(c) for c in order}
        self.payloads = [done[c] for c in sorted(done)]

    def _run(self, chunk: int) -> Partials:
        """Return the partial results of one chunk."""
        aux = [block_of(values, self.recipe.grid, chunk) for values in self.aux]
        return run_chunk(self.recipe, chunk, self._blocks(chunk), aux)

    @staticmethod
    def declare(
        udfs: Sequence[UDF], data: AnyArray, sig_dims: int, layout: Layout | None = None
    ) -> Recipe:
        """Return the recipe of a run, from the declaring methods alone."""
        how = Layout() if layout is None else layout
        return make_recipe(
            udfs,
            shape=data.shape,
            dtype=data.dtype,
            sig_dims=sig_dims,
            nav_chunks=how.nav_chunks,
            sig_chunks=how.sig_chunks,
            roi=how.roi,
            tile_bytes=how.tile_bytes,
            split_every=how.fan_in,
            backends=None if how.backend is None else (how.backend,),
        )

    def _blocks(self, chunk: int) -> list[Any]:
        """Return the blocks of a chunk, in C order of the signal chunks."""
        start, shape = self.recipe.grid.bounds(chunk)
        nav = tuple(slice(a, a + n) for a, n in zip(start, shape, strict=True))
        cuts = [
            [slice(e - n, e) for e, n in zip(itertools.accumulate(c), c, strict=True)]
            for c in self.recipe.sig_chunks
        ]
        backend = self.layout.backend
        native = NUMPY if backend is None or backend.is_matrix else backend
        blocks = (self.data[(*nav, *sig)] for sig in itertools.product(*cuts))
        return [to_backend(block, native, block.shape) for block in blocks]

    def udf(self, number: int = 0) -> UDFRecipe:
        """Return a UDF as declared."""
        return self.recipe.udfs[number]

    def partials(self, number: int = 0) -> list[Partial]:
        """Return what the chunks hand on, in navigation order."""
        found = (payload[number] for payload in self.payloads)
        return [partial for partial in found if partial is not None]

    def with_udf(self, number: int = 0, **changes: Any) -> Recipe:
        """Return the recipe with some fields of one UDF changed."""
        udfs = list(self.recipe.udfs)
        udfs[number] = replace(udfs[number], **changes)
        return replace(self.recipe, udfs=tuple(udfs))

    def merged(
        self, number: int = 0, recipe: Recipe | None = None
    ) -> tuple[list[Partial], Partial | None]:
        """Return partials that hold the nav rows, and the one with all the rest."""
        recipe = self.recipe if recipe is None else recipe
        return recipe.udfs[number].merge.apply(
            self.partials(number),
            lambda step, partials: merge_partials(recipe, number, partials, step.checked),
        )

    def results(self, number: int = 0, recipe: Recipe | None = None) -> dict[str, AnyArray]:
        """Return the results by name, and valid masks where the UDF gave some.

        Nav results hold the rows of the ROI, flattened; single ones without extra shape are (1,).
        """
        recipe = self.recipe if recipe is None else recipe
        rows, whole = self.merged(number, recipe)
        return _finished(recipe, number, rows, whole)

    def finish(self, merged: Partial, number: int = 0) -> dict[str, AnyArray]:
        """Return the results of one partial that all has been merged into."""
        return _finished(self.recipe, number, [merged], merged)


def _finished(
    recipe: Recipe, number: int, rows: Sequence[Partial], whole: Partial | None
) -> dict[str, AnyArray]:
    """Return what `get_results` makes of merged buffers, and its valid masks, by name."""
    udf = recipe.udfs[number]
    # neighbors share a partial where a tree has merged them
    distinct = dict.fromkeys(rows) if udf.has_nav else ()
    done = finalize(recipe, number, None, list(distinct), whole)
    masks = {f"valid mask of {name}": mask for name, mask in done.masks.items()}
    return {**done.arrays, **masks}
