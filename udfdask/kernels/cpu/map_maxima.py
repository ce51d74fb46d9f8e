"""Find the maxima of maps, and where between pixels they are."""

from __future__ import annotations

import math

import numpy as np

from udfdask.base.types import AnyArray
from udfdask.kernels.numba_internals.compile import lean_inner_kernel, lean_kernel


def find_local_maxima(
    maps: AnyArray, edge: int, spacing: float, least: float, most: int, *, subpixel: bool
) -> tuple[AnyArray, AnyArray]:
    """Return the places of the highest local maxima of maps, highest first, and their numbers.

    `maps` has the shape (n, y, x) and counts as periodic. The places (y, x), shape (n, most, 2),
    float64, are pixels, or with `subpixel` vertices of parabolas; NaN beyond the last one. Maxima
    that are not positive, lower than `least` times the highest one, nearer than `edge` pixels to
    the border, or nearer than `spacing` to a higher one do not count. The numbers, shape (n,),
    int32, include maxima beyond the places.
    """
    n, height, width = maps.shape
    lowest = least * maps[:, edge : height - edge, edge : width - edge].max(axis=(1, 2))
    places, numbers = np.full((n, most, 2), np.nan), np.empty(n, np.int32)
    room = (height + 1) * (width + 1) // 4 + 1  # no two neighbors are maxima
    candidates = np.empty((room, 2), np.int64), np.empty(room, maps.dtype)
    write_local_maxima(maps, lowest, edge, spacing, candidates, subpixel, places, numbers)
    return places, numbers


@lean_kernel
def write_local_maxima(
    maps: AnyArray,
    lowest: AnyArray,
    edge: int,
    spacing: float,
    candidates: tuple[AnyArray, AnyArray],
    subpixel: bool,
    places: AnyArray,
    numbers: AnyArray,
) -> None:
    """Write what `find_local_maxima` returns; `candidates` are scratch memory."""
    n, height, width = maps.shape
    pixels, heights = candidates
    for f in range(n):
        k = 0
        for y in range(edge, height - edge):
            for x in range(edge, width - edge):
                value = maps[f, y, x]
                if value > 0 and value >= lowest[f] and _is_maximum(maps, f, y, x):
                    pixels[k, 0], pixels[k, 1], heights[k] = y, x, value
                    k += 1
        found = 0
        while k:
            best = 0
            for i in range(1, k):
                best = i if heights[i] > heights[best] else best
            y, x = pixels[best, 0], pixels[best, 1]
            if found < places.shape[1]:
                places[f, found, 0], places[f, found, 1] = y, x
                if subpixel:
                    top, below, right = maps[f, y, x], y + 1 - height, x + 1 - width
                    places[f, found, 0] += _vertex(maps[f, y - 1, x], top, maps[f, below, x])
                    places[f, found, 1] += _vertex(maps[f, y, x - 1], top, maps[f, y, right])
            found += 1
            kept = 0
            for i in range(k):
                v, u = pixels[i, 0], pixels[i, 1]
                if (v - y) ** 2 + (u - x) ** 2 >= spacing**2:
                    pixels[kept, 0], pixels[kept, 1], heights[kept] = v, u, heights[i]
                    kept += 1
            k = kept
        numbers[f] = found


@lean_inner_kernel
def _is_maximum(maps: AnyArray, f: int, y: int, x: int) -> bool:
    """Return whether a pixel is higher than those around it; the first one if several are equal."""
    value = maps[f, y, x]
    above, left = y - 1, x - 1
    below, right = y + 1 - maps.shape[1], x + 1 - maps.shape[2]  # -1 is the last one
    return bool(
        value > maps[f, above, left]
        and value > maps[f, above, x]
        and value > maps[f, above, right]
        and value > maps[f, y, left]
        and value >= maps[f, y, right]
        and value >= maps[f, below, left]
        and value >= maps[f, below, x]
        and value >= maps[f, below, right]
    )


@lean_inner_kernel
def _vertex(before: float, here: float, after: float) -> float:
    """Return where the parabola through a maximum and its neighbors is highest, -1 to 1."""
    bend = before - 2 * here + after
    return (before - after) / (2 * bend) if bend < 0 else 0.0


