"""The moments of pixels over frames, as arrays for kernels on the CPU and on a device."""

from __future__ import annotations

from typing import Any, NamedTuple


class Moments(NamedTuple):
    """Moments of each pixel over n frames: contiguous arrays of the same shape.

    The sum of the frames is ``n * origin + excess``. The origin keeps the precision of a small
    variance with a large offset: if values differ by a millionth of their size, the difference of
    two means, computed from plain sums, would vanish in rounding errors.
    """

    origin: Any
    """A value close to the values of the pixel, or 0; float64 or complex128."""
    excess: Any
    """Sum of (value - origin), in the same dtype."""
    varsum: Any
    """Sum of squared deviations from the mean, float64."""


LARGEST_ORIGIN = 1e300
"""Largest absolute value of an origin: the difference of two such values is finite."""
