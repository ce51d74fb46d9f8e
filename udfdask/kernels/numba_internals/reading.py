"""Read pixels of arrays in any layout and byte order, in the registers of the processor.

Operations that numba does not have: arithmetic in 32 bits, and prefetching. If a kernel does
several operations with each value, the processor itself loads the next values too late. Without
prefetching, centers of mass of 16-bit frames in memory took 1.3 times as long, and centers of mass
and sums of sparse frames 1.4 times.

These are LLVM code: slices of eight rows, passed to a function that reads them, took a third of the
time to compile a sum of frames.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from udfdask.kernels.numba_internals.compile import intrinsic, statement
from udfdask.kernels.numba_internals.rows import cgutils, generate_swapped, make_array


def _operation(integer: str, floating: str, *flags: str) -> Any:
    """Return an operation on two numbers of the same type, whose result has that type too.

    The first one may be a tuple of numbers; the second one is then such a tuple or a number. It may
    also be None, for no operation.
    """

    @intrinsic
    def operation(context: Any, first: Any, second: Any) -> Any:
        several = isinstance(first, types.UniTuple)
        kind = first.dtype if several else first
        if isinstance(second, types.NoneType):
            return first(first, second), lambda *arguments: arguments[-1][0]
        if second not in (first, kind):
            return None  # numba raises an error that names the types

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            def combine(a: Any, b: Any) -> Any:
                if isinstance(kind, types.Integer):
                    return getattr(builder, integer)(a, b)
                return getattr(builder, floating)(a, b, flags=flags)

            if not several:
                return combine(*values)
            left = cgutils.unpack_tuple(builder, values[0])
            right = [values[1]] * len(left)
            if second == first:
                right = cgutils.unpack_tuple(builder, values[1])
            return context.make_tuple(
                builder, first, [combine(*pair) for pair in zip(left, right, strict=True)]
            )

        return first(first, second), generate

    return operation


plus = _operation("add", "fadd", "contract", "nsz", "reassoc")
"""Return the sum; sums of 32-bit integers stay in 32 bits, where numba's `+` widens them."""

minus = _operation("sub", "fsub", "contract")
"""Return the difference; differences of narrow integers stay narrow."""

times = _operation("mul", "fmul", "contract", "nsz", "reassoc")
"""Return the product; products of 32-bit integers stay in 32 bits."""


PREFETCH_DISTANCE = 8 << 10
"""Distance of the prefetched data in bytes; from 2 to 32 KiB made no difference."""

_READ, _INTO_SECOND_CACHE, _DATA = 0, 2, 1


@statement
def prefetch(builder: Any, _: Any, flat: Any, index: Any) -> None:
    """Prefetch the cache line of an element of a 1-D array; the index may be beyond its end."""
    prefetch_at(builder, builder.gep(flat, [index]))


@statement
def touch(builder: Any, _: Any, flat: Any, index: Any) -> None:
    """Read a byte of an element, so that its page of a mapped file is in memory."""
    place = builder.bitcast(builder.gep(flat, [index]), ir.IntType(8).as_pointer())
    builder.load_atomic(place, "monotonic", 1)  # one that LLVM does not remove


def prefetch_at(builder: Any, pointer: Any, distance: int = 0) -> None:
    """Prefetch the cache line that is `distance` bytes after an address; called by intrinsics."""
    byte = ir.IntType(8).as_pointer()
    number = ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
    ask = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
    place = builder.gep(builder.bitcast(pointer, byte), [number(distance)])
    builder.call(ask, [place, number(_READ), number(_INTO_SECOND_CACHE), number(_DATA)])


TOGETHER = 8
"""Rows that are read together: a running sum is then loaded and stored once for eight values."""


def _read(
    context: Any, builder: Any, signature: Any, array: Any, steps: list[Any], swap: Any, kind: Any
) -> Any:
    """Return the value some steps after the start of an array, converted to a type."""
    flat = signature.args[0]
    pointer = make_array(flat)(context, builder, array).data
    for step in steps:
        pointer = builder.gep(pointer, [step])
    value = builder.load(pointer, align=flat.dtype.bitwidth // 8)
    value = generate_swapped(builder, value, flat.dtype, swap)
    return context.cast(builder, value, flat.dtype, kind)


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


_types: Any = types


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
            for number in cgutils.unpack_tuple(builder, values[0])
        ]
        while len(parts) > 1:
            parts = [add(*pair) for pair in zip(parts[::2], parts[1::2], strict=True)]
        return parts[0]

    return kind(numbers, wide), generate


@intrinsic
def noted(context: Any, exact: Any, bits: Any, numbers: Any) -> Any:
    """Return `bits` combined with those that determine the sizes of integers.

    These are the bits of -x - 1 if a number is negative. Return `bits` itself if `exact` is None.
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        found = values[1]
        if isinstance(exact, types.NoneType):
            return found
        for number in cgutils.unpack_tuple(builder, values[2]):
            size = number
            if bits.signed:
                sign = builder.ashr(number, ir.Constant(number.type, bits.bitwidth - 1))
                size = builder.xor(number, sign)
            found = builder.or_(found, size)
        return found

    return bits(exact, bits, numbers), generate
