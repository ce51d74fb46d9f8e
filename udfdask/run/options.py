"""The options that all entry points share: declared, checked, shown.

Type checkers read the names of options from `Unpack`. Everything else (`help()`,
`inspect.signature`, the completion in notebooks, the reference) would show only `**options`, or
need a copy of each text in each entry point. dask and pandas write such docstrings with decorators
too. The decorators in this module change only metadata: a call costs no more.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict, TypeVar

from udfdask.corrections import CorrectionSet
from udfdask.errors import unknown_arguments
from udfdask.geometry.axes import Axis
from udfdask.scheduling.progress.state import Progress
from udfdask.scheduling.scheduler_options import SchedulerOptions, check_options

F = TypeVar("F", bound=Callable[..., Any])
Entry = list[str]
"""Lines of one entry in a docstring: names and type, then the text."""

REFERENCE = re.compile(r" *As in `[\w.]+`\.")
"""The text of an entry that is replaced by the text of another docstring."""


class RunOptions(TypedDict, total=False):
    """Options that every entry point passes to the plan unchanged.

    `sig_dims` and `roi` are not among them: DataArrays and signals have their own kinds of both.
    `run_udf` documents the options; `plan.options.Options` has the defaults.
    """

    axes: Sequence[Axis] | None
    unit: str | None
    corrections: CorrectionSet | None
    descan: Any
    backends: Any
    split_every: int | bool | None
    merge_small: int | str | None
    max_memory: int | str | None


class IterOptions(RunOptions, SchedulerOptions, total=False):
    """Options that every entry point to a progressive run passes to `prepare_run` unchanged."""

    plots: Any
    scheduler: Any
    progress: Progress


def check_names(function: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Raise if a function does not have all of these options."""
    if not options:
        return
    parameters = inspect.signature(function).parameters
    known = {name: p for name, p in parameters.items() if p.kind is not p.VAR_KEYWORD}
    unknown = options.keys() - known.keys()
    if unknown:
        remedy = f"Its arguments are {', '.join(known)}"
        raise unknown_arguments(function.__name__, unknown, known, remedy=remedy)


def check_iter_options(function: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Raise if neither a progressive run nor the scheduler has all of these options."""
    own = inspect.signature(function).parameters
    check_options(function.__name__, options, options.get("scheduler"), own)


def forwards(options: type, *targets: Callable[..., Any]) -> Callable[[F], F]:
    """Return a decorator that shows the `**options` of a function as its keyword arguments.

    `options` is their TypedDict. Defaults come from the first of `targets` that has the option;
    docstrings are filled as `documented_by` does.
    """

    def show(function: F) -> F:
        own = inspect.signature(function)
        *named, _ = own.parameters.values()
        shown = _parameters(options, targets)
        function.__signature__ = own.replace(parameters=[*named, *shown])  # type: ignore[attr-defined]
        names = [f"**{p.name}" if p.kind is p.VAR_KEYWORD else p.name for p in shown]
        _fill(function, targets, names)
        return function

    return show


def documented_by(*targets: Callable[..., Any]) -> Callable[[F], F]:
    """Return a decorator that fills in the entries "As in `...`." under Parameters of a docstring.

    Each name gets the text that it has in the first of `targets` that describes it.
    """

    def document(function: F) -> F:
        _fill(function, targets, [])
        return function

    return document


def _parameters(options: type, targets: Sequence[Callable[..., Any]]) -> list[inspect.Parameter]:
    """Return the parameters of `targets` that are options, then the first `**kwargs` if any."""
    hints = options.__annotations__
    parameters: dict[str, inspect.Parameter] = {}
    for target in targets:
        for name, parameter in inspect.signature(target).parameters.items():
            if parameter.kind is parameter.VAR_KEYWORD:
                parameters.setdefault("**", parameter)
            elif name in hints:
                hint = getattr(hints[name], "__forward_arg__", hints[name])
                parameters.setdefault(name, parameter.replace(annotation=hint))
    return sorted(parameters.values(), key=lambda parameter: parameter.kind)  # **kwargs come last


def _fill(
    function: Callable[..., Any], targets: Sequence[Callable[..., Any]], options: Sequence[str]
) -> None:
    """Fill the docstring of a function; `options` take the place of its entry `**options`."""
    if not function.__doc__:  # Python runs with -OO
        return
    texts: dict[str, Entry] = {}
    for target in reversed(targets):
        for names, (head, *text) in _split(target.__doc__ or "")[1]:
            _, colon, kind = head.partition(" : ")
            texts.update({name: [f"{name}{colon}{kind}", *text] for name in names})
    before, entries, after = _split(function.__doc__)
    described = {name for names, _ in entries for name in names}
    lines = list(before)
    for names, entry in entries:
        if REFERENCE.fullmatch("\n".join(entry[1:])):
            rest = [name for name in options if name not in described]
            for name in names:
                for each in rest if name == "**options" else [name]:
                    lines += texts[each]
        else:
            lines += entry
    function.__doc__ = "\n".join([*lines, *after, ""])


def _split(doc: str) -> tuple[list[str], list[tuple[list[str], Entry]], list[str]]:
    """Return the lines before the Parameters, the entries with their names, and the lines after."""
    lines = inspect.cleandoc(doc).splitlines()
    if "Parameters" not in lines:
        return lines, [], []
    first = lines.index("Parameters") + 2
    last = lines.index("", first) if "" in lines[first:] else len(lines)
    entries: list[tuple[list[str], Entry]] = []
    for line in lines[first:last]:
        if line.startswith(" "):
            entries[-1][1].append(line)
        else:
            entries.append((line.partition(" : ")[0].split(", "), [line]))
    return lines[:first], entries, lines[last:]
