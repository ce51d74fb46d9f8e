"""Predict the memory for the results of one UDF: buffers, merges, rows, final arrays."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from udfdask.plan.recipe import Recipe, UDFRecipe
from udfdask.udf.buffers import BufferSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class UDFMemory:
    """The memory for the results of one UDF, in bytes."""

    buffers: int
    """Buffers and rows of aux data of the largest chunk."""
    partial: int
    """The partial result of that chunk."""
    merging: int
    """New buffers and copies of one merge of chunks, or of `get_results` on a chunk."""
    chunks_per_merge: int
    """Number of chunks after which there is such a merge."""
    waiting: int
    """Partial results that wait for merges, if chunks are processed one after another."""
    completing: int
    """The part of `waiting` that completes a merge."""
    early: int
    """Partial results of all chunks, if merges take them one after another."""
    rows: int
    """Rows of nav results that wait until all chunks are processed."""
    finishing: int
    """Needed in addition to the rows by the last merge, or by `get_results` on all rows."""
    final: int
    """Needed in addition to the rows for the arrays of the result."""


def memory_of_udf(recipe: Recipe, udf: UDFRecipe, rows: int) -> UDFMemory:
    """Return the share of one UDF; `rows` is the number of frames of the largest chunk."""
    sizes = _Sizes(recipe, udf, rows)
    merges = _merges(sizes)
    kept, finishing = _get_results(sizes)
    if sizes.mode == "all":  # the last merge has the rows of all chunks
        kept = 0 if len(sizes.levels) > 1 else kept
        finishing = max(merges.last, sizes.levels[-1] + finishing)
    elif sizes.mode == "tree":
        finishing = max(merges.last, finishing + sizes.reduced)
        if sizes.row and len(sizes.levels) > 2:  # higher levels copy the rows of lower ones
            finishing += sizes.all_rows
    held = sizes.reduced_outputs + (sizes.levels[-1] if sizes.mode == "all" else 0)
    merging = merges.merging
    if udf.has_get_results and udf.elementwise:
        made = rows * row_bytes(recipe, udf.outputs.values()) + sizes.reduced_outputs
        merging = max(merging, sizes.partial + made)
    return UDFMemory(
        buffers=sizes.partial + (0 if udf.carries_aux else rows * sizes.aux) + _windows(sizes),
        partial=sizes.partial if sizes.mode != "none" else rows * sizes.row,
        merging=merging,
        chunks_per_merge=merges.chunks,
        waiting=merges.waiting,
        completing=sizes.partial if sizes.mode in ("tree", "all") else 0,
        early=recipe.grid.n_chunks * sizes.partial if sizes.mode == "chain" else 0,
        rows=kept,
        finishing=finishing,
        final=_final_arrays(sizes) + held,
    )


@dataclass(frozen=True)
class _Sizes:
    """Sizes of the buffers of a UDF in bytes."""

    recipe: Recipe
    udf: UDFRecipe
    rows: int

    @property
    def mode(self) -> str:
        """How partial results are merged."""
        return self.udf.merge.mode

    @cached_property
    def aux(self) -> int:
        """Aux data of one frame."""
        aux = (self.udf.aux[name] for name in self.udf.nav_aux)
        return sum(math.prod(one.extra_shape) * one.dtype.itemsize for one in aux)

    @cached_property
    def row(self) -> int:
        """What a partial result has for one frame."""
        aux = self.aux if self.udf.carries_aux else 0
        return row_bytes(self.recipe, self.udf.allocated.values()) + aux

    @cached_property
    def reduced(self) -> int:
        """Sig and single buffers."""
        return reduced_bytes(self.recipe, self.udf.allocated.values())

    @cached_property
    def reduced_outputs(self) -> int:
        """Sig and single results."""
        return reduced_bytes(self.recipe, self.udf.outputs.values())

    @property
    def partial(self) -> int:
        """The partial result of the largest chunk."""
        return self.rows * self.row + self.reduced

    @property
    def all_rows(self) -> int:
        """The rows of all chunks."""
        return self.recipe.grid.n_frames * self.row

    @cached_property
    def levels(self) -> list[int]:
        """A partial result of a chunk, and one of each level of the tree of merges."""
        n, sizes = self.udf.merge.n_chunks, [self.partial]
        if self.mode not in ("tree", "all"):
            return sizes
        fan_in, span = self.udf.merge.fan_in or max(n, 2), 1
        while n > 1 or len(sizes) == 1:
            n, span = -(-n // fan_in), span * fan_in
            sizes.append(min(span * self.rows * self.row, self.all_rows) + self.reduced)
        return sizes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Merges:
    """The memory for merges, in bytes."""

    waiting: int = 0
    merging: int = 0
    last: int = 0
    chunks: int = 1


def _merges(sizes: _Sizes) -> _Merges:
    """Return the memory for the merges of a UDF."""
    copied = 0 if sizes.udf.promises.merge_only_reads_src else sizes.partial
    merged = sizes.partial + copied
    if sizes.mode in ("tree", "all"):
        merges = _tree(sizes)
    elif sizes.mode == "rows":
        merges = _Merges(waiting=sizes.partial, merging=merged)
    elif sizes.mode == "chain":  # one merge at a time
        n_chunks = sizes.recipe.grid.n_chunks
        waiting = sizes.partial + sizes.reduced
        merges = _Merges(waiting=waiting, merging=merged, chunks=n_chunks)
    else:
        merges = _Merges()
    if not sizes.recipe.by_sig_chunk:
        return merges
    # the partial results of all signal chunks of a chunk wait until they are joined
    parts = sizes.recipe.n_blocks * sizes.rows * sizes.row + sizes.reduced
    return _Merges(
        waiting=merges.waiting + parts,
        merging=max(merges.merging, sizes.partial),
        last=merges.last,
        chunks=merges.chunks,
    )


def _tree(sizes: _Sizes) -> _Merges:
    """Return the memory for a tree of merges, by `merge` or `merge_all`.

    Chunks are processed depth first: on each level, all sources of a merge but one can wait.
    """
    n, levels, udf = sizes.recipe.grid.n_chunks, sizes.levels, sizes.udf
    fan_in = udf.merge.fan_in or n
    first, group, waiting = min(n, fan_in), 1, levels[0]
    for size in levels[:-1]:
        group = min(n, fan_in)
        waiting += (group - 1) * size
        n = -(-n // fan_in)
    if sizes.mode == "tree":
        copied = 0 if udf.promises.merge_only_reads_src else 1
        merging = levels[1] + copied * levels[0]
        last = levels[-1] + copied * levels[-2] + group * levels[-2]
    else:
        # `merge_all` gets copies and returns arrays, which are copied into buffers
        merging = first * levels[0] + 2 * levels[1]
        if udf.merge.repeats_merge_all:  # checked: once more in two parts, which are then merged
            merging = max(merging, 5 * levels[1] + 2 * sizes.reduced)
        last = 2 * group * levels[-2] + 2 * levels[-1]
    return _Merges(waiting=waiting, merging=merging, last=last, chunks=first)


def _get_results(sizes: _Sizes) -> tuple[int, int]:
    """Return the rows that are kept until the end, and what `get_results` then needs."""
    grid, outputs = sizes.recipe.grid, sizes.udf.outputs.values()
    rows = grid.n_frames * row_bytes(sizes.recipe, outputs)
    if not sizes.udf.has_get_results or sizes.udf.elementwise:
        return rows, 0
    # buffers with all rows, and new arrays
    return sizes.all_rows, sizes.all_rows + sizes.reduced + rows + sizes.reduced_outputs


def _final_arrays(sizes: _Sizes) -> int:
    """Return the size of the arrays of the result, and of their masks after `get_results`."""
    recipe, grid = sizes.recipe, sizes.recipe.grid
    total = 0
    for spec in sizes.udf.outputs.values():
        is_nav, rows = spec.kind == "nav", grid.size
        total += spec.nbytes(rows, recipe.shape.sig)
        if sizes.udf.has_get_results:
            if is_nav and grid.roi is not None:
                rows += grid.n_frames
            total += math.prod(spec.shape(rows, recipe.shape.sig))
    return total


def row_bytes(recipe: Recipe, specs: Iterable[BufferSpec]) -> int:
    """Return the size of one row of nav buffers in bytes."""
    return sum(spec.nbytes(1, recipe.shape.sig) for spec in specs if spec.kind == "nav")


def reduced_bytes(recipe: Recipe, specs: Iterable[BufferSpec]) -> int:
    """Return the size of sig and single buffers in bytes."""
    return sum(spec.nbytes(0, recipe.shape.sig) for spec in specs if spec.kind != "nav")


def _windows(sizes: _Sizes) -> int:
    """Return the size of the contiguous copies of sig buffers that a UDF writes to, part by part.

    The leading signal axis is cut first; parts that span all other axes are contiguous.
    """
    part, sig = tuple(sizes.recipe.tiling.sig_shape), tuple(sizes.recipe.shape.sig)
    if part[1:] == sig[1:]:
        return 0
    return sum(
        math.prod(part) * math.prod(spec.extra_shape) * spec.dtype.itemsize
        for spec in sizes.udf.allocated.values()
        if spec.kind == "sig"
    )
