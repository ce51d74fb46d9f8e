"""Show figures in a window, in the output of a notebook cell, or keep them in memory."""

from __future__ import annotations

import io
import sys
import threading
from typing import TYPE_CHECKING, Any

from udfdask.errors import missing_package

if TYPE_CHECKING:
    from matplotlib import figure

    Figure = figure.Figure  # only this room imports matplotlib


def figure_class() -> type[Figure]:
    """Return matplotlib's class for figures; raise if it is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise missing_package("matplotlib", purpose="drawing", extra="plot") from error
    return Figure


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


class Screen:
    """A place that shows a figure repeatedly: a window, the output of a cell, or memory."""

    def __init__(self, size: tuple[float, float]) -> None:
        self._is_window = _can_open_windows()
        self._handle: Any = None
        self.figure = new_figure(size)
        if self._is_window:
            self.figure.show()

    @property
    def is_closed(self) -> bool:
        """Whether the user has closed the window."""
        if not self._is_window:
            return False
        import matplotlib.pyplot as plt

        return not plt.fignum_exists(self.figure.number)

    def show(self) -> None:
        """Show the current state of the figure, and process the user's actions since the last."""
        if self._is_window:
            self.figure.canvas.draw()
            self.figure.canvas.flush_events()
        elif _notebook() is not None:
            from IPython.display import display

            if self._handle is None:
                self._handle = display(self.figure, display_id=True)
            else:
                self._handle.update(self.figure)


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


def _notebook() -> Any:
    """Return IPython's shell if it runs in a notebook kernel, otherwise None."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell if hasattr(shell, "kernel") else None


def _as_png(figure: Any) -> bytes:
    """Return a figure as the bytes of a PNG file."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=100)
    return file.getvalue()


def show_as_pictures(figures: type) -> None:
    """In a notebook, show figures that are the value of a cell as pictures.

    pyplot sets this up when it is imported, but it may not be imported yet.
    """
    shell = _notebook()
    if shell is not None:
        formatter = shell.display_formatter.formatters["image/png"]
        try:
            formatter.lookup_by_type(figures)
        except KeyError:
            formatter.for_type(figures, _as_png)
