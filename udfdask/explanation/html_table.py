"""HTML tables for notebooks, without colors of their own: they fit light and dark themes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

from dask.base import is_dask_collection
from dask.utils import format_bytes

_CELL = "text-align: left; padding: 0.15em 0.8em; vertical-align: top; white-space: pre-wrap"
_LINE = "border-bottom: 1px solid; border-color: rgba(128, 128, 128, 0.6)"


def html_table(
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    notes: Sequence[str] = (),
) -> str:
    """Return an HTML table of a title, column names (or none) and rows of texts.

    Below it is a line for each of the `notes`.
    """
    head = "".join(f'<th style="{_CELL}; {_LINE}">{escape(name)}</th>' for name in header)
    body = "".join(
        "<tr>"
        + "".join(
            f'<{tag} style="{_CELL}">{escape(cell)}</{tag}>'
            for tag, cell in zip(["th", *["td"] * (len(row) - 1)], row, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    return (
        f"<div><div><strong>{escape(title)}</strong></div>"
        '<table style="border-collapse: collapse; background: transparent">'
        + (f"<thead><tr>{head}</tr></thead>" if head else "")
        + f"<tbody>{body}</tbody></table>"
        + "".join(f'<div style="{_CELL}"><em>note</em> {escape(note)}</div>' for note in notes)
        + "</div>"
    )


def result_table(result: Any) -> str:
    """Return an HTML table with a row for each array of a `Result`."""
    is_lazy = is_dask_collection(result)
    header = ("name", "kind", "shape", "dtype", "size", *(("chunks",) if is_lazy else ()))
    rows = [
        (name, str(result.buffers[name].kind), *_cells(array)) for name, array in result.items()
    ]
    title = f"Result of {result._info.title}, {'lazy' if is_lazy else 'computed'}"
    notes = result._info.short_notes(is_lazy=is_lazy)
    return html_table(title, header if rows else (), rows, notes)


def _cells(array: Any) -> tuple[str, ...]:
    """Return shape, dtype and size of an array as texts, and the chunks of a dask array."""
    shape = " x ".join(map(str, array.shape)) or "one value"
    # dask's expression arrays have no nbytes
    size = format_bytes(array.size * array.dtype.itemsize)
    if not is_dask_collection(array):
        return shape, str(array.dtype), size
    chunks = " x ".join(map(str, map(max, array.chunks))) or "one value"
    return shape, str(array.dtype), size, f"{math.prod(map(len, array.chunks))} of {chunks}"
