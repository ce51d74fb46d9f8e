"""The axes and units of results, as a UDF declares them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from udfdask.errors import ArgumentTypeError, ArgumentValueError, UndeclaredBufferError
from udfdask.geometry.axes import Axis, Calibration
from udfdask.plan.recipe import Recipe
from udfdask.udf import UDF
from udfdask.udf.buffers import BufferSpec
from udfdask.udf.meta import UDFMeta


def result_axes(udf: UDF, buffers: Mapping[str, BufferSpec]) -> dict[str, tuple[Axis, ...]]:
    """Return the axes of the extra dimensions of each result, after checks."""
    given, name = udf.get_result_axes(), f"{type(udf).__name__}.get_result_axes()"
    outputs = {k: s for k, s in buffers.items() if s.use != "private"}
    _check_results(name, given, outputs)
    return {k: _axes_of(k, s.extra_shape, given.get(k), name) for k, s in outputs.items()}


def _check_results(name: str, given: Mapping[str, Any], outputs: Collection[str]) -> None:
    """Raise if a method returns something about a result that does not exist."""
    for key in given:
        if key not in outputs:
            raise UndeclaredBufferError(
                f"{name} names {key!r}, which is no result; results are {sorted(outputs)}"
            )


def _axes_of(key: str, extra: tuple[int, ...], given: Any, who: str) -> tuple[Axis, ...]:
    """Return the axes of the extra dimensions of one result, after checks."""
    if given is None:
        return tuple(Axis(name=f"{key}_dim_{k}") for k in range(len(extra)))
    axes = (given,) if isinstance(given, Axis) else tuple(given)
    if not all(isinstance(a, Axis) for a in axes):
        raise ArgumentTypeError(f"{who} gives {key!r} {given!r}: a tuple of udfdask.Axis is needed")
    if len(axes) != len(extra):
        raise ArgumentValueError(
            f"{who} gives {key!r} {len(axes)} axes, but its extra_shape is {extra}: one Axis for "
            "each extra dimension is needed"
        )
    for axis, n in zip(axes, extra, strict=True):
        if axis.labels is not None and len(axis.labels) != n:
            raise ArgumentValueError(
                f"{who} gives axis {axis.name!r} of {key!r} {len(axis.labels)} labels for {n} "
                "positions"
            )
    return axes


def result_units(
    recipe: Recipe, number: int, udf: UDF, calibration: Calibration
) -> dict[str, str | None]:
    """Return the unit of each result of a UDF, after checks; None if it is not known.

    `udf` is the UDF of this number with its parameters in pixels.
    """
    declared = recipe.udfs[number]
    asked = type(udf)(**udf._kwargs)
    asked.meta = UDFMeta(
        grid=recipe.grid,
        dataset_shape=recipe.shape,
        dataset_dtype=recipe.dtype,
        input_dtype=declared.input_dtype,
        corrections=recipe.corrections,
        calibration=calibration,
    )
    given = asked.get_result_units()
    # a subclass inherits `keeps_units`, and may have other results
    known = {*declared.outputs, *udf.keeps_units}
    _check_results(f"{declared.name}.get_result_units()", given, known)
    return {key: given.get(key) for key in declared.outputs}
