"""The pixels of a frame that a detector covers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from udfdask.masks.disks import circular, ring
from udfdask.types import AnyArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Ring:
    """A disk or a ring in a frame, in pixels."""

    center: tuple[Any, Any]
    """Center (y, x)."""
    outer: Any
    """Outer radius; inf for all pixels of a frame outside the inner one."""
    inner: Any = None
    """Inner radius; None for a disk, which contains its center."""
    stretch: Any = 1.0
    """Ratio of the half axes of an ellipse."""
    stretch_angle: Any = 0.0
    """Direction of its long half axis, in degrees."""

    def mask(self, sig: Sequence[int]) -> AnyArray:
        """Return a mask of its pixels in frames of shape `sig`."""
        (cy, cx), (ny, nx) = self.center, sig
        ellipse = {"stretch": self.stretch, "stretch_angle": self.stretch_angle}
        if self.inner is None:
            return circular(cx, cy, nx, ny, self.outer, **ellipse)
        return ring(cx, cy, nx, ny, self.outer, self.inner, **ellipse)


@dataclass(frozen=True, slots=True)
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


def coverage_of_ring(
    shape: str,
    center: tuple[float, float] | None,
    sig: Sequence[int],
    radii: Mapping[str, float],
    *,
    stretch: float = 1.0,
    stretch_angle: float = 0.0,
    same_as: str = "",
) -> Coverage:
    """Return the coverage of a disk, which has one radius, or of a ring, which has two.

    `center` is (y, x) in pixels; None if each frame has its own. `radii` has the outer one last.
    """
    *inner, outer = map(float, radii.values())
    covered, is_cut = None, False
    if center is not None:
        one = Ring(
            center=(float(center[0]), float(center[1])),
            outer=outer,
            inner=inner[0] if inner else None,
            stretch=float(stretch),
            stretch_angle=float(stretch_angle),
        )
        covered, is_cut = _measured(one, tuple(map(int, sig)))
    return Coverage(
        shape, covered, math.prod(sig), dict(radii), center, float(stretch), is_cut, same_as
    )


# plans ask again and again for the same few detectors, and a mask takes time if frames are large
@lru_cache(maxsize=256)
def _measured(one: Ring, sig: tuple[int, ...]) -> tuple[int, bool]:
    """Return the number of pixels in a ring, and whether it is cut by the edge of the frame."""
    return int(np.count_nonzero(one.mask(sig))), _is_cut(replace(one, inner=None), *sig)


def _is_cut(disk: Ring, ny: int, nx: int) -> bool:
    """Return whether a disk has pixels beyond the edge of the frame; an infinite one never."""
    if math.isinf(disk.outer):
        return False
    cy, cx = disk.center
    if not (0 <= round(cx) < nx and 0 <= round(cy) < ny):
        return True  # the pixel at the center is one of them
    # a disk around a center in the frame that reaches beyond has a pixel next to the frame
    lines = (
        ((cy + 1, cx + 1), (1, nx + 2)),
        ((cy - ny, cx + 1), (1, nx + 2)),
        ((cy, cx + 1), (ny, 1)),
        ((cy, cx - nx), (ny, 1)),
    )
    return any(replace(disk, center=center).mask(line).any() for center, line in lines)
