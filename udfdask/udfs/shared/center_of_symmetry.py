"""Find the point around which a diffraction pattern is most similar to its inversion.

A lattice of disks is similar to itself around many points, and around a reflection more than around
the beam if the crystal is tilted. The background between the disks has only one center. So the
background says where to look, and the symmetry of the pattern there is exact.
"""

from __future__ import annotations

import math
from functools import cache, partial

import numpy as np

from udfdask.base.types import AnyArray

COARSE = 1024  # largest size of a pattern for which all centers are compared; others are binned
SMALL = 128  # largest size of a pattern whose background is searched; others are binned
EXPLAINED = 0.2  # part of the background that must depend on the distance from its center
CLEAR = 0.5  # part from which on the background is sure: bright disks do not hide it
NEAR = 1 / 40  # how far the center of the background can be wrong, as a part of the frame
NEAREST = 3.0  # how far it can be wrong in a small frame, in pixels
DOUBT = 0.5  # a center at more than this part of the distance is not sure, unless it is alone
SURE = 0.95  # similarity of a pattern that is its own inversion but for noise, at any distance
ALIKE = 0.85  # similarity of a pattern whose only center near that of the background is sure
# the background decides alone if the pattern is less similar to its inversion than this part of
# what the background explains, as behind a beam stop
WEAK = 0.42
DISTANT = 0.2  # what the certainty of a center loses at this distance
CLOSE = 0.95  # without a background, another center of this part of the similarity is a doubt
CANDIDATES = 8  # most centers that are compared with each other: a lattice has many
OVERLAP = 0.05  # smallest part of the pixels that must have a partner opposite of a center

# size of the areas whose darkest quarter is background, as a part of the frame; between 1/16 and
# 1/7, the centers of simulated tilted crystals were least wrong with it
GAP = 1 / 16
DARK = 0.4  # pixels below this part of the background around them, in square roots, are a beam stop
FAINT = 1e-3  # part of the brightest value below which nothing can be called dark

Place = tuple[int, int]
"""The sum of the positions of two opposite pixels: twice the center between them."""


def center_of_symmetry(
    values: AnyArray, usable: AnyArray, area: float
) -> tuple[tuple[float, float], float, bool, bool]:
    """Return where (y, x) a pattern, shape (y, x), is most similar to its inversion.

    Also return the similarity there, a correlation coefficient or NaN, whether this is more than
    noise can have or the background agrees, and whether one can rely on it. `usable` says which
    pixels count. Values are square roots of intensities; in an `area` of pixels, noise is about
    equal.
    """
    seen, explained, usable = _visible(values, usable)
    levels = _levels(values, usable, COARSE)
    near = _place(seen, 2 ** (len(levels) - 1)) if seen else None
    found = []
    for coarse in _candidates(*levels[-1], near):
        place = coarse
        for level in levels[::-1]:
            place = _climb(*level, place)
            if level is not levels[0]:
                place = 2 * place[0] + 1, 2 * place[1] + 1
        similarity, offset = _summit(*levels[0], place)
        far = math.dist(place, _place(seen)) / _reach(values) if seen else 0.0
        if similarity > WEAK * explained:
            # Fisher's transform of the similarity, whose noise does not depend on its value
            certainty = math.atanh(min(similarity, 0.999999)) - DISTANT * far**2
            found.append((certainty, place, offset, similarity, far))
    if not found and seen:  # the background decides alone
        place = _place(seen)
        found = [(0.0, place, (0.0, 0.0), _similarity(values, usable, place), 1.0)]
    if not found:
        return (math.nan, math.nan), math.nan, False, False
    _, place, offset, similarity, far = max(found)
    if seen:
        is_alone = len(found) == 1 and similarity > ALIKE
        is_sure = (explained > CLEAR and (far < DOUBT or is_alone)) or similarity > SURE
    else:
        others = [one[3] for one in found if math.dist(one[1], place) > 4]
        is_sure = max(others, default=-1.0) < CLOSE * similarity
    n_pairs = _both(usable, place)[1].sum()
    is_similar = similarity > min(0.7, 5 / math.sqrt(max(n_pairs / area, 1.0)))
    center = (place[0] + offset[0]) / 2, (place[1] + offset[1]) / 2
    return center, similarity, is_similar or seen is not None, is_sure and is_similar


def _place(center: tuple[float, float], scale: int = 1) -> Place:
    """Return twice a center, in pixels that are `scale` pixels wide, rounded."""
    y, x = (round(2 * (c + 0.5) / scale - 1) for c in center)
    return y, x


