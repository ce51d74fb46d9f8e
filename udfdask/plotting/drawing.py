"""Draw one panel into one matplotlib axes: lines, or an image with a color bar or wheel."""

from __future__ import annotations

import math
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
STRETCHED = 0.7  # height divided by width of an image whose axes have different units
TITLE_WIDTH = 36  # characters in a line of a panel's title
_FEW_POINTS = 40  # a line with at most this many points has a marker at each point
_MOST_LABELS = 12  # tick labels along an axis
_OUTLINE_COLORS = ("#35d0ff", "#ffd23f", "#ff5ea8", "#7dff6b", "#ffffff", "#b388ff")
_TINT = 0.15
"""Opacity of the inside of detectors."""
_FINE = 4
"""Number of parts of a pixel along each axis, for outlines."""
LINE_COLORS = ("#3b528b", "#d1495b", "#2a9d8f", "#e9a03b", "#7b5ea7", "#6b6b6b")


def _dress(axes: Any, panel: Panel) -> None:
    """Set the title and style of an empty matplotlib axes."""
    title = textwrap.fill(panel.title, TITLE_WIDTH)
    axes.set_title(title, fontsize=10.5, color=INK, loc="left")
    axes.tick_params(labelsize=8, colors=INK, length=3)
    axes.set_anchor("N")
    for spine in axes.spines.values():
        spine.set_color("0.6")
        spine.set_linewidth(0.8)


def _describe(drawn: Any, axis: Axis) -> None:
    """Label a matplotlib axis with name and unit, or with a label for each position."""
    if axis.labels is not None and len(axis.labels) <= _MOST_LABELS:
        drawn.set_label_text(axis.name, fontsize=9, color=INK)
        drawn.set_ticks(range(len(axis.labels)), labels=axis.labels)
        return
    drawn.set_label_text(f"{axis.name} ({_unit(axis)})", fontsize=9, color=INK)
    if axis.scale == 1 and axis.offset == 0:
        drawn.get_major_locator().set_params(integer=True)


def _unit(axis: Axis) -> str:
    """Return the unit of an axis as text; without a unit, pixels or index."""
    return axis.unit or ("pixels" if axis.labels is None else "index")


def even_axis(axis: Axis) -> Axis:
    """Return an axis itself, or with numbers if its positions are not evenly spaced."""
    return axis if axis.values is None else Axis(name=axis.name, unit="index")


def _drawable(panel: Panel) -> np.ndarray[Any, Any]:
    """Take a panel; return real float values, infinite ones and those no log can show as NaN."""
    values = np.abs(panel.values) if panel.values.dtype.kind == "c" else panel.values
    values = values.astype(np.float64)
    values[~np.isfinite(values)] = np.nan
    return values


def draw_panel(figure: Any, axes: Any, panel: Panel) -> None:
    """Take a figure, an empty matplotlib axes in it and a panel; draw the panel there."""
    _dress(axes, panel)
    if panel.style in ("lines", "profile") or panel.values.ndim == 1:
        (_draw_profile if panel.style == "profile" else _draw_lines)(axes, panel)
        _limit_values(axes, panel)
        return
    # an image has pixels of equal size
    panel = replace(panel, axes=tuple(map(even_axis, panel.axes)))
    if panel.style == "vector":
        _draw_vectors(axes, panel)
    else:
        _draw_image(figure, axes, panel)


def _draw_lines(axes: Any, panel: Panel) -> None:
    """Take a matplotlib axes and a panel of one dimension, or of several lines; draw them."""
    axis, *others = panel.axes
    values = _drawable(panel)
    positions = axis.positions(len(values))
    lines = values.reshape(len(values), -1).T
    for number, line in enumerate(lines):
        axes.plot(
            positions,
            line,
            lw=1.1,
            color=LINE_COLORS[number % len(LINE_COLORS)],
            marker="." if len(line) <= _FEW_POINTS else "",
            label=_line_name(others[0], number) if others else None,
        )
    edges = _edges(positions, axis)
    _shade_missing(axes, edges, np.isnan(lines).all(axis=0))
    if panel.log and np.nanmax(values, initial=0) > 0:
        axes.set_yscale("log")
    axes.set_xlim(edges[0], edges[-1])
    axes.set_box_aspect(0.62)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="0.9", lw=0.7)
    _describe(axes.xaxis, axis)
    axes.set_ylabel(_value_label(panel), fontsize=9, color=INK)
    if others:
        _add_legend_above(axes, len(lines))
    if panel.outlines:
        _shade_spans(axes, edges, panel.outlines)


