"""Choose the results to draw: check a user's request against the available results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.axes import Axis
from udfdask.geometry.labeled_values import did_you_mean, few, find_place, labels_as_names
from udfdask.plotting.labels import Described, Labels, label_results, missing_as_nan
from udfdask.plotting.panels import Panel, panels_of

Array = np.ndarray[Any, Any]

FORMS = "True, a name, a pair (name, function), or a list of names and pairs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One result to draw."""

    udf: int
    """Index of the UDF, from 0."""
    name: str
    """Name of the result."""
    function: Callable[[Array], Any] | None
    """Function that is applied to the values before they are drawn."""
    labels: Labels
    """Name, shape and axes of what is drawn: the result, or the part of it with a label."""
    index: tuple[Any, ...] | None = None
    """Index of the part of the result that has the label; None for all of it."""

    def panels(self, values: Any, valid: Any, *, log: bool | None) -> tuple[Panel, ...]:
        """Return the panels that show a result with a mask of valid positions."""
        return panels_of(*self.drawn(values, valid), log=log)

    def drawn(self, values: Any, valid: Any) -> tuple[Labels, Array]:
        """Return what is drawn of a result, and its labels; values that are not valid are NaN."""
        part = ... if self.index is None else self.index
        return self.applied(np.asarray(values)[part], np.asarray(valid)[part])

    def applied(self, values: Array, valid: Array) -> tuple[Labels, Array]:
        """Return the values of the function for a result or its part, and their labels."""
        filled, labels = missing_as_nan(values, valid), self.labels
        if self.function is not None:
            with np.errstate(all="ignore"):  # for missing values and the logarithm of zero counts
                filled = np.asarray(self.function(filled))
            labels = _relabeled(labels, filled)
        return labels, filled


def choose(
    asked: Any,
    described: Sequence[Described],
    axes: Any = None,
    *,
    option: str = "plots",
) -> tuple[Choice, ...]:
    """Return the results to draw, from a user's request and the results of each UDF, checked.

    `option` is the name of the argument that the user passed.
    """
    labels = [label_results(one, axes) for one in described]
    names = [one.name or one.udf_name for one in described]
    if asked is True:
        chosen = [
            Choice(udf=k, name=name, function=None, labels=one)
            for k, by_name in enumerate(labels)
            for name, one in by_name.items()
            if not one.obstacle and name in (described[k].default_plots or by_name)
        ]
        if not chosen:
            raise ArgumentValueError(_nothing(labels, names))
    else:
        chosen = [
            choice
            for wanted, udfs in _wanted(asked, len(labels), option)
            for choice in _chosen(*_pair(wanted, option), udfs, labels, described, option)
        ]
    if len(described) > 1:
        return tuple(_titled(choice, f"{names[choice.udf]}: ") for choice in chosen)
    return tuple(chosen)


def _wanted(asked: Any, n_udfs: int, option: str) -> list[tuple[Any, range]]:
    """Return the requested names and pairs, each with the UDFs that it applies to."""
    every = range(n_udfs)
    if isinstance(asked, str) or _is_pair(asked):
        return [(asked, every)]
    if not isinstance(asked, (list, tuple)):
        raise ArgumentTypeError(f"{option} must be {FORMS}; got {asked!r}")
    if not asked:
        raise ArgumentValueError(f"{option} is empty: pass {FORMS}")
    if all(isinstance(one, (list, tuple)) and not _is_pair(one) for one in asked):
        if len(asked) != n_udfs:
            raise ArgumentValueError(
                f"{option} contains {len(asked)} lists, but the number of UDFs is {n_udfs}: write "
                "one list for each UDF, [] to draw nothing of it"
            )
        if not any(asked):
            raise ArgumentValueError(f"{option} contains only empty lists: name a result")
        return [(one, range(k, k + 1)) for k, ones in enumerate(asked) for one in ones]
    return [(one, every) for one in asked]


