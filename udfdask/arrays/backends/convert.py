"""Converts pieces of data between array backends."""

from __future__ import annotations

from typing import Any

from udfdask.arrays.backends.backend import Backend, DenseBackend, SparseBackend
from udfdask.arrays.backends.converter import converted
from udfdask.arrays.backends.dense_backends import NUMPY
from udfdask.arrays.backends.table import backend_of
from udfdask.types import AnyArray


def to_backend(array: Any, backend: Backend, shape: tuple[int, ...]) -> Any:
    """Return an array in another backend, in `shape`: (frames, *part of the signal).

    Backends with two dimensions flatten the signal. What needs no conversion is not copied.
    """
    array = in_backend(array, backend)
    target = backend.shape_of(shape[0], shape[1:]) if shape else shape
    return array if array.shape == target else backend.reshape(array, target)


def in_backend(array: Any, backend: Backend) -> Any:
    """Return an array or a number in another backend; it is flattened for matrices.

    What needs no conversion is not copied.
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
    """Return an array, a number or a sparse array as a NumPy array, uncopied if it is one."""
    host: AnyArray = in_backend(array, NUMPY)
    return host
