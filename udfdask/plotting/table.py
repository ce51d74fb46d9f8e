"""Summarize results in a table for the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from udfdask.arrays.geometry.units import PIXELS

_HEADER = ("udf", "name", "kind", "shape", "dtype", "min", "mean", "max", "unit")
_NUMBERS = ("min", "mean", "max")
_NOTHING = "-"


def summary_table(results: Mapping[str, Any]) -> str:
    """Summarize computed results, with one line per buffer.

    Parameters
    ----------
    results : mapping of str to Result
        Computed results by the names in the table.

    Returns
    -------
    str
        A table of UDF, buffer, kind, shape, dtype, minimum, mean and maximum, and of units if a
        result has a unit other than pixels. The statistics ignore NaN and invalid positions, such
        as positions outside the region of interest. For complex values they describe the amplitude.
        Results that are not numbers have a dash.

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
                name,
                str(result.buffers[name].kind),
                *_cells(np.asarray(array), valid),
                result.units.get(name) or "",
            )
            for (name, array), valid in zip(result.items(), result.valid_mask.values(), strict=True)
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


def _is_unit(text: str) -> bool:
    """Return whether a unit says more than pixels and scan positions do."""
    return bool(set(text.split("/")) - {"", "position", *PIXELS})


def _cells(values: np.ndarray[Any, Any], valid: np.ndarray[Any, Any]) -> tuple[str, ...]:
    """Return the shape, dtype and statistics of a buffer as texts."""
    shape = " x ".join(map(str, values.shape)) or "one value"
    dtype = "structured" if values.dtype.names else str(values.dtype)
    return (shape, dtype, *_statistics(values[valid]))


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
