"""Make masks with positive and negative parts whose product with a flat background is zero."""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.errors import ArgumentValueError
from udfdask.masks import checks
from udfdask.masks.disks import circular, ring
from udfdask.types import AnyArray


def balance(template: Any) -> AnyArray:
    """Scale the negative part of a mask so that its sum is 0.

    The product of a balanced mask with a uniform background is 0.

    Parameters
    ----------
    template : array-like of real numbers
        Mask with positive and negative values; it is not changed.

    Returns
    -------
    numpy.ndarray, shape of `template`, its dtype if that is a float, else float64
        ``template`` where it is positive, elsewhere
        ``template * sum(positive part) / -sum(negative part)``.

    Raises
    ------
    ArgumentValueError
        If there is no positive or no negative value.

    Examples
    --------
    >>> from udfdask.masks import balance
    >>> print(balance([1, 2, 0, -1, -1]))
    [ 1.   2.   0.  -1.5 -1.5]
    """
    result = _as_float(template)
    above, below = result > 0, result < 0
    if not above.any() or not below.any():
        raise ArgumentValueError("a template to balance needs positive and negative values")
    result[below] *= -result[above].sum() / result[below].sum()
    return result


def background_subtraction(
    centerX: float,
    centerY: float,
    imageSizeX: int,
    imageSizeY: int,
    radius: float,
    radius_inner: float,
    antialiased: bool = False,
) -> AnyArray:
    """Return a mask with a disk of ones and a negative ring around it; its sum is 0.

    The mask is ``disk - ring * sum(disk) / sum(ring)``. The disk has the radius `radius_inner`,
    and the ring extends from there to `radius`.

    Parameters
    ----------
    centerX, centerY, imageSizeX, imageSizeY, radius, radius_inner, antialiased : float, int, bool
        As for `ring`.

    Returns
    -------
    numpy.ndarray, shape (imageSizeY, imageSizeX), float64
        The mask.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If an argument is not a number of pixels that it can be, or no pixel is in the ring.

    Examples
    --------
    >>> from udfdask.masks import background_subtraction
    >>> mask = background_subtraction(2, 0, 5, 1, radius=2, radius_inner=1)
    >>> print(mask[0])
    [-1.5  1.   1.   1.  -1.5]
    """
    r, ri = checks.radii(radius, radius_inner)
    disk = circular(centerX, centerY, imageSizeX, imageSizeY, ri, antialiased).astype(np.float64)
    around = ring(centerX, centerY, imageSizeX, imageSizeY, r, ri, antialiased)
    total = around.sum()
    if not total:
        raise ArgumentValueError(
            f"no pixel lies between radius_inner={radius_inner!r} and radius={radius!r}"
        )
    background: AnyArray = disk - around * (disk.sum() / total)
    return background


def radial_gradient_background_subtraction(
    r: Any, r0: float, r_outer: float, delta: float = 1
) -> AnyArray:
    """Return a radial gradient surrounded by a negative ring, as a function of distance.

    ==================================  ======================
    where                               value
    ==================================  ======================
    ``r < r0 - delta/2``                ``r / r0``
    from there to ``r < r0 + delta/2``  ``(r0 - r) / (delta/2)``
    from there to ``r <= r_outer``      -1
    elsewhere                           0
    ==================================  ======================

    Parameters
    ----------
    r : array-like of real numbers
        Distance of each pixel from the center, in pixels. An elliptical distance from `polar_map`
        gives an elliptical mask.
    r0 : float
        Radius of the gradient, in pixels, more than 0.
    r_outer : float
        Outer radius of the ring, in pixels.
    delta : float
        Width of the transition from 1 to -1, in pixels, 0 or more.

    Returns
    -------
    numpy.ndarray, shape of `r`, its dtype if that is a float, else float64
        The mask; `balance` makes its sum 0.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If an argument is not a number of pixels that it can be.

    Examples
    --------
    >>> from udfdask.masks import radial_gradient_background_subtraction
    >>> print(radial_gradient_background_subtraction([0, 2, 4, 5, 6, 7], r0=4, r_outer=6))
    [ 0.   0.5  0.  -1.  -1.   0. ]
    """
    inner = checks.radius("r0", r0, positive=True)
    outer = checks.radius("r_outer", r_outer)
    half = checks.radius("delta", delta) / 2
    d = _as_float(r)
    result = np.zeros_like(d)
    within = d < inner - half
    result[within] = d[within] / inner
    transition = (d >= inner - half) & (d < inner + half)
    result[transition] = (inner - d[transition]) / half if half else 0
    result[(d >= inner + half) & (d <= outer)] = -1
    return result


def _as_float(values: Any) -> AnyArray:
    """Return a copy of an array in its own float dtype, otherwise in float64."""
    array = np.asarray(values)
    return np.array(array, dtype=array.dtype if array.dtype.kind == "f" else np.float64)
