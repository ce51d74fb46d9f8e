"""Lattices of disk positions: a first guess, and least squares that leave out false disks."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
from scipy import ndimage

from udfdask.base.types import AnyArray
from udfdask.errors import ArgumentTypeError, ArgumentValueError

MOST_DIFFERENCES = 200_000
"""Number of differences between disks that a guess uses at most: those of some hundred frames."""

CATCH = 0.25
"""Distance at which a disk is taken for one of the lattice, as a part of the shorter vector."""

OUTLIER = 4.0
"""Distance at which a disk is left out, in medians of the distances: 4.7 standard deviations."""

LEAST_TOLERANCE = 0.05
"""Distance, in pixels, at which no disk is left out: none is found more precisely."""

REACHES = (1.5, 1.5, 3.0, np.inf, np.inf, np.inf, np.inf, np.inf)
"""Disks of each step of a fit, by their distance from the origin in lattice vectors."""

HARD_STEPS = 2
"""Last steps of a fit, without weights that make the fits before them robust."""

LEAST_DISKS = 8
"""Number of disks from which a frame may guess its own lattice."""

_ORDERS = np.array([o for o in itertools.product(range(-2, 3), repeat=2) if o != (0, 0)])
"""Vectors of a lattice that can be close to a vector of another lattice."""


def guess_lattice(positions: Any) -> AnyArray:
    """Guess the lattice that most frames of a scan share, from the positions of their disks.

    Parameters
    ----------
    positions : array-like of real numbers, shape (*nav, n, 2) or (*nav, n, 3)
        Positions (y, x) of up to n disks in each frame, in pixels, and perhaps their weights, such
        as intensities; NaN for disks that do not exist. Disks may be missing, and false disks are
        allowed.

    Returns
    -------
    numpy.ndarray, shape (3, 2), float64
        The origin and the vectors `a` and `b` as rows (y, x), in pixels. The origin is the lattice
        point that is nearest to the median of the disks of largest weight, or without weights to
        that of all disks. Of the two shortest vectors, `a` is closer to the direction of y, and the
        turn from `b` to `a` is that from x to y.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If the positions have a wrong dtype or shape, or their differences do not show two
        directions.

    Notes
    -----
    The vectors are the two shortest frequent differences between disks of a frame, whose sum or
    difference is frequent too: a pair from two grains has none. At most 200,000 differences are
    used, from frames all over the scan.

    Examples
    --------
    >>> import numpy as np
    >>> from udfdask.analyses import guess_lattice
    >>> orders = np.array([(h, k) for h in range(-2, 3) for k in range(-2, 3)])
    >>> disks = (40, 42) + orders @ [(12, 1), (-1, 13)]
    >>> guess_lattice(disks).round(3)
    array([[40., 42.],
           [12.,  1.],
           [-1., 13.]])
    """
    given = np.asarray(positions)
    if given.dtype.kind not in "iuf":
        raise ArgumentTypeError(f"positions must be real numbers, not of dtype {given.dtype}")
    if given.ndim < 2 or given.shape[-1] not in (2, 3):
        raise ArgumentValueError(
            f"positions must have the shape (*nav, disks, 2), not {given.shape}: pass the result "
            "'positions' of a run that finds disks"
        )
    frames = given.reshape((-1, *given.shape[-2:]))
    exists = np.isfinite(frames).all(axis=2)
    frames = frames[exists.sum(axis=1) >= 3][:, exists.any(axis=0)]
    most = max(1, MOST_DIFFERENCES // max(1, frames.shape[1] ** 2))
    frames = frames[:: -(-len(frames) // most) or 1].astype(np.float64)
    vectors = _shortest_vectors(_differences(frames[..., :2])) if len(frames) else None
    if vectors is None:
        raise ArgumentValueError(
            "positions do not show a lattice: no frame has three disks or more that are not on a "
            "line, or no difference between disks is frequent. Check the disks, or pass guess="
        )
    strongest = frames[..., :2].reshape(-1, 2)
    if frames.shape[-1] == 3:
        places = np.where(np.isfinite(frames).all(axis=2), frames[..., 2], -np.inf).argmax(axis=1)
        strongest = frames[np.arange(len(frames)), places, :2]
    lattice = np.concatenate([np.nanmedian(strongest, axis=0)[None], vectors])
    lattice[0] = _origins(frames[..., :2].reshape(1, -1, 2), lattice[None])[0]
    return lattice


def spans_plane(vectors: AnyArray, sine: float = 0.02) -> AnyArray:
    """Return which pairs of vectors (..., 2, 2) are finite, at an angle of 1 degree or more."""
    with np.errstate(invalid="ignore", over="ignore"):
        area = vectors[..., 0, 0] * vectors[..., 1, 1] - vectors[..., 0, 1] * vectors[..., 1, 0]
        lengths = np.linalg.norm(vectors, axis=-1).prod(axis=-1)
        return np.asarray(np.abs(area) > sine * lengths)


class LatticeFits(NamedTuple):
    """The lattices of some frames; NaN where a frame has none."""

    lattices: AnyArray
    """Origin, `a` and `b` of each frame, shape (frames, 3, 2), (y, x) in pixels."""
    residual: AnyArray
    """Root mean square of the distances of used disks from the lattice, shape (frames,)."""
    used: AnyArray
    """Which disks are used, bool, shape (frames, n)."""
    indices: AnyArray
    """Orders (h, k) of the disks, int16, shape (frames, n, 2); 0 for disks that are not used."""


def fit_lattices(
    positions: AnyArray,
    weights: AnyArray | None,
    guess: AnyArray,
    max_distance: float | None = None,
) -> LatticeFits:
    """Fit a lattice to the disks of each frame.

    Frames in which a lattice near the guess explains less than half of the disks, such as those of
    another grain, get a guess of their own: they keep the better fit. Arguments are as in
    `FitLatticeUDF`: positions (frames, n, 2), weights (frames, n), guess (3, 2) or (frames, 3, 2).
    """
    weights = np.ones(positions.shape[:2]) if weights is None else weights
    exists = np.isfinite(positions).all(axis=2) & np.isfinite(weights) & (weights > 0)
    positions = np.where(exists[..., None], positions, 0.0)
    weights = np.where(exists, weights, 0.0)
    guess = np.broadcast_to(guess, (len(positions), 3, 2))
    fits = _fit_near(positions, weights, guess, max_distance)
    n_disks, n_used = exists.sum(axis=1), fits.used.sum(axis=1)
    own = np.array(guess, np.float64)
    for k in np.flatnonzero((2 * n_used < n_disks) & (n_disks >= LEAST_DISKS)):
        vectors = _shortest_vectors(_differences(positions[k : k + 1, exists[k]]))
        if vectors is not None:
            own[k, 1:] = _named_like(vectors, guess[k, 1:])
    areas, own_areas = (np.abs(np.linalg.det(one[:, 1:])) for one in (guess, own))
    # the smallest cells explain everything
    others = np.flatnonzero((own != guess).any(axis=(1, 2)) & (own_areas > areas / 2))
    if others.size:
        found = _fit_near(positions[others], weights[others], own[others], max_distance)
        n_found = found.used.sum(axis=1)
        better = (n_found > n_used[others]) & (2 * n_found > n_disks[others])
        for mine, its in zip(fits, found, strict=True):
            mine[others[better]] = its[better]
    return fits


def _fit_near(
    positions: AnyArray, weights: AnyArray, guess: AnyArray, max_distance: float | None
) -> LatticeFits:
    """Fit the lattice near a guess: first to the disks around the origin, then farther out."""
    exists = weights > 0
    lattices = np.array(guess, np.float64)
    lattices[:, 0] = _origins(np.where(exists[..., None], positions, np.nan), lattices)
    farthest = CATCH * np.linalg.norm(guess[:, 1:], axis=2).min(axis=1, keepdims=True)
    if max_distance is not None:
        farthest = np.minimum(farthest, max_distance)
    for step, reach in enumerate(REACHES):
        orders, distance = _nearest(positions, lattices)
        near = exists & (distance <= farthest) & (np.linalg.norm(orders, axis=2) <= reach)
        n_near = near.sum(axis=1)[:, None]
        middle = np.sort(np.where(near, distance, np.inf), axis=1)
        middle = np.take_along_axis(middle, n_near // 2, axis=1)
        # the fit goes through three disks: of few disks, the distances are too small
        middle *= np.sqrt(np.maximum(n_near, 1) / np.maximum(n_near - 3, 0.5))
        middle = np.maximum(middle, LEAST_TOLERANCE / OUTLIER)
        used = near & (distance <= OUTLIER * middle)
        # a false disk among few moves the lattice more than itself: far disks count little
        is_soft = step < len(REACHES) - HARD_STEPS
        trust = used / (1 + (distance / middle) ** 2) if is_soft else used
        lattices, is_fitted = _least_squares(positions, weights * trust, orders, lattices)
    # vectors that have gone far were fitted to wrong orders
    moved = np.linalg.norm(lattices[:, 1:] - guess[:, 1:], axis=2).max(axis=1)
    is_fitted &= moved < CATCH * np.linalg.norm(guess[:, 1:], axis=2).min(axis=1)
    offsets = np.linalg.norm(positions - _points(orders, lattices), axis=2)
    used &= is_fitted[:, None]
    square = (used * offsets**2).sum(axis=1) / np.maximum(used.sum(axis=1), 1)
    lattices[~is_fitted] = np.nan
    residual = np.where(is_fitted, np.sqrt(square), np.nan)
    return LatticeFits(lattices, residual, used, np.where(used[..., None], orders, 0).astype("i2"))


def _least_squares(
    positions: AnyArray, weights: AnyArray, orders: AnyArray, before: AnyArray
) -> tuple[AnyArray, AnyArray]:
    """Return the lattices that fit best, those before if disks are too few, and which fitted."""
    design = np.concatenate([np.ones((*orders.shape[:2], 1)), orders], axis=2)
    # the determinant is a sum of squares of integers: 0 exactly if all disks are on a line
    used = design * (weights > 0)[..., None]
    is_fitted = np.linalg.det(np.swapaxes(used, 1, 2) @ used) > 0.5
    weighted = np.swapaxes(design * weights[..., None], 1, 2)
    matrix = np.where(is_fitted[:, None, None], weighted @ design, np.eye(3))
    fitted = np.linalg.solve(matrix, weighted @ positions)
    return np.where(is_fitted[:, None, None], fitted, before), is_fitted


def _points(orders: AnyArray, lattices: AnyArray) -> AnyArray:
    """Return the positions of lattice points, shape (frames, n, 2)."""
    return np.asarray(lattices[:, :1] + orders @ lattices[:, 1:])


def _nearest(positions: AnyArray, lattices: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Return the orders of the nearest lattice points, and the distances from them."""
    # a degenerate lattice, fitted to disks with wrong orders, has no inverse
    inverse = np.linalg.pinv(lattices[:, 1:])
    orders = np.rint((positions - lattices[:, :1]) @ inverse)
    orders = np.clip(orders, -9999, 9999)
    return orders, np.linalg.norm(positions - _points(orders, lattices), axis=2)


