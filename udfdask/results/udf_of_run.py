"""The UDF of a result: a new instance that knows the run, as `Result.udf` shows it.

A run makes an instance for each chunk and for each merge, and keeps none of them. This one is made
on request. It sees what `get_results` sees, except for the buffers.
"""

from __future__ import annotations

import functools
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakValueDictionary

from udfdask.backends.backend import locked
from udfdask.errors import UDFError
from udfdask.geometry.axes import Calibration
from udfdask.geometry.chunk_grid import BoolArray
from udfdask.plan.copy_parameters import copy_parameters
from udfdask.plan.declarations import new_instance
from udfdask.plan.recipe import CORRECTIONS, Recipe
from udfdask.udf import UDF, UDFMethod
from udfdask.udf.aux_data import AuxData
from udfdask.udf.base import overrides
from udfdask.udf.meta import Cursor, UDFMeta
from udfdask.udf.params import Params, TaskData


@dataclass(frozen=True, slots=True)
class NoUDF:
    """Stand in for `UDFOfRun` where the parameters of the UDF are not kept."""

    why: str
    """Why they are not, and what to do."""
    key: str | None = None
    """Key of the `UDFOfRun` in another process, to which it may be sent back."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (NoUDF, (self.why,)) if self.key is None else (_with_key, (self.key,))

    def make(self) -> UDF:
        """Raise the error for a result without its UDF."""
        raise UDFError(self.why)

    def without_graph(self) -> NoUDF:
        """Return itself."""
        return self


_SENT = (
    "this result comes from a pickle or from another process, which does not keep the UDF and its "
    "parameters: result.udf exists in the process that called run_udf, as long as the lazy result "
    "is kept there until this one is computed"
)
_LAZY = NoUDF(
    "a parameter of the UDF or of corrections= is a dask array, and a computed result does not "
    "keep the data that it is made of: use .udf of the lazy result, or compute the parameter first"
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class UDFOfRun:
    """What an instance is made of.

    It is pickled as its key. A cluster makes computed results on a worker and sends them back, so
    that the process where it lives gets the key again.
    """

    key: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Name in this process."""
    kwargs: Mapping[str, Any]
    """Its parameters, with the values of aux data."""
    recipe: Recipe
    """Recipe of the run, with this UDF alone and without shifts of frames."""
    interpolated: bool
    """Whether frames are shifted by parts of a pixel."""
    calibration: Calibration
    """Axes of the data and unit of the values."""
    merged: BoolArray | None
    """Mask of the merged rows; None for all."""
    is_lazy: bool
    """Whether a parameter, or corrections, are dask collections."""

    def __post_init__(self) -> None:
        _alive[self.key] = self

    def __reduce__(self) -> tuple[Any, ...]:
        return (_with_key, (self.key,))

    def __dask_tokenize__(self) -> Any:
        return ()  # the names of the tasks of a run tell its UDFs

    def __deepcopy__(self, memo: Any) -> UDFOfRun:
        return self

    def without_graph(self) -> UDFOfRun | NoUDF:
        """Return it for a computed result, which must not keep the data of lazy parameters."""
        return _LAZY if self.is_lazy else self

    def make(self) -> UDF:
        """Return a new instance that sees the whole run."""
        recipe, grid = self.recipe, self.recipe.grid
        (declared,) = recipe.udfs
        # copies: the run goes on with these values
        udf = new_instance(declared.cls, copy_parameters(self.kwargs, {}))
        cursor = Cursor(0, grid.n_chunks, grid.n_frames)
        cursor.flat = True
        cursor.merged = (0, grid.n_chunks) if self.merged is None else self.merged
        udf.meta = UDFMeta(
            grid=grid,
            dataset_shape=recipe.shape,
            dataset_dtype=recipe.dtype,
            input_dtype=declared.input_dtype,
            tiling=recipe.tiling if declared.method is UDFMethod.TILE else recipe.tiling.uncut,
            threads=recipe.threads,
            cursor=cursor,
            corrections=recipe.corrections,
            interpolated=self.interpolated,
            calibration=self.calibration,
        )
        aux = {
            name: self._values(value)
            for name, value in self.kwargs.items()
            if isinstance(value, AuxData) and not value.is_lazy
        }
        if aux:
            udf.params = Params({**udf.params.__dict__, **aux})
        if overrides(udf, "get_shared_task_data"):
            # get_task_data may use the shared data, which can take long to make
            udf.get_task_data = functools.partial(_task_data, udf)  # type: ignore[method-assign]
        return udf

    def _values(self, aux: AuxData) -> Any:
        """Return the values of aux data that the UDF sees over the whole run."""
        values, grid = aux.over(self.recipe.shape), self.recipe.grid
        if aux.kind != "nav":
            return values
        rows = values.reshape((grid.size, *aux.extra_shape))
        roi = grid.roi
        return rows if roi is None else locked(rows[roi.reshape(-1)])


_alive: WeakValueDictionary[str, UDFOfRun] = WeakValueDictionary()
"""Those of this process by key."""


def _with_key(key: str) -> UDFOfRun | NoUDF:
    """Return the one of a key if it is from this process, when pickle loads it."""
    return _alive.get(key) or NoUDF(_SENT, key)


def udf_of_run(
    recipe: Recipe,
    number: int,
    kwargs: Mapping[str, Any],
    calibration: Calibration,
    merged: BoolArray | None = None,
) -> UDFOfRun:
    """Return the UDF of this number in a run; `kwargs` are its parameters with all aux data."""
    descan = recipe.descan
    aux_is_lazy = any(isinstance(v, AuxData) and v.is_lazy for v in kwargs.values())
    return UDFOfRun(
        kwargs=kwargs,
        recipe=replace(recipe, udfs=(recipe.udfs[number],), descan=None),
        interpolated=descan is not None and descan.subpixel,
        calibration=calibration,
        merged=merged,
        is_lazy=aux_is_lazy or any(k in (number, CORRECTIONS) for k, _ in recipe.lazy_slots),
    )


def _task_data(udf: UDF) -> Mapping[str, Any]:
    """Return the task data of a UDF, after its shared task data have been made."""
    if "task_data" not in udf.__dict__:
        udf.task_data = TaskData(udf.get_shared_task_data())
    return type(udf).get_task_data(udf)
