"""Draw one panel into one matplotlib axes: lines, or an image with a color bar or a wheel."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from udfdask.geometry.axes import Axis
from udfdask.plotting.color_scale import color_map, color_scale
from udfdask.plotting.panels import Panel
from udfdask.plotting.vectors import color_wheel, longest_shown, vector_colors

Array = np.ndarray[Any, Any]

INK = "0.25"
MISSING = "#f1e4c6"  # a color that no color scale contains
_STRETCHED = 0.7  # height divided by width of an image whose axes have different units
_TITLE_WIDTH = 34  # characters in a line of a panel's title
_FEW_POINTS = 40  # a line with at most this many points has a marker at each point
_MOST_LABELS = 12  # tick labels along an axis
_OUTLINE_COLORS = ("#35d0ff", "#ffd23f", "#ff5ea8", "#7dff6b", "#ffffff", "#b388ff")
_TINT = 0.15
"""Opacity of the inside of detectors."""
_FINE = 4
"""Number of parts of a pixel along each axis, for outlines."""
_LINE_COLORS = ("#3b528b", "#d1495b", "#2a9d8f", "#e9a03b", "#7b5ea7", "#6b6b6b")
_LEGEND = {"fontsize": 8, "labelcolor": INK, "framealpha": 0.8}


def draw_panel(figure: Any, axes: Any, panel: Panel) -> None:
    """Draw a panel into an empty matplotlib axes of a figure."""
    title = textwrap.fill(panel.title, _TITLE_WIDTH)
    axes.set_title(title, fontsize=10.5, color=INK, loc="left")
    axes.tick_params(labelsize=8, colors=INK, length=3)
    axes.set_anchor("N")
    axes.spines[:].set(color="0.6", linewidth=0.8)
    values = np.abs(panel.values) if panel.values.dtype.kind == "c" else panel.values
    values = values.astype(np.float64)
    values[~np.isfinite(values)] = np.nan
    if panel.style == "lines" or values.ndim == 1:
        _draw_lines(axes, panel, values)
        return
    # an image has pixels of equal size, so that uneven positions are counted
    even = (a if a.values is None else Axis(name=a.name, unit="index") for a in panel.axes)
    panel = replace(panel, axes=tuple(even))
    if panel.style == "vector":
        _draw_vectors(axes, panel, values)
    else:
        _draw_image(figure, axes, panel, values)


def _describe(drawn: Any, axis: Axis) -> None:
    """Label a matplotlib axis with name and unit, or with a label for each position."""
    if axis.labels is not None and len(axis.labels) <= _MOST_LABELS:
        drawn.set_label_text(axis.name, fontsize=9, color=INK)
        drawn.set_ticks(range(len(axis.labels)), labels=axis.labels)
        return
    unit = axis.unit or ("pixels" if axis.labels is None else "index")
    drawn.set_label_text(f"{axis.name} ({unit})", fontsize=9, color=INK)
    if axis.scale == 1 and axis.offset == 0:
        drawn.get_major_locator().set_params(integer=True)


def _draw_lines(axes: Any, panel: Panel, values: Array) -> None:
    """Draw a line, shape (n,), or several lines, shape (n, lines)."""
    axis, *others = panel.axes
    positions = axis.positions(len(values))
    for number, line in enumerate(values.reshape(len(values), -1).T):
        axes.plot(
            positions,
            line,
            lw=1.1,
            color=_LINE_COLORS[number % len(_LINE_COLORS)],
            marker="." if len(line) <= _FEW_POINTS else "",
            label=_line_name(others[0], number) if others else None,
        )
    is_log = panel.log and np.nanmax(values, initial=0) > 0
    if is_log:
        axes.set_yscale("log")  # it has no place for zero
    limits = (panel.vmin, panel.vmax)
    axes.set_ylim(*(None if at is None or (is_log and at <= 0) else at for at in limits))
    edges = _edges(positions, axis)
    axes.set_xlim(edges[0], edges[-1])
    axes.set_box_aspect(0.62)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="0.9", lw=0.7)
    _describe(axes.xaxis, axis)
    axes.set_ylabel(panel.label, fontsize=9, color=INK)
    _shade_spans(axes, edges, panel.outlines)
    if others or panel.outlines:
        axes.legend(**_LEGEND)


def _line_name(axis: Axis, number: int) -> str:
    """Return the name of one of several lines."""
    return axis.labels[number] if axis.labels else f"{axis.name} {number}"


def _shade_spans(axes: Any, edges: Array, masks: Mapping[str, Array]) -> None:
    """Shade the channels of masks of n values; `edges` has the shape (n + 1,)."""
    for number, (name, mask) in enumerate(masks.items()):
        color = _LINE_COLORS[1:][number % (len(_LINE_COLORS) - 1)]
        look = {"facecolor": color, "edgecolor": color, "alpha": 0.3, "lw": 0, "zorder": 0}
        # where each run of True begins and ends
        steps = np.diff(mask.reshape(-1).astype(np.int8), prepend=0, append=0)
        for k, (first, stop) in enumerate(np.flatnonzero(steps).reshape(-1, 2)):
            axes.axvspan(edges[first], edges[stop], label=name if k == 0 else None, **look)


def _edges(positions: Array, axis: Axis) -> Array:
    """Return the values halfway between positions, and beyond the first and the last one."""
    if axis.values is None or len(positions) < 2:
        return np.append(positions - 0.5 * axis.scale, positions[-1] + 0.5 * axis.scale)
    middles = (positions[1:] + positions[:-1]) / 2
    first, last = 2 * positions[0] - middles[0], 2 * positions[-1] - middles[-1]
    return np.concatenate([[first], middles, [last]])


def _extent(panel: Panel) -> tuple[float, float, float, float]:
    """Return the outer edges of the pixels of an image panel: left, right, bottom, top."""
    (rows, columns), (down, right) = panel.values.shape[:2], panel.axes[:2]
    return (
        right.offset - 0.5 * right.scale,
        right.offset + (columns - 0.5) * right.scale,
        down.offset + (rows - 0.5) * down.scale,
        down.offset - 0.5 * down.scale,
    )


def _is_isotropic(panel: Panel) -> bool:
    """Return whether both axes have the same unit, so that the image keeps its aspect ratio."""
    left, right, bottom, top = _extent(panel)
    down, across = panel.axes[:2]
    of_one_kind = down.unit == across.unit and not (down.labels or across.labels)
    return of_one_kind and 0.2 < abs((bottom - top) / (right - left)) < 5


def _draw_image(figure: Any, axes: Any, panel: Panel, values: Array) -> None:
    """Draw the image and the color bar of a panel with two dimensions."""
    from matplotlib.colors import LogNorm

    norm, extend = color_scale(values, panel)
    if isinstance(norm, LogNorm):
        # Zero counts have no logarithm; draw them dark, not as missing values.
        values = np.where(values <= 0, float(norm.vmin or 0), values)
    image = _show(axes, panel, values, cmap=color_map(panel), norm=norm)
    # An inset always has the height of the image, even if the layout changes the image.
    bar = figure.colorbar(image, cax=axes.inset_axes((1.03, 0, 0.045, 1)), extend=extend)
    bar.ax.tick_params(which="both", labelsize=8, colors=INK, length=3)
    bar.outline.set_visible(False)
    bar.set_label(panel.label, fontsize=9, color=INK)
    if panel.style == "phase":
        bar.set_ticks([-np.pi, 0, np.pi], labels=["−π", "0", "π"])  # noqa: RUF001
    if panel.outlines:
        _draw_outlines(axes, panel)


def _draw_vectors(axes: Any, panel: Panel, vectors: Array) -> None:
    """Draw the colors of vectors, with a color wheel at the top right of the image."""
    longest = panel.vmax if panel.vmax and panel.vmax > 0 else longest_shown(vectors)
    _show(axes, panel, vector_colors(vectors, longest))
    left, right, bottom, top = _extent(panel)
    tall = abs((bottom - top) / (right - left)) if _is_isotropic(panel) else _STRETCHED
    wheel = axes.inset_axes((1.05, 1 - 0.24 / tall, 0.24, 0.24 / tall))
    wheel.imshow(color_wheel(), interpolation="bilinear")
    wheel.set_axis_off()
    # text that is wider than the wheel goes on to the right, where no image covers it
    text = {"fontsize": 8, "color": INK, "transform": wheel.transAxes, "va": "top"}
    wheel.text(0, -0.06, f"rim: {longest:.3g} {panel.label}".rstrip(), **text)


def _show(axes: Any, panel: Panel, values: Array, **colors: Any) -> Any:
    """Show values or colors as an image with labels of its axes; return matplotlib's image."""
    image = axes.imshow(
        values,
        extent=_extent(panel),
        aspect="equal" if _is_isotropic(panel) else "auto",
        interpolation="nearest",
        **colors,
    )
    if not _is_isotropic(panel):
        axes.set_box_aspect(_STRETCHED)
    axes.set_facecolor(MISSING)
    _describe(axes.yaxis, panel.axes[0])
    _describe(axes.xaxis, panel.axes[1])
    return image


