"""All array backends: the one list to which a new type of arrays is added."""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.arrays.backends.backend import Backend, DenseBackend
from udfdask.arrays.backends.dense_backends import CUDA, CUPY, NUMPY
from udfdask.arrays.backends.matrix_backends import (
    CUPY_SCIPY_COO,
    CUPY_SCIPY_CSC,
    CUPY_SCIPY_CSR,
    SCIPY_COO,
    SCIPY_COO_ARRAY,
    SCIPY_CSC,
    SCIPY_CSC_ARRAY,
    SCIPY_CSR,
    SCIPY_CSR_ARRAY,
)
from udfdask.arrays.backends.pydata_backends import COO, DOK, GCXS

BACKENDS: tuple[Backend, ...] = (
    CUPY,
    CUDA,
    COO,
    GCXS,
    DOK,
    SCIPY_COO,
    SCIPY_CSR,
    SCIPY_CSC,
    SCIPY_COO_ARRAY,
    SCIPY_CSR_ARRAY,
    SCIPY_CSC_ARRAY,
    CUPY_SCIPY_COO,
    CUPY_SCIPY_CSR,
    CUPY_SCIPY_CSC,
    NUMPY,
)
"""All of them. The first one that owns an array is that of the array."""

_BY_NAME = {backend.name: backend for backend in BACKENDS}
_SPARSE = {
    (backend.name.partition(".")[0], backend.name.rpartition(".")[2]): backend
    for backend in BACKENDS
    if backend.is_sparse
}
"""Sparse backends by package and class. They are looked up several times for each tile."""
_SPARSE_PACKAGES = {package for package, _ in _SPARSE}
_DENSE = [backend for backend in BACKENDS if isinstance(backend, DenseBackend)]


def backend_named(name: str) -> Backend:
    """Return the backend of this name; raise a KeyError if there is none."""
    return _BY_NAME[name]


def backend_of(array: Any) -> Backend:
    """Return the backend of a block, or of the empty array that stands for blocks.

    Every other object is taken for something of which NumPy can make an array.
    """
    kind = type(array)
    if kind is np.ndarray:
        return NUMPY
    sparse = _SPARSE.get(_origin(kind))
    return sparse or next((dense for dense in _DENSE if dense.owns(kind)), NUMPY)


def _origin(kind: type) -> tuple[str, str]:
    """Return the package that a class comes from, and its name."""
    return kind.__module__.partition(".")[0], kind.__name__


def is_unknown_sparse(array: Any) -> bool:
    """Return whether this is a sparse array in a format without a backend, such as LIL."""
    origin = _origin(type(array))
    return origin[0] in _SPARSE_PACKAGES and origin not in _SPARSE


def namespace_of(array: Any) -> Any:
    """Return the module that makes dense arrays in the memory of an array."""
    return backend_of(array).dense.namespace()


def fill_value(array: Any) -> Any:
    """Return the value of a sparse array where nothing is stored, 0 for all others."""
    return getattr(array, "fill_value", 0) if backend_of(array).is_sparse else 0
