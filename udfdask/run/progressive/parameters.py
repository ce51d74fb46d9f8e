"""The recipe of a run whose parameters may change during the run.

Chunk tasks take a `LiveRecipe` instead of a recipe. It has the parameters of the moment when a task
starts, or when the task is pickled and sent to another process.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from udfdask.base.types import is_lazy
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.axes import Calibration
from udfdask.graph.run_layers import PackedRecipe
from udfdask.plan.declarations import check_same_declaration
from udfdask.plan.parameters import copy_parameters, new_instance
from udfdask.plan.pixels import Frame, in_pixels
from udfdask.plan.recipe import Recipe, UDFRecipe
from udfdask.udf import UDF
from udfdask.udf.aux_data import AuxData
from udfdask.udf.params import hidden_collection, lazy_places

Align = Callable[[type[UDF], Mapping[str, Any]], Mapping[str, Any]]


class LiveRecipe:
    """The argument of tasks instead of a recipe: they read `now` when they start.

    It is pickled as the `PackedRecipe` of that moment, so that a task in another process has the
    parameters of the time when it was sent. Changes may be in the units of the axes of
    `calibration`. `align` takes the class of a UDF and changes, and aligns what has labels.
    """

    __slots__ = ("_align", "_calibration", "_given", "_lock", "_recipe", "changed")

    def __init__(
        self,
        recipe: Recipe,
        given: Sequence[Mapping[str, Any]],
        calibration: Calibration,
        align: Align | None,
    ) -> None:
        self._calibration, self._align = calibration, align
        self._lock = threading.Lock()
        self._given = [dict(kwargs) for kwargs in given]  # with all values of aux data
        self.changed: tuple[dict[str, Any], ...] = tuple({} for _ in given)
        """The parameters of each UDF that have changed since the start."""
        self._recipe = _with_new_token(recipe)

    def __reduce__(self) -> tuple[Any, ...]:
        return PackedRecipe(None, self._recipe).__reduce__()

    @property
    def now(self) -> Recipe:
        """The recipe with the current parameters."""
        return self._recipe

    def fill(self, computed: Recipe) -> None:
        """Store the computed lazy parameters, except those that have been changed meanwhile."""
        with self._lock:
            udfs = []
            for given, udf, done in zip(self._given, self._recipe.udfs, computed.udfs, strict=True):
                values = {name: done.kwargs[name] for name in udf.lazy_params}
                given.update(values)
                udfs.append(replace(udf, kwargs={**udf.kwargs, **values}, lazy_params=()))
            corrections = computed.corrections
            self._recipe = replace(self._recipe, udfs=tuple(udfs), corrections=corrections)

    def update(self, changes: Any) -> None:
        """Change parameters, one dictionary for each UDF; after an error, none has changed."""
        with self._lock:
            recipe = self._recipe
            checked, udfs = [], []
            for k, change in enumerate(_check_changes(recipe, changes)):
                udf = recipe.udfs[k]
                if self._align is not None:
                    change = self._align(udf.cls, change)  # noqa: PLW2901
                if udf.cls.calibrated and change:
                    frame = Frame.of(self._calibration, recipe.shape)
                    changed = new_instance(udf.cls, {**self._given[k], **change})
                    change = in_pixels(changed, change, frame, are_all=False)  # noqa: PLW2901
                if change:
                    given = {**self._given[k], **change}
                    check_same_declaration(recipe, k, given, self._calibration)
                checked.append(change)
                # aux data keep all values here: every task takes its own rows from them
                lazy = tuple(name for name in udf.lazy_params if name not in change)
                udfs.append(replace(udf, kwargs={**udf.kwargs, **change}, lazy_params=lazy))
            for given, change in zip(self._given, checked, strict=True):
                given.update(change)
            pairs = zip(self.changed, checked, strict=True)
            self.changed = tuple({**before, **change} for before, change in pairs)
            self._recipe = _with_new_token(replace(recipe, udfs=tuple(udfs)))


def _with_new_token(recipe: Recipe) -> Recipe:
    """Return a recipe with a new token, so that processes do not use cached data of the old one."""
    return replace(recipe, token=uuid.uuid4().hex)


def _check_changes(recipe: Recipe, changes: Any) -> Sequence[Mapping[str, Any]]:
    """Return checked copies of changes of parameters, one mapping per UDF."""
    names = [u.name for u in recipe.udfs]
    right_type = isinstance(changes, (list, tuple)) and all(
        isinstance(change, Mapping) for change in changes
    )
    if not right_type or len(changes) != len(names):
        wrong = ArgumentValueError if right_type else ArgumentTypeError
        raise wrong(
            f"update_parameters expects a list with a dictionary for each of the UDFs {names}, and "
            f"{{}} for a UDF without changes, not {changes!r}"
        )
    for udf, change in zip(recipe.udfs, changes, strict=True):
        for name, value in change.items():
            _check_value(udf, name, value)
    return [copy_parameters(change, {}) for change in changes]


def _check_value(udf: UDFRecipe, name: str, value: Any) -> None:
    """Raise if a parameter cannot change to this value during a run."""
    if name not in udf.kwargs:
        raise ArgumentValueError(
            f"{udf.name} has no parameter {name!r}, only {sorted(udf.kwargs)}, which it passed to "
            "super().__init__"
        )
    where = f"parameter {name!r} of {udf.name}"
    lazy = value.is_lazy if isinstance(value, AuxData) else is_lazy(value)
    if lazy or any(lazy_places(value)) or hidden_collection(value):
        raise ArgumentTypeError(f"{where} cannot become a dask collection: compute it first")
    old, new = (
        (a.kind, a.extra_shape, str(a.dtype)) if isinstance(a, AuxData) else None
        for a in (udf.aux.get(name), value)
    )
    if old != new:
        what = f"aux data of kind, extra_shape and dtype {old}" if old else "no aux data"
        raise ArgumentValueError(f"{where} is {what}, and cannot change to {value!r} in a run")
