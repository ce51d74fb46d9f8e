"""Implement `Result.plot`: check the request before the values exist, then draw them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from udfdask.geometry.axes import Axis
from udfdask.plotting.choose import Choice, choose
from udfdask.plotting.color_scale import check_colors, with_colors
from udfdask.plotting.displays import figure_classes, new_figure
from udfdask.plotting.labels import Described
from udfdask.plotting.static import draw, figure_size


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """The plan of a figure for the results of one UDF."""

    choices: tuple[Choice, ...]
    """The results to draw."""
    log: bool | None
    """Logarithmic scale for all results, for none, or (if None) for patterns only."""
    title: str
    """Title above all panels."""
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
        panels = [
            panel
            for choice in self.choices
            for panel in choice.panels(arrays[choice.name], masks[choice.name], log=self.log)
        ]
        panels = [replace(panel, outlines=outlines or {}) for panel in panels]
        figure = new_figure(figure_size(panels, title=self.title))
        return draw(with_colors(panels, self.look), title=self.title, figure=figure)


def prepare_plot(
    described: Described,
    names: Any,
    *,
    axes: Sequence[Axis] | None,
    log: bool | None,
    title: str | None,
    **look: Any,
) -> Plot:
    """Return the checked plot for the results of a UDF and the arguments of `Result.plot`."""
    figure_classes()
    colors = check_colors(**look, log=log)
    choices = choose(names, [described], axes, option="names")
    title = described.udf_name if title is None else title
    return Plot(choices=choices, log=log, look=colors, title=title)
