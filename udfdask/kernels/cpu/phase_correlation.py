"""Shifts between frames, from their Fourier transforms."""

from __future__ import annotations

import math

import numpy as np

from udfdask.kernels.cpu.compile import kernel
from udfdask.types import AnyArray

FLOOR = 100
"""Waves with an amplitude below `FLOOR` times the rounding error of the strongest have no phase."""

REACH = 0.75
"""Half the side of the area around a maximum that is computed on a fine grid, in pixels."""


def spectrum_of(frame: AnyArray, phase: bool) -> AnyArray:
    """Return the Fourier transform of a frame, shape (y, x), for `correlation_of`, complex.

    It is that of the real frame, shape (y, x // 2 + 1), without the mean, and of such a size that
    the correlation of a frame with itself is 1. With `phase`, all waves have the same amplitude.
    That of a constant frame is 0.
    """
    from scipy.fft import rfft2

    # float32 holds integers of 16 bits
    small = frame.dtype.itemsize < (4 if frame.dtype.kind in "iu" else 8)
    dtype = np.float32 if small else np.float64
    values: AnyArray = frame.astype(dtype)
    if values.min() == values.max():
        return np.zeros_like(rfft2(values))
    with np.errstate(invalid="ignore"):  # of infinite pixels
        values = values - dtype(values.mean(dtype=np.float64))
        found: AnyArray = rfft2(values)
    found[0, 0] = 0
    _normalize(found, frame.shape[1], phase, FLOOR * float(np.finfo(dtype).eps))
    return found


def correlation_of(first: AnyArray, second: AnyArray) -> AnyArray:
    """Return the cross spectrum of two frames: the phases tell how far `second` is moved."""
    out = np.empty_like(first)
    _multiply(second, first, out)
    return out


def find_shift(
    spectrum: AnyArray, shape: tuple[int, int], upsample: int, allowed: AnyArray | None
) -> tuple[float, float, float]:
    """Return the shift (y, x) in pixels with the highest correlation, and the correlation.

    `spectrum` is a cross spectrum of frames of this shape. `allowed` says for each shift whether it
    counts, bool, in the order of `numpy.fft.fftfreq`. With `upsample` above 1, the correlation
    around the maximum is computed on a grid with this number of points for each pixel, and the
    maximum is that of a parabola through three of these points along each axis.

    A constant frame has no shift: NaN, and the correlation 0.
    """
    from scipy.fft import irfft2

    maps: AnyArray = irfft2(spectrum, s=shape)
    if not np.isfinite(maps[0, 0]):
        return math.nan, math.nan, math.nan
    if not spectrum.any():
        return math.nan, math.nan, 0.0
    if allowed is not None:
        maps[~allowed] = -np.inf
    top = int(maps.argmax())
    y, x = (
        place - n if place > (n - 1) // 2 else place
        for place, n in zip(divmod(top, shape[1]), shape, strict=True)
    )
    if upsample == 1:
        return float(y), float(x), float(maps.flat[top])
    reach = math.ceil(REACH * upsample)
    steps = np.arange(-reach, reach + 1) / upsample
    # an axis of one pixel has no shift
    dy, dx = (steps if n > 1 else np.zeros(1) for n in shape)
    fine = _around(spectrum, shape, y + dy, x + dx)
    row, column = (int(k) for k in np.unravel_index(int(fine.argmax()), fine.shape))
    dy_top = dy[row] + _vertex(fine[:, column], row) / upsample
    dx_top = dx[column] + _vertex(fine[row], column) / upsample
    return float(y + dy_top), float(x + dx_top), float(fine[row, column])


def _around(spectrum: AnyArray, shape: tuple[int, int], y: AnyArray, x: AnyArray) -> AnyArray:
    """Return the correlation at shifts y and x, shape (y, x): a product of matrices."""
    height, width = shape
    rows = np.fft.fftfreq(height)
    columns = np.arange(spectrum.shape[1]) / width
    # waves of the half that is not stored have the same real part
    twice = np.full(len(columns), 2.0)
    twice[0] = 1
    if width % 2 == 0:
        twice[-1] = 1
    left = np.exp(2j * np.pi * np.outer(y, rows)).astype(spectrum.dtype)
    right = (np.exp(2j * np.pi * np.outer(columns, x)) * twice[:, None]).astype(spectrum.dtype)
    found: AnyArray = (left @ spectrum @ right).real / (height * width)
    return found


def _vertex(values: AnyArray, top: int) -> float:
    """Return where a parabola through the largest value and its neighbors is highest, -0.5 to 0.5.

    It is relative to the largest value; 0 at the ends.
    """
    if not 0 < top < len(values) - 1:
        return 0.0
    before, here, after = (float(v) for v in values[top - 1 : top + 2])
    curvature = before - 2 * here + after
    return 0.0 if curvature >= 0 else min(max(0.5 * (before - after) / curvature, -0.5), 0.5)


@kernel
def _normalize(spectrum: AnyArray, width: int, phase: bool, floor: float) -> None:
    """Scale a spectrum so that the mean of its squares over the full plane is 1, in place."""
    height, half = spectrum.shape
    strongest = 0.0  # squares: the absolute value of a complex number takes four times as long
    for y in range(height):
        for x in range(half):
            value = spectrum[y, x]
            strongest = max(strongest, value.real * value.real + value.imag * value.imag)
    if phase and strongest > 0:
        least = floor * floor * strongest
        for y in range(height):
            for x in range(half):
                value = spectrum[y, x]
                square = value.real * value.real + value.imag * value.imag
                spectrum[y, x] = value / np.sqrt(max(square, least))
    power = 0.0
    for y in range(height):
        for x in range(half):
            value = spectrum[y, x]
            twice = 1.0 if x == 0 or 2 * x == width else 2.0
            power += twice * (value.real * value.real + value.imag * value.imag)
    scale = np.sqrt(height * width / power) if power > 0 else 1.0
    for y in range(height):
        for x in range(half):
            spectrum[y, x] *= scale


@kernel
def _multiply(a: AnyArray, b: AnyArray, out: AnyArray) -> None:
    """Write the product of `a` with the complex conjugate of `b`."""
    height, width = a.shape
    for y in range(height):
        for x in range(width):
            out[y, x] = a[y, x] * np.conj(b[y, x])
