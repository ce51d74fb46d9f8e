"""Results that grow chunk by chunk, and what a snapshot keeps of them; plain arrays, no dask.

Taking a snapshot copies nothing. Nav rows are written once, when their chunk is merged: a snapshot
shares them with the run and leaves out later chunks when somebody reads it. Each merge makes new
sig and single buffers, so that a snapshot has its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np

from udfdask.arrays.backends.convert import to_host
from udfdask.arrays.geometry.chunk_grid import BoolArray
from udfdask.chunk.partial_result import Partial
from udfdask.merge.merge import empty_partial, merge_all, merge_next
from udfdask.plan.merge_tree import MergeTree
from udfdask.plan.recipe import Recipe
from udfdask.types import AnyArray

Parts = tuple[list[Partial], Partial | None]
"""Partials with the nav rows merged so far, and one with the sig and single buffers."""

Frozen = Callable[[Recipe, BoolArray], Parts]
"""What a snapshot keeps of a UDF: gives its parts, from the recipe and which chunks it has."""


class Growing(Protocol):
    """The results of one UDF, while chunks are merged into them."""

    def add(self, recipe: Recipe, partial: Partial, merged: BoolArray) -> None:
        """Merge a chunk; `merged` says which rows have been merged before."""

    def freeze(self) -> Frozen:
        """Return what there is now; chunks merged later do not show in it."""


def grow(recipe: Recipe, number: int) -> Growing:
    """Return the results of a UDF before any chunk."""
    tree = recipe.udfs[number].progressive_merge
    if tree.mode != "all":
        return _Merged(recipe, number)
    return _Gathered(number) if tree.fan_in is None else _Accumulated(tree, number)


class _Merged:
    """Results of a UDF whose chunks are merged one by one, or only collected."""

    def __init__(self, recipe: Recipe, number: int) -> None:
        self.number = number
        udf = recipe.udfs[number]
        self.mode = udf.progressive_merge.mode
        self.whole: Partial | None = None
        grid, sig = recipe.grid, recipe.shape.sig
        specs = {k: s for k, s in udf.allocated.items() if s.kind == "nav"}
        # rows in the order of the chunks, where those of a chunk are neighbours
        self.rows = {name: spec.allocate(grid.n_frames, sig) for name, spec in specs.items()}

    def add(self, recipe: Recipe, partial: Partial, merged: BoolArray) -> None:
        if self.mode != "none":
            before = None if self.mode == "rows" else self.whole
            partial = merge_next(recipe, self.number, before, partial, merged)
            self.whole = partial
        window = slice(recipe.grid.offset(partial.first), recipe.grid.offset(partial.stop))
        for name, rows in self.rows.items():
            rows[window] = to_host(partial.arrays[name])

    def freeze(self) -> Frozen:
        rows, whole, number, merges = self.rows, self.whole, self.number, self.mode != "none"

        def parts(recipe: Recipe, chunks: BoolArray) -> Parts:
            done = np.repeat(chunks, recipe.grid.counts)
            arrays = {name: _only(array, done) for name, array in rows.items()}
            rest = empty_partial(recipe, number) if merges and whole is None else whole
            return [Partial(arrays, 0, recipe.grid.n_chunks, {})], rest

        return parts


class _Accumulated:
    """Results of a UDF whose merge_all is called on its own result and the next chunk."""

    def __init__(self, tree: MergeTree, number: int) -> None:
        self.number = number
        self.groups = {group.sources.stop: group for group in tree.levels()[0]}
        self.sum: Partial | None = None
        self.waiting: list[Partial] = []

    def add(self, recipe: Recipe, partial: Partial, merged: BoolArray) -> None:
        parts = [partial] if self.sum is None else [self.sum, partial]
        self.sum = merge_all(recipe, self.number, parts, check=False)
        # the groups that `run_udf` checks are checked here as well
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


class _Gathered:
    """Results of a UDF whose merge_all is called once, on all chunks, when a snapshot is read."""

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
    """Aux data of the frames of a run, for a `get_results`: as the chunks had them.

    Where no chunk has been merged yet they are as in `known`, shape (*nav, *extra_shape), or zero
    where they are computed with the chunks.
    """

    def __init__(self, recipe: Recipe, number: int, known: Mapping[str, AnyArray]) -> None:
        grid, declared = recipe.grid, recipe.udfs[number].aux
        self._before: dict[str, AnyArray] = {}
        for name in recipe.udfs[number].nav_aux if recipe.udfs[number].has_get_results else ():
            extra, dtype = declared[name].extra_shape, declared[name].dtype
            values = known.get(name)
            if values is None:
                self._before[name] = np.zeros((grid.n_frames, *extra), dtype)
            elif grid.roi is None:
                self._before[name] = values.reshape((grid.n_frames, *extra)).astype(dtype)
            else:
                self._before[name] = values[grid.roi].astype(dtype)
        self._now = {name: rows.copy() for name, rows in self._before.items()}

    def add(self, rows: AnyArray, aux: Mapping[str, AnyArray]) -> None:
        """Take over the aux data of a chunk."""
        for name, now in self._now.items():
            now[rows] = aux[name]

    def over(self, done: BoolArray) -> dict[str, AnyArray]:
        """Return the aux data of all frames when just these had been merged."""
        found = {}
        for name, before in self._before.items():
            found[name] = before.copy()
            found[name][done] = self._now[name][done]
            found[name].flags.writeable = False
        return found


def _only(rows: AnyArray, done: BoolArray) -> AnyArray:
    """Return a copy of the rows that are done, among zeros."""
    if done.all():
        return rows.copy()
    copy = np.zeros_like(rows)
    copy[done] = rows[done]
    return copy
