"""Correct maps of centers of mass: their axes, rotation and descan."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from udfdask.base.types import AnyArray
from udfdask.corrections import coordinates
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.axes import Axis
from udfdask.geometry.labels import check_in_pixels, is_signal
from udfdask.kernels.cpu.vector_field import curl, divergence
from udfdask.masks import checks

_DIRECTION = re.compile(r"(?:^|[^a-z])[a-z]?([xy])$")
"""Names of an axis along x or y: x, kx, qx, scan_x, k_y; not energy or index."""


def wrong_order(axes: Sequence[Axis]) -> str:
    """Return a warning if the names of axes say that x comes before y; else an empty text."""
    scan, frame = ([axis.name for axis in part] for part in (axes[:-2], axes[-2:]))
    swaps_scan, swaps_frame = _directions(scan) == "xy", _directions(frame) == "xy"
    if not (swaps_frame or (swaps_scan and _directions(frame) == "yx")):
        return ""
    better = [*(scan[::-1] if swaps_scan else scan), *(frame[::-1] if swaps_frame else frame)]
    return (
        f"CoMUDF takes the axes of the scan ({', '.join(scan)}) and of frames "
        f"({', '.join(frame)}) as (y, x), but their names say that x comes first: divergence, "
        "curl and regression mix the components, or the components y and x have the wrong labels. "
        f"Transpose the data to ({', '.join(better)})"
    )


def _directions(names: Sequence[str]) -> str:
    """Return "yx" or "xy" for two axes with such names, otherwise another text."""
    found = [_DIRECTION.search(name.lower()) for name in names]
    return "".join(match[1] for match in found if match) if len(names) == 2 else ""


class GuessResult(NamedTuple):
    """Parameters of `CoMUDF` that `guess_corrections` returns.

    Examples
    --------
    >>> from udfdask.udfs import CoMUDF, GuessResult
    >>> guess = GuessResult(scan_rotation=88, flip_y=False, cy=8.2, cx=7.9)
    >>> CoMUDF(**guess._asdict(), r=5)
    CoMUDF(...)
    """

    scan_rotation: int
    """Angle in degrees, between -179 and 180."""
    flip_y: bool
    """Whether y is flipped before the rotation."""
    cy: float
    """Mean of the y components, in pixels."""
    cx: float
    """Mean of the x components, in pixels."""


def guess_corrections(y_centers: Any, x_centers: Any, roi: Any = None) -> GuessResult:
    """Guess the scan rotation, the flip and the center from the centers of mass of a scan.

    The guess assumes the field of atoms, which has no curl and no mean deflection: it is the angle,
    in whole degrees, and the flip with the smallest root mean square of the curl. Of two opposite
    angles, it is the one with more large negative than large positive values of the divergence.

    Parameters
    ----------
    y_centers, x_centers : array-like, shape (ny, nx)
        Components of the centers of mass, ``result["raw_com"][..., 0]`` and ``[..., 1]``, in
        pixels. Values that are not finite are ignored.
    roi : numpy.ndarray of bool or index, optional
        Part of the scan to use; by default all except the last row and column.

    Returns
    -------
    GuessResult
        `scan_rotation`, `flip_y`, `cy` and `cx`, for ``CoMUDF(**guess._asdict())``. Of
        `raw_shifts`, `cy` and `cx` are relative to the center of that run.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If the components are not real numbers of one 2-D shape of at least 2 positions along each
        axis, or no position in `roi` has a finite curl and divergence.

    See Also
    --------
    apply_correction : Flips and rotates vectors with the guessed values.

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
    y, x = np.asarray(y_centers), np.asarray(x_centers)
    if y.dtype.kind not in "biuf" or x.dtype.kind not in "biuf":
        raise ArgumentTypeError(
            f"y_centers and x_centers must be real numbers, not {y.dtype} and {x.dtype}"
        )
    if y.shape != x.shape:
        raise ArgumentValueError(
            f"y_centers and x_centers must have the same shape, not {y.shape} and {x.shape}"
        )
    if y.ndim != 2 or min(y.shape) < 2:
        raise ArgumentValueError(
            "y_centers and x_centers must cover a 2-D scan with at least 2 positions along each "
            f"axis, but have the shape {y.shape}"
        )
    found = weigh_angles(y, x, (slice(0, -1), slice(0, -1)) if roi is None else roi)
    if found is None:
        raise ArgumentValueError(
            "there is no position from which to guess: no shift in roi and its neighbors are finite"
        )
    return found.guess


class Evidence(NamedTuple):
    """Curl and divergence of a field for all rotations, as it is and with y flipped."""

    curl: AnyArray
    """Root mean square of the curl, shape (360, 2), for 0, 1, ... 359 degrees; then flipped."""
    divergence: AnyArray
    """Root mean square of the divergence."""
    guess: GuessResult
    """What follows."""


def weigh_angles(y_centers: AnyArray, x_centers: AnyArray, selected: Any) -> Evidence | None:
    """Return the evidence for each rotation from the selected part of a scan; None without data."""
    y, x = y_centers.astype(np.float64), x_centers.astype(np.float64)
    fields = [
        (curl(sign * y, x)[selected].ravel(), divergence(sign * y, x)[selected].ravel())
        for sign in (1, -1)
    ]
    finite = np.isfinite(fields[0]).all(axis=0)
    centers = [component[selected][np.isfinite(y + x)[selected]] for component in (y, x)]
    if not finite.any() or not centers[0].size:
        return None
    squares = [_squares_by_angle(rot[finite], div[finite]) for rot, div in fields]
    curls, divergences = (np.stack(both, axis=1) for both in zip(*squares, strict=True))
    flip_y = bool(curls[:, 1].min() < curls[:, 0].min())
    rot, div = fields[flip_y]
    angle = int(np.argmin(curls[:, int(flip_y)]))
    radians = math.radians(angle)
    rotated = math.cos(radians) * div[finite] - math.sin(radians) * rot[finite]
    largest = float(np.abs(rotated).max())
    # compare the most negative fifth of the range of the divergence with the most positive fifth
    histogram, _ = np.histogram(rotated, range=(-largest, largest), bins=5)
    if histogram[0] < histogram[-1]:
        angle += 180
    cy, cx = (float(component.mean()) for component in centers)
    guess = GuessResult(angle - 360 if angle > 180 else angle, flip_y, cy, cx)
    return Evidence(np.sqrt(curls), np.sqrt(divergences), guess)


