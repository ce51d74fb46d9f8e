"""Sums of numbers in vector registers: of frames, of pixels of a detector, of pairs of rings.

numba has no vectors, so this is LLVM code. Loops that LLVM itself vectorizes add the lanes of every
row, and multiply each pixel by its column: shared sums of 16-bit frames took 1.7 times as long, and
those of 32-bit floats 1.2 times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.registry import cpu_target

from udfdask.base.aligned import CACHE_LINE
from udfdask.kernels.numba_internals.compile import statement
from udfdask.kernels.numba_internals.reading import prefetch_at
from udfdask.kernels.numba_internals.rows import cgutils


def _registers() -> tuple[int, int, bool]:
    """Return the size of a vector register in bytes, the number of registers, and `FUSES`."""
    target: Any = cpu_target
    triple, _, features = target.target_context.codegen().magic_tuple()
    if triple.startswith(("aarch64", "arm64")):
        return 16, 32, True
    if "+avx512f" in features:
        return 64, 32, True
    return 32 if "+avx2" in features else 16, 16, "+fma" in features


VECTOR_BYTES, REGISTERS, FUSES = _registers()
"""Size of a vector in bytes, number of vectors that a core holds, and whether it multiplies and
adds in one step: otherwise a product needs a register."""


def swapped_bytes(builder: Any, vector: Any, number: Any, swap: Any) -> Any:
    """Return a vector with the bytes of each number reversed, unless the type `swap` is None's."""
    if isinstance(swap, types.NoneType):
        return vector
    size = size_of(number)
    count = vector.type.count * size
    plain = builder.bitcast(vector, ir.VectorType(ir.IntType(8), count))
    order = ir.Constant(
        ir.VectorType(ir.IntType(32), count), [k ^ (size - 1) for k in range(count)]
    )
    return builder.bitcast(builder.shuffle_vector(plain, plain, order), vector.type)


def converted(builder: Any, vector: Any, source: Any, kind: Any) -> Any:
    """Return a vector of numbers of a numba type, converted to an LLVM type.

    Integers become floats, or integers that are at least as wide.
    """
    target = ir.VectorType(kind, vector.type.count)
    if vector.type == target:
        return vector
    if isinstance(source, types.Float):
        return (builder.fpext if source.bitwidth == 32 else builder.fptrunc)(vector, target)
    if isinstance(kind, ir.IntType):
        return (builder.sext if source.signed else builder.zext)(vector, target)
    return (builder.sitofp if source.signed else builder.uitofp)(vector, target)


FRAMES = 8 if REGISTERS == 32 else 4
"""Frames that are added together: for each of them, two sums and a vector stay in registers."""

STATE = 3
"""Vectors of each frame that `add_frames` writes."""

LONGEST = 256
"""Largest number of vectors of a frame: the sums of 16-bit values fit 32 bits, as
65535 * (1 + ... + 256) does."""

INDEX = ir.IntType(64)
CONTRACT = ("contract",)


@statement
def add_frames(
    builder: Any,
    kinds: Any,
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
) -> None:
    """Add some rows of `FRAMES` frames to the sums of pixels; write the sums of frames to `state`.

    The first row starts at `place`; of each row, `vectors` vectors are added. The first of their
    sums is at `inside`, and rows of sums are `width` numbers apart; `squares` and `origins` have
    the same order. Floats are differences from `origins`, and their squares are added up. Of
    integers, half the parabolas are added up, see `square_columns`.

    `state` gets a vector T for each frame, then a vector X and a vector Y for each. T is the sum of
    its vectors, Y the sum of what T was after each row. For floats, X is the sum of pixels times
    their column; for integers, it is the sum of what T was after each vector.
    """
    sum_kind = kinds[10].dtype
    lanes = lanes_of(sum_kind)
    number, wider, pixel = (ir.VectorType(p.type.pointee, lanes) for p in (sums, squares, flat))
    adder = _Adder(builder, kinds[0].dtype, number, not isinstance(kinds[9], types.NoneType))
    totals, moments, by_row = (adder.zeros(FRAMES) for _ in range(STATE))
    (column,) = adder.zeros(1)
    with cgutils.for_range(builder, rows, intp=INDEX) as row:
        first = builder.add(inside, builder.mul(row.index, width))
        start = builder.add(place, builder.mul(row.index, row_step))
        frames = []
        for _ in range(FRAMES):
            frames.append(vectors_at(builder, flat, start, pixel))
            start = builder.add(start, frame_step)
        of_pixels = vectors_at(builder, sums, first, number)
        of_squares = vectors_at(builder, squares, first, wider)
        of_origins = vectors_at(builder, origins, first, number) if adder.is_float else None
        builder.store(adder.constant(*range(lanes)), column)
        with cgutils.for_range(builder, vectors, intp=INDEX) as loop:
            pixels = [adder.pixels(frame, loop.index, kinds[6]) for frame in frames]
            for value, total, moment in zip(pixels, totals, moments, strict=True):
                adder.add(total, value)
                adder.add(moment, adder.moment(value, column, total))
            adder.add(column, adder.constant(*[lanes] * lanes))
            if adder.is_float:
                origin = vector_of(builder, of_origins, loop.index, sum_kind)
                pixels = [builder.fsub(value, origin) for value in pixels]
            squared = adder.squares(pixels, wider)
            adder.add(builder.gep(of_squares, [loop.index]), squared)
            adder.add(builder.gep(of_pixels, [loop.index]), adder.total(pixels))
        for k in range(FRAMES):
            adder.add(by_row[k], builder.load(totals[k]))
    out = vectors_at(builder, state, INDEX(0), number)
    for k, variable in enumerate([*totals, *moments, *by_row]):
        target = builder.gep(out, [INDEX(k)])
        builder.store(builder.load(variable), target, align=size_of(sum_kind))


