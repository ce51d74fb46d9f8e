"""The pixels of a frame that a detector covers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from udfdask.base.types import AnyArray
from udfdask.masks.disks import circular, ring


@dataclass(frozen=True, slots=True)
class Ring:
    """A disk or a ring in a frame, around a center (y, x), in pixels.

    The outer radius is inf for all pixels of a frame outside the inner one. The inner radius is
    None for a disk, which contains its center. `stretch` is the ratio of the half axes of an
    ellipse, `stretch_angle` the direction of its long half axis, in degrees.
    """

    center: tuple[Any, Any]
    outer: Any
    inner: Any = None
    stretch: Any = 1.0
    stretch_angle: Any = 0.0

    def mask(self, sig: Sequence[int]) -> AnyArray:
        """Return a mask of its pixels in frames of shape `sig`."""
        (cy, cx), (ny, nx) = self.center, sig
        ellipse = {"stretch": self.stretch, "stretch_angle": self.stretch_angle}
        if self.inner is None:
            return circular(cx, cy, nx, ny, self.outer, **ellipse)
        return ring(cx, cy, nx, ny, self.outer, self.inner, **ellipse)


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How much of a frame a detector covers."""

    shape: str
    """What the detector is, such as "disk"."""
    covered: int | None
    """Number of pixels in the detector; None if each frame has its own center."""
    total: int
    """Number of pixels of a frame."""
    radii: Mapping[str, float] = field(default_factory=dict)
    """Radii in pixels, by the names of their parameters; the outer radius is the last one."""
    center: tuple[float, float] | None = None
    """Center (y, x) of a disk or ring in pixels, if all frames have the same."""
    stretch: float = 1.0
    """Ratio of the half axes of an ellipse."""
    is_cut: bool = False
    """Whether pixels of the detector would lie beyond the edge of the frame."""
    same_as: str = ""
    """What gives the same result if the detector covers all pixels; empty if nothing is to say."""


def measure(ring: Ring, sig: Sequence[int]) -> tuple[int, bool]:
    """Return the number of pixels in a disk or ring, and whether the edge of the frame cuts it."""
    y, x, *ellipse = map(float, (*ring.center, ring.stretch, ring.stretch_angle))
    inner = None if ring.inner is None else float(ring.inner)
    return _measured(Ring((y, x), float(ring.outer), inner, *ellipse), tuple(map(int, sig)))


# plans ask again and again for the same few detectors, and a mask takes time if frames are large
@lru_cache(maxsize=256)
def _measured(ring: Ring, sig: tuple[int, ...]) -> tuple[int, bool]:
    return int(np.count_nonzero(ring.mask(sig))), _is_cut(replace(ring, inner=None), *sig)


def _is_cut(disk: Ring, ny: int, nx: int) -> bool:
    """Return whether a disk has pixels beyond the edge of the frame; an infinite one never."""
    if math.isinf(disk.outer):
        return False
    cy, cx = disk.center
    if not (0 <= round(cx) < nx and 0 <= round(cy) < ny):
        return True  # the pixel at the center is one of them
    # a disk around a center in the frame that reaches beyond has a pixel next to the frame
    larger = replace(disk, center=(cy + 1, cx + 1)).mask((ny + 2, nx + 2))
    larger[1:-1, 1:-1] = False
    return bool(larger.any())
