"""Convert tiles to the form that kernels read: flat memory, and the step between rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils as untyped_cgutils
from numba.np import arrayobj
from numpy.lib.stride_tricks import as_strided

from udfdask.base.types import AnyArray
from udfdask.kernels.numba_internals.compile import intrinsic

make_array: Any = arrayobj.make_array
cgutils: Any = untyped_cgutils
"""Builders of LLVM code, of which numba has no types."""


def rows_in_memory(tile: AnyArray) -> tuple[AnyArray, int, int]:
    """Return a tile as flat memory, with the steps between frames and between rows of pixels.

    `tile` has the shape (frames, height, width) and is not empty. The memory is read-only, and has
    a dtype that kernels support: bool becomes uint8, half and extended precision float64. It is
    only copied to convert the dtype, or if rows of pixels are not contiguous.
    """
    if tile.dtype == np.bool_:
        tile = tile.view(np.uint8)
    elif tile.dtype.kind == "f" and tile.dtype.itemsize not in (4, 8):
        tile = tile.astype(np.float64)
    size = tile.dtype.itemsize
    frame, row, pixel = tile.strides
    contiguous = pixel == size or tile.shape[2] == 1
    if not (contiguous and tile.flags.aligned and frame >= 0 <= row and not (frame | row) % size):
        tile = np.ascontiguousarray(tile)
        # an axis of length 1 keeps any stride, also a negative one
        row = tile.shape[2] * size
        frame = tile.shape[1] * row
    n, height, width = tile.shape
    length = ((n - 1) * frame + (height - 1) * row) // size + width
    return as_strided(tile, (length,), (size,), writeable=False), frame // size, row // size


def as_native(tile: AnyArray) -> tuple[AnyArray, bool | None]:
    """Return a tile with a dtype of native byte order, and whether kernels must swap its bytes.

    The second value is True or None: None has a type of its own, for which numba compiles code that
    does not swap. Complex numbers of the other byte order are converted here.
    """
    if tile.dtype.isnative:
        return tile, None
    native = tile.dtype.newbyteorder("=")
    if native.kind in "iuf" and native.char not in "eg" and tile.flags.aligned:
        return tile.view(native), True
    return tile.astype(native), None


@intrinsic
def swapped(context: Any, value: Any, swap: Any) -> Any:
    """Return a value with its bytes swapped; return the value itself if `swap` is None."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return generate_swapped(builder, values[0], value, swap)

    return value(value, swap), generate


def generate_swapped(builder: Any, value: Any, number: Any, swap: Any) -> Any:
    """Generate the code of `swapped`."""
    if isinstance(swap, types.NoneType):
        return value
    plain = builder.bitcast(value, ir.IntType(number.bitwidth))
    return builder.bitcast(builder.bswap(plain), value.type)


class Rows(NamedTuple):
    """The frames of a tile as flat memory: frame i is ``flat[i * step : i * step + width]``.

    `flat` is read-only, `swap` that of `swapped`. The compiler knows that slices of a contiguous
    1-D array are contiguous, also if the frames of the tile are parts of larger frames.
    """

    flat: AnyArray
    frames: int
    step: int
    width: int
    swap: bool | None

    def as_real(self) -> Rows:
        """Return complex values as pairs of real values."""
        if self.flat.dtype.kind != "c":
            return self
        return Rows(as_real(self.flat), self.frames, 2 * self.step, 2 * self.width, self.swap)

    def cut(self, most: int) -> list[Rows]:
        """Return the frames in groups of at most `most` frames."""
        if self.frames <= most:
            return [self]
        groups = []
        for start in range(0, self.frames, most):
            count = min(most, self.frames - start)
            end = (start + count - 1) * self.step + self.width
            flat = self.flat[start * self.step : end]
            groups.append(Rows(flat, count, self.step, self.width, self.swap))
        return groups


def as_rows(tile: AnyArray) -> Rows:
    """Return a tile of shape (n, *part), not empty, as rows; bool becomes uint8, float16 float32.

    The tile is only copied if the pixels of a frame are not contiguous, and to convert float16.
    """
    tile, swap = as_native(tile)
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
        # reshape cannot make this view, which ends in the middle of a row
        flat = as_strided(tile, shape=(size,), strides=(tile.itemsize,), writeable=False)
        return Rows(flat, count, step, width, swap)
    flat = np.ascontiguousarray(tile).reshape(-1)
    # numba would compile again for writable arrays, which are another type
    flat.flags.writeable = False
    return Rows(flat, count, width, width, swap)


def as_real(array: AnyArray) -> AnyArray:
    """Return a contiguous array as a 1-D view of real numbers; complex numbers become pairs."""
    flat: AnyArray = array.reshape(-1)
    return flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat


MOST = 1 << 16
"""Largest number of values that are added up in the dtype that `wider` returns."""


def wider(dtype: np.dtype[Any]) -> np.dtype[Any] | None:
    """Return the dtype for sums of values of a dtype, None if kernels do not support it.

    For integers of up to 16 bits, these sums only have 32 bits: a vector register holds more.
    """
    if dtype.kind in "biu":
        return np.dtype(f"{'i' if dtype.kind == 'i' else 'u'}{4 if dtype.itemsize <= 2 else 8}")
    if dtype.kind == "f" and dtype.itemsize <= 8:
        return np.dtype(np.float64)
    return np.dtype(np.complex128) if dtype.kind == "c" and dtype.itemsize <= 16 else None
