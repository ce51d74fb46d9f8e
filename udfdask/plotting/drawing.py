"""One panel drawn into one matplotlib axes: a line, or an image with its colour bar."""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.axes import Axis
from udfdask.plotting.panels import Panel

_COLOURS = {"scan": "gray", "pattern": "inferno", "signed": "RdBu_r"}
INK = "0.25"
_MISSING = "#f1e4c6"  # a colour that is in none of the scales
STRETCHED = 0.7  # height by width of an image whose proportions mean nothing


def dress(axes: Any, panel: Panel) -> None:
    """Take an empty matplotlib axes; give it the panel's title and look."""
    axes.set_title(panel.title, fontsize=10.5, color=INK, loc="left")
    axes.tick_params(labelsize=8, colors=INK, length=3)
    axes.set_anchor("N")
    for spine in axes.spines.values():
        spine.set_color("0.6")
        spine.set_linewidth(0.8)


def _describe(drawn: Any, axis: Axis) -> None:
    """Take a matplotlib axis and what it shows; give it name and unit."""
    drawn.set_label_text(f"{axis.name} ({axis.unit or 'pixels'})", fontsize=9, color=INK)
    if axis.scale == 1 and axis.offset == 0:
        drawn.get_major_locator().set_params(integer=True)


def _drawable(panel: Panel) -> np.ndarray[Any, Any]:
    """Take a panel; return real float values, infinite ones and those no log can show as NaN."""
    values = np.abs(panel.values) if panel.values.dtype.kind == "c" else panel.values
    values = values.astype(np.float64)
    values[~np.isfinite(values)] = np.nan
    return values


def draw_line(axes: Any, panel: Panel) -> None:
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
    axes.set_ylabel(_value_label(panel), fontsize=9, color=INK)


def _value_label(panel: Panel) -> str:
    """Take a panel; return what its values are, in words."""
    return f"|{panel.label or 'value'}|" if panel.values.dtype.kind == "c" else panel.label


def extent(panel: Panel) -> tuple[float, float, float, float]:
    """Take an image panel; return the outer edges of its pixels: left, right, bottom, top."""
    (rows, columns), (down, right) = panel.values.shape, panel.axes
    return (
        right.offset - 0.5 * right.scale,
        right.offset + (columns - 0.5) * right.scale,
        down.offset + (rows - 0.5) * down.scale,
        down.offset - 0.5 * down.scale,
    )


def is_isotropic(panel: Panel) -> bool:
    """Whether both axes are of one kind, so that the image's proportions mean something."""
    left, right, bottom, top = extent(panel)
    proportion = abs((bottom - top) / (right - left))
    return panel.axes[0].unit == panel.axes[1].unit and 0.2 < proportion < 5


def draw_image(figure: Any, axes: Any, panel: Panel) -> None:
    """Take a figure, a matplotlib axes and a panel of two dimensions; draw image and colour bar."""
    values = _drawable(panel)
    norm, extend = _colour_scale(values, panel)
    image = axes.imshow(
        values,
        cmap=_COLOURS[panel.style],
        norm=norm,
        extent=extent(panel),
        aspect="equal" if is_isotropic(panel) else "auto",
        interpolation="nearest",
    )
    if not is_isotropic(panel):
        axes.set_box_aspect(STRETCHED)
    if panel.log:
        # Zero counts have no logarithm; they are dark, not missing.
        axes.set_facecolor(image.get_cmap()(0.0))
    else:
        axes.set_facecolor(_MISSING)
    _describe(axes.yaxis, panel.axes[0])
    _describe(axes.xaxis, panel.axes[1])
    # An inset, because it is as high as the image whatever the layout makes of that.
    bar = figure.colorbar(image, cax=axes.inset_axes((1.03, 0, 0.045, 1)), extend=extend)
    bar.ax.tick_params(labelsize=8, colors=INK, length=3)
    bar.outline.set_visible(False)
    if label := _value_label(panel):
        bar.set_label(label, fontsize=9, color=INK)


def _colour_scale(values: np.ndarray[Any, Any], panel: Panel) -> tuple[Any, str]:
    """Take an image; return how its values map to colours, and which ends go on beyond."""
    from matplotlib.colors import LogNorm, Normalize

    shown = values[np.isfinite(values)]
    if panel.log and (shown > 0).any():
        high = float(shown.max())
        low = max(float(shown[shown > 0].min()), 1e-6 * high)
        if shown.min() <= 0:
            low /= 2  # else a single count would look like none
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