def _origins(positions: AnyArray, lattices: AnyArray) -> AnyArray:
    """Return the points of lattices near their origins that fit disks best; NaN is no disk."""
    orders = (positions - lattices[:, :1]) @ np.linalg.inv(lattices[:, 1:])
    # orders are whole numbers plus that of the origin; wrong vectors spoil those far away most
    weights = np.exp(-(orders**2).sum(axis=2, keepdims=True) / 8)
    phases = np.nansum(weights * np.exp(2j * np.pi * orders), axis=1, keepdims=True)
    origins = lattices[:, :1] + np.angle(phases) / (2 * np.pi) @ lattices[:, 1:]
    return np.asarray(origins[:, 0])


def _differences(frames: AnyArray) -> AnyArray:
    """Return the differences between all disks of each frame, shape (differences, 2)."""
    different = ~np.eye(frames.shape[1], dtype=bool)
    every: AnyArray = (frames[:, :, None] - frames[:, None])[:, different].reshape(-1, 2)
    return every[np.isfinite(every).all(axis=1)]


def _shortest_vectors(differences: AnyArray) -> AnyArray | None:
    """Return two vectors, shape (2, 2), that differences are sums of; None if there are none."""
    if not len(differences):
        return None
    # one pixel, or more on large detectors, whose lattices are larger too
    bin_size = max(1.0, float(np.abs(differences).max()) / 500)
    cells = np.rint(differences / bin_size).astype(np.int64)
    half = int(np.abs(cells).max()) + 4
    side = 2 * half + 1
    counts = np.bincount((cells + half) @ (side, 1), minlength=side**2).reshape(side, side)
    counts = ndimage.gaussian_filter(counts.astype(np.float64), 1.0, mode="constant")
    is_peak = (counts == ndimage.maximum_filter(counts, 5)) & (counts > 0.3 * counts.max())
    peaks = np.argwhere(is_peak) - half
    peaks = peaks[(peaks @ (side, 1)) > 0]  # one of each pair of opposite vectors
    peaks = peaks[np.argsort((peaks**2).sum(axis=1), kind="stable")][:20]
    blurred = ndimage.maximum_filter(counts, 3)  # sums of rounded peaks are one cell away

    def heights(vectors: AnyArray) -> AnyArray:
        return np.asarray(blurred[tuple(np.clip(vectors + half, 0, side - 1).T)])

    a, b = (peaks[k] for k in np.triu_indices(len(peaks), 1))
    pairs = np.stack([a, b], axis=1)
    lowest = np.minimum(np.minimum(heights(a), heights(b)), heights(a + b) + heights(a - b))
    lowest *= spans_plane(pairs, sine=0.3)
    if not lowest.any():
        return None
    pairs = pairs[lowest > 0.5 * lowest.max()]
    area = np.abs(np.linalg.det(pairs))
    pairs = pairs[area < 1.3 * area.min()]
    pair = pairs[(pairs**2).sum(axis=(1, 2)).argmin()]
    first, second = _refined(differences, pair * bin_size)
    if abs(first[0] * np.linalg.norm(second)) < abs(second[0] * np.linalg.norm(first)):
        first, second = second, first
    first = first * np.copysign(1, first[0])
    return np.stack([first, second * np.sign(np.linalg.det([first, second]))])


