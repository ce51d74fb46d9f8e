"""Integrate the gradient of a phase over a scan."""

from __future__ import annotations

import numpy as np
from scipy import fft, ndimage
from scipy.sparse.linalg import LinearOperator, cg

from udfdask.base.types import AnyArray

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
        Derivatives of the phase along y and x, in radians per unit of length; NaN at positions
        that are not known.
    steps : tuple of float
        Distances between positions along y and x, in the unit of length.
    borders : {"mirrored", "periodic"}
        What is beyond the border of the scan, if all positions are known.
    high_pass : float
        Spatial frequency q below which the phase is damped, by ``k**2 / (k**2 + q**2)``, in
        periods per unit of length: noise of low frequency is amplified most.

    Returns
    -------
    numpy.ndarray, shape (ny, nx), float64
        Phase in radians, with a mean of 0; NaN at positions that are not known. Each region of
        connected positions has a mean of its own.

    Notes
    -----
    If all positions are known, Fourier coefficients are divided by the frequency [1]_. Otherwise,
    the differences between all neighbors are fitted by least squares, with conjugate gradients.

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
    known = np.isfinite(field[0]) & np.isfinite(field[1])
    damping = (2 * np.pi * high_pass) ** 2
    if not known.all():
        return _by_conjugate_gradients(field, known, steps, damping)
    if borders == "periodic":
        return _by_fourier(field, steps, damping)
    # the phase is even, so that its derivative along an axis is odd along this axis
    (ny, nx), (dy, dx) = known.shape, field
    dy = np.concatenate([dy, -dy[::-1]], axis=0)
    dx = np.concatenate([dx, -dx[:, ::-1]], axis=1)
    whole = np.concatenate([dy, dy[:, ::-1]], axis=1), np.concatenate([dx, dx[::-1]], axis=0)
    phase: AnyArray = _by_fourier(whole, steps, damping)[:ny, :nx]
    phase -= phase.mean()
    return phase


def _by_fourier(
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
    phase: AnyArray = fft.irfft2(spectrum, s=(ny, nx))
    return phase


def _by_conjugate_gradients(
    field: tuple[AnyArray, AnyArray],
    known: AnyArray,
    steps: tuple[float, float],
    damping: float,
) -> AnyArray:
    """Return the phase whose differences between known neighbors fit the field best."""
    # the mean of the derivatives at two neighbors, and a weight of 0 if one of them is not known
    slopes, weights = [], []
    for axis, (values, step) in enumerate(zip(field, steps, strict=True)):
        first, second = _pairs(known, axis)
        pairs = first & second
        one, other = _pairs(np.where(known, values, 0.0), axis)
        slopes.append(np.where(pairs, (one + other) / 2, 0.0) / step)
        weights.append(pairs / step**2)

    def laplacian(flat: AnyArray) -> AnyArray:
        phase = flat.reshape(known.shape)
        total = damping * np.where(known, phase, 0.0)
        for axis, weight in enumerate(weights):
            one, other = _pairs(phase, axis)
            _add_differences(total, weight * (other - one), axis)
        return total.ravel()

    # the solution over a rectangle with mirrored borders is near: few steps are left
    eigenvalues = damping + sum(
        np.expand_dims((2 - 2 * np.cos(np.pi * np.arange(n) / n)) / step**2, 1 - axis)
        for axis, (n, step) in enumerate(zip(known.shape, steps, strict=True))
    )
    inverse = np.divide(1.0, eigenvalues, out=np.zeros_like(eigenvalues), where=eigenvalues > 0)

    def preconditioner(flat: AnyArray) -> AnyArray:
        spectrum = fft.dctn(flat.reshape(known.shape), norm="ortho") * inverse
        return np.where(known, fft.idctn(spectrum, norm="ortho"), 0.0).ravel()

    target = np.zeros(known.shape)
    for axis, slope in enumerate(slopes):
        _add_differences(target, slope, axis)
    n = known.size
    operators = (LinearOperator((n, n), f, dtype=np.float64) for f in (laplacian, preconditioner))
    matrix, nearly_inverse = operators
    phase, _ = cg(matrix, target.ravel(), rtol=TOLERANCE, maxiter=MOST_STEPS, M=nearly_inverse)
    phase = phase.reshape(known.shape)
    regions, count = ndimage.label(known)
    means = ndimage.mean(phase, regions, np.arange(1, count + 1)) if count else []
    return np.where(known, phase - np.concatenate([[0.0], means])[regions], np.nan)


def _pairs(values: AnyArray, axis: int) -> tuple[AnyArray, AnyArray]:
    """Return the values at all positions but the last along an axis, and at their neighbors."""
    return (values[:-1], values[1:]) if axis == 0 else (values[:, :-1], values[:, 1:])


def _add_differences(total: AnyArray, differences: AnyArray, axis: int) -> None:
    """Add the difference of each pair to its second position, and subtract it from its first."""
    first, second = _pairs(total, axis)
    first -= differences
    second += differences
