"""Make disks and rings, with hard or soft edges."""

from __future__ import annotations

import math

import numpy as np

from udfdask.masks import checks
from udfdask.masks.bins import bin_weight, patch_center
from udfdask.masks.polar import distance, reach, round_offsets
from udfdask.types import AnyArray


def circular(
    centerX: float,
    centerY: float,
    imageSizeX: int,
    imageSizeY: int,
    radius: float,
    antialiased: bool = False,
    stretch: float = 1.0,
    stretch_angle: float = 0.0,
) -> AnyArray:
    """Return a mask with a disk.

    With `d` the distance of a pixel from the center, the mask is ``d**2 <= radius**2``. With
    `antialiased` it is ``clip(radius + 0.5 - d, 0, 1)``.

    Parameters
    ----------
    centerX, centerY : float
        Center, in pixels; it can lie between pixels or outside the frame.
    imageSizeX, imageSizeY : int
        Size of the frame, in pixels.
    radius : float
        Radius, in pixels, 0 or more; inf for the whole frame.
    antialiased : bool
        Make the edge fall from 1 to 0 over one pixel.
    stretch : float
        Ratio of the long to the short half axis of an ellipse, at least 1. Its half axes are
        ``radius * sqrt(stretch)`` and ``radius / sqrt(stretch)``, so that its area is that of a
        circle; `d` is the distance in the coordinates in which it is round.
    stretch_angle : float
        Direction of the long half axis, in degrees from +x toward +y, which points down.

    Returns
    -------
    numpy.ndarray, shape (imageSizeY, imageSizeX), bool or with `antialiased` float64
        The mask.

    Raises
    ------
    ArgumentTypeError
        If a size is not an integer, or another argument is not a number.
    ArgumentValueError
        If a size is not positive, `radius` is negative or NaN, `stretch` is below 1, or another
        number is not finite.

    Examples
    --------
    >>> from udfdask.masks import circular
    >>> disk = circular(centerX=2, centerY=1, imageSizeX=5, imageSizeY=3, radius=1)
    >>> print(disk.astype(int))
    [[0 0 1 0 0]
     [0 1 1 1 0]
     [0 0 1 0 0]]
    """
    r = checks.radius("radius", radius, finite=False)
    frame = centerX, centerY, imageSizeX, imageSizeY, stretch, stretch_angle
    if math.isinf(r):
        r = reach(*frame)
    if antialiased:
        d = distance(*frame)
        return np.clip(r + 0.5 - d, 0, 1)
    dy, dx = round_offsets(*frame)
    inside: AnyArray = dy * dy + dx * dx <= r * r
    return inside


def ring(
    centerX: float,
    centerY: float,
    imageSizeX: int,
    imageSizeY: int,
    radius: float,
    radius_inner: float,
    antialiased: bool = False,
    stretch: float = 1.0,
    stretch_angle: float = 0.0,
) -> AnyArray:
    """Return a mask with a ring.

    With `d` the distance of a pixel from the center, the mask is ``radius_inner < d <= radius``.
    So the center pixel is never part of the ring, even if `radius_inner` is 0. With `antialiased`
    the ring is the single bin of `radial_bins` between these radii.

    Parameters
    ----------
    centerX, centerY : float
        Center, in pixels; it can lie between pixels or outside the frame.
    imageSizeX, imageSizeY : int
        Size of the frame, in pixels.
    radius : float
        Outer radius, in pixels; inf for all pixels outside `radius_inner`.
    radius_inner : float
        Inner radius, in pixels, 0 or more, smaller than `radius`.
    antialiased : bool
        Make the edges rise and fall over one pixel.
    stretch : float
        Ratio of the long to the short half axis of an ellipse, at least 1. Its half axes are
        ``radius * sqrt(stretch)`` and ``radius / sqrt(stretch)``, so that its area is that of a
        circle; `d` is the distance in the coordinates in which it is round.
    stretch_angle : float
        Direction of the long half axis, in degrees from +x toward +y, which points down.

    Returns
    -------
    numpy.ndarray, shape (imageSizeY, imageSizeX), bool or with `antialiased` float64
        The mask.

    Raises
    ------
    ArgumentTypeError
        If a size is not an integer, or another argument is not a number.
    ArgumentValueError
        If a size is not positive, a radius is negative, `radius_inner` is not smaller than
        `radius`, `stretch` is below 1, or a number other than `radius` is not finite.

    Examples
    --------
    >>> from udfdask.masks import ring
    >>> mask = ring(centerX=2, centerY=2, imageSizeX=5, imageSizeY=5, radius=2, radius_inner=1)
    >>> print(mask[2].astype(int), mask.sum())
    [1 0 0 0 1] 8
    """
    r, ri = checks.radii(radius, radius_inner, finite=False)
    frame = centerX, centerY, imageSizeX, imageSizeY, stretch, stretch_angle
    if math.isinf(r):
        r = reach(*frame) + ri
    if antialiased:
        d = distance(*frame)
        return patch_center(bin_weight(d, (r + ri) / 2, r - ri), d, ri)
    dy, dx = round_offsets(*frame)
    squared = dy * dy + dx * dx
    between: AnyArray = (squared > ri * ri) & (squared <= r * r)
    return between