def _refined(differences: AnyArray, vectors: AnyArray) -> AnyArray:
    """Return the vectors whose sums fit the differences of low orders best."""
    for reach in (1.5, 2.5, 2.5):
        orders = np.rint(differences @ np.linalg.inv(vectors))
        distance = np.linalg.norm(differences - orders @ vectors, axis=1)
        near = distance < CATCH * np.linalg.norm(vectors, axis=1).min()
        near &= (np.linalg.norm(orders, axis=1) < reach) & orders.any(axis=1)
        fitted = np.linalg.lstsq(orders[near], differences[near])[0]
        if not spans_plane(fitted, sine=0.3):
            break
        vectors = fitted
    return vectors


def _named_like(vectors: AnyArray, model: AnyArray) -> AnyArray:
    """Return the two vectors of the same lattice that are most similar to those of a model."""
    every = _ORDERS @ vectors
    first, second = (np.linalg.norm(every - one, axis=1) for one in model)
    determinants = np.linalg.det(np.stack(np.broadcast_arrays(_ORDERS[:, None], _ORDERS), axis=-2))
    sign = np.sign(np.linalg.det(vectors) * np.linalg.det(model))
    cost = np.where(np.abs(determinants - sign) < 0.5, first[:, None] ** 2 + second**2, np.inf)
    one, other = np.unravel_index(cost.argmin(), cost.shape)
    return np.stack([every[one], every[other]])
