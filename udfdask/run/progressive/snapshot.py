"""What a run has found so far: results of all UDFs over the same chunks, made when read."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, overload

import numpy as np

from udfdask.arrays.geometry.chunk_grid import BoolArray, as_index
from udfdask.merge.finalize import finish
from udfdask.merge.result_blocks import Holder, assemble, in_nav_shape
from udfdask.plan.recipe import Recipe
from udfdask.results.named_results import About
from udfdask.results.result import Result
from udfdask.run.progressive.accumulate import AuxRows, Frozen
from udfdask.types import AnyArray

T_co = TypeVar("T_co", covariant=True)


class MadeOnce(Sequence[T_co]):
    """So many items, each of which `make` returns for its number, once.

    What `make` holds must not refer to the owner of the sequence: in a cycle, both would stay until
    the garbage collector comes.
    """

    __slots__ = ("_items", "_lock", "_make", "_n")

    def __init__(self, n: int, make: Callable[[int], T_co]) -> None:
        self._n = n
        self._make = make
        self._items: dict[int, T_co] = {}
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return self._n

    @overload
    def __getitem__(self, index: int) -> T_co: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T_co]: ...
    def __getitem__(self, index: int | slice) -> T_co | Sequence[T_co]:
        numbers = range(self._n)[index]
        if isinstance(numbers, range):
            return tuple(self[number] for number in numbers)
        with self._lock:
            if numbers not in self._items:
                self._items[numbers] = self._make(numbers)
            return self._items[numbers]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a snapshot keeps of a run."""

    recipe: Recipe
    """The recipe with the parameters of the moment."""
    abouts: tuple[About, ...]
    """What the result of each UDF knows besides its arrays."""
    frozen: tuple[Frozen, ...]
    """What is kept of the results of each UDF."""
    aux: tuple[AuxRows, ...]
    """Aux data of the frames, of each UDF."""
    merged_at: AnyArray
    """The how-manieth each chunk was to be merged, from 0, int, shape (chunks,).

    Those merged later show up here, with higher numbers.
    """
    n_merged: int
    """Number of chunks that have been merged."""

    @property
    def chunks(self) -> BoolArray:
        """Which chunks have been merged."""
        return np.asarray(self.merged_at < self.n_merged)

    @property
    def rows(self) -> BoolArray:
        """Which rows have been merged."""
        grid = self.recipe.grid
        rows = np.zeros(grid.n_frames, dtype=bool)
        in_order = as_index(grid.rows_of(0, grid.n_chunks))
        rows[in_order] = np.repeat(self.chunks, grid.counts)
        return rows

    def result(self, number: int) -> Result:
        """Return the result of a UDF."""
        recipe, grid, valid = self.recipe, self.recipe.grid, self.rows
        udf = recipe.udfs[number]
        rows, whole = self.frozen[number](recipe, self.chunks)
        holders: Sequence[Holder] = rows
        rest: Holder | None = whole
        if udf.finish:
            aux = self.aux[number].over(valid)
            rest = finish(recipe, number, None, rows, whole, valid, aux)
            holders = [rest]
        made = assemble(grid, tuple(recipe.shape.sig), udf.outputs, holders, rest, valid)
        return Result(self.abouts[number], *made)


class PartialRun(Generic[T_co]):
    """The state of a run after some of its chunks, with one item for the results of each UDF.

    Parameters
    ----------
    found : Found
        What is kept of the run.
    make : callable
        Takes the number of a UDF; returns its item, made when it is first read.
    """

    __slots__ = ("_found", "_made")

    def __init__(self, found: Found, make: Callable[[int], T_co]) -> None:
        self._found = found
        self._made = MadeOnce(len(found.abouts), make)

    def __repr__(self) -> str:
        names = ", ".join(about.udf_name for about in self._found.abouts)
        return f"<{type(self).__name__} of {names}: {self.n_merged} of {self.n_chunks} chunks>"

    @property
    def n_merged(self) -> int:
        """Number of chunks that have been merged."""
        return self._found.n_merged

    @property
    def n_chunks(self) -> int:
        """Number of chunks of the run."""
        return self._found.recipe.grid.n_chunks

    @property
    def buffers(self) -> Sequence[T_co]:
        """The computed results of each UDF, in the order of the call.

        Each is made when it is first read; only then, and only once, `get_results` of its UDF runs.
        """
        return self._made


class Snapshot(PartialRun[Result]):
    """The results of a run over the chunks that have been merged so far.

    What it holds does not change while the run goes on. Snapshots are made by `run_udf_iter`.
    `buffers` holds a computed `Result` for each UDF.

    Parameters
    ----------
    found : Found
        What is kept of the run.

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

    def __init__(self, found: Found) -> None:
        super().__init__(found, found.result)

    @property
    def damage(self) -> BoolArray:
        """Which frames have been processed, an array of booleans, shape nav."""
        grid = self._found.recipe.grid
        return in_nav_shape(grid, self._found.rows, False)
