"""Shifts between frames, from their Fourier transforms."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from udfdask.types import AnyArray

FLOOR = 100
"""Waves with an amplitude below `FLOOR` times the rounding error of the strongest have no phase."""

BLUR = 1.0
"""Standard deviation by which frames are blurred, in pixels: then noise counts less."""

LEAST = 0.02
"""A part of a frame with less than this part of its power does not count as similar."""

REACH = 1.5
"""Half the side of the area around a maximum that is computed on a fine grid, in pixels.

On a ridge at an angle, the maximum can be farther than half a pixel from the best whole pixel.
"""


def _waves(n: int) -> int:
    """Return how many waves along an axis of n pixels the window has, besides its mean."""
    return min(n // 8, 8)


@lru_cache(maxsize=8)
def _window(shape: tuple[int, int], dtype: str) -> tuple[AnyArray, AnyArray]:
    """Return weights that are 0 at the edges of a frame, and their Fourier transform.

    A Fourier transform takes opposite edges of a frame as neighbors. Without weights, the step
    between them, which does not move, draws all shifts to 0. The weights are nearly flat, because
    each pixel that counts less makes shifts less certain; in small frames they change slowly. An
    axis of less than 8 pixels has no window.
    """
    from scipy.fft import rfft2

    y, x = (
        1 - (_waves(n) > 0) * np.cos(np.pi * (np.arange(n) + 0.5) / n) ** (2 * _waves(n))
        for n in shape
    )
    weights = np.outer(y, x).astype(dtype)
    return weights, rfft2(weights)


@lru_cache(maxsize=8)
def _blur(shape: tuple[int, int], dtype: str) -> AnyArray:
    """Return the factors of the waves of a frame, 0 for those too short for the window.

    The products of these with the window would be shorter than 2 pixels.
    """
    height, width = shape
    y, x = np.fft.fftfreq(height)[:, None], np.arange(width // 2 + 1) / width
    factors = np.exp(-2 * (np.pi * BLUR) ** 2 * (y * y + x * x))
    for frequency, n in ((y, height), (x, width)):
        if _waves(n):
            factors = factors * (np.abs(frequency) < (n / 2 - _waves(n) - 0.25) / n)
    return factors.astype(dtype)


def spectra_of(frame: AnyArray, phase: bool) -> AnyArray:
    """Return the Fourier transforms of a frame and of its squares, for `find_shift`, complex.

    They are those of the blurred frame in a window, shape (2, y, x // 2 + 1). With `phase`, all
    waves have the same amplitude first. Those of a constant frame are 0, and of a frame that
    has only the shortest waves, which are removed: then the correlation of frames that are equal up
    to a shift is 1 there, and lower elsewhere, between pixels, too.
    """
    from scipy.fft import irfft2, rfft2

    # float32 holds integers of 16 bits
    small = frame.dtype.itemsize < (4 if frame.dtype.kind in "iu" else 8)
    dtype = np.float32 if small else np.float64
    values: AnyArray = frame.astype(dtype)
    if values.min() == values.max():
        return np.zeros_like(rfft2(np.stack([values, values])))
    blur = _blur(frame.shape, values.dtype.str)
    with np.errstate(invalid="ignore"):  # of infinite pixels
        values = values - dtype(values.mean(dtype=np.float64))
        found: AnyArray = rfft2(values)
        found[0, 0] = 0
        power = np.vdot(found, found).real
        found *= blur > 0
        if np.vdot(found, found).real < (FLOOR * np.finfo(dtype).eps) ** 2 * power:
            return np.zeros_like(np.stack([found, found]))
        if phase:
            size = np.abs(found)
            found /= np.maximum(size, FLOOR * np.finfo(dtype).eps * size.max())
        found *= blur
        calm = irfft2(found, s=frame.shape)
        calm /= np.abs(calm).max()
        weights, _ = _window(frame.shape, calm.dtype.str)
        part = weights * calm
        spectra: AnyArray = rfft2(np.stack([part, part * calm]))
    return spectra


def find_shift(
    first: AnyArray,
    second: AnyArray,
    shape: tuple[int, int],
    upsample: int,
    allowed: AnyArray | None,
) -> tuple[float, float, float]:
    """Return how far `second` is moved, (y, x) in pixels, and the correlation there.

    `first` and `second` are spectra of frames of this shape. The correlation is relative to the
    power of those parts of both frames that lie on each other: else shifts would be drawn to 0,
    where most of the frames does. `allowed` says for each shift whether it counts, bool, in the
    order of `numpy.fft.fftfreq`. With `upsample` above 1, the correlation around the maximum is
    computed on a grid with this number of points for each pixel, and the maximum is that of a
    paraboloid through nine of these points.

    A constant frame has no shift: NaN, and the correlation 0.
    """
    from scipy.fft import irfft2

    powers = first[1, 0, 0].real, second[1, 0, 0].real
    if not np.isfinite(powers).all():
        return math.nan, math.nan, math.nan
    if not all(powers):
        return math.nan, math.nan, 0.0
    _, window = _window(shape, powers[0].dtype.str)
    products = np.stack(
        [second[0] * first[0].conj(), window * first[1].conj(), second[1] * window.conj()]
    )

    def relative(sums: AnyArray) -> AnyArray:
        cross, one, other = sums
        one, other = np.maximum(one, LEAST * powers[0]), np.maximum(other, LEAST * powers[1])
        found: AnyArray = cross / np.sqrt(one * other)
        return found

    maps = relative(irfft2(products, s=shape))
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
    fine = relative(_around(products, shape, y + dy, x + dx))
    row, column = (int(k) for k in np.unravel_index(int(fine.argmax()), fine.shape))
    more_y, more_x = _vertex(fine, row, column)
    dy_top, dx_top = dy[row] + more_y / upsample, dx[column] + more_x / upsample
    return float(y + dy_top), float(x + dx_top), float(fine[row, column])


def _around(spectrum: AnyArray, shape: tuple[int, int], y: AnyArray, x: AnyArray) -> AnyArray:
    """Return the sums at shifts y and x, shape (..., y, x): a product of matrices."""
    height, width = shape
    rows = np.fft.fftfreq(height)
    columns = np.arange(spectrum.shape[-1]) / width
    # waves of the half that is not stored have the same real part
    twice = np.full(len(columns), 2.0)
    twice[0] = 1
    if width % 2 == 0:
        twice[-1] = 1
    left = np.exp(2j * np.pi * np.outer(y, rows)).astype(spectrum.dtype)
    right = (np.exp(2j * np.pi * np.outer(columns, x)) * twice[:, None]).astype(spectrum.dtype)
    found: AnyArray = (left @ spectrum @ right).real / (height * width)
    return found


def _vertex(values: AnyArray, row: int, column: int) -> tuple[float, float]:
    """Return where a paraboloid through the largest value and those around it is highest, (y, x).

    It is relative to the largest value, -1 to 1 points; 0 along an axis at whose end that is.
    """
    near = np.pad(values, 1, mode="reflect")[row : row + 3, column : column + 3].astype(float)
    by_y, by_x = (near[2, 1] - near[0, 1]) / 2, (near[1, 2] - near[1, 0]) / 2
    yy, xx = (line[0] - 2 * line[1] + line[2] for line in (near[:, 1], near[1]))
    # the maximum of a ridge that runs at an angle is not where it is highest along each axis
    yx = (near[2, 2] - near[2, 0] - near[0, 2] + near[0, 0]) / 4
    size = yy * xx - yx * yx
    if size > 0:
        y, x = (yx * by_x - xx * by_y) / size, (yx * by_y - yy * by_x) / size
    else:
        y, x = (-slope / bend if bend < 0 else 0.0 for slope, bend in ((by_y, yy), (by_x, xx)))
    return min(max(y, -1.0), 1.0), min(max(x, -1.0), 1.0)
