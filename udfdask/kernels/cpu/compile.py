"""How kernels are compiled: on first use for the dtypes at hand, and kept on disk.

A kernel may call kernels of any file in this folder: when one file changes, all are compiled again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import extending, njit

from udfdask.kernels.cpu.kernel_cache import cache_of


def _compiler(*fastmath: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator for functions of arrays that lets other threads run meanwhile."""
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": set(fastmath)}

    def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
        done: Any = njit(**options)(function)
        done._cache = cache_of(function, " ".join(sorted(fastmath)))
        kernel: Callable[..., Any] = done
        return kernel

    return compiled


kernel = _compiler()
"""A function of arrays."""

contracting_kernel = _compiler("contract")
"""One that may round `a * b + c` once, which is faster and no less accurate."""

reordering_kernel = _compiler("reassoc", "nsz")
"""One that may add in any order, as a sum in vector registers has to."""

summing_kernel = _compiler("contract", "nsz", "reassoc")
"""One that may do both. Unlike `fastmath=True` it leaves NaN and infinity alone."""

inner_kernel = njit(nogil=True, error_model="numpy", fastmath={"contract"})
"""Part of other kernels, kept on disk within them."""

intrinsic: Any = extending.intrinsic
"""A function of which we write the machine code; its types are not those that kernels see."""
