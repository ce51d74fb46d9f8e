"""Figures of several panels, saved as PNG."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from udfdask.axes import Axis
from udfdask.errors import ArgumentValueError
from udfdask.plotting.panels import Panel

_COLOURS = {"scan": "gray", "pattern": "inferno", "signed": "RdBu_r"}
_INK = "0.25"
_MISSING = "#f1e4c6"  # a colour that is in none of the scales
_STRETCHED = 0.7  # height by width of an image whose proportions mean nothing


def save_png(
    path: str | os.PathLike[str], panels: Sequence[Panel], *, title: str = "", dpi: int = 150
) -> Path:
    """Draw panels into a PNG file.

    Parameters
    ----------
    path : str or path-like
        The file to write; one that is there is replaced.
    panels : sequence of Panel
        What to draw, row by row.
    title : str
        A title above all panels.
    dpi : int
        Resolution, pixels per inch; a panel is about 4 inches wide.

    Returns
    -------
    pathlib.Path
        The file's absolute path.

    Raises
    ------
    FileNotFoundError
        If the folder that `path` is to be in does not exist.
    ArgumentValueError
        If there are no panels, or one is neither an image nor a line.
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from udfdask import Axis
    >>> from udfdask.plotting import Panel, save_png
    >>> axes = (Axis(name="y", unit="nm"), Axis(name="x", unit="nm"))
    >>> panel = Panel(title="ramp", values=np.arange(12).reshape(3, 4), axes=axes)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     saved = save_png(Path(folder) / "ramp.png", [panel])
    ...     print(saved.name, saved.read_bytes()[1:4])
    ramp.png b'PNG'
    """
    target = Path(path).expanduser().absolute()
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"there is no folder {target.parent} to write {target.name} in: make it first"
        )
    draw(panels, title=title).savefig(target, dpi=dpi, format="png")
    return target


def draw(panels: Sequence[Panel], *, title: str = "") -> Any:
    """Draw panels into a figure.

    Parameters
    ----------
    panels : sequence of Panel
        What to draw, row by row.
    title : str
        A title above all panels.

    Returns
    -------
    matplotlib.figure.Figure
        The figure; pyplot knows nothing of it.

    Raises
    ------
    ArgumentValueError
        If there are no panels, or one is neither an image nor a line.
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
    try:
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    except ImportError as error:
        raise ImportError(
            'drawing needs matplotlib, which is not installed: pip install "udfdask[plot]"',
            name=error.name,
        ) from error
    for panel in panels:
        if panel.values.ndim not in (1, 2) or panel.values.ndim != len(panel.axes):
            raise ArgumentValueError(
                f"panel {panel.title!r} must be an image or a line with an axis per dimension, got "
                f"values of shape {panel.values.shape} and {len(panel.axes)} axes"
            )
    if not panels:
        raise ArgumentValueError("there is nothing to draw: pass at least one panel")
    columns = min(len(panels), max(2, math.ceil(math.sqrt(len(panels)))))
    rows = [panels[first : first + columns] for first in range(0, len(panels), columns)]
    heights = [max(_height(panel) for panel in row) for row in rows]
    figure = Figure(
        figsize=(4.3 * columns, sum(heights) + (0.4 if title else 0.0)),
        layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.10),
    )
    if title:
        figure.suptitle(title, fontsize=13, color=_INK)
    grid = figure.subplots(len(rows), columns, squeeze=False, height_ratios=heights).ravel()
    for axes, panel in zip(grid, panels, strict=False):
        _dress(axes, panel)
        if panel.values.ndim == 1:
            _draw_line(axes, panel)
        else:
            _draw_image(figure, axes, panel)
    for axes in grid[len(panels) :]:
        axes.remove()
    return figure


def _height(panel: Panel) -> float:
    """Take a panel; return the height that it fills with its words, inches."""
    if panel.values.ndim == 1:
        return 2.9
    left, right, bottom, top = _extent(panel)
    tall = abs((bottom - top) / (right - left)) if _is_isotropic(panel) else _STRETCHED
    return 0.85 + 3.0 * min(max(tall, 0.3), 1.2)


def _dress(axes: Any, panel: Panel) -> None:
    """Take an empty matplotlib axes; give it the panel's title and look."""
    axes.set_title(panel.title, fontsize=10.5, color=_INK, loc="left")
    axes.tick_params(labelsize=8, colors=_INK, length=3)
    axes.set_anchor("N")
    for spine in axes.spines.values():
        spine.set_color("0.6")
        spine.set_linewidth(0.8)


