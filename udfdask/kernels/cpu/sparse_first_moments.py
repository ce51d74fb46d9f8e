"""Sum and first moments of the pixels of sparse frames, within a mask or all of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.kernels.cpu.compile import inner_kernel, summing_kernel
from udfdask.kernels.cpu.intrinsics import AHEAD, LINE, prefetch
from udfdask.kernels.cpu.sparse_entries import Entries
from udfdask.types import AnyArray


def add_entry_centres(
    entries: Entries, origin: tuple[int, ...], width: int, inside: AnyArray | None, out: AnyArray
) -> None:
    """Add sum(I), sum(y * I) and sum(x * I) of each frame to `out`, shape (frames, 3), float64.

    The first pixel of the part is pixel `origin`, (y, x), of the frame, its rows have `width`
    pixels. `inside` is flat, uint8; what lies outside is not read. None takes all pixels.
    """
    if not len(entries.values):
        return
    _add_moments(*entries, inside, width, *origin, out)


@inner_kernel
def _place(pixel: Any, each: float, width: float) -> Any:
    """Return row and column of a pixel; `each` is one over the width of a row.

    A whole number and a half divided by another is never nearer to a whole number than half of
    that part, which rounding cannot bridge for fewer than 2**50 pixels. It is faster than a
    division of integers, and done for several pixels at once.
    """
    place = np.float64(pixel)
    y = np.floor((place + 0.5) * each)
    return y, place - y * width


@inner_kernel
def _ask_ahead(part: AnyArray) -> None:
    """Ask for as many bytes as a part of an array has, further on.

    It is for loops that wait for memory; one that looks up where a pixel lies has enough to do.
    """
    for k in range(0, len(part), LINE // part.itemsize):
        prefetch(part, k + AHEAD // part.itemsize)


@inner_kernel
def _is_inside(inside: Any, pixel: Any) -> Any:
    """Return whether a pixel counts; compiled code does not look if `inside` is None."""
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
    """Add the moments of the pixels inside, of all pixels if `inside` is None."""
    wide, each = np.float64(width), 1.0 / np.float64(width)
    for f in range(len(out)):
        here, some = pixels[starts[f] : starts[f + 1]], values[starts[f] : starts[f + 1]]
        if inside is None:
            _ask_ahead(here)
            _ask_ahead(some)
        total, along_y, along_x = 0.0, 0.0, 0.0
        for k in range(len(some)):
            if _is_inside(inside, here[k]):
                value = np.float64(some[k])
                y, x = _place(here[k], each, wide)
                total += value
                along_y += value * y
                along_x += value * x
        out[f, 0] += total
        out[f, 1] += along_y + total * top
        out[f, 2] += along_x + total * left
