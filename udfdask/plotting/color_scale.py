"""Choose the colors of an image from its values, or as the user asked."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from udfdask.errors import ArgumentValueError
from udfdask.plotting.panels import Panel

Array = np.ndarray[Any, Any]

_MAPS = {"scan": "gray", "pattern": "inferno", "signed": "RdBu_r", "phase": "twilight"}


def check_colors(
    *,
    vmin: Any = None,
    vmax: Any = None,
    cmap: Any = None,
    norm: Any = None,
    log: bool | None = None,
) -> dict[str, Any]:
    """Return the arguments about colors that are not None, checked, as fields of a `Panel`."""
    from matplotlib import colormaps

    if vmin is not None and vmax is not None and not vmin < vmax:
        raise ArgumentValueError(f"vmin={vmin!r} must be smaller than vmax={vmax!r}")
    if isinstance(cmap, str) and cmap not in colormaps:
        raise ArgumentValueError(
            f"cmap={cmap!r} is not a colormap of matplotlib: see list(matplotlib.colormaps)"
        )
    if norm is not None and not (vmin is None and vmax is None and log is None):
        raise ArgumentValueError(
            "norm cannot be combined with vmin, vmax or log: pass the limits to the norm"
        )
    given = {"vmin": vmin, "vmax": vmax, "cmap": cmap, "norm": norm}
    return {name: value for name, value in given.items() if value is not None}


def with_colors(panels: Iterable[Panel], look: Mapping[str, Any]) -> tuple[Panel, ...]:
    """Return panels with the colors that the user asked for; angles keep their own."""
    return tuple(panel if panel.style == "phase" else replace(panel, **look) for panel in panels)


def color_map(panel: Panel) -> Any:
    """Return the colormap of an image, or its name."""
    return _MAPS[panel.style] if panel.cmap is None else panel.cmap


def color_scale(values: Array, panel: Panel) -> tuple[Any, str]:
    """Return the norm of an image, and which ends of the color bar are pointed."""
    from matplotlib.colors import LogNorm, Normalize

    shown = values[np.isfinite(values)]
    if panel.norm is not None:
        norm = copy.deepcopy(panel.norm)  # matplotlib would set its limits for other panels, too
        norm.autoscale_None(shown)
        return norm, _pointed(shown, norm.vmin, norm.vmax)
    if panel.log and (shown > 0).any():
        low, high = _log_limits(shown, panel)
        norm = LogNorm(low, high)
        below, above = panel.vmin or -np.inf, panel.vmax or np.inf  # only what the user cuts off
    else:
        low, high = _limits(shown, panel)
        norm = Normalize(low, high)
        below, above = (-np.inf, np.inf) if panel.style == "phase" else (low, high)
    return norm, _pointed(shown, below, above)


def _log_limits(shown: Array, panel: Panel) -> tuple[float, float]:
    """Return the limits of a logarithmic scale; limits that are not positive do not count."""
    high = float(shown.max())
    low = max(float(shown[shown > 0].min()), 1e-6 * high)
    if shown.min() <= 0:
        low /= 2  # otherwise a single count would look like zero counts
    if panel.vmax is not None and panel.vmax > 0:
        high = panel.vmax
        low = min(low, high / 2)
    if panel.vmin is not None and panel.vmin > 0:
        low = panel.vmin
    return low, high if high > low else 2 * low


def _limits(shown: Array, panel: Panel) -> tuple[float, float]:
    """Return the limits of a linear scale."""
    low, high = _own_limits(shown, panel)
    vmin, vmax = panel.vmin, panel.vmax
    if panel.style == "signed":  # zero stays in the middle
        vmin = -vmax if vmin is None and vmax is not None and vmax > 0 else vmin
        vmax = -vmin if vmax is None and vmin is not None and vmin < 0 else vmax
    low, high = low if vmin is None else vmin, high if vmax is None else vmax
    if high <= low:
        return (low, low + 1) if vmax is None else (high - 1, high)
    return low, high


def _own_limits(shown: Array, panel: Panel) -> tuple[float, float]:
    """Return the limits that fit the values."""
    if panel.style == "phase":
        return -np.pi, np.pi
    if shown.size == 0:
        return 0.0, 1.0
    low, high = float(shown.min()), float(shown.max())
    inner_low, inner_high = (float(q) for q in np.quantile(shown, (0.002, 0.998)))
    # A hot pixel must not make everything else one color.
    if inner_high > inner_low:
        most = inner_high - inner_low
        low = inner_low if inner_low - low > most else low
        high = inner_high if high - inner_high > most else high
    if panel.style == "signed":
        high = max(abs(low), abs(high))
        low = -high
    return (low - 0.5, high + 0.5) if high == low else (low, high)


def _pointed(shown: Array, low: float, high: float) -> str:
    """Return which ends of a color bar have values beyond them, in the words of matplotlib."""
    below, above = bool((shown < low).any()), bool((shown > high).any())
    ends = {(False, False): "neither", (True, False): "min", (False, True): "max"}
    return ends.get((below, above), "both")
