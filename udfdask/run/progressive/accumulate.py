"""Merge chunks one by one, and keep the state of a snapshot; plain arrays, no dask.

Taking a snapshot copies nothing. Nav rows are written once, when their chunk is merged: a snapshot
shares them with the run and leaves out later chunks when its results are read. Each merge makes new
sig and single buffers, so that a snapshot has its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np

from udfdask.backends.backend import locked
from udfdask.backends.table import to_host
from udfdask.chunk.partial_result import Partial
from udfdask.geometry.chunk_grid import BoolArray
from udfdask.merge.merge import empty_partial, merge_all, merge_next
from udfdask.plan.merge_tree import MergeTree
from udfdask.plan.recipe import Recipe
from udfdask.types import AnyArray

Parts = tuple[list[Partial], Partial | None]
"""Partials with the nav rows merged so far, and one with the sig and single buffers."""

Frozen = Callable[[Recipe, BoolArray], Parts]
"""The state of a UDF in a snapshot: a function of the recipe and the mask of its merged chunks."""


class Accumulator(Protocol):
    """Merges the chunks of one UDF, one by one."""

    def add(self, recipe: Recipe, partial: Partial, merged: BoolArray) -> None:
        """Merge a chunk; `merged` is the mask of rows that have been merged before."""

    def freeze(self) -> Frozen:
        """Return the current state; chunks that are merged later do not change it."""


def make_accumulator(recipe: Recipe, number: int) -> Accumulator:
    """Return the accumulator of a UDF, before any chunk."""
    tree = recipe.udfs[number].progressive_merge
    if tree.mode != "all":
        return _MergedInPlace(recipe, number)
    return _MergedWhenRead(number) if tree.fan_in is None else _MergedOneByOne(tree, number)


class _MergedInPlace:
    """Merges with `merge`, or only collects nav rows if the UDF needs no merge."""

    def __init__(self, recipe: Recipe, number: int) -> None:
        self.number = number
        udf = recipe.udfs[number]
        self.mode = udf.progressive_merge.mode
        self.combined: Partial | None = None
        grid, sig = recipe.grid, recipe.shape.sig
        specs = {k: s for k, s in udf.allocated.items() if s.kind == "nav"}
        # rows are in the order of the chunks, so that the rows of a chunk are one slice
        self.rows = {name: spec.allocate(grid.n_frames, sig) for name, spec in specs.items()}

    def add(self, recipe: Recipe, partial: Partial, merged: BoolArray) -> None:
        if self.mode != "none":
            before = None if self.mode == "rows" else self.combined
            partial = merge_next(recipe, self.number, before, partial, merged)
            self.combined = partial
        window = slice(recipe.grid.offset(partial.first), recipe.grid.offset(partial.stop))
        for name, rows in self.rows.items():
            rows[window] = to_host(partial.arrays[name])

    def freeze(self) -> Frozen:
        rows, combined, number, merges = self.rows, self.combined, self.number, self.mode != "none"

        def parts(recipe: Recipe, chunks: BoolArray) -> Parts:
            done = np.repeat(chunks, recipe.grid.counts)
            arrays = {name: _zero_others(array, done) for name, array in rows.items()}
            rest = empty_partial(recipe, number) if merges and combined is None else combined
            return [Partial(arrays, 0, recipe.grid.n_chunks, {})], rest

        return parts


class _MergedOneByOne:
    """Calls `merge_all` on its last result and the next chunk."""

    def __init__(self, tree: MergeTree, number: int) -> None:
        self.number = number
        self.groups = {group.sources.stop: group for group in tree.levels()[0]}
        self.sum: Partial | None = None
        self.waiting: list[Partial] = []

    def add(self, recipe: Recipe, partial: Partial, merged: BoolArray) -> None:
        parts = [partial] if self.sum is None else [self.sum, partial]
        self.sum = merge_all(recipe, self.number, parts, check=False)
        # the groups that `run_udf` checks are checked here too: a progressive run must find the
        # same wrong `merge_all`
        self.waiting.append(partial)
        if group := self.groups.get(partial.stop):
            if group.checked:
                merge_all(recipe, self.number, self.waiting, check=True)
            self.waiting = []

    def freeze(self) -> Frozen:
        sum_, number = self.sum, self.number

        def parts(recipe: Recipe, chunks: BoolArray) -> Parts:
            return ([], empty_partial(recipe, number)) if sum_ is None else ([sum_], sum_)

        return parts


class _MergedWhenRead:
    """Calls `merge_all` once, on all chunks so far, when a snapshot is read."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.partials: list[Partial] = []

    def add(self, recipe: Recipe, partial: Partial, merged: BoolArray) -> None:
        self.partials.append(partial)

    def freeze(self) -> Frozen:
        partials, n, number = self.partials, len(self.partials), self.number

        def parts(recipe: Recipe, chunks: BoolArray) -> Parts:
            if not n:
                return [], empty_partial(recipe, number)
            merged = merge_all(recipe, number, partials[:n], check=False)
            return [merged], merged

        return parts


class AuxRows:
    """Aux data of the frames of a run for `get_results`, with the values that the chunks had.

    Frames that are not merged yet have the values in `known`, shape (*nav, *extra_shape), or zero
    if the aux data are computed together with the chunks.
    """

    def __init__(self, recipe: Recipe, number: int, known: Mapping[str, AnyArray]) -> None:
        grid, udf = recipe.grid, recipe.udfs[number]
        self._before: dict[str, AnyArray] = {}
        for name in udf.nav_aux if udf.has_get_results else ():
            extra, dtype = udf.aux[name].extra_shape, udf.aux[name].dtype
            rows = np.zeros((grid.n_frames, *extra), dtype)
            if name in known:
                frames = known[name].reshape((grid.size, *extra))
                rows[:] = frames if grid.roi is None else frames[grid.roi.reshape(-1)]
            self._before[name] = rows
        self._now = {name: rows.copy() for name, rows in self._before.items()}

    def add(self, rows: AnyArray, aux: Mapping[str, AnyArray]) -> None:
        """Store the aux data of a chunk."""
        for name, now in self._now.items():
            now[rows] = aux[name]

    def over(self, done: BoolArray) -> dict[str, AnyArray]:
        """Return the aux data of all frames at the time when only the rows `done` were merged."""
        values = {name: before.copy() for name, before in self._before.items()}
        for name, rows in values.items():
            rows[done] = self._now[name][done]
        return {name: locked(rows) for name, rows in values.items()}


def _zero_others(rows: AnyArray, done: BoolArray) -> AnyArray:
    """Return a copy of the rows in which all rows that are not done are zero."""
    if done.all():
        return rows.copy()
    copy = np.zeros_like(rows)
    copy[done] = rows[done]
    return copy
