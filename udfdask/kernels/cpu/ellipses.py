"""Find pixels inside rings around a center, for kernels; rings can be elliptical.

An ellipse is given by a symmetric matrix (yy, yx, xx) with the determinant 1, which makes it round.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from udfdask.kernels.cpu.compile import lean_inner_kernel, rounding_inner_kernel


@lean_inner_kernel
def nearer(center: float, reach: float, size: int) -> tuple[int, int]:
    """Return start and stop of the pixels of an axis that are nearer to a center than `reach`."""
    start, stop, most = center - reach + 1, center + reach + 1, np.float64(size)
    # numbers that do not fit an integer would become negative
    return int(min(max(start, 0.0), most)), int(min(max(stop, 0.0), most))


@lean_inner_kernel
def nearer_rows(cy: float, matrix: Any, reach: float, height: int) -> Any:
    """Return start and stop of the rows that an ellipse of the radius `reach` can meet."""
    long = math.sqrt(matrix[1] * matrix[1] + matrix[2] * matrix[2])
    return nearer(cy, reach * long, height)


@lean_inner_kernel
def nearer_columns(dy: float, cx: float, matrix: Any, reach: float, width: int) -> Any:
    """Return start and stop of the pixels of a row inside an ellipse of the radius `reach`.

    The row is `dy` below the center. In a row, the squared distance is
    ``a x**2 + 2 b dy x + c dy**2`` with ``a c - b**2 = 1``.
    """
    yy, yx, xx = matrix
    a, b = yx * yx + xx * xx, yx * (yy + xx)
    reach *= math.sqrt(a)
    half = math.sqrt(max((reach - dy) * (reach + dy), 0.0)) / a
    return nearer(cx - b * dy / a, half, width)


# products are rounded one by one, so that the pixels are exactly those of the masks
@rounding_inner_kernel
def is_between(dy: float, dx: float, matrix: Any, inner: float, outer: float) -> Any:
    """Return whether a pixel is between two radii, whose squares are `inner` and `outer`.

    The outer radius belongs to the ring, the inner one does not: a disk has a negative `inner`.
    """
    yy, yx, xx = matrix
    y, x = yy * dy + yx * dx, yx * dy + xx * dx
    squared = y * y + x * x
    return (squared > inner) & (squared <= outer)