def _describe(drawn: Any, axis: Axis) -> None:
    """Take a matplotlib axis and what it shows; give it name and unit."""
    drawn.set_label_text(f"{axis.name} ({axis.unit or 'pixels'})", fontsize=9, color=_INK)
    if axis.unit is None:
        drawn.get_major_locator().set_params(integer=True)


def _drawable(panel: Panel) -> np.ndarray[Any, Any]:
    """Take a panel; return real float values, infinite ones and those no log can show as NaN."""
    values = np.abs(panel.values) if panel.values.dtype.kind == "c" else panel.values
    values = values.astype(np.float64)
    values[~np.isfinite(values)] = np.nan
    return values


def _draw_line(axes: Any, panel: Panel) -> None:
    """Take a matplotlib axes and a panel of one dimension; draw its line."""
    (axis,) = panel.axes
    values = _drawable(panel)
    axes.plot(axis.offset + axis.scale * np.arange(values.size), values, lw=1.1, color="#3b528b")
    if panel.log and np.nanmax(values, initial=0) > 0:
        axes.set_yscale("log")
    axes.margins(x=0)
    axes.set_box_aspect(0.68)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="0.9", lw=0.7)
    _describe(axes.xaxis, axis)
    axes.set_ylabel(_value_label(panel), fontsize=9, color=_INK)


def _value_label(panel: Panel) -> str:
    """Take a panel; return what its values are, in words."""
    return f"|{panel.label or 'value'}|" if panel.values.dtype.kind == "c" else panel.label


def _extent(panel: Panel) -> tuple[float, float, float, float]:
    """Take an image panel; return the outer edges of its pixels: left, right, bottom, top."""
    (rows, columns), (down, right) = panel.values.shape, panel.axes
    return (
        right.offset - 0.5 * right.scale,
        right.offset + (columns - 0.5) * right.scale,
        down.offset + (rows - 0.5) * down.scale,
        down.offset - 0.5 * down.scale,
    )


def _is_isotropic(panel: Panel) -> bool:
    """Whether both axes are of one kind, so that the image's proportions mean something."""
    left, right, bottom, top = _extent(panel)
    proportion = abs((bottom - top) / (right - left))
    return panel.axes[0].unit == panel.axes[1].unit and 0.2 < proportion < 5


def _draw_image(figure: Any, axes: Any, panel: Panel) -> None:
    """Take a figure, a matplotlib axes and a panel of two dimensions; draw image and colour bar."""
    values = _drawable(panel)
    norm, extend = _colour_scale(values, panel)
    image = axes.imshow(
        values,
        cmap=_COLOURS[panel.style],
        norm=norm,
        extent=_extent(panel),
        aspect="equal" if _is_isotropic(panel) else "auto",
        interpolation="nearest",
    )
    if not _is_isotropic(panel):
        axes.set_box_aspect(_STRETCHED)
    if panel.log:
        # Zero counts have no logarithm; they are dark, not missing.
        axes.set_facecolor(image.get_cmap()(0.0))
    else:
        axes.set_facecolor(_MISSING)
    _describe(axes.yaxis, panel.axes[0])
    _describe(axes.xaxis, panel.axes[1])
    # An inset, because it is as high as the image whatever the layout makes of that.
    bar = figure.colorbar(image, cax=axes.inset_axes((1.03, 0, 0.045, 1)), extend=extend)
    bar.ax.tick_params(labelsize=8, colors=_INK, length=3)
    bar.outline.set_visible(False)
    if label := _value_label(panel):
        bar.set_label(label, fontsize=9, color=_INK)


def _colour_scale(values: np.ndarray[Any, Any], panel: Panel) -> tuple[Any, str]:
    """Take an image; return how its values map to colours, and which ends go on beyond."""
    from matplotlib.colors import LogNorm, Normalize

    shown = values[np.isfinite(values)]
    if panel.log and (shown > 0).any():
        high = float(shown.max())
        low = max(float(shown[shown > 0].min()), 1e-6 * high)
        return LogNorm(low, high if high > low else 2 * low), "neither"
    if shown.size == 0:
        return Normalize(0, 1), "neither"
    low, high = float(shown.min()), float(shown.max())
    inner_low, inner_high = (float(q) for q in np.quantile(shown, (0.002, 0.998)))
    # A hot pixel must not make everything else one colour.
    if inner_high > inner_low:
        most = inner_high - inner_low
        low = inner_low if inner_low - low > most else low
        high = inner_high if high - inner_high > most else high
    if panel.style == "signed":
        high = max(abs(low), abs(high))
        low = -high
    if high == low:
        low, high = low - 0.5, high + 0.5
    below, above = bool((shown < low).any()), bool((shown > high).any())
    ends = {(False, False): "neither", (True, False): "min", (False, True): "max"}
    return Normalize(low, high), ends.get((below, above), "both")
