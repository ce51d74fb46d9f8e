"""Fit an ellipse to a ring of a diffraction pattern."""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple

import numpy as np

from udfdask.base.types import AnyArray
from udfdask.errors import ArgumentValueError, UDFWarning
from udfdask.masks import checks
from udfdask.masks.polar import distance, rounded, rounding_matrix
from udfdask.udfs.shared.find_center import find_center, read_pattern
from udfdask.udfs.shared.geometry_parameters import check_position

FEWEST = 8
"""Smallest number of pixels: four numbers for the ellipse, and four for the shape of the ring."""

PIECE = 1.5
"""Length of a piece of the spline that describes the profile of a ring, in pixels."""

SURE = 3.0
"""How many times as much as from noise an ellipse must explain."""


class Ellipse(NamedTuple):
    """The center and the stretch of elliptical rings, as parameters of UDFs.

    Examples
    --------
    >>> from udfdask.analyses import Ellipse
    >>> from udfdask.udfs import RadialProfileUDF
    >>> ellipse = Ellipse(center=(31.5, 32.2), stretch=1.02, stretch_angle=30)
    >>> RadialProfileUDF(**ellipse._asdict(), r=20)
    RadialProfileUDF(...)
    """

    center: tuple[float, float]
    """Center (y, x), in pixels."""
    stretch: float
    """Ratio of the half axes, at least 1."""
    stretch_angle: float
    """Direction of the long half axis, in degrees from +x toward +y, from -90 to 90."""


