"""Compile kernels on their first call with each dtype, and keep them on disk.

A kernel may call kernels of any file in this folder: when one file changes, all are compiled again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import extending, njit

from udfdask.kernels.cpu.kernel_cache import cache_of


def _options(*fastmath: str) -> dict[str, Any]:
    """Return numba's options; kernels release Python's lock (GIL)."""
    # no C code calls kernels: a sum of frames compiles in 1.2 instead of 1.45 s without the wrapper
    return {
        "nogil": True,
        "error_model": "numpy",
        "fastmath": set(fastmath),
        "no_cfunc_wrapper": True,
    }


def _compiler(*fastmath: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that compiles functions of arrays and keeps them on disk."""

    def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
        dispatcher: Any = njit(**_options(*fastmath))(function)
        dispatcher._cache = cache_of(function, " ".join(sorted(fastmath)))
        kernel: Callable[..., Any] = dispatcher
        return kernel

    return compiled


kernel = _compiler()
"""Compile a function of arrays."""

contracting_kernel = _compiler("contract")
"""Allow `a * b + c` with a single rounding, which is faster and at least as accurate."""

reordering_kernel = _compiler("reassoc", "nsz")
"""Allow additions in any order, which sums in vector registers need."""

summing_kernel = _compiler("contract", "nsz", "reassoc")
"""Allow both. Unlike `fastmath=True`, this does not change NaN and infinity."""


def _inner_compiler(*fastmath: str) -> Any:
    """Return a decorator that compiles functions that only kernels call."""
    # Python does not call them either: without this wrapper, kernels compile in 0.8 of the time
    options = _options(*fastmath) | {"no_cpython_wrapper": True}
    return njit(**options)


inner_kernel = _inner_compiler("contract")
"""Compile a function that only kernels call. It is stored as a part of them."""

rounding_inner_kernel = _inner_compiler()
"""Do the same, but each product is rounded: `a * n - b * m` is 0 if both are equal."""

intrinsic: Any = extending.intrinsic
"""Compile a function whose body is LLVM code. It gets the types of its arguments, not values."""
