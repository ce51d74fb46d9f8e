"""Masks of disks, rings, rectangles and gradients in a frame, and of windows in a spectrum."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import DTypeLike

from udfdask.base.types import AnyArray
from udfdask.errors import ArgumentValueError
from udfdask.masks import checks
from udfdask.masks.polar import distance, round_offsets


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
        Ratio of the half axes of an ellipse, at least 1; a radius is their geometric mean, and `d`
        the distance in the coordinates in which the ellipse is round.
    stretch_angle : float
        Direction of the long half axis, in degrees from +x toward +y, which points down.

    Returns
    -------
    numpy.ndarray, shape (imageSizeY, imageSizeX), bool or with `antialiased` float64
        The mask.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If an argument is not a number of pixels that it can be.

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
    dy, dx = round_offsets(centerX, centerY, imageSizeX, imageSizeY, stretch, stretch_angle)
    if antialiased:
        return np.clip(r + 0.5 - np.hypot(dy, dx), 0, 1)
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
    centerX, centerY, imageSizeX, imageSizeY : float, int
        As for `circular`.
    radius, radius_inner : float
        Outer and inner radius, in pixels; the outer one can be inf.
    antialiased, stretch, stretch_angle : bool, float
        As for `circular`.

    Returns
    -------
    numpy.ndarray, shape (imageSizeY, imageSizeX), bool or with `antialiased` float64
        The mask.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If an argument is not a number of pixels that it can be.

    Examples
    --------
    >>> from udfdask.masks import ring
    >>> mask = ring(centerX=2, centerY=2, imageSizeX=5, imageSizeY=5, radius=2, radius_inner=1)
    >>> print(mask[2].astype(int), mask.sum())
    [1 0 0 0 1] 8
    """
    r, ri = checks.radii(radius, radius_inner, finite=False)
    dy, dx = round_offsets(centerX, centerY, imageSizeX, imageSizeY, stretch, stretch_angle)
    if antialiased:
        d = np.hypot(dy, dx)
        weight = np.clip(np.minimum(d - ri, r - d) + 0.5, 0, 1)
        return np.where((d < 0.5) & (ri < 0.5), 1 - ri, weight)  # both edges overlap there
    squared = dy * dy + dx * dx
    between: AnyArray = (squared > ri * ri) & (squared <= r * r)
    return between


def rectangular(
    X: float, Y: float, Width: float, Height: float, imageSizeX: int, imageSizeY: int
) -> AnyArray:
    """Return a mask with a rectangle that includes both corners.

    With integer arguments and inside the frame, it covers ``(Width + 1) * (Height + 1)`` pixels.

    Parameters
    ----------
    X, Y : float
        One corner, in pixels.
    Width, Height : float
        Distance to the opposite corner, in pixels; negative values go left and up.
    imageSizeX, imageSizeY : int
        Size of the frame, in pixels; parts outside the frame are cut off.

    Returns
    -------
    numpy.ndarray, shape (imageSizeY, imageSizeX), bool
        True from corner to corner; fractions of a corner are rounded down.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If an argument is not a number of pixels that it can be.

    Examples
    --------
    >>> from udfdask.masks import rectangular
    >>> print(rectangular(X=1, Y=0, Width=2, Height=1, imageSizeX=5, imageSizeY=3).astype(int))
    [[0 1 1 1 0]
     [0 1 1 1 0]
     [0 0 0 0 0]]
    """
    nx, ny = checks.size("imageSizeX", imageSizeX), checks.size("imageSizeY", imageSizeY)
    x0, y0 = checks.number("X", X), checks.number("Y", Y)
    x1, y1 = x0 + checks.number("Width", Width), y0 + checks.number("Height", Height)
    y, x = np.ogrid[:ny, :nx]
    (top, bottom), (left, right) = (sorted(map(math.floor, p)) for p in ((y0, y1), (x0, x1)))
    inside: AnyArray = (y >= top) & (y <= bottom) & (x >= left) & (x <= right)
    return inside


