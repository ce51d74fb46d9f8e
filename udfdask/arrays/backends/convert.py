"""Converts pieces of data between array backends, by way of the package `sparseconverter`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from udfdask.arrays.backends import names
from udfdask.arrays.backends.detect import backend_of, converter
from udfdask.arrays.backends.device import to_device, to_host
from udfdask.arrays.backends.pydata_sparse import gcxs_rows, gcxs_to_csr, is_rows


def to_backend(array: Any, backend: str, shape: tuple[int, ...]) -> Any:
    """Return an array in another backend, in `shape`: (frames, *part of the signal).

    Backends with two dimensions flatten the signal. What needs no conversion is not copied.
    """
    source = backend_of(array)
    if source != backend:
        if source == names.SPARSE_GCXS and is_rows(array):
            array, source = gcxs_to_csr(array), names.SCIPY_CSR_ARRAY
        if source != backend:
            array = _converted(array, source, backend)
    target = (shape[0], math.prod(shape[1:])) if backend in names.D2_BACKENDS else shape
    return array if array.shape == target else reshaped(array, backend, target)


def reshaped(array: Any, backend: str, shape: tuple[int, ...]) -> Any:
    """Return an array in another shape with the same first dimension."""
    if backend == names.SPARSE_GCXS and is_rows(array):
        return gcxs_rows((array.data, array.indices, array.indptr), shape, (0,))
    return array.reshape(shape)


def as_backend_of(array: Any, target: Any) -> Any:
    """Return an array, a number or a sparse array in the backend of another array."""
    wanted, source = backend_of(target), backend_of(array)
    if source == wanted:
        return np.asarray(array) if wanted == names.NUMPY else array
    return _converted(array, source, wanted)


def _converted(array: Any, source: str, backend: str) -> Any:
    """Return an array of backend `source` in another one."""
    if source == names.CUPY and backend == names.NUMPY:
        return to_host(array)
    if source == names.NUMPY and backend == names.CUPY:
        return to_device(array)
    if not array.dtype.isnative:  # sparse has no other byte order, nor have kernels of SciPy
        array = array.astype(array.dtype.newbyteorder("="))
    return converter(f"converting to {backend}").for_backend(array, backend)