def lanes_of(number: Any) -> int:
    """Return how many numbers of a numba type are in a vector."""
    return VECTOR_BYTES // size_of(number)


def size_of(number: Any) -> int:
    """Return the size of a number in bytes, which is its alignment too."""
    bits: int = number.bitwidth
    return bits // 8


def vectors_at(builder: Any, numbers: Any, index: Any, vector: Any) -> Any:
    """Return a pointer to vectors that start at an element of an array."""
    return builder.bitcast(builder.gep(numbers, [index]), vector.as_pointer())


def vector_of(builder: Any, vectors: Any, index: Any, number: Any) -> Any:
    """Return a vector of an array."""
    return builder.load(builder.gep(vectors, [index]), align=size_of(number))


@dataclass(frozen=True)
class _Adder:
    """Arithmetic of vectors of floats, or of 32-bit integers."""

    builder: Any
    source: Any
    """The numba type of the pixels."""
    number: Any
    """The LLVM type of a vector of converted pixels."""
    is_float: bool

    def constant(self, *lanes: int) -> Any:
        """Return a vector of these numbers."""
        return ir.Constant(self.number, [float(n) if self.is_float else n for n in lanes])

    def zeros(self, count: int) -> list[Any]:
        """Return variables, which LLVM keeps in registers."""
        zero = ir.Constant(self.number, None)
        return [cgutils.alloca_once_value(self.builder, zero) for _ in range(count)]

    def pixels(self, frame: Any, index: Any, swap: Any) -> Any:
        """Return a vector of pixels of a frame, with reversed bytes unless `swap` is None."""
        value = vector_of(self.builder, frame, index, self.source)
        value = swapped_bytes(self.builder, value, self.source, swap)
        return converted(self.builder, value, self.source, self.number.element)

    def plus(self, a: Any, b: Any) -> Any:
        """Return the sum of two vectors."""
        add = self.builder.fadd if self.is_float else self.builder.add
        return add(a, b, flags=CONTRACT if self.is_float else ())

    def times(self, a: Any, b: Any) -> Any:
        """Return the product of two vectors."""
        multiply = self.builder.fmul if self.is_float else self.builder.mul
        return multiply(a, b, flags=CONTRACT if self.is_float else ())

    def add(self, pointer: Any, more: Any) -> None:
        """Add a vector to one in memory, or to a variable."""
        aligned = {"align": 8 if self.is_float else 4}
        before = self.builder.load(pointer, **aligned)
        self.builder.store(self.plus(before, more), pointer, **aligned)

    def total(self, vectors: list[Any]) -> Any:
        """Return the sum of some vectors, added in pairs."""
        while len(vectors) > 1:
            pairs = zip(vectors[::2], vectors[1::2], strict=True)
            vectors = [self.plus(*pair) for pair in pairs]
        return vectors[0]

    def moment(self, value: Any, column: Any, total: Any) -> Any:
        """Return what is added to the moment of a frame for a vector."""
        if self.is_float:
            return self.times(value, self.builder.load(column))
        return self.builder.load(total)  # a multiplication would take longer

    def squares(self, values: list[Any], wider: Any) -> Any:
        """Return the sum of squares of floats; of integers half the parabolas, as `wider`."""
        if self.is_float:
            return self.total([self.times(value, value) for value in values])
        # the parabolas of four 16-bit values fit 32 bits
        groups = [values[k : k + 4] for k in range(0, len(values), 4)]
        halves = self.total([self._half_parabolas(group) for group in groups])
        return halves if wider == self.number else self.builder.zext(halves, wider)

    def _half_parabolas(self, values: list[Any]) -> Any:
        """Return half the sum of the parabolas of four integers."""
        total = self.total(values)
        squared = self.total([self.times(value, value) for value in values])
        lanes = self.number.count
        if self.source.signed:
            parabolas = self.plus(squared, total)
        else:
            largest = self.constant(*[self.source.maxval] * lanes)
            parabolas = self.builder.sub(self.times(largest, total), squared)
        return self.builder.lshr(parabolas, self.constant(*[1] * lanes))