def _draw_outlines(axes: Any, panel: Panel) -> None:
    """Tint masks and draw their outlines along the edges of their pixels, with a legend."""
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Patch

    handles = []
    (left, right, bottom, top), (rows, columns) = _extent(panel), panel.values.shape
    for number, (name, mask) in enumerate(panel.outlines.items()):
        color = _OUTLINE_COLORS[number % len(_OUTLINE_COLORS)]
        # each pixel is repeated, so that lines follow its edges and not its middle
        fine = np.pad(np.kron(mask, np.ones((_FINE, _FINE))), 1)
        y = top + (bottom - top) * (np.arange(-1, rows * _FINE + 1) + 0.5) / (rows * _FINE)
        x = left + (right - left) * (np.arange(-1, columns * _FINE + 1) + 0.5) / (columns * _FINE)
        # the tint tells the inside of a ring from that of a disk if the outer edge is not shown
        axes.contourf(x, y, fine, levels=[0.5, 1.5], colors=[color], alpha=_TINT)
        axes.contour(x, y, fine, levels=[0.5], colors=[color], linewidths=1.3)
        handles.append(Patch(facecolor=to_rgba(color, _TINT), edgecolor=color, lw=1.3, label=name))
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, top)
    axes.legend(handles=handles, loc="upper right", **_LEGEND)
