"""Summarize computed results in a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from udfdask.geometry.units import PIXELS
from udfdask.results.result import Result

_HEADER = ("udf", "name", "kind", "shape", "dtype", "min", "mean", "max", "unit")
_NUMBERS = ("min", "mean", "max")
_NOTHING = "-"


def summary_table(results: Mapping[str, Result]) -> str:
    """Return a table with a line for each result, or for each labeled component of vectors.

    It has UDF, buffer, kind, shape, dtype, minimum, mean and maximum, and units if a result has a
    unit other than pixels. The numbers ignore NaN and invalid positions, such as those outside of
    the region of interest; for complex values they describe the amplitude.
    """
    rows: list[tuple[str, ...]] = [_HEADER]
    for udf, result in results.items():
        for name, array in result.items():
            values = np.asarray(array)
            shape = " x ".join(map(str, values.shape)) or "one value"
            dtype = "structured" if values.dtype.names else str(values.dtype)
            what = (str(result.buffers[name].kind), shape, dtype)
            for label, part in _parts(result, name):
                numbers = _statistics(part)
                rows.append((udf, f"{name}{label}", *what, *numbers, result.units.get(name) or ""))
        if not len(result):
            rows.append((udf, *[_NOTHING] * 7, ""))
    if not any(set(row[-1].split("/")) - {"", "position", *PIXELS} for row in rows[1:]):
        rows = [row[:-1] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if title in _NUMBERS else cell.ljust(width)
            for title, cell, width in zip(rows[0], row, widths, strict=True)
        ).rstrip()
        for row in rows
    )


def _parts(result: Result, name: str) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """Yield the valid values of each line of a result, and what stands after its name."""
    values, valid = np.asarray(result[name]), np.asarray(result.valid_mask[name])
    axes = result.extra_axes.get(name, ())
    labels = axes[-1].labels if axes and result.buffers[name].kind != "single" else None
    if labels is None:
        yield "", values[valid]
        return
    for k, label in enumerate(labels):
        yield f"[{label}]", values[..., k][valid[..., k]]


def _statistics(values: np.ndarray[Any, Any]) -> tuple[str, str, str]:
    """Return the minimum, mean and maximum of an array as texts."""
    if values.dtype.kind not in "biufc" or values.size == 0:
        return _NOTHING, _NOTHING, _NOTHING
    numbers = np.abs(values) if values.dtype.kind == "c" else values
    if numbers.dtype.kind == "f":
        numbers = numbers[~np.isnan(numbers)]
        if numbers.size == 0:
            return "nan", "nan", "nan"
    # double precision, because the sum for the mean of half floats would overflow
    mean = numbers.mean(dtype=np.float64)
    return _number(numbers.min()), _number(mean), _number(numbers.max())


def _number(value: Any) -> str:
    """Return a number as a short text."""
    if isinstance(value, np.bool_):
        return str(bool(value))
    number = float(value)
    if number.is_integer() and abs(number) < 1e9:
        return f"{int(number)}"
    return f"{number:.4g}" if abs(number) < 1e4 or abs(number) >= 1e9 else f"{number:.1f}"
