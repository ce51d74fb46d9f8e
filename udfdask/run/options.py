"""What all entry points share: the options of a run, and data that know their axes.

Type checkers read the names of options from `Unpack`. `inspect.signature`, the completion in
notebooks and the reference show the same names through `forwards`; `run_udf` documents them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import (
    TYPE_CHECKING,
    Any,
    Protocol,
    TypeAlias,
    TypedDict,
    TypeVar,
    runtime_checkable,
)

import numpy as np
from numpy.typing import ArrayLike

from udfdask.advice import Advice, FileCorrections
from udfdask.corrections import CorrectionSet, Descan
from udfdask.errors import ArgumentValueError, unknown_arguments
from udfdask.geometry.axes import Axis
from udfdask.geometry.roi import Region
from udfdask.scheduling.compute import SchedulerOptions

if TYPE_CHECKING:
    from distributed import Client

    from udfdask.plotting import LivePlot

Drawn: TypeAlias = str | tuple[str, Callable[[Any], Any]]
"""A result to draw: its name, or the name and a function of its values."""
Plots: TypeAlias = "bool | Drawn | Sequence[Drawn] | LivePlot | None"
Scheduler: TypeAlias = "str | Callable[..., Any] | Client | None"

F = TypeVar("F", bound=Callable[..., Any])


@runtime_checkable
class DescribedData(Protocol):
    """An array that knows its axes, such as `udfdask.io.OpenedFile`, and perhaps its `voltage`."""

    @property
    def array(self) -> Any:
        """The data, shape (*nav, *sig)."""

    @property
    def sig_dims(self) -> int | None:
        """Number of signal axes; None for the default."""

    @property
    def axes(self) -> tuple[Axis, ...] | None:
        """One axis for each dimension of the array; None if they are not known."""

    @property
    def unit(self) -> str | None:
        """Unit of the values; None if it is not known."""


def take_apart(
    data: Any, sig_dims: int | None, options: Mapping[str, Any]
) -> tuple[Any, int, dict[str, Any]]:
    """Return an array, its number of signal axes (by default 2), and options with its axes.

    `axes` among the options may be an opened file, whose axes are taken. With an opened file, the
    options also have `present`, the mask of the positions that have a frame, and its voltage.
    """
    array, chosen = data, dict(options)
    if _knows_axes(data):
        array = data.array
        sig_dims = data.sig_dims if sig_dims is None else sig_dims
        if chosen.get("axes") is None:
            chosen["axes"] = data
    source: Any = chosen.get("axes")
    if _knows_axes(source):
        shape = source.array.shape
        if getattr(array, "shape", shape) != shape:
            raise ArgumentValueError(
                f"axes= describes data of shape {shape}, but the array has the shape "
                f"{array.shape}: take the part of an opened file itself, such as "
                "opened[2:5, ::2], or pass a list of Axis; Axis.sliced makes the axis of a part"
            )
        chosen["axes"] = source.axes
        if chosen.get("unit") is None:
            chosen["unit"] = source.unit
    described = [each for each in (data, source) if _knows_axes(each)]
    for each in described:
        if hasattr(each, "present"):
            # a mask without axes stands for all positions
            chosen["present"] = np.ones((), bool) if each.present is None else each.present
            break
    for each in described:
        if chosen.get("voltage") is None:
            chosen["voltage"] = getattr(each, "voltage", None)
    return array, 2 if sig_dims is None else sig_dims, chosen


def unused_corrections(data: Any, options: Mapping[str, Any]) -> tuple[Advice, ...]:
    """Return advice if an opened file has corrections, and the run gets none."""
    files = [one for one in (data, options.get("axes")) if _knows_axes(one)]
    found = next((one for f in files if (one := getattr(f, "corrections", None))), None)
    if found is None or options.get("corrections") is not None:
        return ()
    text = f"the run does not use the file's {found}, and broken pixels have any values: pass "
    return (Advice("corrections", (text, FileCorrections())),)


def _knows_axes(data: Any) -> bool:
    """Return whether data are an array with a description; a dask array is none."""
    return not hasattr(data, "__dask_graph__") and isinstance(data, DescribedData)


class RunOptions(TypedDict, total=False):
    """Options that every entry point passes to the plan unchanged.

    `sig_dims` and `roi` are not among them: DataArrays and signals have their own kinds of both.
    `run_udf` documents the options; `plan.arguments.Options` has the defaults.
    """

    axes: Sequence[Axis] | None
    unit: str | None
    voltage: str | tuple[float, str] | float | None
    corrections: CorrectionSet | None
    descan: Descan | ArrayLike | None
    backends: str | Sequence[str] | None
    split_every: int | bool | None
    merge_small: int | str | None
    max_memory: int | str | None


class ArrayOptions(RunOptions, total=False):
    """All options of `udfdask.run_udf`."""

    sig_dims: int | None
    roi: Region | None


class IterOptions(RunOptions, SchedulerOptions, total=False):
    """Options that every entry point to a progressive run passes to `ProgressiveRun` unchanged."""

    plots: Plots
    scheduler: Scheduler


def check_names(function: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Raise if a function does not have all of these options."""
    parameters = inspect.signature(function).parameters if options else {}
    known = {name: p for name, p in parameters.items() if p.kind is not p.VAR_KEYWORD}
    if unknown := options.keys() - known.keys():
        remedy = f"Its arguments are {', '.join(known)}"
        raise unknown_arguments(function.__name__, unknown, known, remedy=remedy)


def forwards(options: type, *targets: Callable[..., Any]) -> Callable[[F], F]:
    """Return a decorator that shows the `**options` of a function as its keyword arguments.

    `options` is their TypedDict. Defaults come from the first of `targets` that has the option.
    """

    def show(function: F) -> F:
        own, hints = inspect.signature(function), options.__annotations__
        *named, _ = own.parameters.values()
        shown: dict[str, inspect.Parameter] = {}
        for target in targets:
            for name, one in inspect.signature(target).parameters.items():
                if one.kind is one.VAR_KEYWORD:
                    shown.setdefault("**", one)
                elif name in hints:
                    hint = getattr(hints[name], "__forward_arg__", hints[name])
                    shown.setdefault(name, one.replace(annotation=hint))
        last = sorted(shown.values(), key=lambda one: one.kind)  # **kwargs come last
        function.__signature__ = own.replace(parameters=[*named, *last])  # type: ignore[attr-defined]
        return function

    return show
