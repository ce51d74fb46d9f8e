"""Make masks that increase along an axis or with the distance from a center."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from udfdask.masks import checks
from udfdask.masks.polar import distance
from udfdask.types import AnyArray


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
