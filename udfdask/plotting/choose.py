"""Choose the results to draw: check a user's request against the available results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.axes import Axis
from udfdask.geometry.labels import did_you_mean, few, find_place, labels_as_names
from udfdask.plotting.panels import (
    Array,
    Described,
    Labels,
    Panel,
    label_result,
    missing_as_nan,
    panels_of,
)

FORMS = "True, a name, a pair (name, function), or a list of names and pairs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One result to draw."""

    udf: int
    """Index of the UDF, from 0."""
    name: str
    """Name of the result, or a label such as the name of a mask."""
    function: Callable[[Array], Any] | None
    """Function that is applied to the values before they are drawn."""
    labels: Labels
    """Name, shape and axes of what is drawn."""

    def panels(
        self, values: Any, valid: Any, *, log: bool | None = None, **look: Any
    ) -> tuple[Panel, ...]:
        """Return the panels that show values with a mask of valid positions.

        `look` has the limits and colors, as fields of `Panel`; angles keep their own.
        """
        shown, labels = missing_as_nan(np.asarray(values), np.asarray(valid)), self.labels
        if self.function is not None:
            with np.errstate(all="ignore"):  # for missing values and the logarithm of zero counts
                shown = np.asarray(self.function(shown))
            labels = _relabeled(labels, shown)
        panels = panels_of(labels, shown, log=log)
        return tuple(one if one.style == "phase" else replace(one, **look) for one in panels)


def choose(
    asked: Any,
    described: Sequence[Described],
    *,
    option: str = "plots",
) -> tuple[Choice, ...]:
    """Return the results to draw, from a user's request and the results of each UDF, checked.

    `option` is the name of the argument that the user passed.
    """
    if asked is True:
        every = [
            _find(name, None, k, one)
            for k, one in enumerate(described)
            for name in one.default_plots or one.buffers
        ]
        chosen = [one for one in every if one is not None and not one.labels.obstacle]
        if not chosen:
            raise ArgumentValueError("there is nothing to draw: no result is an image or a line")
    else:
        wanted = asked if isinstance(asked, (list, tuple)) and not _is_pair(asked) else [asked]
        if not wanted:
            raise ArgumentValueError(f"{option} is empty: pass {FORMS}")
        chosen = [one for each in wanted for one in _chosen(each, described, option)]
    if len(described) > 1:
        names = [one.name or one.udf_name for one in described]
        chosen = [_titled(one, f"{names[one.udf]}: {one.labels.title}") for one in chosen]
    return tuple(chosen)


def _is_pair(asked: Any) -> bool:
    """Return whether a value looks like a pair of a name and a function."""
    return isinstance(asked, tuple) and len(asked) == 2 and callable(asked[1])


def _find(
    name: str,
    function: Callable[[Array], Any] | None,
    udf: int,
    described: Described,
) -> Choice | None:
    """Return the choice of a result, or a label, of a UDF; None if it has none of this name."""
    place = find_place(name, described.extra_axes)
    if place is None:
        return None
    labels = label_result(described, name, place)
    return Choice(udf=udf, name=name, function=function, labels=labels)


def _chosen(wanted: Any, described: Sequence[Described], option: str) -> list[Choice]:
    """Return a choice for every UDF that has a result, or a label, of a name or a pair."""
    name, function = wanted if _is_pair(wanted) else (wanted, None)
    if not isinstance(name, str):
        raise ArgumentTypeError(f"{option} must be {FORMS}; got {wanted!r} in it")
    found = [_find(name, function, k, one) for k, one in enumerate(described)]
    choices = [choice for choice in found if choice is not None]
    if not choices:
        known = [n for one in described for n in (*one.buffers, *labels_as_names(one.extra_axes))]
        raise ArgumentValueError(
            f"{option} asks for {name!r}, which is not one of the results {few(known)}"
            f"{did_you_mean(name, known)}"
        )
    if function is not None:
        called = getattr(function, "__name__", "")
        is_named = called.isidentifier()  # a lambda has no name
        return [_titled(one, f"{called}({name})") if is_named else one for one in choices]
    for choice in choices:
        if choice.labels.obstacle:
            raise ArgumentValueError(
                f"{option} asks for {name!r} of {described[choice.udf].udf_name}, which cannot be "
                f"drawn: {choice.labels.obstacle}; pass (name, function) with a function that "
                "returns an image or a line"
            )
    return choices


def _titled(choice: Choice, title: str) -> Choice:
    """Return a choice with another title."""
    return replace(choice, labels=replace(choice.labels, title=title))


def _relabeled(labels: Labels, made: Array) -> Labels:
    """Return the labels of a function's result; axes are kept if their sizes did not change."""
    labels = replace(labels, look={})
    if made.shape == labels.shape:
        return labels
    n = labels.n_leading
    if made.shape[:n] != labels.shape[:n]:
        labels, n = replace(labels, kind="single"), 0
    extra = tuple(Axis(name=f"dim_{k}", unit="index") for k in range(made.ndim - n))
    return replace(labels, axes=(*labels.axes[:n], *extra), n_leading=n)
