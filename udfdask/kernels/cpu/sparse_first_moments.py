"""Sum and first moments of the pixels of sparse frames, with or without a mask."""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.kernels.cpu.compile import inner_kernel, summing_kernel
from udfdask.kernels.cpu.intrinsics import CACHE_LINE, PREFETCH_DISTANCE, prefetch
from udfdask.kernels.cpu.sparse_entries import Entries
from udfdask.types import AnyArray


def add_entry_first_moments(
    entries: Entries, origin: tuple[int, ...], width: int, inside: AnyArray | None, out: AnyArray
) -> None:
    """Add sum(I), sum(y * I) and sum(x * I) of each frame to `out`, shape (frames, 3), float64.

    The first pixel of the part is pixel `origin`, (y, x), of the frame; its rows have `width`
    pixels. `inside`, flat, uint8, is 1 for the pixels that count; None counts all pixels.
    """
    if not len(entries.values):
        return
    _add_moments(*entries, inside, width, *origin, out)


@inner_kernel
def _place(pixel: Any, each: float, width: float) -> Any:
    """Return row and column of a pixel; `each` is 1 / width.

    This is faster than an integer division, because several pixels are computed at once. It is
    exact: (pixel + 0.5) / width is at least 0.5 / width away from an integer, which is more than
    the rounding error for fewer than 2**50 pixels.
    """
    place = np.float64(pixel)
    y = np.floor((place + 0.5) * each)
    return y, place - y * width


@inner_kernel
def _prefetch_after(part: AnyArray) -> None:
    """Prefetch as many bytes as a part of an array has, `PREFETCH_DISTANCE` bytes later."""
    for k in range(0, len(part), CACHE_LINE // part.itemsize):
        prefetch(part, k + PREFETCH_DISTANCE // part.itemsize)


@inner_kernel
def _is_inside(inside: Any, pixel: Any) -> Any:
    """Return whether a pixel counts; no code is generated if `inside` is None."""
    if inside is None:
        return True
    return inside[pixel] != 0


@summing_kernel
def _add_moments(
    starts: AnyArray,
    pixels: AnyArray,
    values: AnyArray,
    inside: Any,
    width: int,
    top: int,
    left: int,
    out: AnyArray,
) -> None:
    """Add the moments of the pixels inside, or of all pixels if `inside` is None."""
    wide, each = np.float64(width), 1.0 / np.float64(width)
    for f in range(len(out)):
        own_pixels, own = pixels[starts[f] : starts[f + 1]], values[starts[f] : starts[f + 1]]
        if inside is None:  # otherwise the loop does more per value, and memory is fast enough
            _prefetch_after(own_pixels)
            _prefetch_after(own)
        total, along_y, along_x = 0.0, 0.0, 0.0
        for k in range(len(own)):
            if _is_inside(inside, own_pixels[k]):
                value = np.float64(own[k])
                y, x = _place(own_pixels[k], each, wide)
                total += value
                along_y += value * y
                along_x += value * x
        out[f, 0] += total
        out[f, 1] += along_y + total * top
        out[f, 2] += along_x + total * left
