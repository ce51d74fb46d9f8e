"""Angle and flip between detector and scan: how vectors are corrected, and a guess of both."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from udfdask.corrections import coordinates
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.kernels.cpu.vector_field import curl, divergence
from udfdask.types import AnyArray


class GuessResult(NamedTuple):
    """What `guess_corrections` has found: parameters of `CoMUDF`."""

    scan_rotation: int
    """Angle in degrees, within -179 and 180."""
    flip_y: bool
    """Whether y is flipped, before turning."""
    cy: float
    """Mean of the y components, in pixels."""
    cx: float
    """Mean of the x components, in pixels."""


def guess_corrections(y_centers: Any, x_centers: Any, roi: Any = None) -> GuessResult:
    """Guess the scan rotation, the flip and the centre from centres of mass over a scan.

    It takes the field to be that of atoms in atomic resolution STEM. Such a field has no curl, so
    that the angle (in whole degrees) and the flip are those with the least root mean square of it.
    Of the two angles of which that is true the one is chosen with which more of the largest values
    of the divergence are negative, as they are at atom columns. The mean deflection is taken to be
    none.

    Parameters
    ----------
    y_centers, x_centers : array-like, shape (ny, nx)
        Components of the centres of mass, ``result["raw_com"][..., 0]`` and ``[..., 1]``, in
        pixels. Values that are not finite are left out.
    roi : numpy.ndarray of bool or index, optional
        What of the scan to look at; by default all but the last row and column.

    Returns
    -------
    GuessResult
        `scan_rotation`, `flip_y`, `cy` and `cx`, for ``CoMUDF(**guess._asdict())``. They come on
        top of those with which the input was made: from `raw_shifts`, `cy` and `cx` are relative
        to its centre.

    Raises
    ------
    ArgumentTypeError
        If the components are no real numbers.
    ArgumentValueError
        If they are not of one 2-D shape with both sizes at least 2, or no position that `roi`
        selects has a curl and a divergence.

    See Also
    --------
    apply_correction : Turns and flips with what was guessed.

    Examples
    --------
    >>> import numpy as np
    >>> from udfdask.udfs import apply_correction, guess_corrections
    >>> y, x = np.mgrid[-8:9, -8:9]
    >>> pull = np.exp(-(y**2 + x**2) / 8)  # towards an atom in the middle
    >>> seen = apply_correction(-y * pull, -x * pull, scan_rotation=25, flip_y=True, forward=False)
    >>> guess = guess_corrections(*seen)
    >>> print(guess.scan_rotation, guess.flip_y)
    25 True
    """
    y, x = _components(y_centers, x_centers)
    if y.ndim != 2 or min(y.shape) < 2:
        raise ArgumentValueError(
            "y_centers and x_centers must cover a 2-D scan with at least 2 positions along each "
            f"axis, but have the shape {y.shape}"
        )
    chosen = (slice(0, -1), slice(0, -1)) if roi is None else roi
    rot, div = curl(y, x)[chosen].ravel(), divergence(y, x)[chosen].ravel()
    rot_flipped, div_flipped = curl(-y, x)[chosen].ravel(), divergence(-y, x)[chosen].ravel()
    known = np.isfinite(rot) & np.isfinite(div)
    centre_y, centre_x = y[chosen].ravel(), x[chosen].ravel()
    there = np.isfinite(centre_y) & np.isfinite(centre_x)
    if not known.any() or not there.any():
        raise ArgumentValueError(
            "there is no position from which to guess: roi selects none where y_centers, "
            "x_centers and their neighbours are finite"
        )
    straight = _curl_by_angle(rot[known], div[known])
    flipped = _curl_by_angle(rot_flipped[known], div_flipped[known])
    flip_y = bool(flipped.min() < straight.min())
    if flip_y:
        rot, div = rot_flipped, div_flipped
    angle = int(np.argmin(flipped if flip_y else straight))
    radians = math.radians(angle)
    turned = math.cos(radians) * div[known] - math.sin(radians) * rot[known]
    largest = float(np.abs(turned).max())
    histogram, _ = np.histogram(turned, range=(-largest, largest), bins=5)
    if histogram[0] < histogram[-1]:
        angle += 180
    return GuessResult(
        scan_rotation=angle - 360 if angle > 180 else angle,
        flip_y=flip_y,
        cy=float(centre_y[there].mean()),
        cx=float(centre_x[there].mean()),
    )


def _curl_by_angle(rot: AnyArray, div: AnyArray) -> AnyArray:
    """Return the mean square curl of a field turned by 0, 1, ... 359 degrees.

    Turning by t makes the curl ``cos(t) * curl + sin(t) * divergence``.
    """
    t = np.radians(np.arange(360))
    cos, sin = np.cos(t), np.sin(t)
    squares = np.mean(rot * rot), np.mean(div * div)
    return np.asarray(
        cos**2 * squares[0] + sin**2 * squares[1] + 2 * cos * sin * np.mean(rot * div)
    )


def apply_correction(
    y_centers: Any, x_centers: Any, scan_rotation: float, flip_y: bool, forward: bool = True
) -> tuple[Any, Any]:
    """Flip vectors and turn them, as `CoMUDF` does.

    It gives ``R @ F @ (y, x)`` with ``F = diag(-1, 1)`` if `flip_y` and
    ``R = [[cos, sin], [-sin, cos]]``, so that +90 degrees send +x to +y.

    Parameters
    ----------
    y_centers, x_centers : array, numpy or dask, of one shape
        Components of the vectors.
    scan_rotation : float
        Angle in degrees, clockwise on a screen, where y points down.
    flip_y : bool
        Turn the y axis around first.
    forward : bool
        False undoes it: turns back, then flips.

    Returns
    -------
    tuple of two arrays, of the shape and type of the input, float64
        Components y and x of the new vectors.

    Raises
    ------
    ArgumentTypeError
        If `scan_rotation` is no number.
    ArgumentValueError
        If it is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from udfdask.udfs import apply_correction
    >>> y, x = apply_correction(np.zeros(1), np.ones(1), scan_rotation=90, flip_y=False)
    >>> print(y.round(12), x.round(12))
    [1.] [0.]
    """
    matrix = correction_matrix(scan_rotation, flip_y)
    if not forward:
        matrix = matrix.T  # its inverse
    (yy, yx), (xy, xx) = matrix.tolist()
    return yy * y_centers + yx * x_centers, xy * y_centers + xx * x_centers


def correction_matrix(scan_rotation: float, flip_y: bool) -> AnyArray:
    """Return the matrix for (y, x) vectors that flips, then turns by some degrees."""
    turn = coordinates.rotate_deg(degrees(scan_rotation))
    return turn @ coordinates.flip_y() if flip_y else turn


def degrees(value: Any) -> float:
    """Return a scan rotation, checked."""
    try:
        angle = float(value)
    except (TypeError, ValueError):
        raise ArgumentTypeError(
            f"scan_rotation must be a number of degrees, not {value!r} of type "
            f"{type(value).__name__}"
        ) from None
    if not math.isfinite(angle):
        raise ArgumentValueError(f"scan_rotation must be a finite number of degrees, not {value!r}")
    return angle


def to_beam_shift(shifts: Any) -> Any:
    """Return shifts of the centre of mass in the convention of pyxem's beam shifts.

    pyxem writes vectors as (x, y), and means the shift that brings the beam to the centre: centre
    minus centre of mass.

    The origin stays that of the shifts. `CoMUDF` counts from the pixel ``shape // 2``, pyxem from
    ``shape / 2``, which is half a pixel more along an axis of odd size. For pyxem's numbers on such
    frames pass ``cy=ny / 2, cx=nx / 2`` to `CoMUDF`.

    Parameters
    ----------
    shifts : array, numpy, dask or xarray, or HyperSpy signal, shape (..., 2)
        Centre of mass minus centre as (y, x), in pixels: `raw_shifts` or `field` of `CoMUDF`.

    Returns
    -------
    array, shape (..., 2)
        Centre minus centre of mass as (x, y), in pixels; of the type of `shifts`, axes kept.

    Raises
    ------
    ArgumentValueError
        If the last axis is not of size 2.

    Examples
    --------
    >>> import numpy as np
    >>> from udfdask.udfs import to_beam_shift
    >>> to_beam_shift(np.array([1.0, 2.0]))
    array([-2., -1.])
    """
    if hasattr(shifts, "_deepcopy_with_new_data"):  # a HyperSpy signal: to an array it has no axes
        return shifts._deepcopy_with_new_data(to_beam_shift(shifts.data))
    if not hasattr(shifts, "__dask_graph__"):
        shifts = np.asarray(shifts)
    if shifts.ndim < 1 or shifts.shape[-1] != 2:
        raise ArgumentValueError(
            f"shifts must be (y, x) vectors, of shape (..., 2), not {shifts.shape}"
        )
    return -shifts[..., ::-1]


def _components(y_centers: Any, x_centers: Any) -> tuple[AnyArray, AnyArray]:
    """Return two components as float64, checked to be of one shape."""
    y, x = np.asarray(y_centers), np.asarray(x_centers)
    for component in (y, x):
        if component.dtype.kind not in "biuf":
            raise ArgumentTypeError(
                f"y_centers and x_centers must be real numbers, not {component.dtype}"
            )
    if y.shape != x.shape:
        raise ArgumentValueError(
            f"y_centers and x_centers must have one shape, but have {y.shape} and {x.shape}"
        )
    return y.astype(np.float64), x.astype(np.float64)
