"""Summarize results in a table for the terminal."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from udfdask.geometry.axes import Axis
from udfdask.geometry.units import PIXELS

_HEADER = ("udf", "name", "kind", "shape", "dtype", "min", "mean", "max", "unit")
_NUMBERS = ("min", "mean", "max")
_NOTHING = "-"

MOST_PARTS = 8
"""Largest number of lines of one buffer; statistics of longer extra dimensions are taken together.
"""


def summary_table(results: Mapping[str, Any]) -> str:
    """Summarize computed results, with one line per buffer, or per component of vectors.

    Parameters
    ----------
    results : mapping of str to Result
        Computed results by the names in the table.

    Returns
    -------
    str
        A table of UDF, buffer, kind, shape, dtype, minimum, mean and maximum, and of units if a
        result has a unit other than pixels. If values for positions or pixels are short vectors,
        such as (y, x), each component has a line: ``field[y]``, or ``field[0]`` without labels. A
        result ``field_y`` with the values of ``field[y]`` has no line of its own, and neither has a
        ``regression`` of zeros, which means that none was subtracted.
        The statistics ignore NaN and invalid positions, such as positions outside the region of
        interest. For complex values they describe the amplitude. Results that are not numbers have
        a dash.

    Examples
    --------
    >>> import dask.array as da
    >>> from udfdask import run_udf
    >>> from udfdask.plotting import summary_table
    >>> from udfdask.udfs import SumSigUDF
    >>> x = da.ones((5, 6, 8, 8), chunks=(2, 6, 8, 8))
    >>> print(summary_table({"sumsig": run_udf(x, SumSigUDF(), sig_dims=2).compute()}))
    udf     name       kind  shape  dtype    min  mean  max
    sumsig  intensity  nav   5 x 6  float64   64    64   64
    """
    rows: list[tuple[str, ...]] = [_HEADER]
    for udf, result in results.items():
        rows += [
            (
                udf,
                f"{name}{label}",
                str(result.buffers[name].kind),
                *_shape_and_dtype(np.asarray(array)),
                *_statistics(numbers),
                result.units.get(name) or "",
            )
            for (name, array), valid in zip(result.items(), result.valid_mask.values(), strict=True)
            if _says_more(result, name)
            for label, numbers in _parts(
                np.asarray(array), np.asarray(valid), _extra_axes(result, name)
            )
        ] or [(udf, *[_NOTHING] * 7, "")]
    if not any(_is_unit(row[-1]) for row in rows[1:]):
        rows = [row[:-1] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if title in _NUMBERS else cell.ljust(width)
            for title, cell, width in zip(rows[0], row, widths, strict=True)
        ).rstrip()
        for row in rows
    )


def _says_more(result: Any, name: str) -> bool:
    """Return whether a result is not in the table already, and not a regression of zeros."""
    values, kind = np.asarray(result[name]), result.buffers[name].kind
    if name == "regression" and kind == "single":
        return bool(values.any())
    whole, _, label = name.rpartition("_")
    if whole not in result.buffers:
        return True
    vectors, axes = np.asarray(result[whole]), _extra_axes(result, whole)
    labels = axes[0].labels if len(axes) == 1 and _separate_axes(vectors, axes) else None
    if labels is None or label not in labels or kind != result.buffers[whole].kind:
        return True
    place = (..., labels.index(label))
    masks = [np.asarray(result.valid_mask[each]) for each in (name, whole)]
    same_values = np.array_equal(values, vectors[place], equal_nan=True)
    return not (same_values and np.array_equal(masks[0], masks[1][place]))


def _is_unit(text: str) -> bool:
    """Return whether a unit says more than pixels and scan positions do."""
    return bool(set(text.split("/")) - {"", "position", *PIXELS})


def _extra_axes(result: Any, name: str) -> Sequence[Axis]:
    """Return the extra dimensions of a buffer; none of one for the whole run, such as a fit."""
    return () if result.buffers[name].kind == "single" else result.extra_axes.get(name, ())


def _parts(
    values: np.ndarray[Any, Any], valid: np.ndarray[Any, Any], axes: Sequence[Axis]
) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """Yield the valid values of each line of a buffer, and what stands after its name."""
    separate = _separate_axes(values, axes)
    first = values.ndim - len(axes)
    for place in itertools.product(*(range(values.shape[first + k]) for k in separate)):
        index: list[Any] = [slice(None)] * values.ndim
        for k, position in zip(separate, place, strict=True):
            index[first + k] = position
        labels = [_label(axes[k], n) for k, n in zip(separate, place, strict=True)]
        part = (..., *index)
        yield f"[{', '.join(labels)}]" if labels else "", values[part][valid[part]]


def _separate_axes(values: np.ndarray[Any, Any], axes: Sequence[Axis]) -> list[int]:
    """Return the numbers of the extra dimensions whose positions have lines of their own."""
    if values.dtype.kind not in "biufc" or not values.size:
        return []
    separate, lines = [], 1
    for k in reversed(range(len(axes))):
        size = values.shape[values.ndim - len(axes) + k]
        says_more = size > 1 or axes[k].labels is not None
        # along an axis with a unit, values are a curve, such as a radial profile
        if axes[k].unit is None and says_more and lines * size <= MOST_PARTS:
            separate.append(k)
            lines *= size
    return separate[::-1]


def _label(axis: Axis, position: int) -> str:
    """Return the label of a position along an axis, or its number."""
    return str(position) if axis.labels is None else axis.labels[position]


def _shape_and_dtype(values: np.ndarray[Any, Any]) -> tuple[str, str]:
    """Return the shape and dtype of a buffer as texts."""
    shape = " x ".join(map(str, values.shape)) or "one value"
    return shape, "structured" if values.dtype.names else str(values.dtype)


def _statistics(values: np.ndarray[Any, Any]) -> tuple[str, str, str]:
    """Return the minimum, mean and maximum of an array as texts."""
    if values.dtype.kind not in "biufc" or values.size == 0:
        return _NOTHING, _NOTHING, _NOTHING
    numbers = np.abs(values) if values.dtype.kind == "c" else values
    if numbers.dtype.kind == "f":
        numbers = numbers[~np.isnan(numbers)]
        if numbers.size == 0:
            return "nan", "nan", "nan"
    low, high = (_number(numbers.min()), _number(numbers.max()))
    # Double precision, because the sum for the mean of half floats would overflow.
    return low, _number(numbers.mean(dtype=np.float64)), high


def _number(value: Any) -> str:
    """Return a number as a short text for a table."""
    if isinstance(value, np.bool_ | bool):
        return str(bool(value))
    number = float(value)
    if number.is_integer() and abs(number) < 1e9:
        return f"{int(number)}"
    return f"{number:.4g}" if abs(number) < 1e4 or abs(number) >= 1e9 else f"{number:.1f}"
