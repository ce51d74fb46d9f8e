"""The recipe of a run whose parameters may change while it goes on.

Chunk tasks take a `LiveRecipe` in place of a recipe. It gives the parameters of the moment when a
task starts, or when the task is pickled and sent away.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.plan.copy_parameters import copy_parameters
from udfdask.plan.declarations import check_same_declaration
from udfdask.plan.recipe import Recipe, UDFRecipe
from udfdask.udf.aux_data import AuxData
from udfdask.udf.nested_collections import hidden_collection, is_lazy, lazy_places


class LiveRecipe:
    """What tasks are given in place of a recipe: they ask for `now` when they start.

    Pickled, it is the recipe of that moment, so that a task in another process works with the
    parameters of when it was sent there. `given` holds the parameters of each UDF, with all values
    of aux data.
    """

    __slots__ = ("_given", "_lock", "_recipe")

    def __init__(self, recipe: Recipe, given: Sequence[Mapping[str, Any]]) -> None:
        self._lock = threading.Lock()
        self._given = [dict(kwargs) for kwargs in given]
        self._recipe = _renamed(recipe)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_arrived, (self._recipe,))

    @property
    def now(self) -> Recipe:
        """The recipe with the parameters of this moment."""
        return self._recipe

    def fill(self, computed: Recipe) -> None:
        """Take over the values of lazy parameters, where nobody has given others meanwhile."""
        with self._lock:
            udfs = []
            for k, (udf, done) in enumerate(zip(self._recipe.udfs, computed.udfs, strict=True)):
                values = {name: done.kwargs[name] for name in udf.lazy_params}
                self._given[k].update(values)
                udfs.append(replace(udf, kwargs={**udf.kwargs, **values}, lazy_params=()))
            corrections = computed.corrections
            self._recipe = replace(self._recipe, udfs=tuple(udfs), corrections=corrections)

    def update(self, changes: Any) -> None:
        """Change parameters, given as a dictionary for each UDF; on an error, none of them."""
        with self._lock:
            recipe = self._recipe
            given, udfs = [], []
            for k, change in enumerate(_checked(recipe, changes)):
                udf, kwargs = recipe.udfs[k], {**self._given[k], **change}
                if change:
                    check_same_declaration(recipe, k, kwargs)
                lazy = tuple(name for name in udf.lazy_params if name not in change)
                given.append(kwargs)
                # aux data with their values: every task takes its own rows out of them
                udfs.append(replace(udf, kwargs={**udf.kwargs, **change}, lazy_params=lazy))
            self._given = given
            self._recipe = _renamed(replace(recipe, udfs=tuple(udfs)))


def _renamed(recipe: Recipe) -> Recipe:
    """Return a recipe under a new name, for which processes make new shared task data."""
    return replace(recipe, token=uuid.uuid4().hex)


def _arrived(recipe: Recipe) -> Recipe:
    """Return what a pickled live recipe is elsewhere."""
    return recipe


def _checked(recipe: Recipe, changes: Any) -> Sequence[Mapping[str, Any]]:
    """Return changes of parameters, one mapping per UDF, all names known."""
    names = [u.name for u in recipe.udfs]
    if isinstance(changes, (str, bytes, Mapping)) or not isinstance(changes, Sequence):
        raise ArgumentTypeError(
            f"update_parameters expects a list with a dictionary for each UDF ({names}), got a "
            f"{type(changes).__name__}: write [{{...}}], and {{}} for a UDF that stays as it is"
        )
    if len(changes) != len(names):
        raise ArgumentValueError(
            f"update_parameters expects {len(names)} dictionaries, one for each UDF ({names}), "
            f"got {len(changes)}: write {{}} for a UDF that stays as it is"
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
    """Raise if a parameter cannot become this value while a run goes on."""
    where = f"parameter {name!r} of {udf.name}"
    if name not in udf.kwargs:
        raise ArgumentValueError(
            f"{udf.name} has no parameter {name!r}: there are {sorted(udf.kwargs)}, the ones "
            "that were given to super().__init__"
        )
    lazy = value.is_lazy if isinstance(value, AuxData) else is_lazy(value)
    if lazy or any(lazy_places(value)) or hidden_collection(value):
        raise ArgumentTypeError(
            f"{where} cannot become a dask collection, or hold one, while a run goes on: compute "
            "it first"
        )
    old = udf.aux.get(name)
    if old is None and isinstance(value, AuxData):
        raise ArgumentTypeError(f"{where} is not aux data and cannot become it in the same run")
    if old is None:
        return
    if not isinstance(value, AuxData):
        raise ArgumentTypeError(
            f"{where} is aux data: pass UDF.aux_data(..., kind={old.kind!r}), not a "
            f"{type(value).__name__}"
        )
    before, after = ((a.kind, a.extra_shape, str(a.dtype)) for a in (old, value))
    if before != after:
        raise ArgumentValueError(
            f"{where} must keep kind, extra_shape and dtype {before}, but came with {after}"
        )
