"""Add pixels of a detector, or of two neighboring rings, as one vector."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from udfdask.kernels.numba_internals.compile import intrinsic
from udfdask.kernels.numba_internals.reading import CACHE_LINE, prefetch_at
from udfdask.kernels.numba_internals.rows import make_array
from udfdask.kernels.numba_internals.vector_sums import converted, reversed_bytes, vectors_at

GROUP = 32
"""Consecutive pixels that are added at once."""


@intrinsic
def add_to_pair(
    context: Any, sums: Any, ring: Any, low: Any, high: Any, value: Any, frame: Any
) -> Any:
    """Add low * value, high * value, low and high to the four sums of a pair, as one vector.

    If `low` is None, it is 1 - high. `value` was converted from the dtype of the array `frame`.
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        array = make_array(signature.args[0])(context, builder, values[0])
        _, ring, low, high, value, _ = values
        four = ir.VectorType(value.type, 4)

        def vector(*numbers: Any) -> Any:
            found = ir.Constant(four, ir.Undefined)
            for k, number in enumerate(numbers):
                found = builder.insert_element(found, number, ir.IntType(32)(k))
            return found

        one, zero = ir.Constant(value.type, 1), ir.Constant(four, (0, 0, 0, 0))
        if isinstance(signature.args[2], types.NoneType):
            weights = vector(high, high, high, high)
            weights = builder.fmul(weights, ir.Constant(four, (-1, 1, -1, 1)), flags=("contract",))
            weights = builder.fadd(weights, ir.Constant(four, (1, 0, 1, 0)), flags=("contract",))
        else:
            weights = vector(low, high, low, high)
        products = builder.fmul(weights, vector(value, value, one, one), flags=("contract",))
        place = builder.gep(array.data, [builder.mul(ring, ring.type(4))])
        place = builder.bitcast(place, four.as_pointer())
        before = builder.load(place, align=8)
        if isinstance(frame.dtype, types.Float):  # a NaN must not reach a ring without a weight
            counts = builder.fcmp_ordered(">", weights, zero)
            products = builder.select(counts, products, zero)
        after = builder.fadd(before, products, flags=("contract",))
        builder.store(after, place, align=8)
        return context.get_dummy_value()

    return types.void(sums, types.intp, low, high, value, frame), generate


@intrinsic
def add_group(
    context: Any, flat: Any, place: Any, step: Any, swap: Any, mask: Any, number: Any, sums: Any
) -> Any:
    """Add a group of pixels to `sums`, as vectors, those where row `number` of `mask` is True.

    The same pixels of the next frame, which is `step` elements away, are prefetched: the processor
    does not follow the edges of a detector. Without this, and with groups in another order, a ring
    over frames in memory took 1.3 to 1.8 times as long; a detector of all pixels took 0.9 times.
    """
    size = flat.dtype.bitwidth // 8

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        def pointer(array: Any, index: Any, kind: Any) -> Any:
            data = make_array(signature.args[array])(context, builder, values[array]).data
            return vectors_at(builder, data, index, kind)

        _, place, step, _, _, number, _ = values
        element = context.get_value_type(flat.dtype)
        source, kind = ir.VectorType(element, GROUP), context.get_value_type(sums.dtype)
        group = builder.load(pointer(0, place, source), align=1)
        following = pointer(0, builder.add(place, step), source)
        for line in range(0, GROUP * size, CACHE_LINE):
            prefetch_at(builder, following, line)
        if not isinstance(swap, types.NoneType):
            group = reversed_bytes(builder, group, size)
        bits = ir.VectorType(ir.IntType(8), GROUP)
        row = builder.mul(number, number.type(GROUP))
        inside = builder.load(pointer(4, row, bits), align=1)
        inside = builder.icmp_unsigned("!=", inside, ir.Constant(bits, None))
        group = builder.select(inside, group, ir.Constant(source, None))
        group = converted(builder, group, flat.dtype, kind)
        target = pointer(6, ir.IntType(64)(0), group.type)
        before = builder.load(target, align=1)
        add = builder.add if isinstance(kind, ir.IntType) else builder.fadd
        builder.store(add(before, group), target, align=1)
        return context.get_dummy_value()

    return types.void(flat, types.intp, types.intp, swap, mask, types.intp, sums), generate
