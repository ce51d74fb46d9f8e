"""Read values of flat memory: one value, or those of the same pixel in eight rows.

These are LLVM code: slices of eight rows, passed to a function that reads them, took a third of the
time to compile a sum of frames.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.np import arrayobj

from udfdask.kernels.cpu.compile import intrinsic
from udfdask.kernels.cpu.rows import generate_swapped, swapped_type

TOGETHER = 8
"""Rows that are read together: a running sum is then loaded and stored once for eight values."""

_make_array: Any = arrayobj.make_array
_cgutils: Any = cgutils
_types: Any = types


def _read(
    context: Any, builder: Any, signature: Any, array: Any, steps: list[Any], swap: Any, kind: Any
) -> Any:
    """Return the value some steps after the start of an array, converted to a type."""
    flat = signature.args[0]
    pointer = _make_array(flat)(context, builder, array).data
    for step in steps:
        pointer = builder.gep(pointer, [step])
    value = builder.load(pointer, align=flat.dtype.bitwidth // 8)
    value = generate_swapped(builder, value, flat.dtype, swap)
    return context.cast(builder, value, swapped_type(flat.dtype, swap), kind)


@intrinsic
def value_at(context: Any, flat: Any, place: Any, swap: Any, wide: Any) -> Any:
    """Return the value at a place that is not negative, after `swapped`, as the type `wide`.

    Return None if there is no array.
    """
    if isinstance(flat, types.NoneType):
        return types.none(flat, place, swap, wide), lambda context, *_: context.get_dummy_value()
    kind = wide.instance_type

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        array, index = values[:2]
        return _read(context, builder, signature, array, [index], swap, kind)

    return kind(flat, place, swap, wide), generate


@intrinsic
def eight_at(
    context: Any, flat: Any, place: Any, step: Any, column: Any, swap: Any, wide: Any
) -> Any:
    """Return the values of a column of eight rows, as `value_at` does.

    The first row starts at `place`, and the next ones `step` places after each other.
    """
    kind = wide.instance_type

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        array, place, distance, column = values[:4]
        rows = [place]
        while len(rows) < TOGETHER:  # rows one after the other would make a chain of additions
            rows += [builder.add(row, distance) for row in rows]
            distance = builder.add(distance, distance)
        # rows apart from the column: their starts do not change in a loop over columns
        steps = [[row, column] for row in rows]
        eight = [_read(context, builder, signature, array, pair, swap, kind) for pair in steps]
        return context.make_tuple(builder, signature.return_type, eight)

    return _types.UniTuple(kind, TOGETHER)(flat, place, step, column, swap, wide), generate


@intrinsic
def sum_of(context: Any, numbers: Any, wide: Any) -> Any:
    """Return the sum of four or eight numbers, added in pairs, as the type `wide`."""
    kind = wide.instance_type

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        def add(a: Any, b: Any) -> Any:
            if isinstance(kind, types.Integer):
                return builder.add(a, b)
            return builder.fadd(a, b, flags=("contract",))

        parts = [
            context.cast(builder, number, numbers.dtype, kind)
            for number in _cgutils.unpack_tuple(builder, values[0])
        ]
        while len(parts) > 1:
            parts = [add(*pair) for pair in zip(parts[::2], parts[1::2], strict=True)]
        return parts[0]

    return kind(numbers, wide), generate


@intrinsic
def write_eight(context: Any, flat: Any, place: Any, numbers: Any) -> Any:
    """Write eight numbers, of the dtype of the array, from a place on."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        array, index, eight = values
        data = _make_array(signature.args[0])(context, builder, array).data
        for k, number in enumerate(_cgutils.unpack_tuple(builder, eight)):
            target = builder.gep(data, [builder.add(index, index.type(k))], inbounds=True)
            builder.store(number, target, align=flat.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(flat, place, numbers), generate


@intrinsic
def noted(context: Any, exact: Any, bits: Any, numbers: Any) -> Any:
    """Return `bits` combined with those that determine the sizes of integers.

    These are the bits of -x - 1 if a number is negative. Return `bits` itself if `exact` is None.
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        found = values[1]
        if isinstance(exact, types.NoneType):
            return found
        for number in _cgutils.unpack_tuple(builder, values[2]):
            size = number
            if bits.signed:
                sign = builder.ashr(number, ir.Constant(number.type, bits.bitwidth - 1))
                size = builder.xor(number, sign)
            found = builder.or_(found, size)
        return found

    return bits(exact, bits, numbers), generate
