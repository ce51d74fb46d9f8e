"""Shift sparse frames by whole pixels: move their entries."""

from __future__ import annotations

from udfdask.kernels.cpu.compile import lean_kernel
from udfdask.types import AnyArray


@lean_kernel
def move_entries(
    values: AnyArray,
    pixels: AnyArray,
    starts: AnyArray,
    first: AnyArray,
    height: int,
    width: int,
    out_values: AnyArray,
    out_pixels: AnyArray,
    out_starts: AnyArray,
) -> None:
    """Write the entries of shifted frames, which are rows of a CSR matrix, in the same order.

    Pixel (y, x) of a shifted frame is pixel (y, x) + ``first[i]`` of frame i, of `height` lines
    with `width` pixels. The outputs have room for all entries; those that leave the frame are
    dropped.
    """
    count = 0
    for i in range(first.shape[0]):
        out_starts[i] = count
        top, left = first[i, 0], first[i, 1]
        y, line = 0, 0  # `line` is the first pixel of line y
        for e in range(starts[i], starts[i + 1]):
            p = pixels[e]
            # entries are usually sorted, and a division takes longer than all the rest
            if p < line:
                y = p // width
                line = y * width
            while p >= line + width:
                y += 1
                line += width
            to_y, to_x = y - top, p - line - left
            if 0 <= to_y < height and 0 <= to_x < width:
                out_values[count] = values[e]
                out_pixels[count] = to_y * width + to_x
                count += 1
    out_starts[first.shape[0]] = count
