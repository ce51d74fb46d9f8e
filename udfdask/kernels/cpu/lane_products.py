"""Add weighted pixels of many frames to some sums, in vector registers.

numba has no vectors, so this is LLVM code: the sums stay in registers for all pixels of a run.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.np import arrayobj

from udfdask.kernels.cpu.compile import intrinsic
from udfdask.kernels.cpu.lanes import LANES, SIDE
from udfdask.kernels.cpu.vectors import REGISTERS, VECTOR_BYTES, converted

_make_array: Any = arrayobj.make_array
_cgutils: Any = cgutils

_INDEX = ir.IntType(64)


@intrinsic
def add_lane_products(
    context: Any,
    lanes: Any,
    slots: Any,
    weights: Any,
    pixels: Any,
    columns: Any,
    terms: Any,
    sums: Any,
) -> Any:
    """Add the pixels of a run, each times `len(terms)` weights, to as many columns of `sums`.

    `pixels` are start and stop in `slots`, indices of transposed pixels, and in `weights`, shape
    (pixels, terms), whose dtype is that of the products. `lanes` has the shape (LANES // SIDE,
    slots, SIDE), and `sums` (columns, LANES), float64. Only the length of the tuple `terms` counts:
    it is known when this is compiled.
    """
    n = len(terms)

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        arrays = {
            k: _make_array(signature.args[k])(context, builder, values[k]) for k in (0, 1, 2, 4, 6)
        }
        start, stop = _cgutils.unpack_tuple(builder, values[3])
        slots_per_part = _cgutils.unpack_tuple(builder, arrays[0].shape)[1]
        number = context.get_value_type(weights.dtype)
        width = VECTOR_BYTES * 8 // weights.dtype.bitwidth
        vector, double = ir.VectorType(number, width), ir.VectorType(ir.DoubleType(), width)
        raw = ir.VectorType(context.get_value_type(lanes.dtype), width)
        together = _vectors_together(n, LANES // width)

        def pointer(array: int, index: Any, kind: Any) -> Any:
            return builder.bitcast(builder.gep(arrays[array].data, [index]), kind.as_pointer())

        def pixel(slot: Any, lane: int) -> Any:
            part, rest = divmod(lane, SIDE)
            row = builder.add(slot, builder.mul(slots_per_part, _INDEX(part)))
            place = builder.add(builder.mul(row, _INDEX(SIDE)), _INDEX(rest))
            value = builder.load(pointer(0, place, raw), align=1)
            return converted(builder, value, lanes.dtype, number)

        totals = [_cgutils.alloca_once(builder, vector) for _ in range(n * together)]
        for first in range(0, LANES, together * width):
            group = range(first, first + together * width, width)
            for total in totals:  # LLVM keeps these variables in registers
                builder.store(ir.Constant(vector, None), total)
            with _cgutils.for_range_slice(builder, start, stop, _INDEX(1), _INDEX) as (k, _):
                slot = builder.zext(builder.load(builder.gep(arrays[1].data, [k])), _INDEX)
                found = [pixel(slot, lane) for lane in group]
                for t in range(n):
                    place = builder.add(builder.mul(k, _INDEX(n)), _INDEX(t))
                    weight = builder.load(builder.gep(arrays[2].data, [place]))
                    factor = _spread(builder, weight, vector)
                    for value, total in zip(found, totals[t * together :], strict=False):
                        product = builder.fmul(value, factor, flags=("contract",))
                        more = builder.fadd(builder.load(total), product, flags=("contract",))
                        builder.store(more, total)
            for t in range(n):
                column = builder.load(builder.gep(arrays[4].data, [_INDEX(t)]))
                row = builder.mul(column, _INDEX(LANES))
                for lane, total in zip(group, totals[t * together :], strict=False):
                    target = pointer(6, builder.add(row, _INDEX(lane)), double)
                    more = converted(builder, builder.load(total), weights.dtype, double.element)
                    more = builder.fadd(builder.load(target, align=8), more)
                    builder.store(more, target, align=8)
        return context.get_dummy_value()

    arguments = (lanes, slots, weights, pixels, columns, terms, sums)
    return types.void(*arguments), generate


def _vectors_together(terms: int, vectors: int) -> int:
    """Return for how many vectors of lanes the sums of all terms fit the registers."""
    while vectors > 1 and vectors * (terms + 1) + 1 > REGISTERS:
        vectors //= 2
    return vectors


def _spread(builder: Any, number: Any, vector: Any) -> Any:
    """Return a vector whose elements are all the same number."""
    empty = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(empty, number, ir.IntType(32)(0))
    every = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), None)
    return builder.shuffle_vector(first, empty, every)
