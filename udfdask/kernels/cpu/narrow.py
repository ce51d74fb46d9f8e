"""Arithmetic of 32-bit integers in 32 bits; numba's own operators widen them to 64."""

from __future__ import annotations

from typing import Any

from numba import types

from udfdask.kernels.cpu.compile import intrinsic


def _operation(integer: str, floating: str) -> Any:
    """Return an operation of two numbers of one type, which the result has too."""

    @intrinsic
    def operation(context: Any, first: Any, second: Any) -> Any:
        if first != second:
            return None  # numba says for which types there is nothing

        def generate(_: Any, builder: Any, __: Any, values: Any) -> Any:
            if isinstance(first, types.Integer):
                return getattr(builder, integer)(*values)
            return getattr(builder, floating)(*values, flags=("contract", "nsz", "reassoc"))

        return first(first, second), generate

    return operation


plus = _operation("add", "fadd")
"""Return the sum, modulo 2**32 for integers."""

times = _operation("mul", "fmul")
"""Return the product, modulo 2**32 for integers."""
