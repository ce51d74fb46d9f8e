"""List all array backends: a new array type is added to this list only."""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.arrays.backends.backend import Backend, DenseBackend
from udfdask.arrays.backends.dense_backends import CUDA, CUPY, NUMPY
from udfdask.arrays.backends.matrix_backends import MATRICES
from udfdask.arrays.backends.pydata_backends import COO, DOK, GCXS
from udfdask.errors import ArgumentTypeError, ArgumentValueError

BACKENDS: tuple[Backend, ...] = (CUPY, CUDA, COO, GCXS, DOK, *MATRICES, NUMPY)
"""All backends. An array belongs to the first dense backend that owns its class."""

_BY_NAME = {backend.name: backend for backend in BACKENDS}
_SPARSE = {
    (backend.name.partition(".")[0], backend.name.rpartition(".")[2]): backend
    for backend in BACKENDS
    if backend.is_sparse
}
"""Sparse backends by package and class: a dictionary, as each tile is looked up several times."""
_SPARSE_PACKAGES = {package for package, _ in _SPARSE}
_DENSE = [backend for backend in BACKENDS if isinstance(backend, DenseBackend)]


def backend_named(name: str) -> Backend:
    """Return the backend with this name; raise a KeyError if there is none."""
    return _BY_NAME[name]


def known_backends(given: Any, who: str) -> tuple[Backend, ...]:
    """Return the array backends of these names, each once; `who` says where they come from."""
    given = (given,) if isinstance(given, str) else given
    if not isinstance(given, (tuple, list, set, frozenset)):
        raise ArgumentTypeError(
            f"{who}: the name of an array backend, or a tuple of several, is needed"
        )
    names = sorted(backend.name for backend in BACKENDS)
    unknown = [name for name in given if name not in names]
    if unknown or not given:
        raise ArgumentValueError(f"{who}: {unknown} is no array backend; choose among {names}")
    # a set has no order of preference
    ordered = sorted(given) if isinstance(given, (set, frozenset)) else given
    return tuple(map(backend_named, dict.fromkeys(ordered)))


def backend_of(array: Any) -> Backend:
    """Return the backend of a block or of a meta array; it is NumPy for any unknown type."""
    kind = type(array)
    if kind is np.ndarray:
        return NUMPY
    sparse = _SPARSE.get(_origin(kind))
    return sparse or next((dense for dense in _DENSE if dense.owns(kind)), NUMPY)


def _origin(kind: type) -> tuple[str, str]:
    """Return the package of a class, and its name."""
    return kind.__module__.partition(".")[0], kind.__name__


def is_unknown_sparse(array: Any) -> bool:
    """Return whether an array has a sparse format without a backend, such as LIL."""
    origin = _origin(type(array))
    return origin[0] in _SPARSE_PACKAGES and origin not in _SPARSE


def namespace_of(array: Any) -> Any:
    """Return the module of dense arrays in the same memory as an array: NumPy or CuPy."""
    return backend_of(array).dense.namespace()


def fill_value(array: Any) -> Any:
    """Return the value of the entries that a sparse array does not store; 0 for other arrays."""
    return getattr(array, "fill_value", 0) if backend_of(array).is_sparse else 0
