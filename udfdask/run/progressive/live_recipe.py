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

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.axes import Calibration
from udfdask.graph.recipes_of_tasks import PackedRecipe
from udfdask.plan.declarations import check_same_declaration
from udfdask.plan.parameters import copy_parameters, new_instance
from udfdask.plan.pixels import Frame, in_pixels
from udfdask.plan.recipe import Recipe, UDFRecipe
from udfdask.types import is_lazy
from udfdask.udf import UDF
from udfdask.udf.aux_data import AuxData
from udfdask.udf.params import hidden_collection, lazy_places

Parameters = tuple[dict[str, Any], ...]
"""The parameters of each UDF by name, with all values of aux data."""

Align = Callable[[type[UDF], Mapping[str, Any]], Mapping[str, Any]]


class LiveRecipe:
    """The argument of tasks instead of a recipe: they read `now` when they start.

    It is pickled as the `PackedRecipe` of that moment, so that a task in another process has the
    parameters of the time when it was sent. `generations` holds all parameters that the run has
    had; `Recipe.generation` is their index. Changes may be in the units of the axes of
    `calibration`. `align` takes the class of a UDF and changes, and aligns what has labels.
    """

    __slots__ = ("_align", "_calibration", "_lock", "_recipe", "generations")

    def __init__(
        self,
        recipe: Recipe,
        given: Sequence[Mapping[str, Any]],
        calibration: Calibration,
        align: Align | None,
    ) -> None:
        self._calibration = calibration
        self._align = align
        self._lock = threading.Lock()
        self.generations: tuple[Parameters, ...] = (tuple(dict(kwargs) for kwargs in given),)
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
            udfs, filled = [], []
            for udf, done in zip(self._recipe.udfs, computed.udfs, strict=True):
                values = {name: done.kwargs[name] for name in udf.lazy_params}
                filled.append(values)
                udfs.append(replace(udf, kwargs={**udf.kwargs, **values}, lazy_params=()))
            corrections = computed.corrections
            self._recipe = replace(self._recipe, udfs=tuple(udfs), corrections=corrections)
            self.generations = tuple(
                tuple({**kwargs, **values} for kwargs, values in zip(given, filled, strict=True))
                for given in self.generations
            )

    def update(self, changes: Any) -> None:
        """Change parameters, one dictionary for each UDF; after an error, none has changed."""
        with self._lock:
            recipe = self._recipe
            given, udfs = [], []
            for k, change in enumerate(_check_changes(recipe, changes)):
                udf = recipe.udfs[k]
                if self._align is not None:
                    change = self._align(udf.cls, change)  # noqa: PLW2901
                if udf.cls.calibrated and change:
                    change = self._in_pixels(udf, self.generations[-1][k], change)  # noqa: PLW2901
                kwargs = {**self.generations[-1][k], **change}
                if change:
                    check_same_declaration(recipe, k, kwargs, self._calibration)
                lazy = tuple(name for name in udf.lazy_params if name not in change)
                given.append(kwargs)
                # aux data keep all values here: every task takes its own rows from them
                udfs.append(replace(udf, kwargs={**udf.kwargs, **change}, lazy_params=lazy))
            newer = replace(recipe, udfs=tuple(udfs), generation=len(self.generations))
            self.generations = (*self.generations, tuple(given))
            self._recipe = _with_new_token(newer)

    def _in_pixels(
        self, udf: UDFRecipe, before: Mapping[str, Any], change: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Return changes of the parameters of a UDF in pixels; `before` are its parameters."""
        shape = self._recipe.shape
        frame = Frame.of(self._calibration, shape, shape.sig_dims)
        changed = new_instance(udf.cls, {**before, **change})
        return in_pixels(changed, change, frame, are_all=False)


def _with_new_token(recipe: Recipe) -> Recipe:
    """Return a recipe with a new token, so that processes do not use cached data of the old one."""
    return replace(recipe, token=uuid.uuid4().hex)


def _check_changes(recipe: Recipe, changes: Any) -> Sequence[Mapping[str, Any]]:
    """Return checked changes of parameters, one mapping per UDF."""
    names = [u.name for u in recipe.udfs]
    if isinstance(changes, (str, bytes, Mapping)) or not isinstance(changes, Sequence):
        raise ArgumentTypeError(
            f"update_parameters expects a list with a dictionary for each UDF ({names}), got a "
            f"{type(changes).__name__}: write [{{...}}], with {{}} for a UDF without changes"
        )
    if len(changes) != len(names):
        raise ArgumentValueError(
            f"update_parameters expects {len(names)} dictionaries, one for each UDF ({names}), "
            f"got {len(changes)}: write {{}} for a UDF without changes"
        )
    for udf, change in zip(recipe.udfs, changes, strict=True):
        if not isinstance(change, Mapping):
            raise ArgumentTypeError(
                f"the changes for {udf.name} must be a dictionary of parameters, not {change!r}"
            )
        for name, value in change.items():
            _check_value(udf, name, value)
    return [copy_parameters(change, {}) for change in changes]


def _check_value(udf: UDFRecipe, name: str, value: Any) -> None:
    """Raise if a parameter cannot change to this value during a run."""
    where = f"parameter {name!r} of {udf.name}"
    if name not in udf.kwargs:
        raise ArgumentValueError(
            f"{udf.name} has no parameter {name!r}, only {sorted(udf.kwargs)}, which it passed to "
            "super().__init__"
        )
    lazy = value.is_lazy if isinstance(value, AuxData) else is_lazy(value)
    if lazy or any(lazy_places(value)) or hidden_collection(value):
        raise ArgumentTypeError(
            f"{where} cannot become a dask collection, or contain one, during a run: compute it "
            "first"
        )
    old, new = (
        (a.kind, a.extra_shape, str(a.dtype)) if isinstance(a, AuxData) else None
        for a in (udf.aux.get(name), value)
    )
    if old != new:
        what = f"aux data of kind, extra_shape and dtype {old}" if old else "no aux data"
        raise ArgumentValueError(f"{where} is {what}, and cannot change to {value!r} in a run")
