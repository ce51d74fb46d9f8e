"""Correlate patterns by Fourier transforms, and find their peaks."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from udfdask.base.types import AnyArray
from udfdask.kernels.numba_internals.compile import kernel, rounding_inner_kernel


def half_spectra(frames: AnyArray, columns: int) -> AnyArray:
    """Return the first columns of `rfft2` of frames of shape (n, y, x), shape (n, y, columns)."""
    # scipy.fft is several times as fast as numpy.fft; imported here, `import udfdask` stays fast
    from scipy.fft import fft, rfft

    spectra: AnyArray = fft(rfft(frames, axis=2)[..., :columns], axis=1)
    return spectra


def frequencies(shape: tuple[int, int]) -> tuple[AnyArray, AnyArray]:
    """Return the frequencies of `rfft2` of a frame, in bins, shapes (y, 1) and (1, x // 2 + 1)."""
    y, x = shape
    return np.fft.fftfreq(y, 1 / y)[:, np.newaxis], np.fft.rfftfreq(x, 1 / x)[np.newaxis]


CENTROID_REACH = 2
"""The centroid of a maximum includes this number of pixels on each side."""
NEAREST = 1.5
"""Smallest distance in pixels for the slope, because a maximum is flat on top."""


@kernel
def find_maxima(
    maps: AnyArray,
    corners: AnyArray,
    centers: AnyArray,
    refineds: AnyArray,
    heights: AnyArray,
    elevations: AnyArray,
) -> None:
    """Write position, centroid, height and slope of each map's maximum to the last four arrays.

    `maps` has the shape (n, k, side, side). `corners`, shape (n, k, 2), or (1, k, 2) if they are
    the same in all frames, holds the position (y, x) of the first pixel of each map.
    """
    n, k, side, _ = maps.shape
    for f in range(n):
        g = f if len(corners) > 1 else 0
        for p in range(k):
            one = maps[f, p]
            top, left = corners[g, p, 0], corners[g, p, 1]
            y, x = _highest(one)
            if y < 0:
                centers[f, p, 0], centers[f, p, 1] = top + side // 2, left + side // 2
                refineds[f, p, 0], refineds[f, p, 1] = np.nan, np.nan
                heights[f, p], elevations[f, p] = np.nan, np.nan
                continue
            fine_y, fine_x = _centroid(one, y, x)
            centers[f, p, 0], centers[f, p, 1] = top + y, left + x
            refineds[f, p, 0], refineds[f, p, 1] = top + fine_y, left + fine_x
            heights[f, p] = one[y, x]
            elevations[f, p] = _elevation(one, fine_y, fine_x, one[y, x])


@rounding_inner_kernel
def _highest(one: AnyArray) -> tuple[int, int]:
    """Return the first pixel with the largest value, (-1, -1) if not all values are finite."""
    y, x = 0, 0
    best = one[0, 0]
    for i in range(one.shape[0]):
        for j in range(one.shape[1]):
            if not math.isfinite(one[i, j]):
                return -1, -1
            if one[i, j] > best:
                y, x, best = i, j, one[i, j]
    return y, x


@rounding_inner_kernel
def _centroid(one: AnyArray, y: int, x: int) -> tuple[float, float]:
    """Return the centroid around a pixel, without the minimum of this region."""
    reach = min(CENTROID_REACH, y, x, one.shape[0] - 1 - y, one.shape[1] - 1 - x)
    around = one[y - reach : y + reach + 1, x - reach : x + reach + 1]
    lowest = np.float64(around.min())
    total, moment_y, moment_x = 0.0, 0.0, 0.0
    for i in range(2 * reach + 1):
        for j in range(2 * reach + 1):
            weight = around[i, j] - lowest
            total += weight
            moment_y += weight * (i - reach)
            moment_x += weight * (j - reach)
    if total > 0:
        return y + moment_y / total, x + moment_x / total
    return float(y), float(x)


@rounding_inner_kernel
def _elevation(one: AnyArray, y: float, x: float, height: float) -> float:
    """Return the slope of the steepest cone above the map with its tip at (y, x, height)."""
    lowest = np.inf
    for i in range(one.shape[0]):
        for j in range(one.shape[1]):
            squared = (i - y) ** 2 + (j - x) ** 2
            if squared >= NEAREST**2:
                lowest = min(lowest, (height - one[i, j]) / math.sqrt(squared))
    return max(0.0, lowest)


FLOOR = 100
"""Waves with an amplitude below `FLOOR` times the rounding error of the strongest have no phase."""

BLUR = 1.0
"""Standard deviation by which frames are blurred, in pixels: then noise counts less."""

LEAST = 0.02
"""A part of a frame with less than this part of its power does not count as similar."""

REACH = 1.5
"""Half the side of the area around a maximum that is computed on a fine grid, in pixels: on a ridge
at an angle, the maximum can be farther than half a pixel from the best whole pixel."""


def _waves(n: int) -> int:
    """Return how many waves along an axis of n pixels the window has, besides its mean."""
    return min(n // 8, 8)


@lru_cache(maxsize=8)
def _window(shape: tuple[int, int], dtype: str) -> tuple[AnyArray, AnyArray]:
    """Return weights that are 0 at the edges of a frame, and their Fourier transform.

    Without them, the step between opposite edges, which does not move, draws all shifts to 0. They
    are nearly flat, because each pixel that counts less makes shifts less certain. An axis of less
    than 8 pixels has no window.
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
    """Return the factors of the waves of a frame, 0 for those too short for the window."""
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
    waves have the same amplitude first. They are 0 for a constant frame, and for one that has only
    the shortest waves, which are removed.
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
    power of those parts of both frames that lie on each other: else shifts would be drawn to 0.
    `allowed`, bool, says which shifts count, in the order of `numpy.fft.fftfreq`. With `upsample`
    above 1, the correlation around the maximum is computed on a grid with this number of points for
    each pixel, and the maximum is that of a paraboloid through nine of these points. A constant
    frame has no shift: NaN, and the correlation 0.
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
