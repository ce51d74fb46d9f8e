"""Convert tiles and blocks between array backends."""

from __future__ import annotations

from typing import Any

from udfdask.backends.backend import Backend, DenseBackend, SparseBackend
from udfdask.backends.dense_backends import NUMPY
from udfdask.backends.sparse_rows import converted
from udfdask.backends.table import backend_of
from udfdask.types import AnyArray


def to_backend(array: Any, backend: Backend, shape: tuple[int, ...]) -> Any:
    """Convert an array to a backend and reshape it to `shape`: (frames, *part of the signal).

    Matrices flatten the signal. An array of that backend is not copied.
    """
    array = in_backend(array, backend)
    target = backend.shape_of(shape[0], shape[1:]) if shape else shape
    return array if array.shape == target else backend.reshape(array, target)


def in_backend(array: Any, backend: Backend) -> Any:
    """Convert an array or a number to a backend; matrices flatten the signal.

    An array of that backend is not copied.
    """
    source = backend_of(array)
    if source == backend:
        return array if backend != NUMPY else NUMPY.from_host(array)
    if isinstance(source, DenseBackend) and isinstance(backend, DenseBackend):
        return backend.from_host(source.to_host(array))
    if isinstance(source, DenseBackend) and not source.is_in_converter:
        array = source.to_host(array)
    if isinstance(source, SparseBackend):
        array = source.for_conversion(array)
        if backend_of(array) == backend:
            return array
    if backend.is_in_converter:
        return converted(array, backend.name)
    return backend.dense.from_host(converted(array, NUMPY.name))


def to_host(array: Any) -> AnyArray:
    """Convert an array, a sparse array or a number to a NumPy array; do not copy NumPy arrays."""
    host: AnyArray = in_backend(array, NUMPY)
    return host
