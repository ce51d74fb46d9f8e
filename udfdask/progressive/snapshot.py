"""What a run has found so far: results of all UDFs over the same chunks, made when read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from udfdask.backends.device import to_host
from udfdask.finish import finish, whole_mask, whole_result
from udfdask.grid import BoolArray, Grid, as_index
from udfdask.partial import Finished
from udfdask.progressive.growing import AuxRows, Frozen, Parts
from udfdask.progressive.made_once import MadeOnce
from udfdask.recipe import Recipe
from udfdask.results import About, Result
from udfdask.types import AnyArray


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
        parts = self.frozen[number](recipe, self.chunks)
        made = _made(recipe, number, parts, valid, self.aux[number])
        arrays: dict[str, Any] = {}
        masks: dict[str, Any] = {}
        for name, spec in udf.outputs.items():
            if spec.kind != "nav":
                arrays[name] = whole_result(recipe, number, name, made)
                masks[name] = whole_mask(recipe, number, name, made)
                continue
            arrays[name] = _in_nav_shape(grid, made.arrays[name], spec.fill)
            mask = made.masks.get(name)
            if mask is None:
                shape = made.arrays[name].shape
                mask = np.broadcast_to(valid.reshape((-1, *(1 for _ in shape[1:]))), shape)
            masks[name] = _in_nav_shape(grid, mask.copy(), False)
        return Result(self.abouts[number], arrays, masks)


class Snapshot:
    """The results of a run over the chunks that have been merged so far.

    What it holds does not change while the run goes on. Snapshots are made by `run_udf_iter`.

    Parameters
    ----------
    found : Found
        What is kept of the run.

    Attributes
    ----------
    buffers : sequence of Result
        A computed `Result` for each UDF, in the order of the call. Each is made when it is first
        read; only then, and only once, `get_results` of its UDF runs.
    damage : numpy.ndarray of bool, shape nav
        Which frames have been processed.
    n_chunks : int
        Number of chunks of the run.
    n_merged : int
        Number of chunks that have been merged.

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

    __slots__ = ("_found", "_results")

    def __init__(self, found: Found) -> None:
        self._found = found
        self._results = MadeOnce(len(found.abouts), found.result)

    def __repr__(self) -> str:
        names = ", ".join(about.udf_name for about in self._found.abouts)
        return f"<Snapshot of {names}: {self.n_merged} of {self.n_chunks} chunks>"

    @property
    def n_merged(self) -> int:
        """Number of chunks that have been merged."""
        return self._found.n_merged

    @property
    def n_chunks(self) -> int:
        """Number of chunks of the run."""
        return self._found.recipe.grid.n_chunks

    @property
    def buffers(self) -> Sequence[Result]:
        """A computed `Result` for each UDF."""
        return self._results

    @property
    def damage(self) -> BoolArray:
        """Which frames have been processed, shape nav."""
        return _in_nav_shape(self._found.recipe.grid, self._found.rows, False)


def _made(recipe: Recipe, number: int, parts: Parts, valid: BoolArray, aux: AuxRows) -> Finished:
    """Return the results of a UDF from its merged parts: its own arrays, rows in flat order."""
    rows, whole = parts
    udf = recipe.udfs[number]
    if udf.finish:
        return finish(recipe, number, None, rows, whole, valid, aux.over(valid))
    arrays = {}
    for name, spec in udf.outputs.items():
        if spec.kind != "nav":
            assert whole is not None
            arrays[name] = to_host(whole.arrays[name].copy())
            continue
        arrays[name] = spec.allocate(recipe.grid.n_frames, recipe.shape.sig)
        for part in rows:
            where = as_index(recipe.grid.rows_of(part.first, part.stop))
            arrays[name][where] = to_host(part.arrays[name])
    return Finished(arrays, {}, None)


def _in_nav_shape(grid: Grid, rows: AnyArray, fill: Any) -> AnyArray:
    """Return rows of the whole run in navigation shape, positions outside the ROI filled."""
    shape = (*grid.shape, *rows.shape[1:])
    if grid.roi is None:
        return rows.reshape(shape)
    full = np.full(shape, fill, dtype=rows.dtype)
    full[grid.roi] = rows
    return full
