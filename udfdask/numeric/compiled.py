"""How kernels are compiled: on first use for the dtypes at hand, and kept on disk.

A kernel calls kernels of its own file only: numba does not notice when one that was compiled into
another file's has changed, and would go on with what is on disk.
"""

from __future__ import annotations

from numba import njit

kernel = njit(nogil=True, cache=True, error_model="numpy")
"""A function of arrays that lets other threads run."""

contracting_kernel = njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"})
"""One that may round `a * b + c` once, which is faster and no less accurate."""

reordering_kernel = njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc"})
"""One that may add in any order, as a sum in vector registers has to."""

inner_kernel = njit(nogil=True, error_model="numpy", fastmath={"contract"})
"""Part of kernels of the same file, kept on disk within them."""
