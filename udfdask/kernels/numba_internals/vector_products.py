"""Products of pixels and factors in vector registers.

numba has no vectors, so this is LLVM code. The sums of some frames and masks stay in registers, and
each vector of pixels is converted once, in a register, for all of these masks. For pixels that are
not in order, frames are transposed, so that a pixel of many frames is one vector: then nothing is
gathered.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from udfdask.base.aligned import CACHE_LINE
from udfdask.kernels.numba_internals.compile import intrinsic, statement
from udfdask.kernels.numba_internals.reading import prefetch_at
from udfdask.kernels.numba_internals.rows import cgutils, make_array
from udfdask.kernels.numba_internals.vector_sums import (
    CONTRACT,
    FUSES,
    INDEX,
    REGISTERS,
    converted,
    lanes_of,
    size_of,
    swapped_bytes,
    vector_of,
    vectors_at,
)

SIDE = 16
"""Frames that are transposed together."""

LANES = 32
"""Frames that share the indices and weights of the pixels."""


@statement
def transpose_line(
    builder: Any,
    kinds: Any,
    flat: Any,
    place: Any,
    step: Any,
    first: Any,
    last: Any,
    swap: Any,
    out: Any,
) -> None:
    """Write a cache line of pixels of `SIDE` frames to `out`, shape (pixels of a line, SIDE).

    Frame f starts at ``flat[f * step]``, and its line at index `place` in the frame. Frames from
    `first` on are transposed; frames after the last one are replaced by the last one. The values
    are not converted: the fewer bytes, the faster. Loops of numba took 2 to 5 times as long.
    """
    pixel = kinds[0].dtype
    line = ir.VectorType(flat.type.pointee, CACHE_LINE // size_of(pixel))
    rows = []
    for f in range(SIDE):
        frame = builder.add(first, INDEX(f))
        frame = builder.select(builder.icmp_signed("<", frame, last), frame, last)
        start = builder.add(builder.mul(frame, step), place)
        row = builder.load(vectors_at(builder, flat, start, line), align=1)
        rows.append(swapped_bytes(builder, row, pixel, kinds[5]))
    target = vectors_at(builder, out, INDEX(0), line)
    for k, row in enumerate(_transposed(builder, rows)):
        builder.store(row, builder.gep(target, [INDEX(k)]), align=1)


def _transposed(builder: Any, rows: list[Any]) -> list[Any]:
    """Return the transposed matrix: each turn interleaves the upper half of rows and the lower."""
    length = rows[0].type.count
    half = len(rows) // 2
    lower = [k // 2 + k % 2 * length for k in range(length)]
    upper = [length // 2 + k for k in lower]
    for _ in range(len(rows).bit_length() - 1):
        pairs = zip(rows[:half], rows[half:], strict=True)
        rows = [_shuffle(builder, *pair, which) for pair in pairs for which in (lower, upper)]
    return rows


def _shuffle(builder: Any, first: Any, second: Any, which: list[int]) -> Any:
    mask = ir.Constant(ir.VectorType(ir.IntType(32), len(which)), which)
    return builder.shuffle_vector(first, second, mask)


MASKS = 4
"""Number of masks that are multiplied at the same time."""

FRAMES = 6 if REGISTERS == 32 else 3 if FUSES else 2
"""Number of frames that are multiplied at the same time.

