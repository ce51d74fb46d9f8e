"""Vectors in LLVM code: their size, numbers with reversed bytes, and converted numbers."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core.registry import cpu_target


def _registers() -> tuple[int, int]:
    """Return the size of a vector register in bytes, and the number of registers."""
    target: Any = cpu_target
    _, _, features = target.target_context.codegen().magic_tuple()
    if "+avx512f" in features:
        return 64, 32
    return 32 if "+avx2" in features else 16, 16


VECTOR_BYTES, REGISTERS = _registers()
"""Size of a vector in bytes, and number of vectors that a core holds."""


def reversed_bytes(builder: Any, vector: Any, size: int) -> Any:
    """Return a vector of numbers with the bytes of each number reversed; `size` is their number."""
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
