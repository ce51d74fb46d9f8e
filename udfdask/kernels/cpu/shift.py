"""Shift frames: by whole pixels in one copy, or by parts of a pixel with linear interpolation."""

from __future__ import annotations

from udfdask.kernels.cpu.compile import kernel, lean_kernel
from udfdask.types import AnyArray


@lean_kernel
def copy_shifted(
    raw: AnyArray,
    frame_step: int,
    line_step: int,
    height: int,
    width: int,
    first: AnyArray,
    fill: AnyArray,
    out: AnyArray,
) -> None:
    """Write windows of frames to `out`, shape (frames, h, w): the first pixel at `first`, (y, x).

    `raw` is flat memory: frames start every `frame_step` elements, and their `height` lines of
    `width` contiguous pixels every `line_step` elements. Pixels outside of the frame become
    ``fill[0]``.
    """
    frames, h, w = out.shape
    value = fill[0]
    for i in range(frames):
        top, left = first[i, 0], first[i, 1]
        # columns `a` to `b` of the window are inside of the frame
        a = min(max(0, -left), w)
        b = max(a, min(w, width - left))
        for y in range(h):
            target = out[i, y]
            if top + y < 0 or top + y >= height:
                for x in range(w):
                    target[x] = value
                continue
            start = i * frame_step + (top + y) * line_step + left
            for x in range(a):
                target[x] = value
            # slices tell the compiler that both are contiguous
            source = raw[start + a : start + b]
            inside = target[a:b]
            for x in range(b - a):
                inside[x] = source[x]
            for x in range(b, w):
                target[x] = value


@kernel
def interpolate_shifted(
    raw: AnyArray,
    frame_step: int,
    line_step: int,
    height: int,
    width: int,
    first: AnyArray,
    parts: AnyArray,
    fill: AnyArray,
    line: AnyArray,
    out: AnyArray,
) -> None:
    """Do the same for windows that start `parts` of a pixel after `first`, shape (frames, 2).

    Complex pixels are `fill.size` = 2 neighboring numbers. Then `width`, `line_step`, `frame_step`
    and the last axis of `out` count numbers; `first` and `parts` count pixels. `line` is memory
    for a line of `out` and one more pixel.

    A pixel gets no share of a neighbor with weight 0, which can be NaN or infinite.
    """
    frames, h, w = out.shape
    step = fill.size
    cast = out.dtype.type
    for i in range(frames):
        top, left = first[i, 0], first[i, 1] * step
        below, right = cast(parts[i, 0]), cast(parts[i, 1])
        above, before = cast(1) - below, cast(1) - right
        n = w + step if right > 0 else w
        a = min(max(0, -left), n)
        b = max(a, min(n, width - left))
        for y in range(h):
            target = out[i, y]
            upper, lower = top + y, top + y + 1
            has_upper = 0 <= upper < height
            has_lower = below > 0 and 0 <= lower < height
            for x in range(n):
                line[x] = fill[x % step]
            inside = line[a:b]
            start = i * frame_step + upper * line_step + left
            if has_upper and has_lower:
                source = raw[start + a : start + b]
                next_one = raw[start + line_step + a : start + line_step + b]
                for x in range(b - a):
                    inside[x] = above * cast(source[x]) + below * cast(next_one[x])
            elif has_upper and below > 0:
                source = raw[start + a : start + b]
                for x in range(b - a):
                    inside[x] = above * cast(source[x]) + below * inside[x]
            elif has_upper:
                source = raw[start + a : start + b]
                for x in range(b - a):
                    inside[x] = cast(source[x])
            elif has_lower:
                source = raw[start + line_step + a : start + line_step + b]
                for x in range(b - a):
                    inside[x] = above * inside[x] + below * cast(source[x])
            if right > 0:
                head = line[:w]
                tail = line[step : w + step]
                for x in range(w):
                    target[x] = before * head[x] + right * tail[x]
            else:
                for x in range(w):
                    target[x] = line[x]
