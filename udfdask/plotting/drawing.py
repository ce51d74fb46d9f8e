"""Draw one panel into one matplotlib axes: lines, or an image with a color bar or a wheel."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from typing import Any

import numpy as np

from udfdask.errors import ArgumentValueError
from udfdask.geometry.axes import Axis
from udfdask.plotting.colors import (
    color_map,
    color_norm,
    color_wheel,
    longest_shown,
    vector_colors,
)
from udfdask.plotting.panels import Array, Panel

INK = "0.25"
MISSING = "#f1e4c6"  # a color that no color scale contains
_FLAT = 0.62  # height divided by width of lines
_STRETCHED = 0.7  # height divided by width of an image whose axes have different units
_TITLE_WIDTH = 34  # characters in a line of a panel's title
_OUTLINE_COLORS = ("#35d0ff", "#ffd23f", "#ff5ea8", "#7dff6b", "#ffffff", "#b388ff")
_TINT = 0.15
"""Opacity of the inside of detectors."""
_FINE = 4
"""Number of parts of a pixel along each axis, for outlines."""
_LINE_COLORS = ("#3b528b", "#d1495b", "#2a9d8f", "#e9a03b", "#7b5ea7", "#6b6b6b")
_LEGEND = {"fontsize": 8, "labelcolor": INK, "framealpha": 0.8}


def draw_panel(figure: Any, axes: Any, panel: Panel) -> None:
    """Draw a panel into an empty matplotlib axes of a figure."""
    n_dims, shape = (3,) if panel.style == "vector" else (1, 2), panel.values.shape
    if len(shape) not in n_dims or len(panel.axes) != len(shape):  # as colors, it would be drawn
        raise ArgumentValueError(
            f"the panel {panel.title!r} must be an image or a line, with one axis for each "
            f"dimension: it has values of shape {shape} and {len(panel.axes)} axes"
        )
    title = textwrap.fill(panel.title, _TITLE_WIDTH)
    axes.set_title(title, fontsize=10.5, color=INK, loc="left")
    axes.tick_params(labelsize=8, colors=INK, length=3)
    axes.set_anchor("N")
    axes.spines[:].set(color="0.6", linewidth=0.8)
    values = np.abs(panel.values) if panel.values.dtype.kind == "c" else panel.values
    values = values.astype(np.float64)
    values[~np.isfinite(values)] = np.nan
    if values.ndim == 1 or panel.style == "lines":
        _draw_lines(axes, panel, values)
        return
    # an image has pixels of equal size, so that uneven positions are counted
    even = (a if a.values is None else Axis(name=a.name, unit="index") for a in panel.axes)
    panel = replace(panel, axes=tuple(even))
    if panel.style == "vector":
        _draw_vectors(axes, panel, values)
    else:
        _draw_image(figure, axes, panel, values)


def _name(axis: Axis) -> str:
    """Return the name and the unit of an axis."""
    unit = axis.unit or ("pixels" if axis.labels is None else "index")
    return f"{axis.name} ({unit})"


def _label_values(axis: Any, panel: Panel) -> None:
    """Write the name or the unit of the values along matplotlib's axis, and percent if asked."""
    from matplotlib.ticker import PercentFormatter

    axis.set_label_text(panel.label or "%" * panel.percent, fontsize=9, color=INK)
    if panel.percent:
        axis.set_major_formatter(PercentFormatter(1, symbol=""))


def _draw_lines(axes: Any, panel: Panel, values: Array) -> None:
    """Draw a line, shape (n,), or lines, shape (n, lines), and shade masks of shape (n,)."""
    positions = panel.axes[0].positions(len(values))
    axes.set_prop_cycle(color=_LINE_COLORS)
    lines = axes.plot(positions, values, lw=1.1, marker="." if len(values) <= 40 else "")
    if len(panel.axes) > 1:
        for line, label in zip(lines, panel.axes[1].labels or range(len(lines)), strict=True):
            line.set_label(label)
    is_log = panel.log and np.nanmax(values, initial=0) > 0
    if is_log:
        axes.set_yscale("log")  # it has no place for zero
    limits = (panel.vmin, panel.vmax)
    axes.set_ylim(*(None if at is None or (is_log and at <= 0) else at for at in limits))
    middles = (positions[1:] + positions[:-1]) / 2
    edges = np.r_[2 * positions[0] - middles[0], middles, 2 * positions[-1] - middles[-1]]
    axes.set_xlim(edges[0], edges[-1])
    axes.set_box_aspect(_FLAT)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="0.9", lw=0.7)
    axes.set_xlabel(_name(panel.axes[0]), fontsize=9, color=INK)
    _label_values(axes.yaxis, panel)
    for number, (name, mask) in enumerate(panel.outlines.items(), start=1):
        color = _LINE_COLORS[number % len(_LINE_COLORS)]
        # where each run of True begins and ends
        steps = np.diff(mask.reshape(-1).astype(np.int8), prepend=0, append=0)
        for k, (first, stop) in enumerate(np.flatnonzero(steps).reshape(-1, 2)):
            label = name if k == 0 else None
            axes.axvspan(edges[first], edges[stop], color=color, alpha=0.3, lw=0, label=label)
    if panel.outlines or len(panel.axes) > 1:
        axes.legend(**_LEGEND)


