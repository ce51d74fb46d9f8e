"""Merge chunks one by one, and read the results of all UDFs over the chunks so far.

Taking a snapshot copies nothing. Nav rows are written once, when their chunk is merged: a snapshot
shares them with the run and leaves out later chunks when its results are read. Each merge makes new
sig and single buffers, so that a snapshot has its own.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import numpy as np

from udfdask.backends.backend import locked
from udfdask.backends.table import to_host
from udfdask.base.tracebacks import own_lines_hidden
from udfdask.base.types import AnyArray
from udfdask.chunk.finalize import finalize
from udfdask.chunk.merge import empty_partial, merge_all, merge_next
from udfdask.chunk.partial_result import Partial
from udfdask.chunk.result_blocks import Holder, assemble, in_nav_shape
from udfdask.geometry.chunk_grid import BoolArray, as_index
from udfdask.plan.recipe import Recipe
from udfdask.results.named_results import ResultInfo
from udfdask.results.result import Result

if TYPE_CHECKING:
    from udfdask.results.result_array import ResultArray
    from udfdask.run.progressive import ProgressiveRun

ResultT_co = TypeVar("ResultT_co", covariant=True)
MaskT_co = TypeVar("MaskT_co", covariant=True)


class Accumulator:
    """Merges the chunks of one UDF, one by one. All rows are in the order of the chunks.

    `known` has aux data of all frames, shape (*nav, *extra_shape). Frames that are not merged yet
    have these values in `get_results`, or zero if they are computed together with the chunks.
    """

    def __init__(self, recipe: Recipe, number: int, known: Mapping[str, AnyArray]) -> None:
        udf, grid = recipe.udfs[number], recipe.grid
        self.number, self.tree = number, udf.progressive_merge
        self.combined: Partial | None = None
        self.partials: list[Partial] = []
        """All partials for a `merge_all` that is called once, or those of the current group."""
        self.rows, self.aux, self.aux_before = {}, {}, {}
        whole_tree = self.tree.mode == "all" and self.tree.fan_in is not None
        self._groups = {g.sources.stop: g for g in self.tree.levels()[0]} if whole_tree else {}
        for name, spec in udf.allocated.items():
            if spec.kind == "nav" and self.tree.mode != "all":
                self.rows[name] = spec.allocate(grid.n_frames, recipe.shape.sig)
        for name in udf.nav_aux if udf.has_get_results else ():
            extra, dtype = udf.aux[name].extra_shape, udf.aux[name].dtype
            self.aux_before[name] = np.zeros((grid.n_frames, *extra), dtype)
            if name in known:
                frames = known[name].reshape((grid.size, *extra))
                selected = frames if grid.roi is None else frames[grid.roi.reshape(-1)]
                self.aux_before[name][:] = selected[_in_order(recipe)]
            self.aux[name] = self.aux_before[name].copy()

    def add(self, recipe: Recipe, partial: Partial, merged: BoolArray) -> None:
        """Merge a chunk; `merged` is the mask of the rows of the run that were merged before."""
        window = slice(recipe.grid.offset(partial.first), recipe.grid.offset(partial.stop))
        for name, rows in self.aux.items():
            rows[window] = partial.aux[name]
        if self.tree.mode == "all":
            self._add_to_all(recipe, partial)
            return
        if self.tree.mode != "none":
            before = None if self.tree.mode == "rows" else self.combined
            self.combined = partial = merge_next(recipe, self.number, before, partial, merged)
        for name, rows in self.rows.items():
            rows[window] = to_host(partial.arrays[name])

    def _add_to_all(self, recipe: Recipe, partial: Partial) -> None:
        """Call `merge_all` on its last result and the next chunk, or keep the chunk for later."""
        self.partials.append(partial)
        if self.tree.fan_in is None:
            return
        parts = [partial] if self.combined is None else [self.combined, partial]
        self.combined = merge_all(recipe, self.number, parts, check=False)
        # the groups that `run_udf` checks are checked here too: a progressive run must find the
        # same wrong `merge_all`
        if group := self._groups.get(partial.stop):
            if group.checked:
                merge_all(recipe, self.number, self.partials, check=True)
            self.partials = []

    def parts(
        self, recipe: Recipe, chunks: BoolArray, rest: Partial | None
    ) -> tuple[list[Partial], Partial | None]:
        """Return partials with the nav rows of merged chunks, and one with all other buffers.

        `rest` is what `combined` was when the last of these chunks had been merged.
        """
        mode, n = self.tree.mode, int(chunks.sum())
        if mode == "all" and self.tree.fan_in is None and n:
            rest = merge_all(recipe, self.number, self.partials[:n], check=False)
        holders = [] if rest is None else [rest]
        if rest is None and mode != "none":
            rest = empty_partial(recipe, self.number)
        if mode != "all":
            done = np.repeat(chunks, recipe.grid.counts)
            arrays = {name: _zero_others(array, done) for name, array in self.rows.items()}
            holders = [Partial(arrays, 0, recipe.grid.n_chunks, {})]
        return holders, rest

    def aux_of(self, recipe: Recipe, chunks: BoolArray) -> dict[str, AnyArray]:
        """Return the aux data of all frames of the run, with the values that the chunks had."""
        done, values = np.repeat(chunks, recipe.grid.counts), {}
        for name, before in self.aux_before.items():
            values[name] = np.empty_like(before)
            shaped = done.reshape((-1, *(1,) * (before.ndim - 1)))
            values[name][_in_order(recipe)] = np.where(shaped, self.aux[name], before)
        return {name: locked(rows) for name, rows in values.items()}


def _in_order(recipe: Recipe) -> Any:
    """Return the index of the rows of the run in the order of the chunks."""
    return as_index(recipe.grid.rows_of(0, recipe.grid.n_chunks))


def _zero_others(rows: AnyArray, done: BoolArray) -> AnyArray:
    """Return a copy of the rows in which all rows that are not done are zero."""
    if done.all():
        return rows.copy()
    copy = np.zeros_like(rows)
    copy[done] = rows[done]
    return copy


class RunState:
    """The state of a run after some chunks have been merged.

    `merged_at` has for each chunk the number of chunks that were merged before it, shape (chunks,).
    The run keeps writing to this array: chunks that are merged later get higher numbers.
    """

    def __init__(
        self,
        run: ProgressiveRun,
        accumulators: Sequence[Accumulator],
        merged_at: AnyArray,
        n_merged: int,
    ) -> None:
        # not the run itself, which keeps the data of the graph
        self.recipe, self.changed = run.live.now, run.live.changed
        self.infos = run.infos
        self.accumulators, self.merged_at, self.n_merged = accumulators, merged_at, n_merged
        self.combined = [accumulator.combined for accumulator in accumulators]

    @property
    def chunks(self) -> BoolArray:
        """Mask of the merged chunks."""
        return np.asarray(self.merged_at < self.n_merged)

    @property
    def rows(self) -> BoolArray:
        """Mask of the merged rows."""
        rows = np.empty(self.recipe.grid.n_frames, dtype=bool)
        rows[_in_order(self.recipe)] = np.repeat(self.chunks, self.recipe.grid.counts)
        return rows

    def result(self, number: int) -> Result[ResultArray]:
        """Compute the result of a UDF."""
        recipe, grid, valid = self.recipe, self.recipe.grid, self.rows
        udf, info = recipe.udfs[number], self.infos[number]
        merged, chunks = self.accumulators[number], self.chunks
        rows, combined = merged.parts(recipe, chunks, self.combined[number])
        holders: Sequence[Holder] = rows
        rest: Holder | None = combined
        if udf.has_get_results:
            aux = merged.aux_of(recipe, chunks)
            rest = finalize(recipe, number, None, rows, combined, valid, aux)
            holders = [rest]
        made = assemble(grid, tuple(recipe.shape.sig), udf.outputs, holders, rest, valid)
        if changed := self.changed[number]:
            from udfdask.plan.parameters import with_changes  # few runs change parameters

            info = replace(info, parameters=with_changes(info.parameters, changed))
        return Result(info, *made)


class LazySequence(Sequence[ResultT_co]):
    """A sequence of `n` items; `make` returns the item of a number, and is called once for each.

    `make` must not refer to the owner of the sequence: such a cycle would keep arrays until the
    next garbage collection.
    """

    __slots__ = ("_lock", "_make", "_n")

    def __init__(self, n: int, make: Callable[[int], ResultT_co]) -> None:
        self._n = n
        self._make = functools.cache(make)
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[number] for number in range(self._n)[index]]
        with self._lock, own_lines_hidden:
            return self._make(range(self._n)[index])


class Snapshot(Generic[ResultT_co, MaskT_co]):
    """The results of a run over the chunks that have been merged so far.

    A snapshot does not change while the run continues. `run_udf_iter` yields snapshots; those of
    DataArrays and signals hold what `run_udf` returns there.

    Parameters
    ----------
    state : RunState
        Partial results of the run.
    make : callable
        Takes the number of a UDF; returns its item of `buffers`.
    make_damage : callable
        Takes the mask of processed frames, shape nav; returns `damage`.

    Examples
    --------
    >>> import dask.array as da, udfdask as ud
    >>> from udfdask.udfs import SumSigUDF
    >>> x = da.ones((2, 3, 4, 4), chunks=(1, 3, 4, 4))
    >>> first, last = ud.run_udf_iter(x, SumSigUDF(), scheduler="synchronous")
    >>> first.damage
    array([[ True,  True,  True],
           [False, False, False]])
    >>> first.buffers[0].masked["intensity"].sum(), last.buffers[0]["intensity"].sum()
    (np.float64(48.0), np.float64(96.0))
    """

    __slots__ = ("_buffers", "_make_damage", "_state")

    def __init__(
        self,
        state: RunState,
        make: Callable[[int], ResultT_co],
        make_damage: Callable[[BoolArray], MaskT_co],
    ) -> None:
        self._state, self._make_damage = state, make_damage
        self._buffers = LazySequence(len(state.infos), make)

    def __repr__(self) -> str:
        return progress_text(self, self._state.infos)

    @property
    def n_merged(self) -> int:
        """Number of chunks that have been merged."""
        return self._state.n_merged

    @property
    def n_chunks(self) -> int:
        """Number of chunks of the run."""
        return self._state.recipe.grid.n_chunks

    @property
    def buffers(self) -> Sequence[ResultT_co]:
        """The computed results of each UDF, in the order of the call.

        A `Result` for each; from a DataArray a Dataset, from a signal a `SignalResult`.

        A result is computed when it is first read: only then, and only once, `get_results` runs.
        """
        return self._buffers

    @property
    def damage(self) -> MaskT_co:
        """Mask of the frames that have been processed, a boolean array of shape nav.

        From a DataArray a DataArray, from a signal a navigation signal.
        """
        return self._make_damage(in_nav_shape(self._state.recipe.grid, self._state.rows, False))


ArraySnapshot: TypeAlias = "Snapshot[Result[ResultArray], BoolArray]"
"""A snapshot of arrays, without labels."""


def progress_text(one: Any, infos: Sequence[ResultInfo]) -> str:
    """Return the text of a snapshot or an iterator."""
    names = ", ".join(info.udf_name for info in infos)
    return f"<{type(one).__name__} of {names}: {one.n_merged} of {one.n_chunks} chunks>"
