"""The moments of pixels over frames, as arrays for kernels on the CPU and on a device."""

from __future__ import annotations

from typing import Any, NamedTuple


class Moments(NamedTuple):
    """Moments of each pixel over n frames: contiguous arrays of the same shape.

    `origin` is close to the values of a pixel, or 0. `excess` is the sum of (value - origin), so
    that the sum of the frames is ``n * origin + excess``; both are float64 or complex128. `varsum`
    is the sum of squared deviations from the mean, float64. The origin keeps the precision of a
    small variance with a large offset, which would vanish in the rounding errors of plain sums.
    """

    origin: Any
    excess: Any
    varsum: Any


LARGEST_ORIGIN = 1e300
"""Largest absolute value of an origin: the difference of two such values is finite."""
