"""Draw the curve of one scan position: of the one that is asked for, then of each that is clicked.

A click on a map over the scan draws the curve of that position over the mean curve.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.axes import Axis
from udfdask.plotting.drawing import INK, LINE_COLORS, even_axis
from udfdask.plotting.labels import Labels, place_text
from udfdask.plotting.panels import Panel, is_profile

Array = np.ndarray[Any, Any]
Position = tuple[int, ...]

_MARK = {"marker": "+", "markersize": 12, "markeredgewidth": 2, "color": LINE_COLORS[1]}


def check_position(nav: Any, shape: Sequence[int]) -> Position:
    """Return a scan position as a tuple of indices from 0; raise if it is not one."""
    given = tuple(nav) if isinstance(nav, (tuple, list, np.ndarray)) else (nav,)
    if not all(isinstance(k, int | np.integer) and not isinstance(k, bool) for k in given):
        raise ArgumentTypeError(
            f"nav must be a scan position, such as nav=(3, 4): one number for each axis of the "
            f"scan, in positions; got {nav!r}"
        )
    if len(given) != len(shape) or not all(-n <= k < n for k, n in zip(given, shape, strict=True)):
        raise ArgumentValueError(
            f"nav={nav!r} is not a position of the scan, which has the shape {tuple(shape)}"
        )
    return tuple(int(k) % n for k, n in zip(given, shape, strict=True))


def position_text(axes: Sequence[Axis], position: Position) -> str:
    """Return a scan position in the units of the axes, as text."""
    named = zip(axes, position, strict=False)
    return ", ".join(f"{axis.name} {place_text(axis, k)}" for axis, k in named)


def at_position(labels: Labels, values: Array, position: Position) -> tuple[Labels, Array]:
    """Return the part of a result at a scan position if maps over the scan do not show it well.

    Results of one number, of few named numbers, and profiles are returned as they are.
    """
    n, extra = labels.n_leading, labels.axes[labels.n_leading :]
    if labels.kind != "nav" or not extra or is_profile(labels, values):
        return labels, values
    if len(extra) == 1 and extra[0].labels is not None:
        return labels, values
    part = values[position]
    title = f"{labels.title} at {position_text(labels.axes, position)}"
    return replace(
        labels, title=title, kind="single", shape=part.shape, axes=labels.axes[n:], n_leading=0
    ), part


@dataclass(frozen=True, slots=True, kw_only=True)
class _Curves:
    """A panel with a mean curve, and the curves of all scan positions."""

    panel: Any
    """The matplotlib axes."""
    values: Array
    """The curves, shape (*nav, n)."""
    axes: tuple[Axis, ...]
    """One axis per dimension of `values`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Map:
    """A panel with an image, one or both axes of which are axes of the scan."""

    panel: Any
    """The matplotlib axes."""
    middle: Position
    """The scan position in the dimensions that are not axes of the image."""
    dims: tuple[int, ...]
    """The dimensions of the scan along y and x of the image, or along y only."""
    axes: tuple[Axis, ...]
    """Axes of the image along these dimensions."""
    shape: tuple[int, ...]
    """Sizes along these dimensions."""

    def position_at(self, y: float, x: float) -> Position | None:
        """Return the scan position at a point in data coordinates; None outside the image."""
        position = list(self.middle)
        for dim, axis, size, value in zip(self.dims, self.axes, self.shape, (y, x), strict=False):
            position[dim] = round(axis.to_pixels(value))
            if not 0 <= position[dim] < size:
                return None
        return tuple(position)

    def point_of(self, position: Position) -> tuple[float, ...] | None:
        """Return the point of a scan position, along `dims`; None if the image does not show it."""
        for dim, k in enumerate(position):
            if dim not in self.dims and k != self.middle[dim]:
                return None
        pairs = zip(self.dims, self.axes, strict=True)
        return tuple(axis.offset + axis.scale * position[dim] for dim, axis in pairs)


class ScanPosition:
    """The scan position whose curves a figure shows; a click on a map over the scan changes it."""

    def __init__(self, figure: Any) -> None:
        self._figure = figure
        self._curves: list[_Curves] = []
        self._maps: list[_Map] = []
        self._drawn: list[Any] = []

    def add(self, labels: Labels, values: Array, panels: Sequence[Panel], drawn: Any) -> None:
        """Add the panels of a result; `drawn` are their matplotlib axes."""
        if labels.kind != "nav":
            return
        for panel, one in zip(panels, drawn, strict=True):
            if panel.style == "profile":
                self._curves.append(_Curves(panel=one, values=values, axes=labels.axes))
            elif panel.style != "lines" and panel.values.ndim > 1:
                self._add_map(labels, values, panel, one)

    def _add_map(self, labels: Labels, values: Array, panel: Panel, drawn: Any) -> None:
        """Add the panel of an image if it shows single positions of the scan."""
        nav = labels.axes[: labels.n_leading]
        dims = tuple(nav.index(axis) for axis in panel.axes[:2] if axis in nav)
        others = [size for dim, size in enumerate(values.shape[: len(nav)]) if dim not in dims]
        # an image of curves is their mean along the other axes of the scan
        if (
            not dims
            or panel.axes[0] != nav[dims[0]]
            or (len(dims) == 1 and max(others, default=1) > 1)
        ):
            return
        self._maps.append(
            _Map(
                panel=drawn,
                middle=tuple(size // 2 for size in values.shape[: len(nav)]),
                dims=dims,
                axes=tuple(even_axis(nav[dim]) for dim in dims),
                shape=tuple(values.shape[dim] for dim in dims),
            )
        )

    def follow_clicks(self) -> None:
        """Show the position of each click on a map, if there are curves to show."""
        if not self._curves or not self._maps:
            return

        # a function, because matplotlib would not keep the object of a method
        def clicked(event: Any) -> None:
            position = self._clicked_position(event)
            if position is not None:
                self.show(position)
                self._figure.canvas.draw_idle()

        self._figure.canvas.mpl_connect("button_press_event", clicked)

    def _clicked_position(self, event: Any) -> Position | None:
        """Return the scan position of a click; None if it is elsewhere, or moves the image."""
        toolbar = getattr(self._figure.canvas, "toolbar", None)
        if event.button != 1 or getattr(toolbar, "mode", ""):
            return None
        for one in self._maps:
            if one.panel is event.inaxes:
                return one.position_at(event.ydata, event.xdata)
        return None

    def show(self, position: Position) -> None:
        """Draw the curves of a scan position, and mark it on all maps."""
        for artist in self._drawn:
            artist.remove()
        self._drawn = [self._draw_curve(one, position) for one in self._curves]
        for one in self._maps:
            point = one.point_of(position)
            if point is not None and len(point) == 2:
                at = {"scalex": False, "scaley": False, **_MARK}
                self._drawn += one.panel.plot([point[1]], [point[0]], **at)
            elif point is not None:
                self._drawn.append(one.panel.axhline(point[0], color=LINE_COLORS[1], lw=1))

    def _draw_curve(self, one: _Curves, position: Position) -> Any:
        """Draw the curve of a scan position; return the line."""
        curve = one.values[position].astype(np.float64)
        text = position_text(one.axes, position)
        if not np.isfinite(curve).any():
            text += ": no values"
        (line,) = one.panel.plot(
            one.axes[-1].positions(len(curve)),
            np.where(np.isfinite(curve), curve, np.nan),
            lw=1.3,
            color=LINE_COLORS[1],
            label=text,
            scalex=False,
        )
        one.panel.legend(fontsize=8, labelcolor=INK, framealpha=0.8)
        return line
