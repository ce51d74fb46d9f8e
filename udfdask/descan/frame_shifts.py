"""Where the pixels of shifted tiles come from: geometry alone, no pixels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from udfdask.errors import UDFError
from udfdask.geometry.slices import Slice
from udfdask.types import AnyArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TileShifts:
    """How a tile is made from a window of the frames around it."""

    first: AnyArray
    """Where the first pixel of the tile is in the window, int64, shape (frames, sig dims). It can
    be outside of the window, where all pixels have the value `fill`."""
    parts: AnyArray | None
    """Parts of a pixel to add, float64, shape (frames, sig dims), 0 <= part < 1; None for whole
    pixels."""
    shape: tuple[int, ...]
    """Shape of the tile in the signal, in pixels."""
    fill: Any
    """Value of the pixels that come from outside of the frame."""

    def of_rows(self, start: int, stop: int) -> TileShifts:
        """Return the same for some frames of the tile."""
        parts = None if self.parts is None else self.parts[start:stop]
        return replace(self, first=self.first[start:stop], parts=parts)


class FrameShifts:
    """The shifts of the selected frames of a chunk.

    Parameters
    ----------
    shifts : array of real numbers, shape (frames, sig dims)
        The shifts in pixels. A frame whose shift contains NaN becomes empty.
    sig : tuple of int
        Shape of a frame.
    subpixel : bool
        Whether frames are shifted by parts of a pixel.
    fill : number
        Value of the pixels that come from outside of the frame.
    """

    def __init__(
        self, shifts: AnyArray, sig: tuple[int, ...], *, subpixel: bool, fill: Any
    ) -> None:
        values = np.asarray(shifts, dtype=np.float64)
        if np.isinf(values).any():
            raise UDFError(
                "descan has an infinite shift: make it NaN, or leave the frame out with roi="
            )
        # No pixel of the frame is left after a shift by `most`; larger ones would not fit int64.
        most = np.array(sig, dtype=np.float64) + 1
        values = np.clip(values, -most, most)
        values[np.isnan(values).any(axis=1)] = most
        whole = np.floor(values) if subpixel else np.rint(values)
        self._parts = values - whole if subpixel else None
        if self._parts is not None:
            # 1 in single precision: the weight of the other pixel, which can be NaN, is 0
            carried = self._parts.astype(np.float32) == 1
            whole[carried] += 1
            self._parts[carried] = 0
        self.interpolates = subpixel
        """Whether frames are shifted by parts of a pixel."""
        self.whole = whole.astype(np.int64)
        """The shifts by whole pixels, int64, shape (frames, sig dims)."""
        self._sig = np.array(sig, dtype=np.int64)
        self._fill = fill
        # One window for all tiles of a part: it can be larger than a tile needs, which costs
        # little, and takes no time for each tile. Empty frames need no window.
        beyond = (self.whole >= self._sig) | (self.whole + subpixel <= -self._sig)
        seen = ~beyond.any(axis=1)
        some = self.whole[seen] if seen.any() else np.zeros((1, len(sig)), dtype=np.int64)
        self._least, self._most = some.min(axis=0), some.max(axis=0) + subpixel

    def of_part(
        self, part: Slice, *, whole_window: bool = False
    ) -> tuple[tuple[slice, ...], TileShifts]:
        """Return the window of the frames that a part is made from, and how it is made.

        The tile is the signal part `part` of all shifted frames. The window is the same for all of
        them, and lies in the frame. With `whole_window`, it is the full frame.
        """
        shape, origin = tuple(part.shape), np.array(part.origin, dtype=np.int64)
        low, high = np.zeros_like(self._sig), self._sig
        if not whole_window:
            low = np.clip(origin + self._least, 0, self._sig)
            high = np.clip(origin + shape + self._most, low, self._sig)
        window = tuple(slice(a, b) for a, b in zip(low.tolist(), high.tolist(), strict=True))
        first = self.whole + (origin - low)
        return window, TileShifts(first=first, parts=self._parts, shape=shape, fill=self._fill)
