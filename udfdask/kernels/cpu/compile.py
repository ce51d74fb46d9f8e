"""Compile kernels on their first call with each dtype, and keep them on disk.

A kernel may call kernels of any file in this folder: when one file changes, all are compiled again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba import extending

from udfdask.kernels.cpu.kernel_cache import cache_of

ALLOCATING = frozenset({"empty", "full", "zeros"})
"""Functions that make an array in a kernel."""


def _compile(function: Callable[..., Any], fastmath: tuple[str, ...], **options: bool) -> Any:
    """Return a function that compiles itself; kernels release Python's lock (GIL)."""
    # no C code calls kernels: without the wrapper for it, they compile in 0.85 of the time; and in
    # 0.85 of it again if they do not count references to arrays, which only new arrays need
    njit: Any = numba.njit
    return njit(
        nogil=True,
        error_model="numpy",
        fastmath=set(fastmath),
        no_cfunc_wrapper=True,
        _nrt=not ALLOCATING.isdisjoint(function.__code__.co_names),
        **options,
    )(function)


def _compiler(*fastmath: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that compiles functions of arrays and keeps them on disk."""

    def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
        dispatcher = _compile(function, fastmath)
        dispatcher._cache = cache_of(function, " ".join(sorted(fastmath)))
        kernel: Callable[..., Any] = dispatcher
        return kernel

    return compiled


def _inner_compiler(*fastmath: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that compiles functions that only kernels call."""

    def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
        # kernels compile in 0.8 of the time without the wrapper for Python
        kernel: Callable[..., Any] = _compile(function, fastmath, no_cpython_wrapper=True)
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

inner_kernel = _inner_compiler("contract")
"""Compile a function that only kernels call. It is stored as a part of them."""

rounding_inner_kernel = _inner_compiler()
"""Do the same, but each product is rounded: `a * n - b * m` is 0 if both are equal."""

intrinsic: Any = extending.intrinsic
"""Compile a function whose body is LLVM code. It gets the types of its arguments, not values."""