def _is_pair(asked: Any) -> bool:
    """Return whether a value looks like a pair of a name and a function."""
    return isinstance(asked, tuple) and len(asked) == 2 and not isinstance(asked[1], (str, tuple))


def _pair(wanted: Any, option: str) -> tuple[str, Callable[[Array], Any] | None]:
    """Return the name and the function of a name or a pair, checked."""
    if isinstance(wanted, str):
        return wanted, None
    if not _is_pair(wanted) or not isinstance(wanted[0], str):
        raise ArgumentTypeError(f"{option} must be {FORMS}; got {wanted!r} in it")
    name, function = wanted
    if not callable(function):
        raise ArgumentTypeError(
            f"{option} contains ({name!r}, {function!r}): the second item must be a function of an "
            "array, such as numpy.abs"
        )
    return name, function


def _chosen(
    name: str,
    function: Callable[[Array], Any] | None,
    udfs: range,
    labels: Sequence[dict[str, Labels]],
    described: Sequence[Described],
    option: str,
) -> list[Choice]:
    """Return a choice for every UDF that has a result, or a label, of this name."""
    found = {k: place for k in udfs if (place := find_place(name, described[k].extra_axes))}
    if not found:
        raise ArgumentValueError(
            f"{option} asks for {name!r}, which is not a result: "
            + _unknown(name, [described[k] for k in udfs])
        )
    choices = []
    for k, place in found.items():
        one = labels[k][place.result]
        if place.index is not None:
            one = _part(one, name, place.index)
        if one.obstacle and function is None:
            raise ArgumentValueError(
                f"{option} asks for {name!r} of {described[k].udf_name}, which cannot be drawn: "
                f"{one.obstacle}; pass (name, function) with a function that returns an image or a "
                "line"
            )
        choices.append(
            Choice(udf=k, name=place.result, function=function, labels=one, index=place.index)
        )
    return choices if function is None else [_titled(one, "", _words(function)) for one in choices]


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


def _part(labels: Labels, title: str, index: tuple[Any, ...]) -> Labels:
    """Return the labels of the part of a result at one position along an extra dimension."""
    dim = len(labels.shape) - len(index) + 1  # the index begins with an ellipsis
    return replace(
        labels,
        title=title,
        shape=(*labels.shape[:dim], *labels.shape[dim + 1 :]),
        axes=(*labels.axes[:dim], *labels.axes[dim + 1 :]),
    )


def _words(function: Callable[[Array], Any]) -> str:
    """Return the name of a function, empty for a lambda."""
    name = getattr(function, "__name__", "")
    return name if name.isidentifier() else ""


def _titled(choice: Choice, before: str, function: str = "") -> Choice:
    """Return a choice with a prefix before its title, or with a function name around it."""
    title = f"{function}({choice.labels.title})" if function else choice.labels.title
    return replace(choice, labels=replace(choice.labels, title=before + title))


def _relabeled(labels: Labels, made: Array) -> Labels:
    """Return the labels of a function's result; axes are kept if their sizes did not change."""
    if made.shape == labels.shape:
        return replace(labels, dtype=made.dtype)
    n = labels.n_leading
    if made.shape[:n] != labels.shape[:n]:
        n = 0
    extra = tuple(Axis(name=f"dim_{k}", unit="index") for k in range(made.ndim - n))
    return replace(
        labels,
        shape=made.shape,
        dtype=made.dtype,
        axes=(*labels.axes[:n], *extra),
        n_leading=n,
        kind=labels.kind if n else "single",
    )


def _nothing(labels: Sequence[dict[str, Labels]], names: Sequence[str]) -> str:
    """Return the message that says why nothing can be drawn."""
    reasons = [
        f"{name!r} of {udf}: {one.obstacle}"
        for udf, by_name in zip(names, labels, strict=True)
        for name, one in by_name.items()
    ]
    why = "; ".join(reasons) or f"{', '.join(names)} has no results"
    return f"there is nothing to draw. {why}"