def _limit_values(axes: Any, panel: Panel) -> None:
    """Limit the values of a curve as the user asked; a logarithmic scale has no place for zero."""
    least = 0 if axes.get_yscale() == "log" else -math.inf
    limits = (None if at is None or at <= least else at for at in (panel.vmin, panel.vmax))
    axes.set_ylim(*limits)


def _shade_spans(axes: Any, edges: Array, masks: Mapping[str, Array]) -> None:
    """Shade the channels of masks of n values, with a legend; `edges` has the shape (n + 1,)."""
    for number, (name, mask) in enumerate(masks.items()):
        color = LINE_COLORS[1:][number % (len(LINE_COLORS) - 1)]
        look = {"facecolor": color, "edgecolor": color, "alpha": 0.3, "lw": 0, "zorder": 0}
        for k, (first, stop) in enumerate(_runs(mask)):
            label = name if k == 0 else None
            axes.axvspan(edges[first], edges[stop], label=label, **look)
    axes.legend(fontsize=8, labelcolor=INK, framealpha=0.8)


def _runs(mask: Array) -> Array:
    """Return where each run of True begins and ends in a mask of n values, shape (runs, 2)."""
    steps = np.diff(mask.reshape(-1).astype(np.int8), prepend=0, append=0)
    return np.flatnonzero(steps).reshape(-1, 2)


def _add_legend_above(axes: Any, n: int) -> None:
    """Add a legend of several lines above them, inside a taller panel."""
    columns = min(n, 3)
    if axes.get_yscale() == "linear":
        low, high = axes.get_ylim()
        axes.set_ylim(low, high + (high - low) * 0.14 * math.ceil(n / columns))
    axes.legend(
        fontsize=8,
        labelcolor=INK,
        framealpha=0.8,
        loc="upper center",
        ncols=columns,
        handlelength=1.2,
    )


def _draw_profile(axes: Any, panel: Panel) -> None:
    """Draw a curve and a band of one standard deviation above and below it."""
    mean = replace(panel, values=panel.values[:, 0], axes=panel.axes[:1], style="lines")
    _draw_lines(axes, mean)
    middle, spread = _drawable(panel).T
    positions = panel.axes[0].positions(len(middle))
    axes.lines[0].set_label("mean")
    band = {"color": LINE_COLORS[0], "alpha": 0.25, "linewidth": 0, "label": "± standard deviation"}
    lower, upper = middle - spread, middle + spread
    if axes.get_yscale() == "log":  # a band down to zero would leave no room for the curve
        lower = np.maximum(lower, 0.5 * np.min(middle, where=middle > 0, initial=np.inf))
        upper = np.maximum(lower, upper)
    axes.fill_between(positions, lower, upper, **band)
    axes.legend(fontsize=8, labelcolor=INK, framealpha=0.8)


def _line_name(axis: Axis, number: int) -> str:
    """Return the name of one of several lines."""
    return axis.labels[number] if axis.labels else f"{axis.name} {number}"


def _edges(positions: np.ndarray[Any, Any], axis: Axis) -> np.ndarray[Any, Any]:
    """Return the values halfway between positions, and beyond the first and the last one."""
    if axis.values is None or len(positions) < 2:
        return np.append(positions - 0.5 * axis.scale, positions[-1] + 0.5 * axis.scale)
    middles = (positions[1:] + positions[:-1]) / 2
    first, last = 2 * positions[0] - middles[0], 2 * positions[-1] - middles[-1]
    return np.concatenate([[first], middles, [last]])


def _shade_missing(axes: Any, edges: np.ndarray[Any, Any], missing: np.ndarray[Any, Any]) -> None:
    """Shade the positions where no line has a value; `missing` has the shape (n,)."""
    for first, stop in _runs(missing):
        axes.axvspan(edges[first], edges[stop], facecolor=MISSING, edgecolor="none", zorder=0)


def _value_label(panel: Panel) -> str:
    """Return a text that says what the values of a panel are."""
    return f"|{panel.label or 'value'}|" if panel.values.dtype.kind == "c" else panel.label


def extent(panel: Panel) -> tuple[float, float, float, float]:
    """Return the outer edges of the pixels of an image panel: left, right, bottom, top."""
    (rows, columns), (down, right) = panel.values.shape[:2], panel.axes[:2]
    return (
        right.offset - 0.5 * right.scale,
        right.offset + (columns - 0.5) * right.scale,
        down.offset + (rows - 0.5) * down.scale,
        down.offset - 0.5 * down.scale,
    )


