"""How kernels are compiled: when first called, without the GIL, kept on disk for the next time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from numba import njit

# What lets sums be vectorised. Unlike fastmath=True it leaves NaN and infinity alone.
_SUMS = frozenset({"contract", "nsz", "reassoc"})


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function compiled by numba, whose sums of floats may be added in any order."""
    kernel = njit(nogil=True, fastmath=set(_SUMS))(function)
    with suppress(RuntimeError):  # no folder to keep it in: neither beside the source nor at home
        kernel.enable_caching()
    compiled_function: Callable[..., Any] = kernel
    return compiled_function
