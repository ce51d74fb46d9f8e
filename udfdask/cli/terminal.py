"""What commands print: a table of results, mistakes and warnings in a paragraph."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import click
import numpy as np

from udfdask.base.tracebacks import hide_own_lines
from udfdask.errors import UDFError
from udfdask.results.result import Result

PLANNING: tuple[type[Exception], ...] = (UDFError, OSError, ValueError, TypeError, ImportError)
"""Exceptions about the user's input, raised when a file is opened or a run is planned."""

RUNNING: tuple[type[Exception], ...] = (UDFError, OSError)
"""Exceptions of a run that a user can mend; all others show their traceback."""


@contextmanager
def plain_errors(expected: tuple[type[Exception], ...]) -> Iterator[None]:
    """Print only the message of expected exceptions, and only the user's lines of others."""
    try:
        yield
    except expected as error:
        words = [str(error) or type(error).__name__, *getattr(error, "__notes__", [])]
        raise click.ClickException("\n".join(words)) from error
    except Exception as error:
        if not hide_own_lines(error):
            raise
        click.echo("".join(traceback.format_exception(error)).rstrip(), err=True)
        raise click.exceptions.Exit(1) from error


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Print each warning as one line, without its place in the code."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: click.echo(f"warning: {message}", err=True)
        yield


_HEADER = ("udf", "name", "kind", "shape", "dtype", "min", "mean", "max", "unit")


def summary_table(results: Mapping[str, Result]) -> str:
    """Return a table with a line for each result, or for each labeled component of vectors.

    The numbers ignore NaN and invalid positions, such as those outside of the region of interest;
    for complex values they describe the amplitude.
    """
    rows: list[tuple[str, ...]] = [_HEADER]
    for udf, result in results.items():
        for name, array in result.items():
            values = np.asarray(array)
            shape = " x ".join(map(str, values.shape)) or "one value"
            what = (str(result.buffers[name].kind), shape, str(values.dtype))
            for label, part in _parts(result, name):
                unit = result.units.get(name) or ""
                rows.append((udf, f"{name}{label}", *what, *_statistics(part), unit))
        if not len(result):
            rows.append((udf, *["-"] * 7, ""))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    # numbers are aligned at the right
    line = "  ".join(f"{{:{'>' if 5 <= k <= 7 else '<'}{n}}}" for k, n in enumerate(widths))
    return "\n".join(line.format(*row).rstrip() for row in rows)


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
    if values.dtype.kind not in "biufc":
        return "-", "-", "-"
    numbers = np.abs(values) if values.dtype.kind == "c" else values
    numbers = numbers[~np.isnan(numbers)]
    if not numbers.size:
        return "-", "-", "-"
    # double precision, because the sum for the mean of half floats would overflow
    mean = numbers.mean(dtype=np.float64)
    return f"{float(numbers.min()):.6g}", f"{mean:.6g}", f"{float(numbers.max()):.6g}"
