"""The options that all entry points share, and how their names are checked."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypedDict

from udfdask.corrections import CorrectionSet
from udfdask.errors import unknown_arguments
from udfdask.scheduling.progress.state import Progress
from udfdask.scheduling.scheduler_options import SchedulerOptions, check_options


class RunOptions(TypedDict, total=False):
    """Options that every entry point passes to the plan unchanged.

    `sig_dims` and `roi` are not among them: DataArrays and signals have their own kinds of both.
    `run_udf` documents the options; `make_plan` has the defaults.
    """

    corrections: CorrectionSet | None
    backends: Any
    split_every: int | bool | None


class IterOptions(RunOptions, SchedulerOptions, total=False):
    """Options that every entry point to a progressive run passes to `prepare_run` unchanged."""

    plots: Any
    scheduler: Any
    progress: Progress


def check_names(function: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Raise if a function does not have all of these options."""
    known = inspect.signature(function).parameters
    unknown = options.keys() - known.keys()
    if unknown:
        remedy = f"Its arguments are {', '.join(known)}"
        raise unknown_arguments(function.__name__, unknown, known, remedy=remedy)


def check_iter_options(function: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Raise if neither a progressive run nor the scheduler has all of these options."""
    own = inspect.signature(function).parameters
    check_options(function.__name__, options, options.get("scheduler"), own)
