"""Multiply pixels of some frames with some masks in vector registers.

numba has no vectors, so this is LLVM code. The sums of some frames and masks stay in registers, and
each vector of pixels is converted once, in a register, for all of these masks.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.np import arrayobj

from udfdask.kernels.cpu.compile import intrinsic
from udfdask.kernels.cpu.intrinsics import prefetch_at
from udfdask.kernels.cpu.vectors import REGISTERS, VECTOR_BYTES, converted, reversed_bytes

_make_array: Any = arrayobj.make_array
_cgutils: Any = cgutils


MASKS = 4
"""Number of masks that are multiplied at the same time."""

_INDEX = ir.IntType(64)


def _frames_at_once(pixel: Any, swap: Any) -> int:
    """Return the number of frames whose products fit the registers, for a numba type of pixels.

    There is a sum for each frame and each of `MASKS` masks, a vector of pixels for each frame, and
    one vector of a mask. Swapping bytes and converting unsigned or long integers needs vectors of
    constants: with three frames and 16 registers, one of the sums did not fit, and 16 masks took
    1.5 times as long as with two.
    """
    if REGISTERS == 32:
        return 4
    plain = isinstance(pixel, types.Float) or pixel.bitwidth < 32 or pixel == types.int32
    return 3 if plain and isinstance(swap, types.NoneType) else 2


@intrinsic
def frames_at_once(context: Any, flat: Any, swap: Any) -> Any:
    """Return the number of frames that `add_vector_products` multiplies."""
    frames = _frames_at_once(flat.dtype, swap)
    return types.intp(flat, swap), lambda *_: _INDEX(frames)


@intrinsic
def add_vector_products(
    context: Any,
    flat: Any,
    swap: Any,
    first: Any,
    step: Any,
    last: Any,
    packed: Any,
    place: Any,
    count: Any,
    sums: Any,
    at: Any,
) -> Any:
    """Add products of `count` vectors of pixels of some frames and `MASKS` masks to `sums`.

    `frames_at_once` tells the number of frames. Frame i starts at pixel
    ``first + min(i, last) * step`` of `flat`; bytes are swapped unless `swap` is None. The masks
    start at `place` of `packed`: a vector of each mask for the first vector of pixels, then for the
    next. The sums start at `at` of `sums`: a vector for each frame and mask.
    """
    frames = _frames_at_once(flat.dtype, swap)

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        memory, masks, totals = (
            _make_array(signature.args[k])(context, builder, values[k]).data for k in (0, 5, 8)
        )
        _, _, first, step, last, _, place, length, _, at = values
        lanes = VECTOR_BYTES * 8 // packed.dtype.bitwidth
        number = ir.VectorType(context.get_value_type(packed.dtype), lanes)
        pixel = ir.VectorType(context.get_value_type(flat.dtype), lanes)
        masks = _vectors(builder, masks, place, number)
        totals = _vectors(builder, totals, at, number)
        rows = []
        for i in range(frames):
            nearest = builder.select(builder.icmp_signed("<", _INDEX(i), last), _INDEX(i), last)
            start = builder.add(first, builder.mul(nearest, step))
            rows.append(_vectors(builder, memory, start, pixel))
        sums_of = []
        for k in range(frames * MASKS):  # LLVM keeps these variables in registers
            sums_of.append(_cgutils.alloca_once(builder, number))
            builder.store(_load(builder, totals, _INDEX(k), packed), sums_of[k])
        with _cgutils.for_range(builder, length, intp=_INDEX) as loop:
            pixels = []
            for row in rows:
                # the pixels of the next block are far away for the processor, in another line
                prefetch_at(builder, builder.gep(row, [builder.add(loop.index, length)]))
                value = _load(builder, row, loop.index, flat)
                if not isinstance(swap, types.NoneType):
                    value = reversed_bytes(builder, value, flat.dtype.bitwidth // 8)
                pixels.append(converted(builder, value, flat.dtype, number.element))
            group = builder.mul(loop.index, _INDEX(MASKS))
            for j in range(MASKS):  # one after the other: 16 registers have room for one factor
                factor = _load(builder, masks, builder.add(group, _INDEX(j)), packed)
                for i in range(frames):
                    total = sums_of[i * MASKS + j]
                    product = builder.fmul(pixels[i], factor, flags=("contract",))
                    more = builder.fadd(builder.load(total), product, flags=("contract",))
                    builder.store(more, total)
        for k in range(frames * MASKS):
            target = builder.gep(totals, [_INDEX(k)])
            builder.store(builder.load(sums_of[k]), target, align=_alignment(packed))
        return context.get_dummy_value()

    arguments = (flat, swap, first, step, last, packed, place, count, sums, at)
    return types.void(*arguments), generate


@intrinsic
def sum_of_lanes(context: Any, sums: Any, at: Any) -> Any:
    """Return the sum, in double precision, of the lanes of a vector that starts at `at`.

    With a loop over the lanes, 64 masks over float32 frames took 1.1 times as long.
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        data = _make_array(sums)(context, builder, values[0]).data
        lanes = VECTOR_BYTES * 8 // sums.dtype.bitwidth
        number = ir.VectorType(context.get_value_type(sums.dtype), lanes)
        double = ir.DoubleType()
        vector = _load(builder, _vectors(builder, data, values[1], number), _INDEX(0), sums)
        vector = converted(builder, vector, sums.dtype, double)
        kind = ir.FunctionType(double, [double, vector.type])
        name = f"llvm.vector.reduce.fadd.v{lanes}f64"
        add = _cgutils.get_or_insert_function(builder.module, kind, name)
        return builder.call(add, [double(-0.0), vector], fastmath=("reassoc", "nsz"))

    return types.float64(sums, at), generate


def _vectors(builder: Any, numbers: Any, index: Any, vector: Any) -> Any:
    """Return a pointer to vectors that start at an element of an array."""
    return builder.bitcast(builder.gep(numbers, [index]), vector.as_pointer())


def _load(builder: Any, vectors: Any, index: Any, array: Any) -> Any:
    """Return a vector of an array."""
    return builder.load(builder.gep(vectors, [index]), align=_alignment(array))


def _alignment(array: Any) -> int:
    """Return the alignment of an array: that of its numbers, in bytes."""
    size: int = array.dtype.bitwidth // 8
    return size
