"""Choose the colors of an image from its values, or as the user asked."""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.errors import ArgumentValueError
from udfdask.plotting.panels import Panel

Array = np.ndarray[Any, Any]

_MAPS = {"scan": "gray", "pattern": "inferno", "signed": "RdBu_r", "phase": "twilight"}


def check_colors(*, vmin: Any = None, vmax: Any = None, cmap: Any = None) -> dict[str, Any]:
    """Return the arguments about colors that are not None, checked, as fields of a `Panel`."""
    from matplotlib import colormaps

    if vmin is not None and vmax is not None and not vmin < vmax:
        raise ArgumentValueError(f"vmin={vmin!r} must be smaller than vmax={vmax!r}")
    if isinstance(cmap, str) and cmap not in colormaps:
        raise ArgumentValueError(
            f"cmap={cmap!r} is not a colormap of matplotlib: see list(matplotlib.colormaps)"
        )
    given = {"vmin": vmin, "vmax": vmax, "cmap": cmap}
    return {name: value for name, value in given.items() if value is not None}


def color_map(panel: Panel) -> Any:
    """Return the colormap of an image, or its name."""
    return _MAPS[panel.style] if panel.cmap is None else panel.cmap


def color_scale(values: Array, panel: Panel) -> tuple[Any, str]:
    """Return the norm of an image, and which ends of the color bar are pointed."""
    from matplotlib.colors import LogNorm, Normalize

    shown = values[np.isfinite(values)]
    positive = shown[shown > 0]
    if panel.log and positive.size:
        low, high = _log_limits(shown, positive, panel)
        norm: Normalize = LogNorm(low, high)
        shown = positive
    else:
        low, high = _limits(shown, panel)
        norm = Normalize(low, high)
    below, above = bool((shown < low).any()), bool((shown > high).any())
    return norm, "both" if below and above else "min" if below else "max" if above else "neither"


def _log_limits(shown: Array, positive: Array, panel: Panel) -> tuple[float, float]:
    """Return the limits of a logarithmic scale; limits that are not positive do not count."""
    high = float(positive.max())
    low = max(float(positive.min()), 1e-6 * high)
    if shown.min() <= 0:
        low /= 2  # otherwise a single count would look like zero counts
    if panel.vmax is not None and panel.vmax > 0:
        high = panel.vmax
        low = min(low, high / 2)
    if panel.vmin is not None and panel.vmin > 0:
        low = panel.vmin
    return low, high if high > low else 2 * low


def _limits(shown: Array, panel: Panel) -> tuple[float, float]:
    """Return the limits of a linear scale; a hot pixel must not make all else one color."""
    if panel.style == "phase":
        return -np.pi, np.pi
    low, high, vmin, vmax = 0.0, 1.0, panel.vmin, panel.vmax
    if shown.size:
        low, high = float(shown.min()), float(shown.max())
        inner_low, inner_high = (float(q) for q in np.quantile(shown, (0.002, 0.998)))
        most = inner_high - inner_low
        low = inner_low if inner_low - low > most > 0 else low
        high = inner_high if high - inner_high > most > 0 else high
    if panel.style == "signed":  # zero stays in the middle
        high = max(abs(low), abs(high))
        low = -high
        if vmin is None and vmax is not None and vmax > 0:
            vmin = -vmax
        elif vmax is None and vmin is not None and vmin < 0:
            vmax = -vmin
    low, high = low if vmin is None else vmin, high if vmax is None else vmax
    if high <= low:
        return (low, low + 1) if vmax is None else (high - 1, high)
    return low, high