def is_isotropic(panel: Panel) -> bool:
    """Return whether both axes have the same unit, so that the image keeps its aspect ratio."""
    left, right, bottom, top = extent(panel)
    proportion = abs((bottom - top) / (right - left))
    down, across = panel.axes[:2]
    of_one_kind = down.unit == across.unit and not (down.labels or across.labels)
    return of_one_kind and 0.2 < proportion < 5


def _draw_image(figure: Any, axes: Any, panel: Panel) -> None:
    """Draw the image and the color bar of a panel with two dimensions."""
    from matplotlib.colors import LogNorm

    values = _drawable(panel)
    norm, extend = color_scale(values, panel)
    if isinstance(norm, LogNorm):
        # Zero counts have no logarithm; draw them dark, not as missing values.
        values = np.where(values <= 0, float(norm.vmin or 0), values)
    image = _show(axes, panel, values, cmap=color_map(panel), norm=norm)
    # An inset always has the height of the image, even if the layout changes the image.
    bar = figure.colorbar(image, cax=axes.inset_axes((1.03, 0, 0.045, 1)), extend=extend)
    bar.ax.tick_params(which="both", labelsize=8, colors=INK, length=3)
    bar.outline.set_visible(False)
    if panel.style == "phase":
        bar.set_ticks([-np.pi, 0, np.pi], labels=["−π", "0", "π"])  # noqa: RUF001
    if label := _value_label(panel):
        bar.set_label(label, fontsize=9, color=INK)
    if panel.outlines:
        _draw_outlines(axes, panel)


def _draw_outlines(axes: Any, panel: Panel) -> None:
    """Tint masks and draw their outlines along the edges of their pixels, with a legend."""
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Patch

    handles = []
    (left, right, bottom, top), (rows, columns) = extent(panel), panel.values.shape[:2]
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
    axes.legend(handles=handles, fontsize=8, labelcolor=INK, framealpha=0.8, loc="upper right")


def _draw_vectors(axes: Any, panel: Panel) -> None:
    """Draw the colors of a panel of vectors, and a color wheel next to the image."""
    given = panel.vmax or 0.0
    longest = given if given > 0 else longest_shown(panel.values)
    _show(axes, panel, vector_colors(panel.values, longest))
    left, right, bottom, top = extent(panel)
    # correct the wheel for the aspect ratio; align it with the top of the image
    tall = abs((bottom - top) / (right - left)) if is_isotropic(panel) else STRETCHED
    wheel = axes.inset_axes((1.05, 1 - 0.24 / tall, 0.24, 0.24 / tall))
    wheel.imshow(color_wheel(), interpolation="bilinear", extent=(-1, 1, 1, -1))
    wheel.set_axis_off()
    # text that is wider than the wheel goes on to the right, where no image covers it
    text = {"fontsize": 8, "color": INK, "transform": wheel.transAxes, "ha": "left", "va": "top"}
    wheel.text(0.0, -0.06, f"rim: {longest:.3g} {panel.label}".rstrip(), **text)


def _show(axes: Any, panel: Panel, values: np.ndarray[Any, Any], **colors: Any) -> Any:
    """Show the values or colors of a panel as an image with axis labels."""
    image = axes.imshow(
        values,
        extent=extent(panel),
        aspect="equal" if is_isotropic(panel) else "auto",
        interpolation="nearest",
        **colors,
    )
    if not is_isotropic(panel):
        axes.set_box_aspect(STRETCHED)
    axes.set_facecolor(MISSING)
    _describe(axes.yaxis, panel.axes[0])
    _describe(axes.xaxis, panel.axes[1])
    if is_isotropic(panel) and panel.axes[1].is_calibrated:
        _add_scale_bar(axes, panel)
    return image


def _add_scale_bar(axes: Any, panel: Panel) -> None:
    """Add a bar of a round length, at most a third of the width, with its length in words."""
    from matplotlib.font_manager import FontProperties
    from mpl_toolkits.axes_grid1.anchored_artists import AnchoredSizeBar

    left, right, _, _ = extent(panel)
    length = round_length(abs(right - left) / 3)
    bar = AnchoredSizeBar(
        axes.transData,
        length,
        f"{length:g} {panel.axes[1].unit}",
        loc="lower left",
        pad=0.25,
        borderpad=0.4,
        sep=2,
        color=INK,
        size_vertical=abs(right - left) / 150,
        fontproperties=FontProperties(size=7),
    )
    bar.patch.set(alpha=0.75, linewidth=0)
    axes.add_artist(bar)


def round_length(most: float) -> float:
    """Return the largest of 1, 2 and 5 times a power of ten that is not above a length."""
    power = 10.0 ** math.floor(math.log10(most))
    return max(factor * power for factor in (1, 2, 5) if factor * power <= most * (1 + 1e-9))
