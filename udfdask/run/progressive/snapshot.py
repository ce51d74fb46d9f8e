"""Snapshots of a run: the results of all UDFs over the chunks so far, computed when read."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar, overload

import numpy as np

from udfdask.backends.backend import locked
from udfdask.errors import UndeclaredBufferError
from udfdask.geometry.chunk_grid import BoolArray, as_index
from udfdask.merge.finalize import finalize
from udfdask.merge.result_blocks import Holder, assemble, in_nav_shape
from udfdask.plan.recipe import Recipe
from udfdask.results.named_results import ResultInfo
from udfdask.results.result import Result
from udfdask.run.progressive.accumulate import AuxRows, Frozen
from udfdask.run.progressive.live_recipe import Parameters
from udfdask.tracebacks import own_lines_hidden
from udfdask.types import AnyArray

T_co = TypeVar("T_co", covariant=True)


class LazySequence(Sequence[T_co]):
    """A sequence of `n` items; `make` returns the item of a number, and is called once for each.

    With `names`, the name of an item works as well as its number. `make` must not refer to the
    owner of the sequence: such a cycle would keep arrays until the next garbage collection.
    """

    __slots__ = ("_lock", "_make", "_n", "_names")

    def __init__(
        self, n: int, make: Callable[[int], T_co], names: tuple[Hashable, ...] = ()
    ) -> None:
        self._n = n
        self._names = names
        self._make = functools.cache(make)
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return self._n

    @overload
    def __getitem__(self, index: int | str) -> T_co: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T_co]: ...
    def __getitem__(self, index: int | slice | str) -> T_co | Sequence[T_co]:
        if isinstance(index, str):
            if index not in self._names:
                known = f"there are {list(self._names)}" if self._names else "they have no names"
                raise UndeclaredBufferError(f"no UDF of the run is called {index!r}; {known}")
            index = self._names.index(index)
        numbers = range(self._n)[index]
        if isinstance(numbers, range):  # a slice
            return tuple(self[number] for number in numbers)
        # the lock, because a cache alone would let two threads call `make`
        with own_lines_hidden, self._lock:
            return self._make(numbers)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """The state of a run in a snapshot."""

    recipe: Recipe
    """The recipe with the parameters at that time."""
    infos: tuple[ResultInfo, ...]
    """Metadata of the results of each UDF."""
    frozen: tuple[Frozen, ...]
    """State of the results of each UDF."""
    aux: tuple[AuxRows, ...]
    """Aux data of all frames for each UDF."""
    merged_at: AnyArray
    """For each chunk the number of chunks that were merged before it, int, shape (chunks,).

    The run keeps writing to this array: chunks that are merged later get higher numbers.
    """
    n_merged: int
    """Number of chunks that have been merged."""
    generation_of: AnyArray
    """For each merged chunk the index of its parameters, int, shape (chunks,).

    The run keeps writing to this array, for chunks that are merged later.
    """
    parameters: tuple[Parameters, ...]
    """All parameters that the run has had; the last ones are those of `recipe`."""
    names: tuple[Hashable, ...] = ()
    """Names of the UDFs, if they came in a dictionary."""

    @property
    def chunks(self) -> BoolArray:
        """Mask of the merged chunks."""
        return np.asarray(self.merged_at < self.n_merged)

    @property
    def rows(self) -> BoolArray:
        """Mask of the merged rows."""
        return self._by_row(self.chunks)

    @property
    def generations(self) -> AnyArray:
        """For each row the index of its parameters, -1 if it is not merged; int, shape (rows,)."""
        return self._by_row(np.where(self.chunks, self.generation_of, -1))

    def _by_row(self, by_chunk: AnyArray) -> AnyArray:
        """Return the value of the chunk of each row."""
        grid = self.recipe.grid
        rows = np.empty(grid.n_frames, dtype=by_chunk.dtype)
        in_order = as_index(grid.rows_of(0, grid.n_chunks))
        rows[in_order] = np.repeat(by_chunk, grid.counts)
        return rows

    def result(self, number: int) -> Result:
        """Compute the result of a UDF."""
        recipe, grid, valid = self.recipe, self.recipe.grid, self.rows
        udf = recipe.udfs[number]
        rows, combined = self.frozen[number](recipe, self.chunks)
        holders: Sequence[Holder] = rows
        rest: Holder | None = combined
        if udf.has_get_results:
            aux = self.aux[number].over(valid)
            rest = finalize(recipe, number, None, rows, combined, valid, aux)
            holders = [rest]
        made = assemble(grid, tuple(recipe.shape.sig), udf.outputs, holders, rest, valid)
        info = replace(self.infos[number], parameters=self._parameter_text(number))
        return Result(info, *made)

    def _parameter_text(self, number: int) -> str:
        """Return the parameters of a UDF as a text; those that have changed are in pixels."""
        text, first = self.infos[number].parameters, self.parameters[0][number]
        changed = {k: v for k, v in self.parameters[-1][number].items() if v is not first[k]}
        if not changed:
            return text
        from udfdask.plan.parameters import with_changes  # few runs change parameters

        return with_changes(text, changed)


class BaseSnapshot(Generic[T_co]):
    """The base class of snapshots, with one item for the results of each UDF.

    Parameters
    ----------
    state : RunState
        The state of the run.
    make : callable
        Takes the number of a UDF; returns its item. Called when the item is first read.
    """

    __slots__ = ("_made", "_state")

    def __init__(self, state: RunState, make: Callable[[int], T_co]) -> None:
        self._state = state
        self._made = LazySequence(len(state.infos), make, state.names)

    def __repr__(self) -> str:
        names = ", ".join(info.udf_name for info in self._state.infos)
        return f"<{type(self).__name__} of {names}: {self.n_merged} of {self.n_chunks} chunks>"

    @property
    def n_merged(self) -> int:
        """Number of chunks that have been merged."""
        return self._state.n_merged

    @property
    def n_chunks(self) -> int:
        """Number of chunks of the run."""
        return self._state.recipe.grid.n_chunks

    @property
    def buffers(self) -> LazySequence[T_co]:
        """The computed results of each UDF, in the order of the call.

        If the UDFs came in a dictionary, ``buffers["BF"]`` works as well as a number.

        A result is computed when it is first read: only then, and only once, `get_results` runs.
        """
        return self._made

    @property
    def parameters(self) -> tuple[Parameters, ...]:
        """All parameters that the run has had, those of the start first.

        `generations` holds indices into this tuple. Each item has a dictionary of parameters for
        each UDF. The last one is used by merges and `get_results`. Arrays are read-only.
        """
        # the run goes on with these arrays
        return tuple(
            tuple({name: locked(value) for name, value in given.items()} for given in of_udfs)
            for of_udfs in self._state.parameters
        )


class Snapshot(BaseSnapshot[Result]):
    """The results of a run over the chunks that have been merged so far.

    A snapshot does not change while the run continues. `run_udf_iter` yields snapshots.
    `buffers` holds a computed `Result` for each UDF.

    Parameters
    ----------
    state : RunState
        Partial results of the run.

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

    __slots__ = ()

    def __init__(self, state: RunState) -> None:
        super().__init__(state, state.result)

    @property
    def damage(self) -> BoolArray:
        """Mask of the frames that have been processed, a boolean array of shape nav."""
        grid = self._state.recipe.grid
        return in_nav_shape(grid, self._state.rows, False)

    @property
    def generations(self) -> AnyArray:
        """Index into `parameters` of each frame, an integer array of shape nav.

        It is 0 until `update_parameters` is called, and -1 for frames that have not been processed.
        A chunk can consist of several tasks, for example one for each signal chunk. If parameters
        change between them, its frames have the number -2.
        """
        return in_nav_shape(self._state.recipe.grid, self._state.generations, -1)
