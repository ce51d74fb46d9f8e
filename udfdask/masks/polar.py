"""Distances and angles of pixels, also in coordinates in which an ellipse is round."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from udfdask.base.types import AnyArray
from udfdask.errors import ArgumentValueError
from udfdask.masks import checks

Rounding = tuple[float, float, float]
"""A symmetric matrix for vectors (y, x) with the determinant 1: its elements yy, yx and xx."""

ROUND: Rounding = (1.0, 0.0, 1.0)
"""The matrix for circles."""


def check_stretch(stretch: Any, stretch_angle: Any) -> tuple[float, float]:
    """Return the ratio of the half axes, at least 1, and the angle of the long one, or raise."""
    what = "the ratio of the long to the short half axis"
    ratio = checks.number("stretch", stretch, of=f"a number, {what}")
    if ratio < 1:
        remedy = f": write stretch={1 / ratio:.6g} and add 90 degrees to stretch_angle"
        raise ArgumentValueError(
            f"stretch must be 1 or more, {what}, not {stretch!r}{remedy if ratio > 0 else ''}"
        )
    return ratio, checks.number("stretch_angle", stretch_angle, of="a number of degrees")


def rounding_matrix(stretch: Any = 1.0, stretch_angle: Any = 0.0) -> Rounding:
    """Return the matrix M for which ``M @ (dy, dx)`` is round if (dy, dx) is on an ellipse.

    The half axes of the ellipse are ``r * sqrt(stretch)``, at `stretch_angle` degrees from +x
    toward +y, and ``r / sqrt(stretch)``. M turns it into a circle of the radius r.
    """
    ratio, angle = check_stretch(stretch, stretch_angle)
    if ratio == 1:
        return ROUND
    # whole quarters of a turn would otherwise mix y and x a little
    quarter, rest = divmod(angle, 90.0)
    sin, cos = math.sin(math.radians(rest)), math.cos(math.radians(rest))
    if quarter % 2:
        sin, cos = cos, -sin
    short, long = math.sqrt(ratio), 1 / math.sqrt(ratio)
    return (
        sin * sin * long + cos * cos * short,
        sin * cos * (long - short),
        cos * cos * long + sin * sin * short,
    )


def rounded(matrix: Rounding, dy: Any, dx: Any) -> tuple[Any, Any]:
    """Return the coordinates (y, x) of pixels in which an ellipse is round."""
    if matrix == ROUND:
        return dy, dx
    yy, yx, xx = matrix
    return yy * dy + yx * dx, yx * dy + xx * dx


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


def distance(*frame: Any, **ellipse: Any) -> AnyArray:
    """Return the distance of each pixel from a center, shape (imageSizeY, imageSizeX).

    The arguments are those of `round_offsets`. With a stretch, it is the distance in the
    coordinates in which the ellipse is round.
    """
    return np.hypot(*round_offsets(*frame, **ellipse))


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
    centerX, centerY, imageSizeX, imageSizeY : float, int
        As for `circular`.
    stretchY : float
        Semi-axis along y of the ellipse ``r == 1``, before the rotation; that along x is 1.
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
    ArgumentTypeError, ArgumentValueError
        If an argument is not a number of pixels that it can be.

    Examples
    --------
    >>> from udfdask.masks import polar_map
    >>> r, phi = polar_map(centerX=1, centerY=1, imageSizeX=3, imageSizeY=3)
    >>> print(r.round(2)[0], phi.round(2)[2, 1])
    [1.41 1.   1.41] 1.57
    """
    dy, dx = offsets(centerX, centerY, imageSizeX, imageSizeY)
    stretch = checks.radius("stretchY", stretchY, positive=True)
    theta = checks.number("angle", angle, of="a number of radians")
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
    centerX, centerY, imageSizeX, imageSizeY : float, int
        As for `circular`.

    Returns
    -------
    int
        Radius, in pixels.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If an argument is not a number of pixels that it can be.

    Examples
    --------
    >>> from udfdask.masks import bounding_radius
    >>> bounding_radius(centerX=8, centerY=8, imageSizeX=16, imageSizeY=16)
    13
    """
    nx, ny = checks.size("imageSizeX", imageSizeX), checks.size("imageSizeY", imageSizeY)
    cx, cy = checks.number("centerX", centerX), checks.number("centerY", centerY)
    return math.ceil(math.hypot(max(cy, ny - cy), max(cx, nx - cx))) + 1
