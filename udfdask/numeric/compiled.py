"""How kernels are compiled: when first called, without the GIL, kept on disk for the next time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit

# What lets sums be vectorised. Unlike fastmath=True it leaves NaN and infinity alone.
_SUMS = frozenset({"contract", "nsz", "reassoc"})


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function compiled by numba, whose sums of floats may be added in any order."""
    options = {"nogil": True, "fastmath": set(_SUMS)}
    try:
        kernel: Callable[..., Any] = njit(**options, cache=True)(function)
    except RuntimeError:  # no folder to keep it in: neither beside the source nor of the user
        kernel = njit(**options)(function)
    return kernel
