"""Correct the sum of a tile instead of each of its frames.

Dark frame, gain map and patches are linear and equal for all frames, so the sum of the corrected
frames is the corrected sum. This needs a single pass over the raw data, and rounds only once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from udfdask.corrections.correct_tile import correct_tile
from udfdask.corrections.planes import PixelPlanes, TilePlanes
from udfdask.types import AnyArray

_EXACT = {"b": np.int64, "i": np.int64, "u": np.uint64, "f": np.float64, "c": np.complex128}


def precise(dtype: np.dtype[Any]) -> np.dtype[Any] | None:
    """Return the dtype of corrected sums of data; None if each frame must be corrected instead.

    Sums must be exact, or at least twice as precise as the data.
    """
    if dtype.kind not in _EXACT or dtype.itemsize > (8 if dtype.kind == "c" else 4):
        return None
    return np.dtype(np.complex128 if dtype.kind == "c" else np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class UncorrectedTile:
    """Raw frames in memory, with the planes that correct their sum."""

    frames: AnyArray
    """The frames, shape (frames, *sig part), in any byte order."""
    planes: TilePlanes
    """The planes that correct the part, in the dtype that `precise` returns."""
    beyond: AnyArray | None = None
    """Pixels outside the part, `planes.beyond`, of the same frames, shape (frames, m)."""

    def sum(self) -> AnyArray:
        """Return the sum of the corrected frames, shape `sig part`."""
        from udfdask.kernels.cpu.frame_sums import add_frames  # loads numba

        number, exact = len(self.frames), _EXACT[self.frames.dtype.kind]
        total = np.zeros((1, *self.frames.shape[1:]), dtype=exact)
        add_frames(self.frames, total[0])
        around = None
        if self.beyond is not None:
            around = self.beyond.sum(axis=0, keepdims=True, dtype=exact)
        planes = replace(
            self.planes,
            part_planes=_times(number, self.planes.part_planes),
            beyond_planes=_times(number, self.planes.beyond_planes),
        )
        corrected: AnyArray = correct_tile(total, planes, around)[0]
        return corrected


def _times(number: int, planes: PixelPlanes) -> PixelPlanes:
    """Return the planes that correct the sum of `number` frames."""
    dark = planes.dark * number
    dark.flags.writeable = False
    return replace(planes, dark=dark)
