"""Convert vectors to colors: hue is the direction on the screen, brightness is the length."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_WHEEL_PIXELS = 101
_BRIGHTEST = 0.998  # quantile, so that one broken vector does not make all others black


def vector_colors(vectors: Array, longest: float) -> Array:
    """Return the RGBA colors of vectors (y, x), shape (..., 2); `longest` is the brightest length.

    y points down as in images. Vectors that are not finite are transparent.
    """
    from matplotlib.colors import hsv_to_rgb

    y, x = vectors[..., 0].astype(np.float64), vectors[..., 1].astype(np.float64)
    finite = np.isfinite(y) & np.isfinite(x)
    y, x = np.where(finite, y, 0.0), np.where(finite, x, 0.0)
    hue = (np.arctan2(y, x) / (2 * np.pi)) % 1.0
    value = np.clip(np.hypot(y, x) / longest, 0.0, 1.0)
    colors = np.empty((*hue.shape, 4))
    colors[..., :3] = hsv_to_rgb(np.stack([hue, np.ones_like(hue), value], axis=-1))
    colors[..., 3] = finite
    return colors


def longest_shown(vectors: Array) -> float:
    """Return the length that is drawn brightest, above zero, of vectors of shape (..., 2)."""
    lengths = np.hypot(vectors[..., 0].astype(np.float64), vectors[..., 1].astype(np.float64))
    lengths = lengths[np.isfinite(lengths)]
    longest = float(np.quantile(lengths, _BRIGHTEST)) if lengths.size else 0.0
    return longest or 1.0


def color_wheel() -> Array:
    """Return an RGBA image of a disk that shows all vectors up to the brightest length."""
    along = np.linspace(-1.0, 1.0, _WHEEL_PIXELS)
    y, x = np.meshgrid(along, along, indexing="ij")
    wheel = vector_colors(np.stack([y, x], axis=-1), 1.0)
    wheel[..., 3] = np.clip((1.0 - np.hypot(y, x)) * _WHEEL_PIXELS / 2, 0.0, 1.0)
    return wheel
