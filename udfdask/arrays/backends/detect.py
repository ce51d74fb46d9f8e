"""Which array backend an array is of."""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.arrays.backends import names
from udfdask.arrays.backends.device import is_on_device
from udfdask.errors import missing_package

_ROOTS = frozenset({"cupyx", "scipy", "sparse"})
"""Packages whose arrays `sparseconverter` knows by type."""


def backend_of(array: Any) -> str:
    """Take a block, or the empty array that stands for blocks; return the name of its backend.

    What no backend knows is taken for something that NumPy can make an array of.
    """
    if isinstance(array, np.ndarray):
        return names.NUMPY
    root = type(array).__module__.partition(".")[0]
    if root not in _ROOTS:
        return names.CUPY if is_on_device(array) else names.NUMPY
    found = converter(f"{root}.{type(array).__name__} blocks").get_backend(array)
    return str(found) if found in names.BACKENDS else names.NUMPY


def is_unknown_sparse(array: Any) -> bool:
    """Return whether this is a sparse array in a format that no backend stands for, as LIL is."""
    root = type(array).__module__.partition(".")[0]
    if root not in _ROOTS:
        return False
    purpose = f"{root}.{type(array).__name__} blocks"
    return converter(purpose).get_backend(array) not in names.BACKENDS


def converter(purpose: str) -> Any:
    """Return the package that converts between backends, which `purpose` takes."""
    try:
        import sparseconverter
    except ImportError as error:
        raise missing_package(
            error.name or "sparseconverter", purpose=purpose, extra="sparse"
        ) from None
    return sparseconverter


def dense(backend: str) -> str:
    """Return the dense backend on the side of another: of the host, or of the device."""
    return names.CUPY if backend in names.CUPY_BACKENDS else names.NUMPY


def device_class(backend: str) -> str:
    """Return ``'cuda'`` for what needs a CUDA device, else ``'cpu'``."""
    return "cuda" if backend in names.CUDA_BACKENDS else "cpu"


def fill_value(array: Any) -> Any:
    """Return what a sparse array holds where nothing is stored, 0 for all others."""
    return getattr(array, "fill_value", 0) if not isinstance(array, np.ndarray) else 0


def holds(backend: str, dtype: np.dtype[Any]) -> bool:
    """Return whether a format has a dtype: sparse ones have no dates, and not all floats."""
    missing = ""
    if backend == names.SPARSE_GCXS:  # compiled by numba
        missing = "mMegG"
    elif backend in names.D2_BACKENDS:
        missing = "mMe"
    elif backend in names.SPARSE_BACKENDS:
        missing = "mM"
    return dtype.char not in missing
