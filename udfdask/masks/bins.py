"""Concentric rings with soft edges: their masks, their pixels and the angles of these.

For Fourier series along rings, each pixel is shared between some neighboring angles of a grid, with
weights that serve all orders, which are then computed from the sums at the angles. This is a
nonuniform Fourier transform (Fessler and Sutton 2003, doi:10.1109/TSP.2002.807005).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from udfdask.base.types import AnyArray
from udfdask.masks import checks
from udfdask.masks.polar import bounding_radius, check_stretch, distance

SPARSE_BELOW = 0.1
"""If the last bin covers a smaller part of the frame than this, the stack is sparse."""


def radial_bins(
    centerX: float,
    centerY: float,
    imageSizeX: int,
    imageSizeY: int,
    radius: float | None = None,
    radius_inner: float = 0,
    n_bins: int | None = None,
    normalize: bool = False,
    use_sparse: bool | None = None,
    dtype: DTypeLike | None = None,
    stretch: float = 1.0,
    stretch_angle: float = 0.0,
) -> Any:
    """Return a stack of masks: concentric rings of equal width with soft edges.

    Bin `b` has the weight ``clip(width / 2 + 0.5 - abs(d - r0), 0, 1)``, where `d` is the distance
    of a pixel from the center, ``width = (radius - radius_inner) / n_bins`` and ``r0 = radius_inner
    + (b + 1 / 2) * width``. If bins are at least one pixel wide, the sum of all bins is 1 between
    ``radius_inner + 0.5`` and ``radius - 0.5``. At a pixel less than half a pixel from the center,
    both edges of the first bin overlap: if `radius_inner` is below 0.5, it is set to ``1 -
    radius_inner`` in the first bin, before bins are normalized.

    Parameters
    ----------
    centerX, centerY, imageSizeX, imageSizeY : float, int
        As for `circular`.
    radius : float, optional
        Outer radius of the last bin, in pixels; by default, the bins cover the whole frame.
    radius_inner : float
        Inner radius of the first bin, in pixels.
    n_bins : int, optional
        Number of bins; by default ``round(radius - radius_inner)``, at least 1, so that bins are
        about one pixel wide.
    normalize : bool
        Scale each bin to a sum of 1 over the frame. A bin outside the frame stays 0.
    use_sparse : bool, optional
        Whether to return a sparse stack; by default if the last and largest bin covers less than a
        tenth of the frame.
    dtype : dtype, optional
        Dtype of the result, float64 by default.
    stretch, stretch_angle : float
        As for `circular`.

    Returns
    -------
    numpy.ndarray or sparse.COO, shape (n_bins, imageSizeY, imageSizeX)
        The bins, from the inside to the outside.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If an argument is not a number that it can be.
    ImportError
        If the stack is sparse and the package `sparse` is not installed.

    Examples
    --------
    >>> from udfdask.masks import radial_bins
    >>> bins = radial_bins(4, 4, 9, 9, radius=3, n_bins=3, use_sparse=False)
    >>> print(bins.shape, bins[:, 4, 4:8])
    (3, 9, 9) [[1.  0.5 0.  0. ]
     [0.  0.5 0.5 0. ]
     [0.  0.  0.5 0.5]]
    """
    if radius is None:
        radius = bounding_radius(centerX, centerY, imageSizeX, imageSizeY)
        if stretch != 1:
            radius = math.ceil(radius * math.sqrt(check_stretch(stretch, stretch_angle)[0]))
    r, ri = checks.radii(radius, radius_inner)
    number, sig = number_of_bins(n_bins, r, ri), (imageSizeY, imageSizeX)
    center, ellipse = (centerY, centerX), (stretch, stretch_angle)
    members = find_members(center, sig, r, ri, number, *ellipse)
    which = np.repeat(np.arange(number), np.diff(members.bounds))
    weights = members.weight
    if normalize:  # each bin here has a positive sum
        weights = weights / members.totals[which]
    if use_sparse is None:
        last = r - (r - ri) / number
        use_sparse = math.pi * (r**2 - last**2) / math.prod(sig) < SPARSE_BELOW
    weights, places = weights.astype(dtype or np.float64), (which, members.y, members.x)
    if use_sparse:
        sparse = checks.needs_sparse("a sparse stack of radial bins")
        return sparse.COO(coords=np.stack(places), data=weights, shape=(number, *sig))
    dense = np.zeros((number, *sig), weights.dtype)
    dense[places] = weights
    return dense


def number_of_bins(n_bins: Any, r: float, ri: float) -> int:
    """Return the number of bins, checked; None gives bins about one pixel wide."""
    if n_bins is None:
        return max(1, round(r - ri))
    return checks.integer("n_bins", n_bins, least=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class BinMembers:
    """The pixels of a frame, or of a part of it, in each bin of `radial_bins`, as a sparse stack.

    Bin b has the members from ``bounds[b]`` to ``bounds[b + 1]``, int64: their row `y` and column
    `x` in the frame, sorted in each bin, and their `weight`, float64.
    """

    bounds: AnyArray
    y: AnyArray
    x: AnyArray
    weight: AnyArray

    @property
    def totals(self) -> AnyArray:
        """Sum of the weights of each bin, shape (bins,)."""
        counts = np.diff(self.bounds)
        which = np.repeat(np.arange(len(counts)), counts)
        return np.bincount(which, self.weight, minlength=len(counts))

    def flat_pixels(self, origin: tuple[int, ...], row_step: int) -> AnyArray:
        """Return the flat index of each member in a window that starts at `origin`.

        `row_step` is the number of pixels from one row of the window to the next.
        """
        pixels: AnyArray = (self.y - origin[0]) * row_step + self.x - origin[1]
        return pixels

    def within(self, origin: tuple[int, ...], shape: tuple[int, ...]) -> BinMembers:
        """Return the members in a window with a shape and a first pixel `origin`, both (y, x)."""
        (oy, ox), (height, width) = origin, shape
        inside = (self.y >= oy) & (self.y < oy + height) & (self.x >= ox) & (self.x < ox + width)
        kept = np.concatenate([[0], np.cumsum(inside)])
        return BinMembers(
            bounds=kept[self.bounds], y=self.y[inside], x=self.x[inside], weight=self.weight[inside]
        )


def find_members(
    center: tuple[float, float],
    sig: tuple[int, int],
    r: float,
    ri: float,
    number: int,
    stretch: float = 1.0,
    stretch_angle: float = 0.0,
) -> BinMembers:
    """Return the members of bins of equal width between two radii, in pixels, around (y, x)."""
    (cy, cx), (ny, nx) = center, sig
    d = distance(cx, cy, nx, ny, stretch, stretch_angle)
    order = np.argsort(d, axis=None)  # the pixels of each bin are then consecutive
    ordered, width = d.ravel()[order], (r - ri) / number
    bounds, pixels, weights = [0], [], []
    for b in range(number):
        middle, reach = ri + (b + 0.5) * width, width / 2 + 0.5
        near = slice(*np.searchsorted(ordered, [middle - reach, middle + reach]))
        weight = np.clip(reach - np.abs(ordered[near] - middle), 0, 1)
        if b == 0 and ri < 0.5:  # both edges overlap at the center
            weight[ordered[near] < 0.5] = 1 - ri
        present = weight > 0
        members = order[near][present]
        by_pixel = np.argsort(members)
        pixels.append(members[by_pixel])
        weights.append(weight[present][by_pixel])
        bounds.append(bounds[-1] + len(members))
    y, x = np.divmod(np.concatenate(pixels), nx)
    return BinMembers(
        bounds=np.array(bounds, dtype=np.int64), y=y, x=x, weight=np.concatenate(weights)
    )


PER_ORDER = 4
"""Angles of the grid for each order."""

TERMS = {4: 9, 8: 15}
"""Number of angles that share a pixel, by the size of the floats. The error of a coefficient is at
most 2e-7 or 1e-12 of the sum of the weighted intensities."""


class SharedAngles(NamedTuple):
    """Weights of pixels at the angles of a grid, and the waves at these angles.

    The `weights`, shape (pixels, terms), are those at the angle `first`, int64, and the next ones
    (the grid is a circle). `waves` has the factors of the sum at each angle, shape (angles, 2 *
    orders), float64: the real and the imaginary part of an order are in adjacent columns.
    """

    first: AnyArray
    weights: AnyArray
    waves: AnyArray


def share_angles(phi: AnyArray, n_orders: int, real: np.dtype[np.floating]) -> SharedAngles:
    """Return weights of pixels at angles `phi` for the orders from 0 on, in the dtype `real`.

    If there are few orders, the weights are the waves, and each "angle" of the grid is the real or
    the imaginary part of an order.
    """
    orders, terms = np.arange(n_orders), TERMS[real.itemsize]
    if 2 * n_orders <= terms:
        exact = np.exp(1j * orders * phi[:, np.newaxis]).view(np.float64)
        return SharedAngles(np.zeros(len(phi), np.int64), exact.astype(real), np.eye(2 * n_orders))
    angles = PER_ORDER * n_orders
    step = 2 * np.pi / angles
    place = phi / step
    first = np.ceil(place - terms / 2).astype(np.int64)
    # distance of each angle from the pixel, from -1 to 1 in the window
    distance = (first[:, np.newaxis] + np.arange(terms) - place[:, np.newaxis]) / (terms / 2)
    weights = _window(distance, terms)
    # orders are divided by the Fourier transform of the window
    nodes, parts = np.polynomial.legendre.leggauss(64)
    cosines = np.cos(np.outer(orders, nodes) * (step * terms / 2))
    transform = cosines @ (parts * _window(nodes, terms)) * (terms / 2)
    waves = np.exp(1j * orders * step * np.arange(angles)[:, np.newaxis]) / transform
    return SharedAngles(first % angles, weights.astype(real), waves.view(np.float64))


def _window(distance: AnyArray, terms: int) -> AnyArray:
    """Return the weight at distances from -1 to 1.

    It is almost a Kaiser-Bessel window, which takes 15 times as long to compute (Barnett, Magland
    and af Klinteberg 2019, doi:10.1137/18M120885X).
    """
    steepness = 0.98 * np.pi * terms * (1 - 1 / PER_ORDER)
    weight: AnyArray = np.exp(steepness * (np.sqrt(np.maximum(1 - distance**2, 0)) - 1))
    return weight
