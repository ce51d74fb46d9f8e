"""Show figures in a window, in the output of a notebook cell, or keep them in memory."""

from __future__ import annotations

import io
import sys
import threading
from typing import Any

from udfdask.errors import missing_package

_DPI = 100  # resolution of pictures in notebooks, pixels per inch


def figure_class() -> Any:
    """Return matplotlib's class for figures; raise if it is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise missing_package("matplotlib", purpose="drawing", extra="plot") from error
    return Figure


class Screen:
    """A place that shows a figure repeatedly; this one only keeps it in memory."""

    is_closed = False
    """Whether the user has closed the figure."""

    def __init__(self, size: tuple[float, float]) -> None:
        self.figure = figure_class()(figsize=size)

    def show(self) -> None:
        """Show the current state of the figure."""


class Window(Screen):
    """A pyplot window; the user can close it at any time."""

    def __init__(self, size: tuple[float, float]) -> None:
        import matplotlib.pyplot as plt

        self.figure = plt.figure(figsize=size)
        self.figure.canvas.mpl_connect("close_event", self._close)
        self.figure.show(warn=False)

    def show(self) -> None:
        """Draw now, and process the user's actions since the last drawing."""
        self.figure.canvas.draw()
        self.figure.canvas.flush_events()

    def _close(self, _: Any) -> None:
        self.is_closed = True


class Cell(Screen):
    """The output of a notebook cell; each picture replaces the previous one."""

    _handle: Any = None

    def show(self) -> None:
        """Put the picture into the output, or replace the existing picture."""
        from IPython.display import display

        bundle = {"image/png": as_png(self.figure), "text/plain": repr(self.figure)}
        if self._handle is None:
            self._handle = display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)


def open_screen(size: tuple[float, float]) -> Screen:
    """Return the screen that the user looks at, for a figure size in inches."""
    if _can_open_windows():
        return Window(size)
    return Cell(size) if notebook() is not None else Screen(size)


def new_figure(size: tuple[float, float]) -> Any:
    """Return a figure that the user's front end can show, with a size in inches.

    If there are windows, it is a pyplot figure for `plt.show()`. In a notebook, it is shown as the
    value of a cell. Otherwise it is a plain figure that pyplot does not keep.
    """
    make_figure = figure_class()
    if _can_open_windows():
        import matplotlib.pyplot as plt

        return plt.figure(figsize=size)
    show_as_pictures(make_figure)
    return make_figure(figsize=size)


def _can_open_windows() -> bool:
    """Return whether this thread can open windows; GUI toolkits work only in the main thread."""
    return threading.current_thread() is threading.main_thread() and has_windows()


def has_windows() -> bool:
    """Return whether pyplot opens windows here, or widgets in a notebook."""
    import matplotlib.pyplot as plt
    from matplotlib.backends import registry

    backend = str(plt.get_backend()).lower()
    headless = registry.backend_registry.list_builtin(registry.BackendFilter.NON_INTERACTIVE)
    return backend not in headless and "inline" not in backend


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
