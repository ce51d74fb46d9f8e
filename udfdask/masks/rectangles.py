"""Make rectangles in a frame, and windows in a spectrum."""

from __future__ import annotations

import math

import numpy as np

from udfdask.errors import ArgumentValueError
from udfdask.masks import checks
from udfdask.types import AnyArray


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
    ArgumentTypeError
        If a size is not an integer, or another argument is not a number.
    ArgumentValueError
        If a size is not positive, or a number is not finite.

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
    return _between(y0, y1, ny)[:, np.newaxis] & _between(x0, x1, nx)


def _between(one: float, other: float, size: int) -> AnyArray:
    """Return a mask of the pixels from one corner to the other, including both corners."""
    pixels = np.arange(size)
    first, last = math.floor(min(one, other)), math.floor(max(one, other))
    inside: AnyArray = (pixels >= first) & (pixels <= last)
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
    ArgumentTypeError
        If `size` is not an integer, or `start` or `stop` is not a number.
    ArgumentValueError
        If `size` is not positive, or no channel is in the window.

    Examples
    --------
    >>> from udfdask.masks import window
    >>> print(window(1, 3, size=5).astype(int))
    [0 1 1 0 0]
    """
    n = checks.size("size", size)
    first, last = checks.number("start", start), checks.number("stop", stop)
    channels = np.arange(n)
    mask: AnyArray = (channels >= first) & (channels < last)
    if not mask.any():
        raise ArgumentValueError(
            f"no channel lies in the window start={start!r}, stop={stop!r}: expected start < stop "
            f"within 0 and {n}, in channels (Axis.to_pixels converts from units)"
        )
    return mask
