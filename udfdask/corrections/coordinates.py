"""Linear maps of (y, x) vectors, with y pointing down: scaling, rotating, flipping.

A map is a float64 matrix of shape (2, 2) that multiplies a vector (y, x) from the left:
``scale(2) @ rotate_deg(90) @ flip_y()`` flips first, then rotates, then scales.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from udfdask.base.types import AnyArray
from udfdask.errors import ArgumentTypeError, ArgumentValueError

__all__ = ["flip_x", "flip_y", "identity", "rotate", "rotate_deg", "scale", "scale_rotate_flip_y"]


def identity() -> AnyArray:
    """Return the matrix that changes nothing.

    Returns
    -------
    numpy.ndarray, shape (2, 2), float64
        Matrix for (y, x) vectors.

    Examples
    --------
    >>> from udfdask.corrections import coordinates
    >>> print(coordinates.identity() @ (3, 4))
    [3. 4.]
    """
    return np.eye(2)


def scale(factor: float) -> AnyArray:
    """Return the matrix that multiplies the length of vectors by a factor.

    Parameters
    ----------
    factor : float
        Length after the map divided by the length before.

    Returns
    -------
    numpy.ndarray, shape (2, 2), float64
        Matrix for (y, x) vectors.

    Examples
    --------
    >>> from udfdask.corrections import coordinates
    >>> print(coordinates.scale(2) @ (3, 4))
    [6. 8.]
    """
    return np.eye(2) * factor


def rotate(radians: float) -> AnyArray:
    """Return the matrix that rotates vectors by an angle in radians, from +x toward +y.

    Parameters
    ----------
    radians : float
        Angle in radians; positive angles are clockwise on a screen.

    Returns
    -------
    numpy.ndarray, shape (2, 2), float64
        ``[[cos, sin], [-sin, cos]]``, for (y, x) vectors.

    Examples
    --------
    >>> import numpy as np
    >>> from udfdask.corrections import coordinates
    >>> y, x = coordinates.rotate(np.pi / 2) @ (0, 1)
    >>> print(round(y, 12), round(x, 12))
    1.0 0.0
    """
    cos, sin = math.cos(radians), math.sin(radians)
    return np.array([[cos, sin], [-sin, cos]])


def rotate_deg(degrees: float) -> AnyArray:
    """Return the matrix that rotates vectors by an angle in degrees, from +x toward +y.

    Parameters
    ----------
    degrees : float
        Angle in degrees; positive angles are clockwise on a screen.

    Returns
    -------
    numpy.ndarray, shape (2, 2), float64
        Matrix for (y, x) vectors, see `rotate`.

    Examples
    --------
    >>> from udfdask.corrections import coordinates
    >>> y, x = coordinates.rotate_deg(90) @ (0, 1)
    >>> print(round(y, 12), round(x, 12))
    1.0 0.0
    """
    return rotate(math.radians(degrees))


def flip_y() -> AnyArray:
    """Return the matrix that flips the y axis.

    Returns
    -------
    numpy.ndarray, shape (2, 2), float64
        Matrix for (y, x) vectors.

    Examples
    --------
    >>> from udfdask.corrections import coordinates
    >>> print(coordinates.flip_y() @ (3, 4))
    [-3.  4.]
    """
    return np.diag([-1.0, 1.0])


def flip_x() -> AnyArray:
    """Return the matrix that flips the x axis.

    Returns
    -------
    numpy.ndarray, shape (2, 2), float64
        Matrix for (y, x) vectors.

    Examples
    --------
    >>> from udfdask.corrections import coordinates
    >>> print(coordinates.flip_x() @ (3, 4))
    [ 3. -4.]
    """
    return np.diag([1.0, -1.0])


def scale_rotate_flip_y(mat: Any) -> tuple[float, float, bool]:
    """Decompose a map into a scale factor, a rotation angle and a flip.

    Every product of `scale`, `rotate`, `flip_x` and `flip_y` maps is equal to
    ``scale(factor) @ rotate(radians) @ flip_y()``, or to the same without `flip_y`.

    Parameters
    ----------
    mat : array-like, shape (2, 2)
        Matrix for (y, x) vectors.

    Returns
    -------
    scale : float
        Factor, positive.
    radians : float
        Angle in radians, between -pi and pi.
    flip_y : bool
        Whether y is flipped before the rotation.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If `mat` is not a finite real matrix of shape (2, 2), maps everything to 0, shears, or
        scales one direction more than another.

    Examples
    --------
    >>> from udfdask.corrections import coordinates as c
    >>> factor, radians, flipped = c.scale_rotate_flip_y(c.scale(2) @ c.rotate(0.5) @ c.flip_y())
    >>> print(round(factor, 12), round(radians, 12), flipped)
    2.0 0.5 True
    """
    try:
        matrix = np.asarray(mat, dtype=np.float64)
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"mat must be a matrix of real numbers, not {mat!r}") from None
    if matrix.shape != (2, 2) or not np.isfinite(matrix).all():
        raise ArgumentValueError(
            f"mat must be a finite matrix of shape (2, 2) for (y, x) vectors, not {mat!r}"
        )
    along_y, along_x = (float(length) for length in np.linalg.norm(matrix, axis=0))
    if along_y == 0 and along_x == 0:
        raise ArgumentValueError("mat maps everything to 0: it has no angle and cannot be inverted")
    if not math.isclose(along_y, along_x, rel_tol=1e-5):
        raise ArgumentValueError(
            f"mat scales y by {along_y:.6g} and x by {along_x:.6g}: both need the same factor"
        )
    unit = matrix / along_y
    overlap = float(unit[:, 0] @ unit[:, 1])
    if abs(overlap) > 1e-5:
        enclosed = math.degrees(math.acos(max(-1.0, min(1.0, overlap))))
        raise ArgumentValueError(
            "mat shears: y and x must stay perpendicular, but the angle between them becomes "
            f"{enclosed:.4g} degrees"
        )
    # the second column is the image of +x, which flip_y does not change
    radians = math.atan2(unit[0, 1], unit[1, 1])
    return along_y, radians, bool(np.linalg.det(unit) < 0)
