"""Find out whether this is a notebook, and make it show figures as pictures."""

from __future__ import annotations

import io
import sys
from typing import Any

_DPI = 100  # resolution of pictures in notebooks, pixels per inch


def as_png(figure: Any) -> bytes:
    """Return a figure as the bytes of a PNG file."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=_DPI)
    return file.getvalue()


def notebook() -> Any:
    """Return IPython's shell if it runs in a notebook kernel, otherwise None."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell if hasattr(shell, "kernel") else None


def show_as_pictures(figures: type) -> None:
    """In a notebook, show figures that are the value of a cell as pictures.

    pyplot sets this up when it is imported, but it may not be imported yet.
    """
    shell = notebook()
    if shell is None:
        return
    formatter = shell.display_formatter.formatters["image/png"]
    try:
        formatter.lookup_by_type(figures)
    except KeyError:
        formatter.for_type(figures, as_png)
