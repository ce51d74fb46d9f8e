"""Corrects frames in one walk over them."""

from __future__ import annotations

from udfdask.kernels.cpu.compile import kernel
from udfdask.types import AnyArray


@kernel
def correct_frames(
    raw: AnyArray,
    frame_step: int,
    line_step: int,
    line: int,
    dark: AnyArray,
    gain: AnyArray,
    patched: AnyArray,
    neighbours: AnyArray,
    counts: AnyArray,
    beyond: AnyArray,
    out: AnyArray,
) -> None:
    """Write ``(raw - dark) * gain`` to `out`, shape (frames, pixels), then patch pixels.

    `raw` is flat: frames lie `frame_step` elements apart, and in them lines of `line` pixels
    `line_step` apart. `dark` and `gain` have the shape (pixels,) and the dtype of `out`. Pixel
    ``patched[k]`` becomes the mean of the pixels ``neighbours[k, :counts[k]]``, of which those from
    `pixels` on stand for the columns of `beyond`, shape (frames, m), corrected already.
    """
    pixels = out.shape[1]
    cast = out.dtype.type
    for i in range(out.shape[0]):
        frame = out[i]
        for first in range(0, pixels, line):
            start = i * frame_step + first // line * line_step
            # slices tell the compiler that all of them are contiguous
            source = raw[start : start + line]
            target = frame[first : first + line]
            offset = dark[first : first + line]
            factor = gain[first : first + line]
            for p in range(line):
                target[p] = (cast(source[p]) - offset[p]) * factor[p]
        for k in range(patched.size):
            total = cast(0)
            for j in range(counts[k]):
                there = neighbours[k, j]
                total += frame[there] if there < pixels else beyond[i, there - pixels]
            frame[patched[k]] = total / cast(counts[k])
