"""Integrate the gradient of a phase over a scan."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import fft, ndimage
from scipy.sparse.linalg import LinearOperator, cg

from udfdask.base.types import AnyArray
from udfdask.errors import ArgumentValueError
from udfdask.masks import checks
from udfdask.udfs.shared.built_in import check_choice

BORDERS = ("mirrored", "periodic")
"""What is beyond the border of a scan: its mirror image, or the scan again."""

TOLERANCE = 1e-8
"""Residual, relative to the right-hand side, at which conjugate gradients end."""

MOST_STEPS = 1000
"""Largest number of steps of conjugate gradients. Scans with holes need 10 to 60."""


def integrate_gradient(
    gradient_y: AnyArray,
    gradient_x: AnyArray,
    *,
    steps: tuple[float, float] = (1.0, 1.0),
    borders: str = "mirrored",
    high_pass: float = 0.0,
) -> AnyArray:
    """Return the phase whose gradient is nearest to a field over a 2-D scan.

    Parameters
    ----------
    gradient_y, gradient_x : numpy.ndarray, shape (ny, nx), float
        Derivatives of the phase in radians per unit of length; NaN where they are not known.
    steps : tuple of float
        Distances between positions along y and x, in the unit of length.
    borders : {"mirrored", "periodic"}
        What is beyond the border: the mirror image of the phase, or the scan again. If positions
        are missing, borders are never periodic.
    high_pass : float
        Spatial frequency q below which the phase is damped, by ``k**2 / (k**2 + q**2)``, in
        periods per unit of length: noise of low frequency is amplified most.

    Returns
    -------
    numpy.ndarray, shape (ny, nx), float64
        Phase in radians, NaN where it is not known; each connected region has a mean of 0.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If an argument is wrong.

    Notes
    -----
    The phase fits the field best in the sense of least squares. Periodic fields are divided by the
    frequency in Fourier space [1]_. Otherwise, the differences between neighbors are fitted: by a
    cosine transform, or by conjugate gradients if positions are missing.

    References
    ----------
    .. [1] R. Frankot and R. Chellappa, "A method for enforcing integrability in shape from shading
       algorithms", IEEE Transactions on Pattern Analysis and Machine Intelligence 10, 439 (1988).

    Examples
    --------
    >>> import numpy as np
    >>> from udfdask.analyses.integration import integrate_gradient
    >>> y, x = np.mgrid[:32, :32] * 2 * np.pi / 32
    >>> steps = 2 * np.pi / 32, 2 * np.pi / 32
    >>> phase = integrate_gradient(0 * y, np.cos(x), steps=steps, borders="periodic")
    >>> bool(np.allclose(phase, np.sin(x)))
    True
    """
    field = np.asarray(gradient_y, np.float64), np.asarray(gradient_x, np.float64)
    checked_options(borders, high_pass)
    shapes = [component.shape for component in field]
    if shapes[0] != shapes[1] or len(shapes[0]) != 2 or 0 in steps:
        raise ArgumentValueError(
            "the components of a gradient must have the shape of one 2-D scan, and no step may be "
            f"0, but the shapes are {shapes} and steps={steps}"
        )
    known = np.isfinite(field[0]) & np.isfinite(field[1])
    damping = (2 * np.pi * high_pass) ** 2
    if borders == "periodic" and known.all():
        return _of_periodic_field(field, steps, damping)
    return _by_least_squares(field, known, steps, damping)


def checked_options(borders: Any, high_pass: Any) -> dict[str, Any]:
    """Return the parameters of the integration."""
    check_choice("borders", borders, BORDERS)
    value = checks.number("high_pass", high_pass, of="a spatial frequency")
    if value < 0:
        raise ArgumentValueError(f"high_pass must not be negative, but it is {value:g}")
    return {"borders": borders, "high_pass": value}


def _of_periodic_field(
    field: tuple[AnyArray, AnyArray], steps: tuple[float, float], damping: float
) -> AnyArray:
    """Return the phase of a periodic field: its Laplacian is the divergence of the field."""
    ny, nx = field[0].shape
    ky, kx = 2 * np.pi * fft.fftfreq(ny, steps[0])[:, None], 2 * np.pi * fft.rfftfreq(nx, steps[1])
    # the highest frequency of an even number of positions has no derivative
    if ny % 2 == 0:
        ky[ny // 2] = 0
    if nx % 2 == 0:
        kx[-1] = 0
    divergence = ky * fft.rfft2(field[0]) + kx * fft.rfft2(field[1])
    square = ky**2 + kx**2 + damping
    spectrum = np.divide(-1j * divergence, square, out=np.zeros_like(divergence), where=square > 0)
    spectrum[0, 0] = 0
    return np.asarray(fft.irfft2(spectrum, s=(ny, nx)))


def _by_least_squares(
    field: tuple[AnyArray, ...], known: AnyArray, steps: tuple[float, float], damping: float
) -> AnyArray:
    """Return the phase whose differences between known neighbors fit the field best."""
    slopes = [_mean_slopes(np.where(known, values, np.nan), k) for k, values in enumerate(field)]
    pairs = [np.isfinite(slope) for slope in slopes]

    def laplacian(flat: AnyArray) -> AnyArray:
        phase = flat.reshape(known.shape)
        total = damping * np.where(known, phase, 0.0)
        for axis, step in enumerate(steps):
            _add_to_pairs(total, pairs[axis] * np.diff(phase, axis=axis) / step**2, axis)
        return total.ravel()

    # the solution without holes: with holes, few steps are left
    eigenvalues = damping + sum(
        np.expand_dims((2 - 2 * np.cos(np.pi * np.arange(n) / n)) / step**2, 1 - axis)
        for axis, (n, step) in enumerate(zip(known.shape, steps, strict=True))
    )
    inverse = np.divide(1.0, eigenvalues, out=np.zeros_like(eigenvalues), where=eigenvalues > 0)

    def without_holes(flat: AnyArray) -> AnyArray:
        spectrum = fft.dctn(flat.reshape(known.shape), norm="ortho") * inverse
        return np.where(known, fft.idctn(spectrum, norm="ortho"), 0.0).ravel()

    target = np.zeros(known.shape)
    for axis, step in enumerate(steps):
        _add_to_pairs(target, np.where(pairs[axis], slopes[axis], 0.0) / step, axis)
    if known.all():
        phase = without_holes(target)
    else:
        size = (known.size, known.size)
        matrix, nearly = (LinearOperator(size, f, dtype=float) for f in (laplacian, without_holes))
        phase, _ = cg(matrix, target.ravel(), rtol=TOLERANCE, maxiter=MOST_STEPS, M=nearly)
    phase = phase.reshape(known.shape)
    regions, count = ndimage.label(known)
    means = np.zeros(count + 1)
    means[1:] = ndimage.mean(phase, regions, np.arange(1, count + 1)) if count else []
    return np.where(known, phase - means[regions], np.nan)


def _mean_slopes(values: AnyArray, axis: int) -> AnyArray:
    """Return the mean derivative between neighbors along an axis, NaN if one is not known.

    The derivative is integrated from polynomials through two, four or six positions, as far as
    these are known.
    """
    along = np.moveaxis(values, axis, 0)
    n = len(along) - 1
    wide = np.pad(along, ((2, 2), (0, 0)), constant_values=np.nan)
    near, far, farthest = (wide[k : k + n] + wide[5 - k : 5 - k + n] for k in (2, 1, 0))
    mean = near / 2
    for better in ((13 * near - far) / 24, (802 * near - 93 * far + 11 * farthest) / 1440):
        mean = np.where(np.isfinite(better), better, mean)
    return np.asarray(np.moveaxis(mean, 0, axis))


def _add_to_pairs(total: AnyArray, differences: AnyArray, axis: int) -> None:
    """Add the difference of each pair to its second position, and subtract it from its first."""
    along, added = np.moveaxis(total, axis, 0), np.moveaxis(differences, axis, 0)
    along[:-1] -= added
    along[1:] += added
