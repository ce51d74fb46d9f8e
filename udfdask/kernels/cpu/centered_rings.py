"""Weighted sums over rings around a center of its own for each frame."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.np import arrayobj

from udfdask.kernels.cpu.compile import inner_kernel, intrinsic, summing_kernel
from udfdask.kernels.cpu.intrinsics import plus, times
from udfdask.kernels.cpu.rows import swapped
from udfdask.types import AnyArray

SETS = 8
"""Sets of sums, used in turns: an addition need not wait for that of the pixel before. Also the
number of distances in a vector."""

_make_array: Any = arrayobj.make_array


def add_rings_about(
    flat: AnyArray,
    frame_step: int,
    row_step: int,
    swap: bool | None,
    window: tuple[int, int, int, int],
    centers: AnyArray,
    inner: float,
    thickness: float,
    sums: AnyArray,
    covered: AnyArray,
) -> None:
    """Add sum(w * I) and sum(w) of rings around each frame's own center, shape (frames, rings).

    `flat` and the steps come from `rows_in_memory`, `swap` from `as_native`. `window` holds the
    first row and column of the tile in the frame, its height and its width. The rings have the same
    thickness and start at the inner radius; the weights are those of `radial_bins`. `centers` has
    the shape (frames, 2), float64; if a center is not finite, its sums are NaN.
    """
    kernel = _add_wide_rings if thickness >= 1 else _add_narrow_rings
    kernel(flat, frame_step, row_step, swap, *window, centers, inner, thickness, sums, covered)


@summing_kernel
def _columns(y: int, cy: float, cx: float, reach: float, width: int) -> tuple[int, int]:
    """Return start and stop of the columns of a row that are closer to a center than `reach`."""
    half = math.sqrt(max(reach * reach - (y - cy) ** 2, 0.0))
    if half == 0 or cx + half < 0 or cx - half > width - 1:
        return 0, 0
    return int(max(math.ceil(cx - half), 0.0)), int(min(math.floor(cx + half), width - 1.0)) + 1


@summing_kernel
def _add_wide_rings(
    flat: Any,
    frame_step: int,
    row_step: int,
    swap: Any,
    oy: int,
    ox: int,
    height: int,
    width: int,
    centers: Any,
    inner: float,
    thickness: float,
    sums: Any,
    covered: Any,
) -> None:
    """Add rings that are at least a pixel thick: each pixel is in at most two of them.

    These are the rings on both sides of the nearest edge. Edge e separates ring e - 1 from ring e.
    Each edge has four sums: of rest * I, of soft * I, of rest and of soft, where `soft` is the
    weight in ring e and `rest` that in ring e - 1.
    """
    n_rings = sums.shape[1]
    at_edge = np.empty((SETS, n_rings + 1, 4))
    edges, soft, values = np.empty(width + SETS, np.int32), np.empty(width + SETS), np.empty(width)
    for f in range(sums.shape[0]):
        cy, cx = centers[f, 0] - oy, centers[f, 1] - ox
        if not (math.isfinite(cy) and math.isfinite(cx)):
            sums[f, :] = np.nan
            continue
        at_edge[:] = 0
        for y in range(height):
            first, stop = _columns(y, cy, cx, inner + n_rings * thickness + 0.5, width)
            start, n = f * frame_step + y * row_step + first, stop - first
            padded = -(-n // SETS) * SETS  # whole vectors: single values take longer
            _find_edges(
                y - cy, first - cx, inner, thickness, n_rings, edges[:padded], soft[:padded]
            )
            row = flat[start : start + n]
            for j in range(n):
                values[j] = np.float64(swapped(row[j], swap))
            for j in range(n):
                _add_at_edge(at_edge, edges[j], soft[j], values[j], flat)
        for b in range(n_rings):
            for k in range(SETS):
                below, above = at_edge[k, b], at_edge[k, b + 1]
                sums[f, b] += below[1] + above[0]
                covered[f, b] += below[3] + above[2]


@inner_kernel
def _find_edges(
    dy: float, dx: float, inner: float, thickness: float, last: int, edges: Any, soft: Any
) -> None:
    """Write the nearest edge of each pixel of a row, and its weight in the ring beyond this edge.

    The first pixel is at (dy, dx) from the center. Edges are numbered through all sets.
    """
    per_pixel = 1 / thickness
    per_set = np.int32(last + 1)
    for j in range(len(edges)):
        column = np.int32(j)  # vectors of 64-bit integers need AVX-512
        x = dx + np.float64(column)
        d = math.sqrt(dy * dy + x * x)
        edge = min(max(np.floor((d - inner) * per_pixel + 0.5), 0.0), np.float64(last))
        weight = min(max(d - inner - edge * thickness + 0.5, 0.0), 1.0)
        soft[j] = 1 - inner if d < 0.5 and inner < 0.5 else weight
        edges[j] = plus(np.int32(edge), times(np.int32(column & (SETS - 1)), per_set))


@intrinsic
def _add_at_edge(context: Any, sums: Any, edge: Any, soft: Any, value: Any, frame: Any) -> Any:
    """Add rest * value, soft * value, rest and soft to the four sums of an edge, as one vector.

    `frame` is the array of which the value is.
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        array = _make_array(signature.args[0])(context, builder, values[0])
        _, edge, soft, value, _ = values
        four = ir.VectorType(soft.type, 4)

        def vector(*numbers: float) -> Any:
            return ir.Constant(four, numbers)

        def spread(number: Any, others: Any, which: list[int]) -> Any:
            first = builder.insert_element(others, number, ir.IntType(32)(0))
            mask = ir.Constant(ir.VectorType(ir.IntType(32), 4), which)
            return builder.shuffle_vector(first, others, mask)

        softs = spread(soft, vector(0, 0, 0, 0), [0, 0, 0, 0])
        signed = builder.fmul(softs, vector(-1, 1, -1, 1), flags=("contract",))
        weights = builder.fadd(signed, vector(1, 0, 1, 0), flags=("contract",))
        factors = spread(value, vector(1, 1, 1, 1), [0, 0, 5, 6])
        products = builder.fmul(weights, factors, flags=("contract",))
        place = builder.gep(array.data, [builder.mul(edge, edge.type(4))])
        place = builder.bitcast(place, four.as_pointer())
        before = builder.load(place, align=8)
        if isinstance(frame.dtype, types.Float):  # a NaN must not reach a ring without a weight
            counts = builder.fcmp_ordered(">", weights, vector(0, 0, 0, 0))
            products = builder.select(counts, products, vector(0, 0, 0, 0))
        after = builder.fadd(before, products, flags=("contract",))
        builder.store(after, place, align=8)
        return context.get_dummy_value()

    return types.void(sums, types.intp, soft, value, frame), generate


