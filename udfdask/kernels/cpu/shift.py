"""Shift frames by parts of a pixel, and entries of sparse chunks by pixels."""

from __future__ import annotations

from udfdask.kernels.numba_internals.compile import lean_inner_kernel, lean_kernel
from udfdask.types import AnyArray


@lean_inner_kernel
def _copy(source: AnyArray, target: AnyArray) -> None:
    """Copy contiguous pixels to the first pixels of `target`."""
    for x in range(source.size):
        target[x] = source[x]


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
        # columns `a` to `b` and lines `c` to `d` of the window are inside of the frame
        a = min(max(0, -left), w)
        b = max(a, min(w, width - left))
        c = min(max(0, -top), h)
        d = max(c, min(h, height - top))
        flat = out[i].reshape(h * w)
        if a == b or c == d:
            flat[:] = value
            continue
        flat[: c * w] = value
        flat[d * w :] = value
        start = i * frame_step + top * line_step + left
        if line_step == w:
            # one long copy, with pixels of other lines to the left and right
            _copy(raw[start + c * w + a : start + (d - 1) * w + b], flat[c * w + a :])
        else:
            for y in range(c, d):
                line = start + y * line_step
                _copy(raw[line + a : line + b], out[i, y, a:])
        for y in range(c, d):
            for x in range(a):
                out[i, y, x] = value
            for x in range(b, w):
                out[i, y, x] = value


@lean_inner_kernel
def _between_lines(
    upper: AnyArray, lower: AnyArray, has_upper: bool, has_lower: bool, below: float, out: AnyArray
) -> None:
    """Write the mean of two lines with the weights 1 - `below` and `below`.

    `out` contains the values that take the place of a line that is missing.
    """
    cast = out.dtype.type
    above = cast(1) - below
    if below == 0:
        if has_upper:
            for x in range(out.size):
                out[x] = cast(upper[x])
    elif has_upper and has_lower:
        for x in range(out.size):
            out[x] = above * cast(upper[x]) + below * cast(lower[x])
    elif has_upper:
        for x in range(out.size):
            out[x] = above * cast(upper[x]) + below * out[x]
    elif has_lower:
        for x in range(out.size):
            out[x] = above * out[x] + below * cast(lower[x])


@lean_kernel
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
        before = cast(1) - right
        n = w + step if right > 0 else w
        a = min(max(0, -left), n)
        b = max(a, min(n, width - left))
        for x in range(n):
            line[x] = fill[x % step]
        for y in range(h):
            has_upper, has_lower = 0 <= top + y < height, 0 <= top + y + 1 < height
            if not (has_upper and has_lower):
                for x in range(a, b):
                    line[x] = fill[x % step]
            start = i * frame_step + (top + y) * line_step + left
            _between_lines(
                raw[start + a : start + b],
                raw[start + line_step + a : start + line_step + b],
                has_upper,
                has_lower,
                below,
                line[a:b],
            )
            target = out[i, y]
            head = line[:w]
            if right == 0:
                for x in range(w):
                    target[x] = head[x]
                continue
            tail = line[step : w + step]
            for x in range(w):
                target[x] = before * head[x] + right * tail[x]


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
