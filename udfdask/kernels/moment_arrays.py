"""The moments of pixels over frames, as arrays that kernels and devices share."""

from __future__ import annotations

from typing import Any, NamedTuple


class Moments(NamedTuple):
    """Moments of each pixel over n frames, all of one shape, contiguous.

    The sum of the frames is ``n * origin + excess``. A sum alone has too few digits for the
    variance of values that differ by a millionth of themselves: the difference of two means would
    be lost in their rounding.
    """

    origin: Any
    """A value near those of the pixel, or 0, float64 or complex128."""
    excess: Any
    """Sum of the values less the origin each, in the same dtype."""
    varsum: Any
    """Sum of squared deviations from the mean, float64."""


LARGEST_ORIGIN = 1e300
"""Largest value from which deviations are taken: those of two such values are finite."""
