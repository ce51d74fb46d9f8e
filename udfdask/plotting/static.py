"""Draw figures with several panels."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

from udfdask.errors import ArgumentValueError
from udfdask.plotting.displays import figure_classes, show_as_pictures
from udfdask.plotting.drawing import INK, STRETCHED, draw_panel, extent, is_isotropic
from udfdask.plotting.panels import Panel

_TITLE_WIDTH = 32  # characters above each column of panels


def draw(panels: Sequence[Panel], *, title: str = "", figure: Any = None) -> Any:
    """Draw panels into a figure.

    Parameters
    ----------
    panels : sequence of Panel
        What to draw, row by row.
    title : str
        A title above all panels.
    figure : matplotlib.figure.Figure, optional
        The figure to draw into. It is cleared first and keeps its size. By default a new figure.

    Returns
    -------
    matplotlib.figure.Figure
        The figure; pyplot does not know a new figure. A notebook shows it as the value of a cell.

    Raises
    ------
    ArgumentValueError
        If there are no panels, or the shape of a panel does not fit its style.
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> from udfdask import Axis
    >>> from udfdask.plotting import Panel, draw
    >>> line = Panel(title="spectrum", values=np.arange(5), axes=(Axis(name="E", unit="keV"),))
    >>> draw([line]).axes[0].get_xlabel()
    'E (keV)'
    """
    make_figure, make_layout = figure_classes()
    for panel in panels:
        _check(panel)
    columns, heights = _n_columns(panels), _row_heights(panels)
    if figure is None:
        show_as_pictures(make_figure)
        figure = make_figure(figsize=figure_size(panels, title=title))
    else:
        figure.clear()
    figure.set_layout_engine(make_layout(w_pad=0.12, h_pad=0.10))
    if title:
        title = textwrap.fill(title, round(_TITLE_WIDTH * columns))
        figure.suptitle(title, fontsize=13, color=INK)
    grid = figure.subplots(len(heights), columns, squeeze=False, height_ratios=heights).ravel()
    for axes, panel in zip(grid, panels, strict=False):
        draw_panel(figure, axes, panel)
    for axes in grid[len(panels) :]:
        axes.remove()
    return figure


def _check(panel: Panel) -> None:
    """Raise unless the shape of a panel fits its style."""
    dims = {"lines": (2,), "profile": (2,), "vector": (3,)}.get(panel.style, (1, 2))
    fits = panel.values.ndim in dims and panel.values.ndim == len(panel.axes)
    if not fits or (panel.style in ("profile", "vector") and panel.values.shape[-1] != 2):
        raise ArgumentValueError(
            f"panel {panel.title!r} must be an image or a line with an axis per dimension, and two "
            f"values in the last one for a vector or a profile, got values of shape "
            f"{panel.values.shape} and {len(panel.axes)} axes for style {panel.style!r}"
        )


def figure_size(panels: Sequence[Panel], *, title: str = "") -> tuple[float, float]:
    """Return the width and height of a figure with these panels, in inches."""
    return 4.3 * _n_columns(panels), sum(_row_heights(panels)) + (0.4 if title else 0.0)


def _n_columns(panels: Sequence[Panel]) -> int:
    """Return the number of columns of panels; raise if there is no panel."""
    if not panels:
        raise ArgumentValueError("there is nothing to draw: at least one image or line is needed")
    return min(len(panels), max(2, math.ceil(math.sqrt(len(panels)))))


def _row_heights(panels: Sequence[Panel]) -> list[float]:
    """Return the height of each row of panels, in inches."""
    columns = _n_columns(panels)
    rows = [panels[first : first + columns] for first in range(0, len(panels), columns)]
    return [max(_height(panel) for panel in row) for row in rows]


def _height(panel: Panel) -> float:
    """Return the height of a panel with its texts, in inches."""
    if panel.values.ndim == 1 or panel.style == "lines":
        return 3.2
    left, right, bottom, top = extent(panel)
    if not is_isotropic(panel):
        return 0.85 + 3.4 * STRETCHED
    return 0.85 + 3.0 * min(max(abs((bottom - top) / (right - left)), 0.3), 1.2)