def _reach(values: AnyArray) -> float:
    """Return how far from the center of the background a place can be."""
    return 2 * max(NEAR * float(max(values.shape)), NEAREST)


def _visible(
    values: AnyArray, usable: AnyArray
) -> tuple[tuple[float, float] | None, float, AnyArray]:
    """Return the center of the background or None, what it explains, and which pixels count."""
    levels = _levels(values, usable, SMALL)
    found, scale = _find_background(*levels[-1]), 2 ** (len(levels) - 1)
    if found is None or found[1] < EXPLAINED:
        return None, -math.inf, usable
    (y, x), explained, is_dark = found
    dark = np.kron(is_dark, np.ones((scale, scale), bool))
    dark = np.pad(dark, [(0, n - m) for n, m in zip(values.shape, dark.shape, strict=True)])
    return (scale * (y + 0.5) - 0.5, scale * (x + 0.5) - 0.5), explained, usable & ~dark


def _find_background(
    values: AnyArray, usable: AnyArray
) -> tuple[tuple[float, float], float, AnyArray] | None:
    """Return where the background of a pattern has its center; None for a tiny or flat one.

    Around it, the brightness in each ring is nearest to the median of the ring. Disks that are
    left, and a beam stop, are outliers that a median does not see. Also return the part of the
    differences that this explains, and which pixels are much darker than those around them.
    """
    from scipy import ndimage

    step = max(max(values.shape) // 32, 1)
    if min(values.shape) < 16:
        return None
    nearest = ndimage.distance_transform_edt(~usable, return_distances=False, return_indices=True)
    size = 2 * max(round(GAP * max(values.shape) / 2), 1) + 1
    low = ndimage.percentile_filter(values[tuple(nearest)], 25, size=size, mode="nearest")
    low = ndimage.gaussian_filter(low, size / 8, mode="nearest")
    places = np.argwhere(usable[step // 2 :: step, step // 2 :: step]) * step + step // 2
    samples = low[tuple(places.T)]
    constant = float(np.abs(samples - np.median(samples)).sum())
    if not constant > 1e-9 * np.ptp(values):
        return None
    center, least = np.zeros(2), math.inf
    tried, reach = places.astype(np.float64), float(step)
    while reach >= 0.25:
        found = [_rings(samples, places, one, step / 2) for one in tried]
        wrong = [float(np.abs(samples - medians[rings]).sum()) for rings, medians in found]
        best = int(np.argmin(wrong))
        if wrong[best] < least:
            center, least = tried[best], wrong[best]
        tried = center + reach * (np.argwhere(np.ones((3, 3))) - 1.0)
        reach /= 2
    y, x = center.tolist()
    if min(min(c, n - 1 - c) for c, n in zip((y, x), values.shape, strict=True)) < step:
        return None  # it only becomes brighter toward a border
    rings, medians = _rings(low[usable], np.argwhere(usable), center, step / 2)
    # a beam stop hides the middle, where a background is brightest
    profile = np.maximum.accumulate(medians[::-1])[::-1]
    profile[profile < FAINT * values.max()] = 0
    is_dark = np.zeros(values.shape, bool)
    is_dark[usable] = values[usable] < DARK * profile[rings]
    is_dark = ndimage.binary_opening(is_dark, np.ones((step + 1, step + 1)))
    return (y, x), 1 - least / constant, is_dark


def _rings(
    samples: AnyArray, places: AnyArray, center: AnyArray, width: float
) -> tuple[AnyArray, AnyArray]:
    """Return the ring around a center in which each sample lies, and the median of each ring."""
    y, x = places.T
    rings = (np.hypot(y - center[0], x - center[1]) / width + 0.5).astype(np.int16)
    order = np.lexsort((samples, rings))
    number = np.bincount(rings)
    middle = np.cumsum(number) - number // 2 - 1
    return rings, samples[order[np.clip(middle, 0, None)]] * (number > 0)


def _levels(values: AnyArray, usable: AnyArray, most: int) -> list[tuple[AnyArray, AnyArray]]:
    """Return a pattern, and means over 2, 4, ... pixels until it has at most this size."""
    levels = [(values, usable)]
    while max(values.shape) > most and min(values.shape) >= 4:
        ny, nx = (n // 2 for n in values.shape)
        sums, number = (
            one[: 2 * ny, : 2 * nx].reshape(ny, 2, nx, 2).sum(axis=(1, 3))
            for one in (values, usable)
        )
        usable = number > 0
        values = np.divide(sums, number, out=np.zeros(sums.shape), where=usable)
        levels.append((values, usable))
    return levels


def _candidates(values: AnyArray, usable: AnyArray, near: Place | None) -> list[Place]:
    """Return the best places on the grid of half pixels, with `near` at most `NEAR` from it."""
    from scipy import fft
    from scipy.ndimage import maximum_filter

    ny, nx = (2 * n - 1 for n in values.shape)
    size = fft.next_fast_len(ny, real=True), fft.next_fast_len(nx, real=True)
    mask = usable.astype(np.float64)
    of_mask, of_values, of_squares = (fft.rfft2(one, size) for one in (mask, values, values**2))

    def pairs(one: AnyArray, other: AnyArray) -> AnyArray:
        """Return the sum of the products of opposite pixels for each center."""
        product: AnyArray = fft.irfft2(one * other, size)[:ny, :nx]
        return product

    number = np.rint(pairs(of_mask, of_mask))
    enough = number >= max(2.0, OVERLAP * usable.sum())
    squared = pairs(of_values, of_mask) ** 2 / np.maximum(number, 1)
    covariance = pairs(of_values, of_values) - squared
    variance = pairs(of_squares, of_mask) - squared
    largest = variance.max(initial=0.0, where=enough)
    if largest <= 0:
        return []
    # with the variance alone, small parts at the edge of the frame that look alike would win
    enough &= variance > 1e-9 * largest
    score = np.full(covariance.shape, -np.inf)
    np.divide(covariance, np.sqrt(np.maximum(variance, 1e-300)), out=score, where=enough)
    is_peak = (score == maximum_filter(score, 3)) & (score > 0)
    if near is None:
        is_peak &= score > 0.8 * score.max()
    else:
        y, x = np.ogrid[:ny, :nx]
        is_peak &= np.hypot(y - near[0], x - near[1]) <= _reach(values)
    peaks = np.flatnonzero(is_peak)
    best = peaks[np.argsort(-score.ravel()[peaks], kind="stable")[:CANDIDATES]]
    return [(int(y), int(x)) for y, x in zip(*np.unravel_index(best, score.shape), strict=True)]


def _around(place: Place) -> list[Place]:
    return [(place[0] + i, place[1] + j) for i in (-1, 0, 1) for j in (-1, 0, 1)]


def _climb(values: AnyArray, usable: AnyArray, place: Place) -> Place:
    """Return the place of the nearest maximum of the similarity."""
    height = cache(partial(_similarity, values, usable))
    while height(best := max(_around(place), key=height)) > height(place):
        place = best
    return place


def _both(usable: AnyArray, place: Place) -> tuple[tuple[slice[int, int, None], ...], AnyArray]:
    """Return the part of a frame with opposite pixels, and where both of a pair are used."""
    part = tuple(
        slice(max(0, s - n + 1), min(n, s + 1)) for s, n in zip(place, usable.shape, strict=True)
    )
    return part, usable[part] & usable[part][::-1, ::-1]


def _similarity(values: AnyArray, usable: AnyArray, place: Place) -> float:
    """Return the correlation coefficient of opposite pixels around a center; -1 without pairs."""
    part, both = _both(usable, place)
    a, b = values[part][both], values[part][::-1, ::-1][both]
    if a.size < max(2.0, OVERLAP * usable.sum()):
        return -1.0
    a, b = a - a.mean(), b - b.mean()
    variance = float(a @ a)
    return float(a @ b) / variance if variance > 0 else -1.0


def _summit(values: AnyArray, usable: AnyArray, place: Place) -> tuple[float, tuple[float, float]]:
    """Return the height and offset (y, x) of a maximum, by a paraboloid through 3 x 3 places."""
    y, x = np.mgrid[-1:2, -1:2].reshape(2, -1).astype(np.float64)
    near = [_similarity(values, usable, one) for one in _around(place)]
    design = np.stack([np.ones(9), y, x, y * y, y * x, x * x], axis=1)
    top, ly, lx, yy, yx, xx = np.linalg.lstsq(design, np.array(near), rcond=None)[0]
    determinant = 4 * yy * xx - yx * yx
    if yy >= 0 or xx >= 0 or determinant <= 0:  # not a maximum
        return near[4], (0.0, 0.0)
    dy, dx = (yx * lx - 2 * xx * ly) / determinant, (yx * ly - 2 * yy * lx) / determinant
    height = max(near[4], float(top + (ly * dy + lx * dx) / 2))
    return height, (float(np.clip(dy, -1, 1)), float(np.clip(dx, -1, 1)))
