"""Draw figures with several panels."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from udfdask.errors import ArgumentValueError
from udfdask.plotting.displays import figure_class, show_as_pictures
from udfdask.plotting.drawing import INK, draw_panel, height_of
from udfdask.plotting.panels import Panel

if TYPE_CHECKING:
    from udfdask.plotting.displays import Figure

_TITLE_WIDTH = 32  # characters above each column of panels


def draw(panels: Sequence[Panel], *, title: str = "", figure: Figure | None = None) -> Figure:
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
        If there are no panels.
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
    make_figure = figure_class()
    rows, columns = _grid(panels)
    if figure is None:
        show_as_pictures(make_figure)
        figure = make_figure(figsize=figure_size(panels, title=title))
    else:
        figure.clear()
    figure.set_layout_engine("constrained", w_pad=0.12, h_pad=0.10)
    if title:
        title = textwrap.fill(title, _TITLE_WIDTH * columns)
        figure.suptitle(title, fontsize=13, color=INK)
    heights = _heights_of_rows(panels)
    grid = figure.subplots(rows, columns, squeeze=False, height_ratios=heights).ravel()
    for axes, panel in zip(grid, panels, strict=False):
        draw_panel(figure, axes, panel)
    for axes in grid[len(panels) :]:
        axes.remove()
    return figure


def figure_size(panels: Sequence[Panel], *, title: str = "") -> tuple[float, float]:
    """Return the width and height of a figure with these panels, in inches."""
    _, columns = _grid(panels)
    return 4.3 * columns, sum(_heights_of_rows(panels)) + (0.4 if title else 0.0)


def _heights_of_rows(panels: Sequence[Panel]) -> list[float]:
    """Return the height of each row of panels with its labels, in inches."""
    _, columns = _grid(panels)
    rows = (panels[first : first + columns] for first in range(0, len(panels), columns))
    return [0.85 + 2.65 * min(1.0, max(map(height_of, row))) for row in rows]


def _grid(panels: Sequence[Panel]) -> tuple[int, int]:
    """Return the number of rows and columns of panels; raise if there is no panel."""
    if not panels:
        raise ArgumentValueError("there is nothing to draw: at least one image or line is needed")
    columns = min(len(panels), max(2, math.ceil(math.sqrt(len(panels)))))
    return math.ceil(len(panels) / columns), columns
