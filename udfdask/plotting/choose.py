"""Choose the results to draw: check a user's request against the available results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.axes import Axis
from udfdask.geometry.labels import did_you_mean, few, find_place, labels_as_names
from udfdask.plotting.labels import Described, Labels, label_result, missing_as_nan
from udfdask.plotting.panels import Panel, panels_of

Array = np.ndarray[Any, Any]

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
    axes: Sequence[Axis] | None = None,
    *,
    option: str = "plots",
) -> tuple[Choice, ...]:
    """Return the results to draw, from a user's request and the results of each UDF, checked.

    `option` is the name of the argument that the user passed.
    """
    if asked is True:
        every = [
            choice
            for k, one in enumerate(described)
            for name in one.buffers
            if (choice := _find(name, None, k, one, axes)) is not None
        ]
        chosen = [
            choice
            for choice in every
            for defaults in [described[choice.udf].default_plots]
            if not choice.labels.obstacle and (not defaults or choice.name in defaults)
        ]
        if not chosen:
            whys = [f"{c.name!r}: {c.labels.obstacle}" for c in every] or ["there are no results"]
            raise ArgumentValueError(f"there is nothing to draw. {'; '.join(whys)}")
    else:
        chosen = [
            choice
            for wanted, udfs in _wanted(asked, len(described), option)
            for choice in _chosen(*_pair(wanted, option), udfs, described, axes, option)
        ]
    if len(described) > 1:
        names = [one.name or one.udf_name for one in described]
        chosen = [_titled(one, f"{names[one.udf]}: {one.labels.title}") for one in chosen]
    return tuple(chosen)


def _wanted(asked: Any, n_udfs: int, option: str) -> list[tuple[Any, range]]:
    """Return the requested names and pairs, each with the UDFs that it applies to."""
    every = range(n_udfs)
    if isinstance(asked, str) or _is_pair(asked):
        return [(asked, every)]
    if not isinstance(asked, (list, tuple)):
        raise ArgumentTypeError(f"{option} must be {FORMS}; got {asked!r}")
    if all(isinstance(one, (list, tuple)) and not _is_pair(one) for one in asked):
        if not any(asked):
            raise ArgumentValueError(f"{option} is empty: pass {FORMS}")
        if len(asked) != n_udfs:
            raise ArgumentValueError(
                f"{option} contains {len(asked)} lists, but the number of UDFs is {n_udfs}: write "
                "one list for each UDF, [] to draw nothing of it"
            )
        return [(one, range(k, k + 1)) for k, ones in enumerate(asked) for one in ones]
    return [(one, every) for one in asked]


def _is_pair(asked: Any) -> bool:
    """Return whether a value looks like a pair of a name and a function."""
    return isinstance(asked, tuple) and len(asked) == 2 and not isinstance(asked[1], (str, tuple))


def _pair(wanted: Any, option: str) -> tuple[str, Callable[[Array], Any] | None]:
    """Return the name and the function of a name or a pair, checked."""
    if isinstance(wanted, str):
        return wanted, None
    if not _is_pair(wanted) or not isinstance(wanted[0], str) or not callable(wanted[1]):
        raise ArgumentTypeError(
            f"{option} must be {FORMS} of an array, such as numpy.abs; got {wanted!r} in it"
        )
    return wanted[0], wanted[1]


def _find(
    name: str,
    function: Callable[[Array], Any] | None,
    udf: int,
    described: Described,
    axes: Sequence[Axis] | None,
) -> Choice | None:
    """Return the choice of a result, or a label, of a UDF; None if it has none of this name."""
    place = find_place(name, described.extra_axes)
    if place is None:
        return None
    labels = label_result(described, name, place, axes)
    return Choice(udf=udf, name=name, function=function, labels=labels)


def _chosen(
    name: str,
    function: Callable[[Array], Any] | None,
    udfs: range,
    described: Sequence[Described],
    axes: Sequence[Axis] | None,
    option: str,
) -> list[Choice]:
    """Return a choice for every UDF that has a result, or a label, of this name."""
    found = [_find(name, function, k, described[k], axes) for k in udfs]
    choices = [choice for choice in found if choice is not None]
    if not choices:
        raise ArgumentValueError(
            f"{option} asks for {name!r}, which is not a result: "
            + _unknown(name, [described[k] for k in udfs])
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


def _unknown(name: str, described: Sequence[Described]) -> str:
    """Return the names that UDFs have instead of an unknown one, as text."""
    known: list[str] = []
    texts = []
    for one in described:
        results, labels = sorted(one.buffers), labels_as_names(one.extra_axes)
        known += [*results, *labels]
        also = f" and the labels {few(labels)}" if labels else ""
        texts.append(f"{one.udf_name} has {results}{also}")
    return "; ".join(texts) + did_you_mean(name, known)


def _titled(choice: Choice, title: str) -> Choice:
    """Return a choice with another title."""
    return replace(choice, labels=replace(choice.labels, title=title))


def _relabeled(labels: Labels, made: Array) -> Labels:
    """Return the labels of a function's result; axes are kept if their sizes did not change."""
    if made.shape == labels.shape:
        return replace(labels, dtype=made.dtype)
    n = (
        labels.n_leading
        if made.shape[: labels.n_leading] == labels.shape[: labels.n_leading]
        else 0
    )
    extra = tuple(Axis(name=f"dim_{k}", unit="index") for k in range(made.ndim - n))
    axes, kind = (*labels.axes[:n], *extra), labels.kind if n else "single"
    return replace(labels, shape=made.shape, dtype=made.dtype, axes=axes, n_leading=n, kind=kind)
