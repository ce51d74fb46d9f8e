"""Transpose frames, so that a pixel of many frames is one vector.

A sum over any pixels then needs no gathering: every addition adds a pixel of all these frames.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.np import arrayobj

from udfdask.kernels.cpu.compile import intrinsic
from udfdask.kernels.cpu.intrinsics import CACHE_LINE
from udfdask.kernels.cpu.vectors import reversed_bytes

SIDE = 16
"""Frames that are transposed together."""

LANES = 32
"""Frames that share the indices and weights of the pixels."""

_make_array: Any = arrayobj.make_array

Vectors = list[Any]


@intrinsic
def transpose_line(
    context: Any,
    flat: Any,
    place: Any,
    step: Any,
    first: Any,
    last: Any,
    swap: Any,
    out: Any,
) -> Any:
    """Write a cache line of pixels of `SIDE` frames to `out`, shape (pixels of a line, SIDE).

    Frame f starts at ``flat[f * step]``, and its line at index `place` in the frame. Frames from
    `first` on are transposed; frames after the last one are replaced by the last one. The values
    are not converted: the fewer bytes, the faster.
    """
    size = flat.dtype.bitwidth // 8
    swaps = not isinstance(swap, types.NoneType)

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        source = _make_array(signature.args[0])(context, builder, values[0])
        drain = _make_array(signature.args[6])(context, builder, values[6])
        _, place, step, first, last, _, _ = values
        index = first.type
        line = ir.VectorType(context.get_value_type(flat.dtype), CACHE_LINE // size)
        rows = []
        for f in range(SIDE):
            frame = builder.add(first, ir.Constant(index, f))
            frame = builder.select(builder.icmp_signed("<", frame, last), frame, last)
            start = builder.add(builder.mul(frame, step), place)
            pointer = builder.bitcast(builder.gep(source.data, [start]), line.as_pointer())
            row = builder.load(pointer, align=1)
            rows.append(reversed_bytes(builder, row, size) if swaps else row)
        target = builder.bitcast(drain.data, line.as_pointer())
        for k, row in enumerate(_transposed(builder, rows)):
            builder.store(row, builder.gep(target, [ir.Constant(index, k)]), align=1)
        return context.get_dummy_value()

    n = types.intp
    return types.void(flat, n, n, n, n, swap, out), generate


def _transposed(builder: Any, rows: Vectors) -> Vectors:
    """Return the transposed matrix in rows of the same length.

    Each turn interleaves the upper half of all rows with the lower half.
    """
    length = rows[0].type.count
    half = len(rows) // 2
    lower = [k // 2 + k % 2 * length for k in range(length)]
    upper = [length // 2 + k for k in lower]
    for _ in range(len(rows).bit_length() - 1):
        pairs = zip(rows[:half], rows[half:], strict=True)
        rows = [_shuffle(builder, *pair, which) for pair in pairs for which in (lower, upper)]
    return rows


def _shuffle(builder: Any, first: Any, second: Any, which: list[int]) -> Any:
    """Return the elements of two vectors at the given positions."""
    mask = ir.Constant(ir.VectorType(ir.IntType(32), len(which)), which)
    return builder.shuffle_vector(first, second, mask)