def _edges(axis: Axis, n: int) -> tuple[float, float]:
    """Return the outer edges of the pixels of an image."""
    return axis.offset - 0.5 * axis.scale, axis.offset + (n - 0.5) * axis.scale


def _extents(panel: Panel) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the edges of an image along y and x."""
    down, across = map(_edges, panel.axes[:2], panel.values.shape[:2])
    return down, across


def height_of(panel: Panel) -> float:
    """Return the height of a panel divided by its width."""
    if min(len(panel.axes), panel.values.ndim) < 2 or panel.style == "lines":
        return _FLAT
    return _even_height(panel) or _STRETCHED


def _even_height(panel: Panel) -> float | None:
    """Return the height divided by the width of an image that keeps its proportions, or None."""
    (top, bottom), (left, right) = _extents(panel)
    height = abs((bottom - top) / (right - left))
    return height if panel.axes[0].unit == panel.axes[1].unit and 0.2 < height < 5 else None


def _show(axes: Any, panel: Panel, values: Array, **colors: Any) -> Any:
    """Show values or colors as an image with labels of its axes; return matplotlib's image."""
    down, across = panel.axes[:2]
    (top, bottom), (left, right) = _extents(panel)
    is_even = _even_height(panel) is not None
    image = axes.imshow(
        values,
        extent=(left, right, bottom, top),
        aspect="equal" if is_even else "auto",
        interpolation="nearest",
        **colors,
    )
    if not is_even:
        axes.set_box_aspect(_STRETCHED)
    axes.set_facecolor(MISSING)
    axes.set_ylabel(_name(down), fontsize=9, color=INK)
    axes.set_xlabel(_name(across), fontsize=9, color=INK)
    return image


def _draw_image(figure: Any, axes: Any, panel: Panel, values: Array) -> None:
    """Draw the image and the color bar of a panel with two dimensions."""
    from matplotlib.colors import LogNorm

    norm = color_norm(values, panel)
    if isinstance(norm, LogNorm):
        # Zero counts have no logarithm; draw them dark, not as missing values.
        values = np.where(values <= 0, float(norm.vmin or 0), values)
    image = _show(axes, panel, values, cmap=color_map(panel), norm=norm)
    # An inset always has the height of the image, even if the layout changes the image.
    bar = figure.colorbar(image, cax=axes.inset_axes((1.03, 0, 0.045, 1)))
    bar.ax.tick_params(which="both", labelsize=8, colors=INK, length=3)
    bar.outline.set_visible(False)
    _label_values(bar.ax.yaxis, panel)
    if panel.style == "phase":
        bar.set_ticks([-np.pi, 0, np.pi], labels=["−π", "0", "π"])  # noqa: RUF001
    if panel.outlines:
        _draw_outlines(axes, panel, image.get_extent())


def _draw_vectors(axes: Any, panel: Panel, vectors: Array) -> None:
    """Draw the colors of vectors, with a color wheel at the top right of the image."""
    longest = panel.vmax if panel.vmax and panel.vmax > 0 else longest_shown(vectors)
    _show(axes, panel, vector_colors(vectors, longest))
    wheel = axes.inset_axes((1.05, 0.7, 0.24, 0.3), anchor="NW")
    wheel.imshow(color_wheel(), interpolation="bilinear")
    wheel.set_axis_off()
    # text that is wider than the wheel goes on to the right, where no image covers it
    text = {"fontsize": 8, "color": INK, "transform": wheel.transAxes, "va": "top"}
    wheel.text(0, -0.06, f"rim: {longest:.3g} {panel.label}".rstrip(), **text)


def _draw_outlines(axes: Any, panel: Panel, extent: tuple[float, float, float, float]) -> None:
    """Tint masks and draw their outlines along the edges of their pixels, with a legend."""
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Patch

    handles = []
    (left, right, bottom, top), (rows, columns) = extent, panel.values.shape
    y, x = (
        first + (last - first) * (np.arange(-1, n * _FINE + 1) + 0.5) / (n * _FINE)
        for first, last, n in ((top, bottom, rows), (left, right, columns))
    )
    for number, (name, mask) in enumerate(panel.outlines.items()):
        color = _OUTLINE_COLORS[number % len(_OUTLINE_COLORS)]
        # each pixel is repeated, so that lines follow its edges and not its middle
        fine = np.pad(np.kron(mask, np.ones((_FINE, _FINE))), 1)
        # the tint tells the inside of a ring from that of a disk if the outer edge is not shown
        axes.contourf(x, y, fine, levels=[0.5, 1.5], colors=[color], alpha=_TINT)
        axes.contour(x, y, fine, levels=[0.5], colors=[color], linewidths=1.3)
        handles.append(Patch(facecolor=to_rgba(color, _TINT), edgecolor=color, lw=1.3, label=name))
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, top)
    axes.legend(handles=handles, loc="upper right", **_LEGEND)
