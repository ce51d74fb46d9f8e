"""Store the pixels of radial bins and their weights, bin by bin, and cut them to tiles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from udfdask.masks.bins import bin_members
from udfdask.masks.polar import distance
from udfdask.types import AnyArray


@dataclass(frozen=True, slots=True, kw_only=True)
class BinMembers:
    """The pixels of a frame, or of a part of it, in each bin of `radial_bins`.

    It contains the same data as a sparse stack, but does not need the package `sparse`.
    """

    bounds: AnyArray
    """Index of the first member of each bin, and the number of members; int64, (bins + 1,)."""
    y: AnyArray
    """Row of each member in the frame, in pixels; sorted in each bin."""
    x: AnyArray
    """Column of each member in the frame, in pixels."""
    weight: AnyArray
    """Weight of each member, float64."""

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
            bounds=kept[self.bounds],
            y=self.y[inside],
            x=self.x[inside],
            weight=self.weight[inside],
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
    bounds, pixels, weights = [0], [], []
    d = distance(cx, cy, nx, ny, stretch, stretch_angle)
    for members, weight in bin_members(d, r, ri, number):
        present = weight > 0
        order = np.argsort(members[present])
        pixels.append(members[present][order])
        weights.append(weight[present][order])
        bounds.append(bounds[-1] + len(order))
    y, x = np.divmod(np.concatenate(pixels), nx)
    return BinMembers(
        bounds=np.array(bounds, dtype=np.int64), y=y, x=x, weight=np.concatenate(weights)
    )