def fold_waves(spectra: AnyArray) -> AnyArray:
    """Return sums and differences of the waves at opposite frequencies along y of half spectra.

    Shape (n, 4, ky, kx), float32: real and imaginary parts of both. Those of the highest frequency
    are left out.
    """
    n_y, n_x = (spectra.shape[1] + 1) // 2, spectra.shape[2]
    up, down = spectra[:, 1:n_y], spectra[:, :-n_y:-1]
    folded = np.zeros((len(spectra), 4, n_y, n_x), np.float32)
    folded[:, 0, 0], folded[:, 1, 0] = spectra[:, 0].real, spectra[:, 0].imag
    for k, (a, b) in enumerate(((up.real, down.real), (up.imag, down.imag))):
        np.add(a, b, out=folded[:, k, 1:])
        np.subtract(a, b, out=folded[:, k + 2, 1:])
    return folded


@lean_kernel
def climb(
    shape: tuple[int, int],
    waves: AnyArray,
    steps: int,
    sums: AnyArray,
    places: AnyArray,
    heights: AnyArray,
) -> None:
    """Move places (y, x) to the maxima of sums of waves near them, and write the heights there.

    `waves` are those of maps of a shape, from `fold_waves`. There are `steps` steps of Newton's
    method; with 0, the heights are those at the places. `places` have the shape (n, m, 2), with NaN
    in the last rows, `heights` (n, m). `sums`, shape (6, kx), is scratch memory.
    """
    step_y, step_x = 2 * math.pi / shape[0], 2 * math.pi / shape[1]
    for f in range(len(places)):
        for p in range(places.shape[1]):
            y, x = places[f, p, 0], places[f, p, 1]
            if math.isnan(y):
                break
            for _ in range(max(steps, 1)):
                height, by_y, by_x, yy, yx, xx = _derivatives(waves[f], step_y, step_x, y, x, sums)
                heights[f, p] = height
                size = yy * xx - yx * yx
                if steps == 0 or not (size > 0 and yy < 0):
                    break
                dy, dx = (yx * by_x - xx * by_y) / size, (yx * by_y - yy * by_x) / size
                if abs(dy) > 0.5 or abs(dx) > 0.5:  # far from a parabola
                    break
                y, x = y + dy, x + dx
                heights[f, p] += (by_y * dy + by_x * dx) / 2
            places[f, p, 0], places[f, p, 1] = y, x


@lean_inner_kernel
def _derivatives(
    waves: AnyArray, step_y: float, step_x: float, y: float, x: float, sums: AnyArray
) -> tuple[float, float, float, float, float, float]:
    """Return a sum of waves at (y, x), and its derivatives along y, x, yy, yx and xx."""
    _, n_y, n_x = waves.shape
    sums[:] = 0
    # each factor is the one before times a constant: cosines would take half the time
    turn, wave = complex(math.cos(step_y * y), math.sin(step_y * y)), complex(1.0, 0.0)
    for i in range(n_y):
        re, im = np.float32(wave.real), np.float32(wave.imag)
        k = np.float32(step_y * i)
        square = k * k
        for j in range(n_x):
            u = waves[0, i, j] * re - waves[3, i, j] * im
            v = waves[1, i, j] * re + waves[2, i, j] * im
            sums[0, j] += u
            sums[1, j] += v
            sums[2, j] += k * (waves[2, i, j] * re - waves[1, i, j] * im)
            sums[3, j] += k * (waves[3, i, j] * re + waves[0, i, j] * im)
            sums[4, j] += square * u
            sums[5, j] += square * v
        wave *= turn
    turn, wave = complex(math.cos(step_x * x), math.sin(step_x * x)), complex(1.0, 0.0)
    value = by_y = by_x = yy = yx = xx = 0.0
    for j in range(n_x):  # the waves that are not stored have the same real parts
        k_x, twice = step_x * j, 2.0 if j else 1.0
        re_x, im_x = twice * wave.real, twice * wave.imag
        real = sums[0, j] * re_x - sums[1, j] * im_x
        value += real
        by_x -= k_x * (sums[0, j] * im_x + sums[1, j] * re_x)
        xx -= k_x * k_x * real
        by_y -= sums[2, j] * im_x + sums[3, j] * re_x
        yx -= k_x * (sums[2, j] * re_x - sums[3, j] * im_x)
        yy -= sums[4, j] * re_x - sums[5, j] * im_x
        wave *= turn
    return value, by_y, by_x, yy, yx, xx
