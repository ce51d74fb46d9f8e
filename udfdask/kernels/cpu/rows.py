"""A tile as kernels read it: one run of memory, cut into rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numpy.lib.stride_tricks import as_strided

from udfdask.kernels.cpu.compile import intrinsic
from udfdask.types import AnyArray


def rows_in_memory(tile: AnyArray) -> tuple[AnyArray, int, int]:
    """Return a tile as flat memory, and the steps in it from frame to frame and from row to row.

    `tile` has the shape (frames, height, width) and is not empty; what is returned is read-only and
    of a dtype that kernels take: bool comes as uint8, half and extended precision as float64. It is
    copied only for that, and where a row of pixels is not contiguous.
    """
    if tile.dtype == np.bool_:
        tile = tile.view(np.uint8)
    elif tile.dtype.kind == "f" and tile.dtype.itemsize not in (4, 8):
        tile = tile.astype(np.float64)
    size = tile.dtype.itemsize
    frame, row, pixel = tile.strides
    steady = pixel == size or tile.shape[2] == 1
    if not (steady and tile.flags.aligned and frame >= 0 <= row and not (frame | row) % size):
        tile = np.ascontiguousarray(tile)
        frame, row, _ = tile.strides
    n, height, width = tile.shape
    length = ((n - 1) * frame + (height - 1) * row) // size + width
    flat = np.lib.stride_tricks.as_strided(tile, (length,), (size,), writeable=False)
    return flat, frame // size, row // size


def as_native(tile: AnyArray) -> tuple[AnyArray, bool | None]:
    """Return the memory of a tile as values of native byte order, and how kernels take it.

    The latter is True if kernels have to turn each value round, else None: it is a type that
    compiled code is made for. Complex tiles are copied.
    """
    if tile.dtype.isnative:
        return tile, None
    native = tile.dtype.newbyteorder("=")
    if native.kind in "iuf" and native.char not in "eg" and tile.flags.aligned:
        return tile.view(native), True
    return tile.astype(native), None


@intrinsic
def turned(context: Any, value: Any, turn: Any) -> Any:
    """Return a value with its bytes in the other order, itself if `turn` is None."""

    def same(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return values[0]

    def reverse(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        plain = values[0].type
        bits = ir.IntType(value.bitwidth)
        number = builder.bswap(builder.bitcast(values[0], bits))
        return builder.bitcast(number, plain)

    return value(value, turn), same if isinstance(turn, types.NoneType) else reverse


class Rows(NamedTuple):
    """The frames of a tile: those of frame i are ``flat[i * step : i * step + width]``.

    Slices of a contiguous 1-D array are what a compiler knows to be contiguous, also where the
    frames of a tile are parts of larger ones.
    """

    flat: AnyArray
    """All memory from the first value to the last, read-only."""
    frames: int
    """Number of frames."""
    step: int
    """Values from one frame to the next."""
    width: int
    """Values in a frame."""
    turn: bool | None
    """True if kernels have to turn the bytes of each value round, else None."""

    def as_real(self) -> Rows:
        """Return complex values as pairs of real ones, real ones as they are."""
        if self.flat.dtype.kind != "c":
            return self
        return Rows(as_real(self.flat), self.frames, 2 * self.step, 2 * self.width, self.turn)

    def cut(self, most: int) -> list[Rows]:
        """Return the frames in groups of so many at most."""
        if self.frames <= most:
            return [self]
        groups = []
        for start in range(0, self.frames, most):
            count = min(most, self.frames - start)
            end = (start + count - 1) * self.step + self.width
            flat = self.flat[start * self.step : end]
            groups.append(Rows(flat, count, self.step, self.width, self.turn))
        return groups


def as_rows(tile: AnyArray) -> Rows:
    """Return a tile of shape (n, *part), not empty; copied only if its pixels are no neighbours.

    Truth values become uint8, float16 becomes float32.
    """
    tile, turn = as_native(tile)
    if tile.dtype == np.float16:
        tile = tile.astype(np.float32)
    if not tile.flags.aligned:
        tile = tile.copy()
    if tile.dtype.kind == "b":
        tile = tile.view(np.uint8)
    count = len(tile)
    width = tile.size // count
    step, rest = divmod(tile.strides[0], tile.itemsize)
    if not tile.flags.c_contiguous and not rest and step >= 0 and tile[0].flags.c_contiguous:
        size = (count - 1) * step + width
        # no array of NumPy's own ends in the middle of a row
        flat = as_strided(tile, shape=(size,), strides=(tile.itemsize,), writeable=False)
        return Rows(flat, count, step, width, turn)
    flat = np.ascontiguousarray(tile).reshape(-1)
    # an array that may be written to is another type to numba, and compiled for again
    flat.flags.writeable = False
    return Rows(flat, count, width, width, turn)


def as_real(array: AnyArray) -> AnyArray:
    """Return a contiguous array as a 1-D one of real numbers, complex ones as pairs; no copy."""
    flat: AnyArray = array.reshape(-1)
    return flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat


WIDER: dict[str, np.dtype[Any]] = {
    "u1": np.dtype(np.uint32),
    "u2": np.dtype(np.uint32),
    "u4": np.dtype(np.uint64),
    "u8": np.dtype(np.uint64),
    "i1": np.dtype(np.int32),
    "i2": np.dtype(np.int32),
    "i4": np.dtype(np.int64),
    "i8": np.dtype(np.int64),
    "b1": np.dtype(np.uint32),
    "f2": np.dtype(np.float64),
    "f4": np.dtype(np.float64),
    "f8": np.dtype(np.float64),
    "c8": np.dtype(np.complex128),
    "c16": np.dtype(np.complex128),
}
"""The dtypes that `as_rows` takes, and what `MOST` values of each are added up in.

For integers of up to 16 bits it is no wider than is exact: a register holds more such sums."""

MOST = 1 << 16
"""Values that may be added up in a dtype of `WIDER`."""


def wider(dtype: np.dtype[Any]) -> np.dtype[Any] | None:
    """Return what values of a dtype are added up in, None if kernels do not know it."""
    return WIDER.get(f"{dtype.kind}{dtype.itemsize}")