There is a sum for each frame and each of `MASKS` masks, a vector of pixels for each frame, and one
vector of a mask. Products that are not added in the same step need one more.
"""


@statement
def add_vector_products(
    builder: Any,
    kinds: Any,
    flat: Any,
    swap: Any,
    first: Any,
    step: Any,
    last: Any,
    ahead: Any,
    pixels: Any,
    packed: Any,
    place: Any,
    count: Any,
    sums: Any,
    at: Any,
) -> None:
    """Add products of `count` vectors of pixels of `FRAMES` frames and `MASKS` masks to `sums`.

    Frame i starts at pixel ``first + min(i, last) * step`` of `flat`; bytes are swapped unless
    `swap` is None. The pixels are converted to the dtype of the masks, and written to `pixels`;
    if `first` is None, they are read from there. As many pixels from `ahead` on are prefetched.

    The masks start at `place` of `packed`: a vector of each mask for the first vector of pixels,
    then for the next. The sums start at `at` of `sums`: a vector for each frame and mask.
    """
    pixel, weight = kinds[0].dtype, kinds[7].dtype
    number = ir.VectorType(packed.type.pointee, lanes_of(weight))
    raw = ir.VectorType(flat.type.pointee, number.count)
    reads = not isinstance(kinds[2], types.NoneType)
    converted_pixels, masks, totals = (
        vectors_at(builder, numbers, index, number)
        for numbers, index in ((pixels, INDEX(0)), (packed, place), (sums, at))
    )
    following, rows = vectors_at(builder, flat, ahead, raw), []
    for i in range(FRAMES if reads else 0):
        nearest = builder.select(builder.icmp_signed("<", INDEX(i), last), INDEX(i), last)
        start = builder.add(first, builder.mul(nearest, step))
        rows.append(vectors_at(builder, flat, start, raw))
    sums_of = []
    for k in range(FRAMES * MASKS):  # LLVM keeps these variables in registers
        sums_of.append(cgutils.alloca_once(builder, number))
        builder.store(vector_of(builder, totals, INDEX(k), weight), sums_of[k])
    with cgutils.for_range(builder, count, intp=INDEX) as loop:
        prefetch_at(builder, builder.gep(following, [loop.index]))
        of_frames, of_masks = (builder.mul(loop.index, INDEX(n)) for n in (FRAMES, MASKS))
        values = []
        for i in range(FRAMES):
            at_frame = builder.add(of_frames, INDEX(i))
            if reads:
                value = vector_of(builder, rows[i], loop.index, pixel)
                value = swapped_bytes(builder, value, pixel, kinds[1])
                value = converted(builder, value, pixel, number.element)
                target = builder.gep(converted_pixels, [at_frame])
                builder.store(value, target, align=size_of(weight))
            else:
                value = vector_of(builder, converted_pixels, at_frame, weight)
            values.append(value)
        for j in range(MASKS):
            # LLVM must not load the next factor before these products: there is no register for it
            builder.asm(ir.FunctionType(ir.VoidType(), []), "", "~{memory}", [], True)
            factor = vector_of(builder, masks, builder.add(of_masks, INDEX(j)), weight)
            for i in range(FRAMES):
                _add_product(builder, sums_of[i * MASKS + j], values[i], factor)
    for k in range(FRAMES * MASKS):
        target = builder.gep(totals, [INDEX(k)])
        builder.store(builder.load(sums_of[k]), target, align=size_of(weight))


def _add_product(builder: Any, total: Any, value: Any, factor: Any) -> None:
    product = builder.fmul(value, factor, flags=CONTRACT)
    builder.store(builder.fadd(builder.load(total), product, flags=CONTRACT), total)


@intrinsic
def sum_of_lanes(context: Any, sums: Any, at: Any) -> Any:
    """Return the sum, in double precision, of the lanes of a vector that starts at `at`.

    With a loop over the lanes, 64 masks over float32 frames took 1.1 times as long.
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        data = make_array(sums)(context, builder, values[0]).data
        number = ir.VectorType(context.get_value_type(sums.dtype), lanes_of(sums.dtype))
        place = vectors_at(builder, data, values[1], number)
        vector = vector_of(builder, place, INDEX(0), sums.dtype)
        double = ir.DoubleType()
        vector = converted(builder, vector, sums.dtype, double)
        kind = ir.FunctionType(double, [double, vector.type])
        name = f"llvm.vector.reduce.fadd.v{number.count}f64"
        add = cgutils.get_or_insert_function(builder.module, kind, name)
        return builder.call(add, [double(-0.0), vector], fastmath=("reassoc", "nsz"))

    return types.float64(sums, at), generate


@statement
def add_lane_products(
    builder: Any,
    kinds: Any,
    lanes: Any,
    slots_per_part: Any,
    slots: Any,
    weights: Any,
    start: Any,
    stop: Any,
    columns: Any,
    terms: Any,
    sums: Any,
) -> None:
    """Add the pixels of a run, each times `len(terms)` weights, to as many columns of `sums`.

    The pixels are those from `start` to `stop` in `slots`, indices of transposed pixels, and in
    `weights`, shape (pixels, terms), whose dtype is that of the products. `lanes` has the shape
    (LANES // SIDE, slots_per_part, SIDE), and `sums` (columns, LANES), float64. Only the length of
    the tuple `terms` counts: it is known when this is compiled.
    """
    pixel, weight_kind, n = kinds[0].dtype, kinds[3].dtype, len(kinds[7])
    width = lanes_of(weight_kind)
    number, raw = weights.type.pointee, ir.VectorType(lanes.type.pointee, width)
    vector, double = ir.VectorType(number, width), ir.VectorType(ir.DoubleType(), width)
    together = LANES // width
    while together > 1 and together * (n + 1) + 1 > REGISTERS:  # the sums fit the registers
        together //= 2

    def pixels_of(slot: Any, lane: int) -> Any:
        part, rest = divmod(lane, SIDE)
        row = builder.add(slot, builder.mul(slots_per_part, INDEX(part)))
        place = builder.add(builder.mul(row, INDEX(SIDE)), INDEX(rest))
        value = builder.load(vectors_at(builder, lanes, place, raw), align=1)
        return converted(builder, value, pixel, number)

    totals = [cgutils.alloca_once(builder, vector) for _ in range(n * together)]
    for first in range(0, LANES, together * width):
        group = range(first, first + together * width, width)
        for total in totals:  # LLVM keeps these variables in registers
            builder.store(ir.Constant(vector, None), total)
        with cgutils.for_range_slice(builder, start, stop, INDEX(1), INDEX) as (k, _):
            slot = builder.zext(builder.load(builder.gep(slots, [k])), INDEX)
            found = [pixels_of(slot, lane) for lane in group]
            for t in range(n):
                place = builder.add(builder.mul(k, INDEX(n)), INDEX(t))
                factor = _spread(builder, builder.load(builder.gep(weights, [place])), vector)
                for value, total in zip(found, totals[t * together :], strict=False):
                    _add_product(builder, total, value, factor)
        for t in range(n):
            row = builder.mul(builder.load(builder.gep(columns, [INDEX(t)])), INDEX(LANES))
            for lane, total in zip(group, totals[t * together :], strict=False):
                target = vectors_at(builder, sums, builder.add(row, INDEX(lane)), double)
                more = converted(builder, builder.load(total), weight_kind, double.element)
                builder.store(builder.fadd(builder.load(target, align=8), more), target, align=8)


def _spread(builder: Any, number: Any, vector: Any) -> Any:
    """Return a vector whose elements are all the same number."""
    empty = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(empty, number, ir.IntType(32)(0))
    return _shuffle(builder, first, empty, [0] * vector.count)
