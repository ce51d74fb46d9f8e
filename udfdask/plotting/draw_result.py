"""Implement `Result.plot`: check the request before the values exist, then draw them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.axes import Axis
from udfdask.plotting.choose import Choice, choose
from udfdask.plotting.color_scale import check_colors, with_colors
from udfdask.plotting.displays import new_figure
from udfdask.plotting.labels import Described, Labels
from udfdask.plotting.live import check_log
from udfdask.plotting.panels import Panel, map_of_curves, panels_of
from udfdask.plotting.scan_position import Position, ScanPosition, at_position, check_position
from udfdask.plotting.static import draw, figure_classes, figure_size

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """The plan of a figure for the results of one UDF."""

    choices: tuple[Choice, ...]
    """The results to draw."""
    log: bool | None
    """Logarithmic scale for all results, for none, or (if None) for patterns only."""
    title: str
    """Title above all panels."""
    position: Position | None = None
    """Scan position whose values are drawn as well; None for none."""
    look: Mapping[str, Any] = field(default_factory=dict)
    """Limits and colors of all panels, by the names of `Panel`."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the results whose values are needed, without repetition."""
        return tuple(dict.fromkeys(choice.name for choice in self.choices))

    def draw(
        self,
        arrays: Mapping[str, Any],
        masks: Mapping[str, Any],
        outlines: Mapping[str, Any] | None = None,
    ) -> Any:
        """Draw NumPy arrays with masks of valid positions, both by name; return the figure.

        `outlines` are masks of frames whose outlines are drawn over each image, by name.
        """
        drawn = [
            self._panels(*choice.drawn(arrays[choice.name], masks[choice.name]))
            for choice in self.choices
        ]
        panels = [panel for _, _, own in drawn for panel in own]
        if outlines:
            panels = [replace(panel, outlines=outlines) for panel in panels]
        figure = new_figure(figure_size(panels, title=self.title))
        draw(panels, title=self.title, figure=figure)
        shown, places = ScanPosition(figure), iter(figure.axes)
        for labels, values, own in drawn:
            shown.add(labels, values, own, list(itertools.islice(places, len(own))))
        if self.position is not None:
            shown.show(self.position)
        shown.follow_clicks()
        return figure

    def _panels(self, labels: Labels, values: Array) -> tuple[Labels, Array, tuple[Panel, ...]]:
        """Return what is drawn of a result, with its labels and its panels."""
        if self.position is not None:
            labels, values = at_position(labels, values, self.position)
        panels = panels_of(labels, values, log=self.log)
        if any(panel.style == "profile" for panel in panels):
            image = map_of_curves(labels, values)  # where one can click
            panels = panels if image is None else (*panels, image)
        return labels, values, with_colors(panels, self.look)


def prepare_plot(
    described: Described,
    names: Any,
    *,
    axes: Sequence[Axis] | None,
    log: bool | None,
    title: str | None,
    nav: Any = None,
    **look: Any,
) -> Plot:
    """Return the checked plot for the results of a UDF and the arguments of `Result.plot`."""
    figure_classes()
    colors = check_colors(**look, log=check_log(log))
    if not isinstance(title, str | None):
        raise ArgumentTypeError(f"title must be a string, got {title!r}")
    choices = choose(names, [described], axes, option="names", finished=True)
    position = None if nav is None else check_position(nav, described.nav_shape)
    if position is not None and not any(choice.labels.kind == "nav" for choice in choices):
        raise ArgumentValueError(
            f"nav={nav!r} is a scan position, but {choices[0].name!r} of {described.udf_name} has "
            "no values for each position: leave out nav"
        )
    return Plot(
        choices=choices,
        position=position,
        log=log,
        look=colors,
        title=described.udf_name if title is None else title,
    )