GROUP = 32
"""Consecutive pixels that are added at once."""


@statement
def add_to_pair(
    builder: Any, kinds: Any, sums: Any, ring: Any, low: Any, high: Any, value: Any, frame: Any
) -> None:
    """Add low * value, high * value, low and high to the four sums of a pair, as one vector.

    If `low` is None, it is 1 - high. `value` was converted from the dtype of the array `frame`.
    """
    four = ir.VectorType(value.type, 4)

    def vector(*numbers: Any) -> Any:
        found = ir.Constant(four, ir.Undefined)
        for k, number in enumerate(numbers):
            found = builder.insert_element(found, number, ir.IntType(32)(k))
        return found

    one, zero = ir.Constant(value.type, 1), ir.Constant(four, (0, 0, 0, 0))
    if isinstance(kinds[2], types.NoneType):
        weights = vector(high, high, high, high)
        weights = builder.fmul(weights, ir.Constant(four, (-1, 1, -1, 1)), flags=CONTRACT)
        weights = builder.fadd(weights, ir.Constant(four, (1, 0, 1, 0)), flags=CONTRACT)
    else:
        weights = vector(low, high, low, high)
    products = builder.fmul(weights, vector(value, value, one, one), flags=CONTRACT)
    place = vectors_at(builder, sums, builder.mul(ring, INDEX(4)), four)
    if isinstance(kinds[5].dtype, types.Float):  # a NaN must not reach a ring without a weight
        counts = builder.fcmp_ordered(">", weights, zero)
        products = builder.select(counts, products, zero)
    after = builder.fadd(builder.load(place, align=8), products, flags=CONTRACT)
    builder.store(after, place, align=8)


@statement
def add_group(
    builder: Any,
    kinds: Any,
    flat: Any,
    place: Any,
    step: Any,
    swap: Any,
    mask: Any,
    number: Any,
    sums: Any,
) -> None:
    """Add a group of pixels to `sums`, as vectors, those where row `number` of `mask` is True.

    The same pixels of the next frame, which is `step` elements away, are prefetched: the processor
    does not follow the edges of a detector. Without this, and with groups in another order, a ring
    over frames in memory took 1.3 to 1.8 times as long; a detector of all pixels took 0.9 times.
    Loops that LLVM itself vectorizes took 1.1 to 3 times as long.
    """
    pixel = kinds[0].dtype
    source, kind = ir.VectorType(flat.type.pointee, GROUP), sums.type.pointee
    group = builder.load(vectors_at(builder, flat, place, source), align=1)
    following = vectors_at(builder, flat, builder.add(place, step), source)
    for line in range(0, GROUP * size_of(pixel), CACHE_LINE):
        prefetch_at(builder, following, line)
    group = swapped_bytes(builder, group, pixel, kinds[3])
    bits = ir.VectorType(ir.IntType(8), GROUP)
    inside = vectors_at(builder, mask, builder.mul(number, INDEX(GROUP)), bits)
    inside = builder.icmp_unsigned("!=", builder.load(inside, align=1), ir.Constant(bits, None))
    group = builder.select(inside, group, ir.Constant(source, None))
    group = converted(builder, group, pixel, kind)
    target = vectors_at(builder, sums, INDEX(0), group.type)
    add = builder.add if isinstance(kind, ir.IntType) else builder.fadd
    builder.store(add(builder.load(target, align=1), group), target, align=1)
