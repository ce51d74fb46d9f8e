"""Where figures are seen: in a window, in the output of a notebook's cell, or only in memory."""

from __future__ import annotations

import io
import sys
import threading
from typing import Any, Protocol

from udfdask.plotting.static import figure_classes

_DPI = 100  # of pictures in notebooks, pixels per inch


class Screen(Protocol):
    """Where a figure is shown again and again."""

    figure: Any
    """The matplotlib figure."""

    @property
    def is_closed(self) -> bool:
        """Whether nobody can see the figure any more."""

    def show(self) -> None:
        """Show the figure as it is now."""


class Window:
    """A window of pyplot's; it may be closed at any time."""

    def __init__(self, size: tuple[float, float]) -> None:
        import matplotlib.pyplot as plt

        self.figure = plt.figure(figsize=size)
        self.is_closed = False
        self.figure.canvas.mpl_connect("close_event", self._note_closing)
        self.figure.show(warn=False)

    def show(self) -> None:
        """Draw now, and let the window answer what the user did meanwhile."""
        self.figure.canvas.draw()
        self.figure.canvas.flush_events()

    def _note_closing(self, event: Any) -> None:
        """Remember that the window has gone."""
        self.is_closed = True


class Cell:
    """The output of a notebook's cell, where a picture is replaced by the next."""

    is_closed = False

    def __init__(self, size: tuple[float, float]) -> None:
        make_figure, _ = figure_classes()
        self.figure = make_figure(figsize=size)
        self._handle: Any = None

    def show(self) -> None:
        """Put the picture into the output, or replace the one that is there."""
        from IPython.display import display

        bundle = {"image/png": as_png(self.figure), "text/plain": repr(self.figure)}
        if self._handle is None:
            self._handle = display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)


class Memory:
    """No screen at all: the figure can be saved."""

    is_closed = False

    def __init__(self, size: tuple[float, float]) -> None:
        make_figure, _ = figure_classes()
        self.figure = make_figure(figsize=size)

    def show(self) -> None:
        """Do nothing."""


def open_screen(size: tuple[float, float]) -> Screen:
    """Take a figure's width and height in inches; return the screen that the user looks at."""
    figure_classes()
    # toolkits of windows belong to the main thread
    if threading.current_thread() is threading.main_thread() and has_windows():
        return Window(size)
    return Cell(size) if notebook() is not None else Memory(size)


def new_figure(size: tuple[float, float]) -> Any:
    """Take a width and height in inches; return a figure that the user's front end can show.

    With windows it is one of pyplot's, for `plt.show()`; in a notebook one that is shown as the
    value of a cell; else a plain one, of which pyplot keeps nothing.
    """
    make_figure, _ = figure_classes()
    if threading.current_thread() is threading.main_thread() and has_windows():
        import matplotlib.pyplot as plt

        return plt.figure(figsize=size)
    shell = notebook()
    if shell is not None:
        _teach(shell, make_figure)
    return make_figure(figsize=size)


def as_png(figure: Any) -> bytes:
    """Take a figure; return it as the bytes of a PNG file."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=_DPI)
    return file.getvalue()


def notebook() -> Any:
    """Return IPython's shell if it runs in a notebook's kernel, else None."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell if hasattr(shell, "kernel") else None


def has_windows() -> bool:
    """Whether pyplot opens windows, or widgets in a notebook, here."""
    import matplotlib.pyplot as plt
    from matplotlib.backends import registry

    backend = str(plt.get_backend()).lower()
    headless = registry.backend_registry.list_builtin(registry.BackendFilter.NON_INTERACTIVE)
    return backend not in headless and "inline" not in backend


def _teach(shell: Any, figures: type) -> None:
    """Have a notebook show figures as pictures, unless it does so already.

    It learns that from pyplot otherwise, which may not have been used yet.
    """
    formatter = shell.display_formatter.formatters["image/png"]
    try:
        formatter.lookup_by_type(figures)
    except KeyError:
        formatter.for_type(figures, as_png)
