"""Functions that run one UDF, whose keyword arguments are its parameters and options of the run."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from udfdask.errors import unknown_arguments
from udfdask.geometry.labels import is_labeled
from udfdask.graph.dask_internals.expressions import as_dask, in_kind_of
from udfdask.plan.check_input import check_is_array
from udfdask.results.result import Result
from udfdask.run.options import F, RunOptions, forwards
from udfdask.run.run_udf import run_udf
from udfdask.udf import UDF

__all__ = ["as_dask", "in_kind_of", "run_with_parameters", "takes_parameters_of"]


def takes_parameters_of(udf: type[UDF]) -> Callable[[F], F]:
    """Return a decorator that shows the `**options` of a function as its keyword arguments.

    They are the parameters of a UDF, without those that the function has itself, and the options of
    `run_udf`.
    """

    def show(function: F) -> F:
        whole = inspect.signature(forwards(RunOptions, run_udf)(function)).parameters
        parameters = inspect.signature(udf).parameters
        more = [p.replace(kind=p.KEYWORD_ONLY) for n, p in parameters.items() if n not in whole]
        # sorting keeps the order within a kind: the parameters of the UDF come first
        shown = sorted([*more, *whole.values()], key=lambda one: one.kind)
        function.__signature__ = inspect.signature(function).replace(parameters=shown)  # type: ignore[attr-defined]
        return function

    return show


def run_with_parameters(
    function: Callable[..., Any], udf: type[UDF], data: Any, **given: Any
) -> Result:
    """Return the result of a UDF, made with those arguments that are its parameters.

    The others are options of `run_udf`. Raise if `function`, which the user called, does not know
    an argument.
    """
    own, known = inspect.signature(udf).parameters, inspect.signature(function).parameters
    options = {name: value for name, value in given.items() if name not in own}
    if unknown := options.keys() - inspect.signature(run_udf).parameters.keys():
        remedy = f"Its arguments are {', '.join(known)}"
        raise unknown_arguments(function.__name__, unknown, known, remedy=remedy)
    if is_labeled(data):
        check_is_array(data, "run_udf", f"{udf.__name__}(...)")
    made = udf(**{name: value for name, value in given.items() if name in own})
    result: Result = run_udf(data, made, **options)
    return result
