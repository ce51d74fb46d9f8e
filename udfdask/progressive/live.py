"""The recipe of a run whose parameters may change while it goes on."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dask.base import is_dask_collection

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.recipe import Recipe, UDFRecipe, redeclare


class LiveRecipe:
    """What tasks are given in place of a recipe: they ask for `now` when they start.

    Pickled, it is the recipe of that moment, so that a task in another process works with the
    parameters of when it was sent there.
    """

    __slots__ = ("_lock", "_recipe")

    def __init__(self, recipe: Recipe) -> None:
        self._lock = threading.Lock()
        self._recipe = recipe

    def __reduce__(self) -> tuple[Any, ...]:
        return (_arrived, (self._recipe,))

    @property
    def now(self) -> Recipe:
        """The recipe with the parameters of this moment."""
        return self._recipe

    def fill(self, computed: Recipe) -> None:
        """Take over the values of lazy parameters, where nobody has given others meanwhile."""
        with self._lock:
            values = {
                (number, name): computed.udfs[number].kwargs[name]
                for number, udf in enumerate(self._recipe.udfs)
                for name in udf.lazy_params
            }
            filled = self._recipe.with_params(values)
            udfs = tuple(replace(u, lazy_params=()) for u in filled.udfs)
            self._recipe = replace(filled, udfs=udfs)

    def update(self, changes: Any) -> None:
        """Change parameters, given as a dictionary for each UDF; on an error, none of them."""
        with self._lock:
            recipe = self._recipe
            checked = _checked(recipe, changes)
            udfs = tuple(
                redeclare(recipe, k, {**u.kwargs, **c}) if c else u
                for k, (u, c) in enumerate(zip(recipe.udfs, checked, strict=True))
            )
            self._recipe = replace(recipe, udfs=udfs)


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
        _check_one(udf, change)
    return changes


def _check_one(udf: UDFRecipe, change: Any) -> None:
    """Raise if this is not a change of known parameters to values."""
    if not isinstance(change, Mapping):
        raise ArgumentTypeError(
            f"the changes for {udf.name} must be a dictionary of parameters, not {change!r}"
        )
    for name, value in change.items():
        if name not in udf.kwargs:
            raise ArgumentValueError(
                f"{udf.name} has no parameter {name!r}: there are {sorted(udf.kwargs)}, the ones "
                "that were given to super().__init__"
            )
        if is_dask_collection(value):
            raise ArgumentTypeError(
                f"parameter {name!r} of {udf.name} cannot become a dask collection while a run "
                "goes on: compute it first"
            )
