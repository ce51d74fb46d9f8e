"""Correct frames in a single pass: dark frame, gain, and broken pixels."""

from __future__ import annotations

from udfdask.kernels.numba_internals.compile import kernel
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
    neighbors: AnyArray,
    counts: AnyArray,
    beyond: AnyArray,
    out: AnyArray,
) -> None:
    """Write ``(raw - dark) * gain`` to `out`, shape (frames, pixels), then patch broken pixels.

    `raw` is flat memory: frames start every `frame_step` elements, and the lines of a frame, of
    `line` pixels each, every `line_step` elements. `dark` and `gain` have the shape (pixels,) and
    the dtype of `out`. Pixel ``patched[k]`` becomes the mean of the pixels
    ``neighbors[k, :counts[k]]``. Neighbors outside the tile have the indices `pixels`,
    `pixels` + 1, ...: these are the columns of `beyond`, shape (frames, m), corrected already.
    """
    pixels = out.shape[1]
    cast = out.dtype.type
    for i in range(out.shape[0]):
        frame = out[i]
        for first in range(0, pixels, line):
            start = i * frame_step + first // line * line_step
            # slices tell the compiler that all four are contiguous
            source = raw[start : start + line]
            target = frame[first : first + line]
            offset = dark[first : first + line]
            factor = gain[first : first + line]
            for p in range(line):
                target[p] = (cast(source[p]) - offset[p]) * factor[p]
        for k in range(patched.size):
            total = cast(0)
            for j in range(counts[k]):
                p = neighbors[k, j]
                total += frame[p] if p < pixels else beyond[i, p - pixels]
            frame[patched[k]] = total / cast(counts[k])