def window(start: float, stop: float, size: int) -> AnyArray:
    """Return a mask with one axis: a window of a spectrum.

    Parameters
    ----------
    start, stop : float
        The window contains the channels `i` with ``start <= i < stop``.
    size : int
        Number of channels; a window that is larger is cut off.

    Returns
    -------
    numpy.ndarray, shape (size,), bool
        True in the window.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If an argument is not a number, or no channel is in the window.

    Examples
    --------
    >>> from udfdask.masks import window
    >>> print(window(1, 3, size=5).astype(int))
    [0 1 1 0 0]
    """
    channels = np.arange(checks.size("size", size))
    first, last = checks.number("start", start), checks.number("stop", stop)
    mask: AnyArray = (channels >= first) & (channels < last)
    if not mask.any():
        raise ArgumentValueError(
            f"no channel lies in the window start={start!r}, stop={stop!r}: expected start < stop "
            f"within 0 and {size}, in channels; a UDF also takes numbers in the unit of the axis, "
            f"such as start='{start} eV'"
        )
    return mask


def gradient_x(imageSizeX: int, imageSizeY: int, dtype: DTypeLike = np.float32) -> AnyArray:
    """Return the column index of each pixel.

    Parameters
    ----------
    imageSizeX, imageSizeY : int
        Size of the frame, in pixels.
    dtype : dtype
        Dtype of the result.

    Returns
    -------
    numpy.ndarray, shape (imageSizeY, imageSizeX), dtype `dtype`
        ``mask[y, x] = x``.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If a size is not a positive integer.

    Examples
    --------
    >>> from udfdask.masks import gradient_x
    >>> print(gradient_x(imageSizeX=3, imageSizeY=2))
    [[0. 1. 2.]
     [0. 1. 2.]]
    """
    nx, ny = checks.size("imageSizeX", imageSizeX), checks.size("imageSizeY", imageSizeY)
    return np.tile(np.arange(nx).astype(dtype), (ny, 1))


def gradient_y(imageSizeX: int, imageSizeY: int, dtype: DTypeLike = np.float32) -> AnyArray:
    """Return the row index of each pixel.

    Parameters
    ----------
    imageSizeX, imageSizeY, dtype : int, int, dtype
        As for `gradient_x`.

    Returns
    -------
    numpy.ndarray, shape (imageSizeY, imageSizeX), dtype `dtype`
        ``mask[y, x] = y``.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If a size is not a positive integer.

    Examples
    --------
    >>> from udfdask.masks import gradient_y
    >>> print(gradient_y(imageSizeX=3, imageSizeY=2))
    [[0. 0. 0.]
     [1. 1. 1.]]
    """
    nx, ny = checks.size("imageSizeX", imageSizeX), checks.size("imageSizeY", imageSizeY)
    return np.repeat(np.arange(ny).astype(dtype)[:, np.newaxis], nx, axis=1)


def radial_gradient(
    centerX: float,
    centerY: float,
    imageSizeX: int,
    imageSizeY: int,
    radius: float,
    antialiased: bool = False,
) -> AnyArray:
    """Return a mask with a disk that increases from 0 at its center to 1 at its edge.

    With `d` the distance of a pixel from the center, the mask is ``d / radius`` where
    ``d <= radius``, and 0 elsewhere. With `antialiased` it is
    ``min(d / radius, 1) * clip(radius + 0.5 - d, 0, 1)``.

    Parameters
    ----------
    centerX, centerY, imageSizeX, imageSizeY, radius, antialiased : float, int, bool
        As for `circular`; the radius must be more than 0.

    Returns
    -------
    numpy.ndarray, shape (imageSizeY, imageSizeX), float64
        The mask.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If an argument is not a number of pixels that it can be.

    Examples
    --------
    >>> from udfdask.masks import radial_gradient
    >>> mask = radial_gradient(centerX=4, centerY=0, imageSizeX=9, imageSizeY=1, radius=2)
    >>> print(mask[0])
    [0.  0.  1.  0.5 0.  0.5 1.  0.  0. ]
    """
    r = checks.radius("radius", radius, positive=True)
    d = distance(centerX, centerY, imageSizeX, imageSizeY)
    if antialiased:
        return np.minimum(d / r, 1) * np.clip(r + 0.5 - d, 0, 1)
    return np.where(d <= r, d / r, 0.0)
