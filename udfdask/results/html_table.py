"""HTML tables for notebooks, without colors of their own: they fit light and dark themes."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

_CELL = "text-align: left; padding: 0.15em 0.8em; vertical-align: top; white-space: pre-wrap"
_LINE = "border-bottom: 1px solid; border-color: rgba(128, 128, 128, 0.6)"


def html_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return an HTML table of a title, column names (or none) and rows of texts."""
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
        + f"<tbody>{body}</tbody></table></div>"
    )
