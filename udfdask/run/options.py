"""The options that all entry points share: declared, checked, shown.

Type checkers read the names of options from `Unpack`. `inspect.signature`, the completion in
notebooks and the reference show the same names through `forwards`; `run_udf` documents them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, cast

from udfdask.corrections import CorrectionSet
from udfdask.errors import unknown_arguments
from udfdask.geometry.axes import Axis
from udfdask.scheduling.job import SchedulerOptions
from udfdask.scheduling.progress import Progress

if TYPE_CHECKING:
    from udfdask.udfs.virtual_detector import VirtualDetectorUDF

F = TypeVar("F", bound=Callable[..., Any])


class RunOptions(TypedDict, total=False):
    """Options that every entry point passes to the plan unchanged.

    `sig_dims` and `roi` are not among them: DataArrays and signals have their own kinds of both.
    `run_udf` documents the options; `plan.arguments.Options` has the defaults.
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


def forwards(options: type, *targets: Callable[..., Any]) -> Callable[[F], F]:
    """Return a decorator that shows the `**options` of a function as its keyword arguments.

    `options` is their TypedDict. Defaults come from the first of `targets` that has the option.
    """

    def show(function: F) -> F:
        own = inspect.signature(function)
        *named, _ = own.parameters.values()
        shown = _parameters(options, targets)
        function.__signature__ = own.replace(parameters=[*named, *shown])  # type: ignore[attr-defined]
        return function

    return show


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


IMAGE = "intensity"
"""Name of the result that is the image."""


class DetectorOptions(RunOptions, total=False):
    """Options of `virtual_image`: the numbers of a detector, and the options of a run."""

    cx: Any
    cy: Any
    r: Any
    ri: Any
    ro: Any
    x: Any
    y: Any
    width: Any
    height: Any
    start: Any
    stop: Any
    center: Any
    centers: Any
    stretch: Any
    stretch_angle: Any


NUMBERS = DetectorOptions.__annotations__.keys() - RunOptions.__annotations__.keys()


def make_detector(
    caller: Callable[..., Any], detector: Any, options: Mapping[str, Any]
) -> tuple[VirtualDetectorUDF, RunOptions]:
    """Return the UDF of a detector, and those of the options that belong to the run."""
    check_names(caller, options)
    from udfdask.udfs.virtual_detector import VirtualDetectorUDF  # other runs need no masks

    numbers = {name: value for name, value in options.items() if name in NUMBERS}
    rest = {name: value for name, value in options.items() if name not in NUMBERS}
    return VirtualDetectorUDF(detector, **numbers), cast(RunOptions, rest)
