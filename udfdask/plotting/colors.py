"""Choose the colors of an image or of vectors from their values, or as the user asked."""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.errors import ArgumentValueError
from udfdask.plotting.panels import Array, Panel

_MAPS = {"scan": "gray", "pattern": "inferno", "signed": "RdBu_r", "phase": "twilight"}
_INNER = (0.002, 0.998)  # quantiles: a few broken pixels must not make all else one color
_WHEEL_PIXELS = 101


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


def color_norm(values: Array, panel: Panel) -> Any:
    """Return the norm of an image, linear or logarithmic."""
    from matplotlib.colors import LogNorm, Normalize

    shown = values[np.isfinite(values)]
    positive = shown[shown > 0]
    vmin, vmax = panel.vmin, panel.vmax
    if panel.log and positive.size:
        high = float(positive.max())
        low = max(float(positive.min()), 1e-6 * high)
        if shown.min() <= 0:
            low /= 2  # otherwise a single count would look like zero counts
        if vmax is not None and vmax > 0:
            high = vmax
            low = min(low, high / 2)
        low = low if vmin is None or vmin <= 0 else vmin
        return LogNorm(low, high if high > low else 2 * low)
    if panel.style == "phase":
        return Normalize(-np.pi, np.pi)
    low, high = _limits(shown)
    if panel.style == "signed":  # zero stays in the middle
        high = max(abs(low), abs(high))
        low = -high
        if vmin is None and vmax is not None and vmax > 0:
            vmin = -vmax
        elif vmax is None and vmin is not None and vmin < 0:
            vmax = -vmin
    low, high = low if vmin is None else vmin, high if vmax is None else vmax
    if high <= low:
        low, high = (low, low + 1) if vmax is None else (high - 1, high)
    return Normalize(low, high)


def _limits(shown: Array) -> tuple[float, float]:
    """Return the smallest and the largest value, without a few that are far from all others."""
    if not shown.size:
        return 0.0, 1.0
    low, high = float(shown.min()), float(shown.max())
    inner_low, inner_high = np.quantile(shown, _INNER, method="nearest").tolist()
    most = inner_high - inner_low
    return (
        inner_low if inner_low - low > most > 0 else low,
        inner_high if high - inner_high > most > 0 else high,
    )


def vector_colors(vectors: Array, longest: float) -> Array:
    """Return the RGBA colors of vectors (y, x), shape (..., 2); `longest` is the brightest length.

    Hue is the direction on the screen, where y points down, and brightness is the length. Vectors
    that are not finite are transparent.
    """
    from matplotlib.colors import hsv_to_rgb

    finite: Array = np.isfinite(vectors).all(axis=-1)  # type: ignore[assignment]
    y, x = np.moveaxis(np.where(finite[..., None], vectors, 0.0), -1, 0)
    hue = (np.arctan2(y, x) / (2 * np.pi)) % 1.0
    value = np.clip(np.hypot(y, x) / longest, 0.0, 1.0)
    rgb = hsv_to_rgb(np.stack([hue, np.ones_like(hue), value], axis=-1))
    return np.concatenate([rgb, finite[..., None]], axis=-1)


def longest_shown(vectors: Array) -> float:
    """Return the length that is drawn brightest, above zero, of vectors of shape (..., 2)."""
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=-1)
    lengths = lengths[np.isfinite(lengths)]
    return (float(np.quantile(lengths, _INNER[1])) if lengths.size else 0.0) or 1.0


def color_wheel() -> Array:
    """Return an RGBA image of a disk that shows all vectors up to the brightest length."""
    along = np.linspace(-1.0, 1.0, _WHEEL_PIXELS)
    y, x = np.meshgrid(along, along, indexing="ij")
    wheel = vector_colors(np.stack([y, x], axis=-1), 1.0)
    wheel[..., 3] = np.clip((1.0 - np.hypot(y, x)) * _WHEEL_PIXELS / 2, 0.0, 1.0)
    return wheel