def _squares_by_angle(rot: AnyArray, div: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Return mean square curl and divergence of a field rotated by 0, 1, ... 359 degrees.

    After a rotation by t, the curl is ``cos(t) * curl + sin(t) * divergence``, and the divergence
    ``cos(t) * divergence - sin(t) * curl``.
    """
    t = np.radians(np.arange(360))
    cos, sin = np.cos(t), np.sin(t)
    curls, divergences = np.mean(rot * rot), np.mean(div * div)
    both = 2 * cos * sin * np.mean(rot * div)
    return (
        np.maximum(0, cos**2 * curls + sin**2 * divergences + both),
        np.maximum(0, cos**2 * divergences + sin**2 * curls - both),
    )


def apply_correction(
    y_centers: Any, x_centers: Any, scan_rotation: float, flip_y: bool, forward: bool = True
) -> tuple[Any, Any]:
    """Flip vectors, then rotate them, as `CoMUDF` does.

    The result is ``R @ F @ (y, x)`` with ``F = diag(-1, 1)`` if `flip_y` is True, and
    ``R = [[cos, sin], [-sin, cos]]``: a rotation by +90 degrees maps +x to +y.

    Parameters
    ----------
    y_centers, x_centers : array, numpy or dask, of equal shape
        Components of the vectors.
    scan_rotation : float
        Angle in degrees, clockwise on a screen, where y points down.
    flip_y : bool
        Flip the y axis first.
    forward : bool
        False for the inverse: rotate back, then flip.

    Returns
    -------
    tuple of two arrays, of the shape and type of the input, float64
        Components y and x of the new vectors.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If `scan_rotation` is not a finite number.

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
        matrix = matrix.T  # the inverse, because the matrix is orthogonal
    (yy, yx), (xy, xx) = matrix.tolist()
    return yy * y_centers + yx * x_centers, xy * y_centers + xx * x_centers


def correction_matrix(scan_rotation: float, flip_y: bool) -> AnyArray:
    """Return the matrix for (y, x) vectors that flips y, then rotates by an angle in degrees."""
    rotation = coordinates.rotate_deg(degrees(scan_rotation))
    return rotation @ coordinates.flip_y() if flip_y else rotation


def degrees(value: Any) -> float:
    """Return a scan rotation as a float; raise if it is not a finite number, or lazy."""
    return checks.number("scan_rotation", value, of="a number of degrees")


def read_regression(given: Any) -> Any:
    """Return the parameter of `CoMUDF`, an option or a plane of shape (3, 2), or raise."""
    wrong = (
        "regression must be -1 (none), 0 (mean), 1 (linear) or a finite array of shape (3, 2), "
        f"[[y, x], [dy/dy, dx/dy], [dy/dx, dx/dx]], not {given!r}"
    )
    try:
        plane = np.array("" if isinstance(given, (bool, np.bool_)) else given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ArgumentTypeError(wrong) from None
    if not plane.ndim and np.asarray(given).dtype.kind in "iu" and plane in (-1, 0, 1):
        return int(given)
    if plane.shape != (3, 2) or not np.isfinite(plane).all():
        raise ArgumentValueError(f"{wrong} of shape {plane.shape}")
    return plane


def to_beam_shift(shifts: Any) -> Any:
    """Convert shifts of the center of mass to pyxem's convention for beam shifts.

    pyxem writes vectors as (x, y); its beam shift is the center minus the center of mass. The
    origin does not change: pyxem measures from ``shape / 2``, half a pixel more along an axis of
    odd size. For its numbers, pass ``cy=ny / 2, cx=nx / 2`` to `CoMUDF`.

    Parameters
    ----------
    shifts : array, numpy, dask or xarray, or HyperSpy signal, shape (..., 2)
        Center of mass minus center as (y, x), in pixels: `raw_shifts` of `CoMUDF`, or its
        `field` if the run has no axes with units.

    Returns
    -------
    array, shape (..., 2)
        Center minus center of mass as (x, y), in pixels; the type and the axes are those of
        `shifts`.

    Raises
    ------
    ArgumentValueError
        If the last axis does not have the size 2, or a signal or DataArray says that its values are
        not in pixels.

    Examples
    --------
    >>> import numpy as np
    >>> from udfdask.udfs import to_beam_shift
    >>> to_beam_shift(np.array([1.0, 2.0]))
    array([-2., -1.])
    """
    check_in_pixels("shifts", shifts, "raw_shifts")
    if is_signal(shifts):  # it keeps its axes
        return shifts._deepcopy_with_new_data(to_beam_shift(shifts.data))
    if not hasattr(shifts, "__dask_graph__"):
        shifts = np.asarray(shifts)
    if shifts.ndim < 1 or shifts.shape[-1] != 2:
        raise ArgumentValueError(
            f"shifts must be (y, x) vectors, of shape (..., 2), not {shifts.shape}"
        )
    return -shifts[..., ::-1]