def fit_ellipse(
    pattern: Any, *, r_range: tuple[float, float], center: Any = None, mask: Any = None
) -> tuple[Ellipse, float]:
    """Fit an ellipse to a ring of a diffraction pattern, to correct distortions of the lenses.

    The ring may be the broad one of an amorphous material, or one or several sharp ones.

    Parameters
    ----------
    pattern : array-like of real numbers, shape (y, x)
        Mean or sum of the frames, an array, DataArray or signal; a lazy one is computed. Pixels
        that are NaN or infinite are not used.
    r_range : tuple of float
        Inner and outer radius of a circle that contains the ring, in pixels.
    center : tuple of float, optional
        Where to begin, (y, x), in pixels; by default `find_center(pattern)`.
    mask : array-like of bool, shape (y, x), optional
        True for pixels to use, False for those to ignore, such as a beam stop or broken pixels.

    Returns
    -------
    ellipse : Ellipse
        Its ``_asdict()`` are parameters of all UDFs of rings.
    residual : float
        Variance of the intensities around their mean over elliptical rings, divided by their
        variance.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If an argument is wrong, fewer than eight pixels are in the range, their values are equal,
        or no ring is in the range.

    Warns
    -----
    UDFWarning
        If the ellipse explains little more of the intensities than it would of noise.

    Notes
    -----
    The intensity is a function f of the radius in the coordinates in which the ellipse is round. f
    is a cubic spline, so that it can have any shape. Center, stretch and angle are those for which
    the sum of ``(I - f)**2`` over the pixels is smallest; f is eliminated for each of them [1]_.

    References
    ----------
    .. [1] G. H. Golub and V. Pereyra, "The differentiation of pseudo-inverses and nonlinear least
       squares problems whose variables separate", SIAM Journal on Numerical Analysis 10, 413
       (1973).

    Examples
    --------
    >>> import numpy as np
    >>> from udfdask.analyses import fit_ellipse
    >>> from udfdask.masks.polar import distance
    >>> r = distance(33, 31, 64, 64, stretch=1.04, stretch_angle=60)
    >>> pattern = 100 * np.exp(-(((r - 20) / 4) ** 2))
    >>> ellipse, residual = fit_ellipse(pattern, r_range=(12, 28))
    >>> print(round(ellipse.stretch, 4), round(ellipse.stretch_angle, 2), residual < 1e-6)
    1.04 60.0 True
    """
    from scipy.optimize import least_squares

    values, usable = read_pattern(pattern, mask, "fit_ellipse")
    names = "r_range[1]", "r_range[0]"
    inner, outer = checks.pair("r_range", r_range, "an inner and an outer radius in pixels")
    outer, inner = checks.radii(outer, inner, names=names)
    if center is None:
        start = find_center(np.where(usable, values, np.nan))
    else:
        start = check_position("center", center)
    ny, nx = values.shape
    d = distance(start[1], start[0], nx, ny)
    y, x = np.nonzero((d >= inner) & (d <= outer) & usable)
    intensity = values[y, x]
    if len(intensity) < FEWEST:
        raise ArgumentValueError(
            f"r_range={r_range!r} around ({start[0]:.4g}, {start[1]:.4g}), in pixels, must contain "
            f"at least {FEWEST} pixels of a pattern of shape {(ny, nx)}, not {len(intensity)}"
        )
    spread = float(np.std(intensity))
    if not spread:
        raise ArgumentValueError(f"all pixels in r_range={r_range!r} are equal: there is no ring")
    intensity = (intensity - intensity.mean()) / spread
    middle = (inner + outer) / 2
    # pixels in a circle have other radii on an ellipse: the spline reaches beyond both radii
    pieces = 2 * max(1, min(round((outer - inner) / PIECE), len(intensity) // FEWEST))
    first, length = inner - (outer - inner) / 2, 2 * (outer - inner) / pieces

    def misfit(parameters: AnyArray) -> AnyArray:
        (cy, cx), stretch, angle = _ellipse(parameters, start, middle)
        radius = np.hypot(*rounded(rounding_matrix(stretch, angle), y - cy, x - cx))
        return np.asarray(intensity - _smooth((radius - first) / length, intensity, pieces))

    found = least_squares(misfit, np.zeros(4))
    ellipse = _ellipse(found.x, start, middle)
    # a ring in the range has its center and its half axes not farther away
    moved = math.dist(ellipse.center, start)
    if moved > (outer - inner) / 2 or ellipse.stretch * inner > outer:
        raise ArgumentValueError(
            f"no ring is in r_range={r_range!r}, where the best fit is {ellipse}: pass the center, "
            "or a range with a clear ring"
        )
    residual = float(np.mean(found.fun**2))
    if (1 - residual) * len(intensity) < SURE * (pieces + 4):
        warnings.warn(
            f"fit_ellipse is not sure of {ellipse}, which explains {1 - residual:.1%} of the "
            f"variance in r_range={r_range!r}: little more than of noise",
            UDFWarning,
            stacklevel=2,
        )
    return ellipse, residual


def _ellipse(parameters: AnyArray, start: tuple[float, float], middle: float) -> Ellipse:
    """Return the ellipse of a shift (y, x) and of a stretch along x and along a diagonal.

    All are in pixels at the `middle` radius: the stretch is how far its long half axis moves.
    """
    dy, dx, along, across = parameters.tolist()
    stretch = math.exp(2 * math.hypot(along, across) / middle)
    angle = math.degrees(math.atan2(across, along)) / 2
    return Ellipse((start[0] + dy, start[1] + dx), stretch, angle)


def _smooth(place: AnyArray, values: AnyArray, pieces: int) -> AnyArray:
    """Return the cubic spline with equal `pieces` from 0 on that is nearest to values at places."""
    from scipy.linalg import solveh_banded

    piece = np.clip(place.astype(np.int64), 0, pieces - 1)
    t = np.clip(place - piece, 0, 1)
    s = 1 - t
    basis = [s**3 / 6, (4 - 6 * t**2 + 3 * t**3) / 6, (4 - 6 * s**2 + 3 * s**3) / 6, t**3 / 6]
    # products of basis functions i and j of a piece are in row i - j of the band
    band, target = np.zeros((4, pieces + 3)), np.zeros(pieces + 3)
    for i, one in enumerate(basis):
        target[i : i + pieces] += np.bincount(piece, one * values, pieces)
        for j, other in enumerate(basis[: i + 1]):
            band[i - j, j : j + pieces] += np.bincount(piece, one * other, pieces)
    band[0] += 1e-9 * band[0].max()  # a piece may have no pixel
    weights = solveh_banded(band, target, lower=True)
    return np.asarray(sum(one * weights[piece + i] for i, one in enumerate(basis)))