@summing_kernel
def _add_narrow_rings(
    flat: Any,
    frame_step: int,
    row_step: int,
    swap: Any,
    oy: int,
    ox: int,
    height: int,
    width: int,
    centers: Any,
    inner: float,
    thickness: float,
    sums: Any,
    covered: Any,
) -> None:
    """Add rings that are thinner than a pixel, so that a pixel is in several of them."""
    n_rings = sums.shape[1]
    for f in range(sums.shape[0]):
        cy, cx = centers[f, 0] - oy, centers[f, 1] - ox
        if not (math.isfinite(cy) and math.isfinite(cx)):
            sums[f, :] = np.nan
            continue
        for y in range(height):
            first, stop = _columns(y, cy, cx, inner + n_rings * thickness + 0.5, width)
            row = flat[f * frame_step + y * row_step :]
            for x in range(first, stop):
                d = math.sqrt((y - cy) ** 2 + (x - cx) ** 2)
                lowest = max(math.ceil((d - inner - 0.5) / thickness) - 1, 0)
                highest = min(math.floor((d - inner + 0.5) / thickness), n_rings - 1)
                for b in range(lowest, highest + 1):
                    middle = inner + (b + 0.5) * thickness
                    w = min(max(thickness / 2 + 0.5 - abs(d - middle), 0.0), 1.0)
                    if b == 0 and inner < 0.5 and d < 0.5:
                        w = 1 - inner
                    if w > 0:
                        sums[f, b] += w * np.float64(swapped(row[x], swap))
                        covered[f, b] += w
