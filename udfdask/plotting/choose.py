"""Which results are drawn: what a user asks for, checked against what there is."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from udfdask.arrays.geometry.axes import Axis
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.plotting.labels import NUMBERS, Described, Labels, label_results
from udfdask.plotting.panels import Panel, missing_as_nan, panels_of

Array = np.ndarray[Any, Any]

FORMS = "True, a name, a pair (name, function), or a list of names and pairs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One result to be drawn."""

    udf: int
    """The how-manieth UDF, from 0."""
    name: str
    """Name of the result."""
    function: Callable[[Array], Any] | None
    """What is applied to the values before they are drawn."""
    labels: Labels
    """What the result is."""

    def panels(self, values: Any, valid: Any, *, log: bool | None) -> tuple[Panel, ...]:
        """Take the values and where they are valid; return the panels that show them."""
        filled, labels = missing_as_nan(np.asarray(values), np.asarray(valid)), self.labels
        if self.function is not None:
            with np.errstate(all="ignore"):  # what is missing, and the logarithm of zero counts
                filled = np.asarray(self.function(filled))
            labels = _relabeled(labels, filled)
        return panels_of(labels, filled, log=log)


def choose(
    asked: Any,
    described: Sequence[Described],
    axes: Any = None,
    *,
    option: str = "plots",
    finished: bool = False,
) -> tuple[Choice, ...]:
    """Take what a user asks for and the results of each UDF; return what is drawn, checked.

    `option` is what the argument is called where the user wrote it, `finished` whether all values
    will be there.
    """
    labels = [label_results(one, axes) for one in described]
    names = [one.udf_name for one in described]
    if asked is True:
        chosen = [
            Choice(udf=k, name=name, function=None, labels=one)
            for k, by_name in enumerate(labels)
            for name, one in by_name.items()
            if not one.obstacle
        ]
        if not chosen:
            raise ArgumentValueError(_nothing(labels, names))
    else:
        chosen = [
            choice
            for wanted, udfs in _wanted(asked, len(labels), option)
            for choice in _chosen(*_pair(wanted, option), udfs, labels, names, option)
        ]
    for choice in chosen:
        _try(choice, names[choice.udf], finished=finished)
    if len(described) > 1:
        return tuple(_titled(choice, f"{names[choice.udf]}: ") for choice in chosen)
    return tuple(chosen)


def _wanted(asked: Any, n_udfs: int, option: str) -> list[tuple[Any, range]]:
    """Take what a user asks for; return names and pairs, each with the UDFs that it is for."""
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
                f"{option} holds {len(asked)} lists, but the number of UDFs is {n_udfs}: write a "
                "list for each, [] for one of which nothing is drawn"
            )
        if not any(asked):
            raise ArgumentValueError(f"{option} holds nothing but empty lists: name a result")
        return [(one, range(k, k + 1)) for k, ones in enumerate(asked) for one in ones]
    return [(one, every) for one in asked]


def _is_pair(asked: Any) -> bool:
    """Whether something is meant as a name and a function."""
    return isinstance(asked, tuple) and len(asked) == 2 and not isinstance(asked[1], (str, tuple))


def _pair(wanted: Any, option: str) -> tuple[str, Callable[[Array], Any] | None]:
    """Take a name or a pair; return name and function, checked."""
    if isinstance(wanted, str):
        return wanted, None
    if not _is_pair(wanted) or not isinstance(wanted[0], str):
        raise ArgumentTypeError(f"{option} must be {FORMS}; got {wanted!r} in it")
    name, function = wanted
    if not callable(function):
        raise ArgumentTypeError(
            f"{option} holds ({name!r}, {function!r}): the second one must be a function of an "
            "array, such as numpy.abs"
        )
    return name, function


def _chosen(
    name: str,
    function: Callable[[Array], Any] | None,
    udfs: range,
    labels: Sequence[dict[str, Labels]],
    names: Sequence[str],
    option: str,
) -> list[Choice]:
    """Return the choices that a name means: of every UDF that has a result of this name."""
    found = [k for k in udfs if name in labels[k]]
    if not found:
        there = "; ".join(f"{names[k]} has {sorted(labels[k])}" for k in udfs)
        raise ArgumentValueError(f"{option} asks for {name!r}, which is no result: {there}")
    choices = []
    for k in found:
        one = labels[k][name]
        if one.obstacle and function is None:
            raise ArgumentValueError(
                f"{option} asks for {name!r} of {names[k]}, which cannot be drawn: {one.obstacle}; "
                "pass (name, function) with a function that makes an image or a line of it"
            )
        choices.append(Choice(udf=k, name=name, function=function, labels=one))
    return choices if function is None else [_titled(one, "", _words(function)) for one in choices]


def _words(function: Callable[[Array], Any]) -> str:
    """Take a function; return its name if it has one of its own."""
    name = getattr(function, "__name__", "")
    return name if name.isidentifier() else ""


def _titled(choice: Choice, before: str, function: str = "") -> Choice:
    """Return a choice with words before its title, or as an argument of a named function."""
    title = f"{function}({choice.labels.title})" if function else choice.labels.title
    return replace(choice, labels=replace(choice.labels, title=before + title))


def _try(choice: Choice, udf: str, *, finished: bool) -> None:
    """Raise if a user's function makes nothing that can be drawn of sample values."""
    labels = choice.labels
    if choice.function is None or labels.dtype.kind not in NUMBERS:
        return  # there are no samples of a user's objects
    values, valid = _samples(labels, finished=finished)
    where = f"the function given for {choice.name!r} of {udf}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            panels = choice.panels(values, valid, log=None)
    except Exception as error:
        half = "" if finished else ", the second half of a nav result NaN as in an unfinished run"
        raise ArgumentValueError(
            f"{where} raised {type(error).__name__}: {error}. It was tried on positive numbers of "
            f"shape {labels.shape} and dtype {missing_as_nan(values, valid).dtype}{half}"
        ) from error
    if not panels:
        raise ArgumentValueError(
            f"{where} must return an image, a line, or a stack of them, more than one number"
        )


def _samples(labels: Labels, *, finished: bool) -> tuple[Array, Array]:
    """Return values of a result that are not all alike, and where they are valid."""
    size = math.prod(labels.shape)
    values = (np.arange(size) % 7 + 1).astype(labels.dtype).reshape(labels.shape)
    valid = np.ones(size, bool)
    if labels.kind == "nav" and not finished:
        valid[(size + 1) // 2 :] = False
    return values, valid.reshape(labels.shape)


def _relabeled(labels: Labels, made: Array) -> Labels:
    """Return the labels of what a function made: axes are kept where their sizes are."""
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
    """Return in words why nothing can be drawn."""
    reasons = [
        f"{name!r} of {udf}: {one.obstacle}"
        for udf, by_name in zip(names, labels, strict=True)
        for name, one in by_name.items()
    ]
    why = "; ".join(reasons) or f"{', '.join(names)} has no results"
    return (
        f"there is nothing to draw. {why}. Pass (name, function) with a function that makes an "
        "image or a line of a result"
    )
