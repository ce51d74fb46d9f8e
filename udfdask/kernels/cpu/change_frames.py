"""Correct frames, shift them, by parts of a pixel too, and cut windows, in a single pass each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from udfdask.backends.backend import locked
from udfdask.base.types import AnyArray
from udfdask.kernels.cpu.sparse_sums import Entries
from udfdask.kernels.numba_internals.compile import kernel, lean_inner_kernel, lean_kernel


@lean_inner_kernel
def _copy(source: AnyArray, target: AnyArray) -> None:
    for x in range(source.size):
        target[x] = source[x]


@lean_kernel
def copy_shifted(source: Any, first: AnyArray, fill: AnyArray, out: AnyArray) -> None:
    """Write windows of frames to `out`, shape (windows, h, w): the first pixel at `first`, (y, x).

    `source` is flat memory, steps between frames and between contiguous lines, height, width and
    the number of windows of each frame. Pixels outside of the frame become ``fill[0]``.
    """
    raw, frame_step, line_step, height, width, each = source
    windows, h, w = out.shape
    value = fill[0]
    for i in range(windows):
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
        start = i // each * frame_step + top * line_step + left
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
    """Write the mean of two lines; `out` holds the values that replace a missing one."""
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
    source: Any, first: AnyArray, parts: AnyArray, fill: AnyArray, line: AnyArray, out: AnyArray
) -> None:
    """Do the same for windows that start `parts` of a pixel after `first`, shape (frames, 2).

    Complex pixels are `fill.size` = 2 neighboring numbers: all but `first` and `parts` count those.
    `line` is memory for a line of `out` and one more pixel. A pixel gets no share of a neighbor
    with weight 0, which can be NaN or infinite.
    """
    raw, frame_step, line_step, height, width = source
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


def moved_entries(
    entries: Entries,
    shifts: AnyArray,
    origin: Sequence[int],
    sizes: Sequence[int],
    sig: Sequence[int],
) -> Entries:
    """Move the entries of each frame by minus its shift; return them as entries of full frames.

    `shifts` is int64, shape (frames, sig dims). The entries are those of a part of the signal, from
    pixel `origin` on, of the shape `sizes`. Entries that leave the frame, shape `sig`, are dropped.
    """
    starts, pixels, values = entries
    kept = np.empty_like(starts), np.empty_like(pixels), np.empty_like(values)
    where = tuple(np.array(each, np.int64) for each in (origin, sizes, sig))
    n = _move(tuple(entries), np.ascontiguousarray(shifts), where, kept)
    return Entries(locked(kept[0]), locked(kept[1][:n]), locked(kept[2][:n]))


@lean_kernel
def _move(entries: Any, shifts: AnyArray, where: Any, kept: Any) -> int:
    starts, pixels, values = entries
    origin, sizes, sig = where
    new_starts, new_pixels, new_values = kept
    n, last = 0, len(sizes) - 1
    width = sizes[last]
    for f in range(len(starts) - 1):
        new_starts[f] = n
        left = origin[last] - shifts[f, last]
        line, target, inside = -width, 0, False  # the first pixel of a line, and where it goes
        for k in range(starts[f], starts[f + 1]):
            pixel = np.int64(pixels[k])
            # entries are usually sorted, and divisions take longer than all the rest
            if pixel < line or pixel >= line + width:
                rest = pixel // width
                line, target, step, inside = rest * width, 0, sig[last], True
                for axis in range(last - 1, -1, -1):
                    place = rest
                    if axis > 0:
                        rest = place // sizes[axis]
                        place -= rest * sizes[axis]
                    place += origin[axis] - shifts[f, axis]
                    inside &= 0 <= place < sig[axis]
                    target += place * step
                    step *= sig[axis]
            x = pixel - line + left
            if inside and 0 <= x < sig[last]:
                new_pixels[n], new_values[n] = target + x, values[k]
                n += 1
    new_starts[len(starts) - 1] = n
    return n


def moved_back(frames: AnyArray, shifts: AnyArray) -> AnyArray:
    """Return frames, shape (n, *sig), each moved by minus its shift, ints of shape (n, sig dims).

    ``result[f, y, x] = frames[f, y + sy, x + sx]``, and 0 if this pixel is outside the frame.
    """
    result = np.zeros(frames.shape, dtype=frames.dtype)
    for frame, shift, target in zip(frames, shifts.tolist(), result, strict=True):
        source_part, target_part = overlap(shift, frame.shape)
        target[target_part] = frame[source_part]
    return result


def overlap(
    shift: Sequence[int], sizes: Sequence[int]
) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """Return the overlap of a frame with a shifted mask of its size, in the frame and the mask."""
    pairs = list(zip(shift, sizes, strict=True))
    frame = tuple(slice(min(n, max(0, s)), max(0, min(n, n + s))) for s, n in pairs)
    mask = tuple(slice(min(n, max(0, -s)), max(0, min(n, n - s))) for s, n in pairs)
    return frame, mask


@kernel
def correct_frames(
    source: Any, dark: AnyArray, gain: AnyArray, patches: Any, beyond: AnyArray, out: AnyArray
) -> None:
    """Write ``(raw - dark) * gain`` to `out`, shape (frames, pixels), then patch broken pixels.

    `source` is that of `as_lines`. `dark` and `gain` have the dtype of `out`. Pixel ``patched[k]``
    becomes the mean of the pixels ``neighbors[k, :counts[k]]``. From `pixels` on, these are columns
    of `beyond`, shape (frames, m), corrected already.
    """
    raw, frame_step, line_step, line = source
    patched, neighbors, counts = patches
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
