"""Compute distances and angles of pixels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from udfdask.errors import ArgumentValueError
from udfdask.masks import checks
from udfdask.masks.ellipses import rounded, rounding_matrix
from udfdask.types import AnyArray


def offsets(
    centerX: float, centerY: float, imageSizeX: int, imageSizeY: int
) -> tuple[AnyArray, AnyArray]:
    """Return dy of shape (imageSizeY, 1) and dx of shape (1, imageSizeX), float64, in pixels."""
    nx, ny = checks.size("imageSizeX", imageSizeX), checks.size("imageSizeY", imageSizeY)
    cx, cy = checks.number("centerX", centerX), checks.number("centerY", centerY)
    y, x = np.ogrid[:ny, :nx]
    return y - cy, x - cx


def round_offsets(
    centerX: float,
    centerY: float,
    imageSizeX: int,
    imageSizeY: int,
    stretch: float = 1.0,
    stretch_angle: float = 0.0,
) -> tuple[AnyArray, AnyArray]:
    """Return `offsets` in the coordinates in which an ellipse is round; they can be broadcast."""
    dy, dx = offsets(centerX, centerY, imageSizeX, imageSizeY)
    return rounded(rounding_matrix(stretch, stretch_angle), dy, dx)


def distance(
    centerX: float,
    centerY: float,
    imageSizeX: int,
    imageSizeY: int,
    stretch: float = 1.0,
    stretch_angle: float = 0.0,
) -> AnyArray:
    """Return the distance of each pixel from a center, shape (imageSizeY, imageSizeX).

    With a stretch, it is that in the coordinates in which the ellipse is round.
    """
    return np.hypot(
        *round_offsets(centerX, centerY, imageSizeX, imageSizeY, stretch, stretch_angle)
    )


def reach(*frame: Any) -> float:
    """Return a radius that includes all pixels of a frame, with room for a soft edge.

    The arguments are those of `distance`.
    """
    return float(distance(*frame).max()) + 1


def polar_map(
    centerX: float,
    centerY: float,
    imageSizeX: int,
    imageSizeY: int,
    stretchY: float = 1.0,
    angle: float = 0.0,
) -> tuple[AnyArray, AnyArray]:
    """Return the distance of each pixel from a center, and its angle.

    With ``dy = y - centerY`` and ``dx = x - centerX``, the distance is ``r = hypot(dy, dx)`` and
    the angle is ``phi = arctan2(dy, dx)``: zero along +x, increasing toward +y, which points down.

    Parameters
    ----------
    centerX, centerY : float
        Center, in pixels; it can lie between pixels or outside the frame.
    imageSizeX, imageSizeY : int
        Size of the frame, in pixels.
    stretchY : float
        Semi-axis along y of the ellipse ``r == 1``, before the rotation by `angle`; its semi-axis
        along x is 1. So ``r <= radius`` is an ellipse with the semi-axes `radius` and
        ``stretchY * radius``.
    angle : float
        Angle of the ellipse in radians: the semi-axis `stretchY` points to
        ``(cos(angle), -sin(angle))`` in (y, x).

    Returns
    -------
    r : numpy.ndarray, shape (imageSizeY, imageSizeX), float64
        Distance, in pixels.
    phi : numpy.ndarray, shape (imageSizeY, imageSizeX), float64
        Angle in radians, between -pi and pi, in the stretched coordinates.

    Raises
    ------
    ArgumentTypeError
        If a size is not an integer, or another argument is not a number.
    ArgumentValueError
        If a size or `stretchY` is not positive, or a number is not finite.

    Examples
    --------
    >>> from udfdask.masks import polar_map
    >>> r, phi = polar_map(centerX=1, centerY=1, imageSizeX=3, imageSizeY=3)
    >>> print(r.round(2)[0], phi.round(2)[2, 1])
    [1.41 1.   1.41] 1.57
    """
    dy, dx = offsets(centerX, centerY, imageSizeX, imageSizeY)
    stretch, theta = checks.number("stretchY", stretchY), checks.number("angle", angle)
    if stretch <= 0:
        raise ArgumentValueError(
            f"stretchY must be positive, not {stretchY!r}: it is the length of one semi-axis of "
            "an ellipse, relative to the other"
        )
    if stretch != 1 or theta != 0:
        cos, sin = math.cos(theta), math.sin(theta)
        dy, dx = (dy * cos - dx * sin) / stretch, dx * cos + dy * sin
    return np.hypot(dy, dx), np.arctan2(dy, dx)


def bounding_radius(centerX: float, centerY: float, imageSizeX: int, imageSizeY: int) -> int:
    """Return the radius of a circle around a center that contains the whole frame.

    With ``dx = max(centerX, imageSizeX - centerX)`` and ``dy`` accordingly, the radius is
    ``ceil(hypot(dy, dx)) + 1``: at least one pixel more than the distance of the farthest corner.

    Parameters
    ----------
    centerX, centerY : float
        Center, in pixels; it can lie outside the frame.
    imageSizeX, imageSizeY : int
        Size of the frame, in pixels.

    Returns
    -------
    int
        Radius, in pixels.

    Raises
    ------
    ArgumentTypeError
        If a size is not an integer, or the center is not a number.
    ArgumentValueError
        If a size is not positive, or the center is not finite.

    Examples
    --------
    >>> from udfdask.masks import bounding_radius
    >>> bounding_radius(centerX=8, centerY=8, imageSizeX=16, imageSizeY=16)
    13
    """
    nx, ny = checks.size("imageSizeX", imageSizeX), checks.size("imageSizeY", imageSizeY)
    cx, cy = checks.number("centerX", centerX), checks.number("centerY", centerY)
    return math.ceil(math.hypot(max(cy, ny - cy), max(cx, nx - cx))) + 1
