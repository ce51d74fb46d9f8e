"""Make concentric rings with soft edges whose sum is one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from operator import index
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.masks import checks
from udfdask.masks.ellipses import check_stretch
from udfdask.masks.polar import bounding_radius, distance
from udfdask.types import AnyArray

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

    Bin `b` has the weight ``clip(width / 2 + 0.5 - abs(d - r0), 0, 1)``, where `d` is the
    distance of a pixel from the center, ``width = (radius - radius_inner) / n_bins`` and
    ``r0 = radius_inner + (b + 1 / 2) * width``. If bins are at least one pixel wide, the sum of
    all bins is 1 between ``radius_inner + 0.5`` and ``radius - 0.5``.

    Parameters
    ----------
    centerX, centerY : float
        Center, in pixels; it can lie between pixels or outside the frame.
    imageSizeX, imageSizeY : int
        Size of the frame, in pixels.
    radius : float, optional
        Outer radius of the last bin, in pixels; by default `bounding_radius`, times
        ``sqrt(stretch)``, so that the bins cover the whole frame.
    radius_inner : float
        Inner radius of the first bin, in pixels.
    n_bins : int, optional
        Number of bins; by default ``round(radius - radius_inner)``, at least 1, so that bins are
        about one pixel wide.
    normalize : bool
        Scale each bin to a sum of 1 over the frame. A bin outside the frame stays 0.
    use_sparse : bool, optional
        Whether to return a sparse stack. By default, the stack is sparse if the last and largest
        bin covers less than a tenth of the frame.
    dtype : dtype, optional
        Dtype of the result, float64 by default.
    stretch : float
        Ratio of the long to the short half axis of elliptical bins, at least 1. A radius is the
        geometric mean of the half axes, and `d` is the distance in the coordinates in which the
        bins are round.
    stretch_angle : float
        Direction of the long half axis, in degrees from +x toward +y, which points down.

    Returns
    -------
    numpy.ndarray or sparse.COO, shape (n_bins, imageSizeY, imageSizeX)
        The bins, from the inside to the outside.

    Raises
    ------
    ArgumentTypeError
        If a size or `n_bins` is not an integer, or another argument is not a number.
    ArgumentValueError
        If a size or `n_bins` is not positive, a radius is negative, `radius_inner` is not smaller
        than `radius`, `stretch` is below 1, or a number is not finite.
    ImportError
        If the stack is sparse and the package `sparse` is not installed.

    Notes
    -----
    At a pixel less than half a pixel from the center, the formula would give less than 1, because
    both edges of the first bin overlap there. If `radius_inner` is below 0.5, this pixel is set to
    ``1 - radius_inner`` in the first bin, before bins are normalized. If the center lies between
    pixels, there is no such pixel, and the bins are as symmetric as the frame.

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
    number = number_of_bins(n_bins, r, ri)
    width = (r - ri) / number
    d = distance(centerX, centerY, imageSizeX, imageSizeY, stretch, stretch_angle)
    if use_sparse is None:
        use_sparse = math.pi * (r**2 - (r - width) ** 2) / d.size < SPARSE_BELOW
    kind = np.dtype(np.float64 if dtype is None else dtype)
    sparse = checks.needs_sparse("a sparse stack of radial bins") if use_sparse else None
    dense = np.zeros((number, d.size if sparse is None else 0), dtype=kind)
    parts: list[tuple[AnyArray, AnyArray]] = []
    for b, (pixels, relative) in enumerate(bin_members(d, r, ri, number)):
        total = relative.sum() if normalize else 0
        weight = relative / total if total > 0 else relative
        if sparse is None:
            dense[b, pixels] = weight
        else:
            parts.append((pixels, weight.astype(kind)))
    if sparse is None:
        return dense.reshape(number, *d.shape)
    which = np.repeat(np.arange(number), [len(pixels) for pixels, _ in parts])
    place = np.unravel_index(np.concatenate([pixels for pixels, _ in parts]), d.shape)
    return sparse.COO(
        coords=np.stack([which, *place]),
        data=np.concatenate([weight for _, weight in parts]),
        shape=(number, *d.shape),
        prune=True,  # pixels exactly on the edge of a bin have the weight 0
    )


def bin_members(
    d: AnyArray, r: float, ri: float, number: int
) -> Iterator[tuple[AnyArray, AnyArray]]:
    """Yield the pixels of each bin between two radii, and their weights.

    Pixels are flat indices in `d` (the distance of each pixel from the center), not sorted.
    """
    width = (r - ri) / number
    order = np.argsort(d, axis=None)  # the pixels of each bin are then consecutive
    ordered = d.ravel()[order]
    for b in range(number):
        middle, reach = ri + (b + 0.5) * width, width / 2 + 0.5
        stretch = slice(*np.searchsorted(ordered, [middle - reach, middle + reach]))
        pixels, near = order[stretch], ordered[stretch]
        weight = bin_weight(near, middle, width)
        if b == 0:
            patch_center(weight, near, ri)
        yield pixels, weight


def bin_weight(d: AnyArray, middle: float, width: float) -> AnyArray:
    """Return the weight of pixels at distances `d` in a ring with a middle radius and a width."""
    return np.clip(width / 2 + 0.5 - np.abs(d - middle), 0, 1)


def patch_center(weight: AnyArray, d: AnyArray, inner: float) -> AnyArray:
    """Set the weight of the center pixel of a ring, if there is such a pixel; return the ring.

    At most one pixel is closer to the center than half a pixel.
    """
    if inner < 0.5:
        weight[d < 0.5] = 1 - inner
    return weight


def number_of_bins(n_bins: Any, r: float, ri: float) -> int:
    """Return the number of bins, checked; None gives bins about one pixel wide."""
    if n_bins is None:
        return max(1, round(r - ri))
    try:
        number = index(n_bins)
    except TypeError:
        raise ArgumentTypeError(f"n_bins must be an integer, not {n_bins!r}") from None
    if number < 1:
        raise ArgumentValueError(f"n_bins must be at least 1, not {number}")
    return number
