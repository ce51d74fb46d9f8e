"""Add up the pixels of some frames in vector registers: over the frames, and in each frame.

numba has no vectors, so this is LLVM code. The vectorized loops of LLVM itself add the lanes of each
row, and multiply each pixel by its column: shared sums of 16-bit frames took 2.3 times as long,
those of 32-bit floats 1.5 times.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.np import arrayobj

from udfdask.kernels.cpu.compile import intrinsic
from udfdask.kernels.cpu.vectors import REGISTERS, VECTOR_BYTES, converted, reversed_bytes

FRAMES = 8 if REGISTERS == 32 else 4
"""Frames that are added together: for each of them, two sums and a vector stay in registers."""

STATE = 3
"""Sums of each frame, see `add_frames`."""

LONGEST = 256
"""Largest number of vectors of a frame: the sums of 16-bit values fit 32 bits, as
65535 * (1 + ... + 256) does."""

_make_array: Any = arrayobj.make_array
_cgutils: Any = cgutils
_INDEX = ir.IntType(64)


@intrinsic
def add_frames(
    context: Any,
    flat: Any,
    place: Any,
    frame_step: Any,
    row_step: Any,
    rows: Any,
    vectors: Any,
    swap: Any,
    width: Any,
    inside: Any,
    origins: Any,
    sums: Any,
    squares: Any,
    state: Any,
) -> Any:
    """Add some rows of `FRAMES` frames to the sums of pixels; write the sums of frames to `state`.

    The first row starts at `place`; of each row, `vectors` vectors are added. The first of their
    sums is at `inside`, and rows of sums are `width` numbers apart; `squares` and `origins` have
    the same order. Floats are differences from `origins`, and their squares are added up. Of
    integers, half the parabolas are added up, see `exact_squares`.

    `state` gets a vector T for each frame, then a vector X and a vector Y for each. T is the sum of
    its vectors, Y the sum of what T was after each row. For floats, X is the sum of pixels times
    their column; for integers, it is the sum of what T was after each vector.
    """
    is_float = not isinstance(origins, types.NoneType)
    source = flat.dtype

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        def data(k: int) -> Any:
            return _make_array(signature.args[k])(context, builder, values[k]).data

        def plus(a: Any, b: Any) -> Any:
            return builder.fadd(a, b, flags=("contract",)) if is_float else builder.add(a, b)

        def times(a: Any, b: Any) -> Any:
            return builder.fmul(a, b, flags=("contract",)) if is_float else builder.mul(a, b)

        def total(numbers: list[Any]) -> Any:
            while len(numbers) > 1:
                numbers = [plus(*pair) for pair in zip(numbers[::2], numbers[1::2], strict=True)]
            return numbers[0]

        def add_to(pointer: Any, more: Any) -> None:
            builder.store(plus(builder.load(pointer, align=4), more), pointer, align=4)

        def half_parabolas(numbers: list[Any]) -> Any:
            s, squared = total(numbers), total([times(a, a) for a in numbers])
            largest, one = (ir.Constant(number, [v] * lanes) for v in (source.maxval, 1))
            doubled = plus(squared, s) if source.signed else builder.sub(times(largest, s), squared)
            return builder.lshr(doubled, one)

        _, place, frame_step, row_step, rows, length, _, width, inside = values[:9]
        lanes = VECTOR_BYTES * 8 // sums.dtype.bitwidth
        number = ir.VectorType(context.get_value_type(sums.dtype), lanes)
        wider = ir.VectorType(context.get_value_type(squares.dtype), lanes)
        pixel = ir.VectorType(context.get_value_type(source), lanes)

        def variables() -> list[Any]:
            zero = ir.Constant(number, None)
            return [_cgutils.alloca_once_value(builder, zero) for _ in range(FRAMES)]

        totals, moments, by_row = variables(), variables(), variables()
        if is_float:
            first = ir.Constant(number, [float(lane) for lane in range(lanes)])
            step = ir.Constant(number, [float(lanes)] * lanes)
            columns = _cgutils.alloca_once_value(builder, first)
        with _cgutils.for_range(builder, rows, intp=_INDEX) as row:
            pixels_before = builder.add(inside, builder.mul(row.index, width))
            start = builder.add(place, builder.mul(row.index, row_step))
            starts = []
            for _ in range(FRAMES):
                starts.append(_vectors(builder, data(0), start, pixel))
                start = builder.add(start, frame_step)
            of_pixels = _vectors(builder, data(10), pixels_before, number)
            of_squares = _vectors(builder, data(11), pixels_before, wider)
            if is_float:
                builder.store(first, columns)
                of_origins = _vectors(builder, data(9), pixels_before, number)
            with _cgutils.for_range(builder, length, intp=_INDEX) as column:
                pixels = []
                for k, pointer in enumerate(starts):
                    at = builder.gep(pointer, [column.index])
                    value = builder.load(at, align=source.bitwidth // 8)
                    if not isinstance(swap, types.NoneType):
                        value = reversed_bytes(builder, value, source.bitwidth // 8)
                    value = converted(builder, value, source, number.element)
                    add_to(totals[k], value)
                    more = times(value, builder.load(columns)) if is_float else None
                    add_to(moments[k], more or builder.load(totals[k]))
                    pixels.append(value)
                if is_float:
                    builder.store(plus(builder.load(columns), step), columns)
                    origin = builder.load(builder.gep(of_origins, [column.index]), align=8)
                    pixels = [builder.fsub(value, origin) for value in pixels]
                    squared = total([times(value, value) for value in pixels])
                else:
                    groups = [pixels[k : k + 4] for k in range(0, FRAMES, 4)]
                    halves = total([half_parabolas(group) for group in groups])
                    squared = halves if wider == number else builder.zext(halves, wider)
                add_to(builder.gep(of_squares, [column.index]), squared)
                add_to(builder.gep(of_pixels, [column.index]), total(pixels))
            for k in range(FRAMES):
                add_to(by_row[k], builder.load(totals[k]))
        out = _vectors(builder, data(12), _INDEX(0), number)
        for k, variable in enumerate([*totals, *moments, *by_row]):
            builder.store(builder.load(variable), builder.gep(out, [_INDEX(k)]), align=4)
        return context.get_dummy_value()

    arguments = (flat, place, frame_step, row_step, rows, vectors, swap, width, inside)
    return types.void(*arguments, origins, sums, squares, state), generate


def _vectors(builder: Any, numbers: Any, index: Any, vector: Any) -> Any:
    """Return a pointer to vectors that start at an element of an array."""
    return builder.bitcast(builder.gep(numbers, [index]), vector.as_pointer())
