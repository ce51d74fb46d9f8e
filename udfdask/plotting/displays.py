"""Show figures in a window, in the output of a notebook cell, or keep them in memory."""

from __future__ import annotations

import threading
from typing import Any, Protocol

from udfdask.plotting.notebooks import as_png, notebook, show_as_pictures
from udfdask.plotting.static import figure_classes


class Screen(Protocol):
    """A place that shows a figure repeatedly."""

    figure: Any
    """The matplotlib figure."""

    @property
    def is_closed(self) -> bool:
        """Whether the user has closed the figure."""

    def show(self) -> None:
        """Show the current state of the figure."""


class Window:
    """A pyplot window; the user can close it at any time."""

    def __init__(self, size: tuple[float, float]) -> None:
        import matplotlib.pyplot as plt

        self.figure = plt.figure(figsize=size)
        self.is_closed = False
        self.figure.canvas.mpl_connect("close_event", self._note_closing)
        self.figure.show(warn=False)

    def show(self) -> None:
        """Draw now, and process the user's actions since the last drawing."""
        self.figure.canvas.draw()
        self.figure.canvas.flush_events()

    def _note_closing(self, event: Any) -> None:
        """Remember that the window is closed."""
        self.is_closed = True


class Memory:
    """No screen: the figure only exists in memory and can be saved."""

    is_closed = False

    def __init__(self, size: tuple[float, float]) -> None:
        make_figure, _ = figure_classes()
        self.figure = make_figure(figsize=size)

    def show(self) -> None:
        """Do nothing."""


class Cell(Memory):
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
    figure_classes()
    if _can_open_windows():
        return Window(size)
    return Cell(size) if notebook() is not None else Memory(size)


def new_figure(size: tuple[float, float]) -> Any:
    """Return a figure that the user's front end can show, with a size in inches.

    If there are windows, it is a pyplot figure for `plt.show()`. In a notebook, it is shown as the
    value of a cell. Otherwise it is a plain figure that pyplot does not keep.
    """
    make_figure, _ = figure_classes()
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
