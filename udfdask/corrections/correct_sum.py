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
from udfdask.errors import ArgumentValueError, NotAvailableError, UDFError
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
    """Raw frames in memory, with the planes that correct their sum.

    A UDF that promises `only_sums_frames` gets it in place of a corrected tile. It has what the
    promise allows: `sum(axis=0)`, `shape`, `dtype` and a length.
    """

    frames: AnyArray
    """The frames, shape (frames, *sig part), in any byte order."""
    planes: TilePlanes
    """The planes that correct the part, in the dtype that `precise` returns."""
    beyond: AnyArray | None = None
    """Pixels outside the part, `planes.beyond`, of the same frames, shape (frames, m)."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the tile, (frames, *sig part)."""
        return tuple(self.frames.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the sum."""
        dtype = precise(self.frames.dtype)
        assert dtype is not None
        return dtype

    def __len__(self) -> int:
        return len(self.frames)

    def sum(self, axis: int | None = None, dtype: Any = None, out: None = None) -> AnyArray:
        """Return the sum of the corrected frames, shape `sig part`; `axis` must be 0."""
        from udfdask.kernels.cpu.tile_sums import add_frames  # loads numba

        if axis != 0 or out is not None:
            raise ArgumentValueError(_ONLY.format(f"sum(axis={axis}, out={out})"))
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
        return corrected if dtype is None else corrected.astype(dtype)

    def __array__(self, *args: Any, **kwargs: Any) -> AnyArray:
        raise UDFError(_ONLY.format("an array"))

    def __getattr__(self, name: str) -> Any:
        raise NotAvailableError(_ONLY.format(name))


_ONLY = (
    "a UDF that promises only_sums_frames may use tile.sum(axis=0), tile.shape, tile.dtype and "
    "len(tile) in process_tile, but it asked for {}: leave the promise out"
)


def _times(number: int, planes: PixelPlanes) -> PixelPlanes:
    """Return the planes that correct the sum of `number` frames."""
    dark = planes.dark * number
    dark.flags.writeable = False
    return replace(planes, dark=dark)
