"""Transpose frames, so that a pixel of many frames is one vector.

A sum over any pixels then needs no gathering: every addition adds a pixel of all these frames.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.np import arrayobj

from udfdask.kernels.cpu.compile import inner_kernel, intrinsic
from udfdask.kernels.cpu.intrinsics import CACHE_LINE, prefetch_at
from udfdask.kernels.cpu.vectors import converted, reversed_bytes
from udfdask.types import AnyArray

LANES = 32
"""Frames that are transposed together. With 16, sums over rings took 1.3 times as long."""

AHEAD = 4 * CACHE_LINE
"""Distance of the prefetched data in bytes. The processor does not follow so many frames by itself:
without prefetching, sums over rings of frames in memory took 1.2 to 1.5 times as long."""

_make_array: Any = arrayobj.make_array

Vectors = list[Any]


def lane_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the floating dtype of transposed values, which holds integers of 32 bits exactly."""
    exact_in_single = dtype.kind == "f" or dtype.itemsize <= 2
    return np.dtype(np.float32 if exact_in_single and dtype.itemsize <= 4 else np.float64)


def pixels_per_line(itemsize: int) -> int:
    """Return the number of consecutive pixels that are transposed together: a cache line.

    With less, lines are loaded repeatedly: frames whose size is a power of two displace each other.
    """
    return CACHE_LINE // itemsize


@inner_kernel
def transpose_line(
    flat: Any, place: int, step: int, first: int, count: int, swap: Any, out: AnyArray, slot: int
) -> None:
    """Write a line of pixels of `LANES` frames to `out`, shape (slots, LANES), from a slot on.

    Frame f starts at ``flat[f * step]``, and its line at index `place` in the frame. Lanes for
    which there is no frame get the values of another one; `count` is the number of frames.
    """
    side = 8 if flat.itemsize == 8 else 16
    for lane in range(0, LANES, side):
        if first + lane < count:
            for p in range(0, CACHE_LINE // flat.itemsize, side):
                target = (slot + p) * LANES + lane
                _transpose_square(flat, place + p, step, first + lane, count - 1, swap, out, target)


@intrinsic
def _transpose_square(
    context: Any,
    flat: Any,
    place: Any,
    step: Any,
    first: Any,
    last: Any,
    swap: Any,
    out: Any,
    target: Any,
) -> Any:
    """Transpose as many pixels of as many frames: 8 for values of 8 bytes, otherwise 16."""
    size = flat.dtype.bitwidth // 8
    side = 8 if size == 8 else 16
    swaps = not isinstance(swap, types.NoneType)

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        source = _make_array(signature.args[0])(context, builder, values[0])
        drain = _make_array(signature.args[6])(context, builder, values[6])
        _, place, step, first, last, _, _, target = values
        index = first.type
        raw = ir.VectorType(context.get_value_type(signature.args[0].dtype), side)
        rows = []
        for f in range(side):
            frame = builder.add(first, ir.Constant(index, f))
            frame = builder.select(builder.icmp_signed("<", frame, last), frame, last)
            start = builder.add(builder.mul(frame, step), place)
            pointer = builder.bitcast(builder.gep(source.data, [start]), raw.as_pointer())
            row = builder.load(pointer, align=1)
            prefetch_at(builder, pointer, AHEAD)
            rows.append(reversed_bytes(builder, row, size) if swaps else row)
        number = context.get_value_type(signature.args[6].dtype)
        for p, column in enumerate(_transposed(builder, rows)):
            lanes = converted(builder, column, flat.dtype, number)
            slot = builder.add(target, ir.Constant(index, p * LANES))
            pointer = builder.bitcast(builder.gep(drain.data, [slot]), lanes.type.as_pointer())
            builder.store(lanes, pointer, align=1)
        return context.get_dummy_value()

    n = types.intp
    return types.void(flat, n, n, n, n, swap, out, n), generate


def _transposed(builder: Any, rows: Vectors) -> Vectors:
    """Return the columns of a square matrix, by interleaving its upper and lower half."""
    side = len(rows)
    half = side // 2
    lower = [k // 2 + k % 2 * side for k in range(side)]
    upper = [half + k for k in lower]
    for _ in range(side.bit_length() - 1):
        pairs = zip(rows[:half], rows[half:], strict=True)
        rows = [_shuffle(builder, *pair, which) for pair in pairs for which in (lower, upper)]
    return rows


def _shuffle(builder: Any, first: Any, second: Any, which: list[int]) -> Any:
    """Return the elements of two vectors at the given positions."""
    mask = ir.Constant(ir.VectorType(ir.IntType(32), len(which)), which)
    return builder.shuffle_vector(first, second, mask)
