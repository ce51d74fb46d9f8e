"""All array types: found, chosen for a UDF, converted to each other, and checked in tasks.

The choice of a backend depends on the backends alone, so that the plan and every worker choose the
same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from udfdask.backends.backend import CUDA, CUPY, NUMPY, Backend, DenseBackend
from udfdask.backends.sparse_rows import SparseBackend, converted, converter
from udfdask.backends.sparse_types import DOK, SPARSE
from udfdask.base.types import AnyArray
from udfdask.errors import ArgumentTypeError, ArgumentValueError, UDFError

BACKENDS: tuple[Backend, ...] = (NUMPY, CUPY, CUDA, *SPARSE)
"""All backends."""

_BY_NAME = {backend.name: backend for backend in BACKENDS}
_BY_CLASS = {(one.name.partition(".")[0], one.name.rpartition(".")[2]): one for one in SPARSE}
"""Sparse backends by package and class: a dictionary, as each tile is looked up several times."""
_PACKAGES = {package for package, _ in _BY_CLASS}


def backend_named(name: str) -> Backend:
    """Return the backend with this name; raise a KeyError if there is none."""
    return _BY_NAME[name]


def known_backends(given: Any, who: str) -> tuple[Backend, ...]:
    """Return the array backends of these names, each once; `who` says where they come from."""
    given = (given,) if isinstance(given, str) else given
    if not isinstance(given, (tuple, list, set, frozenset)):
        raise ArgumentTypeError(f"{who}: name an array backend, or several in a tuple")
    names = sorted(_BY_NAME)
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
    return _BY_CLASS.get(_origin(kind)) or (CUPY if CUPY.owns(kind) else NUMPY)


def _origin(kind: type) -> tuple[str, str]:
    return kind.__module__.partition(".")[0], kind.__name__


def is_unknown_sparse(array: Any) -> bool:
    """Return whether an array has a sparse format without a backend, such as LIL."""
    origin = _origin(type(array))
    return origin[0] in _PACKAGES and origin not in _BY_CLASS


def namespace_of(array: Any) -> Any:
    """Return the module of dense arrays in the same memory as an array: NumPy or CuPy."""
    return backend_of(array).dense.namespace()


def fill_value(array: Any) -> Any:
    """Return the value of the entries that a sparse array does not store; 0 for other arrays."""
    return getattr(array, "fill_value", 0) if backend_of(array).is_sparse else 0


def _names(field: str, value: Any) -> frozenset[str]:
    return frozenset(one.name for one in BACKENDS if getattr(one, field) == value)


class BackendNames:
    """Names of array backends, and sets of names with a common property."""

    BACKEND_NUMPY: ClassVar[str] = "numpy"
    BACKEND_CUPY: ClassVar[str] = "cupy"
    BACKEND_CUDA: ClassVar[str] = "cuda"
    BACKEND_SPARSE_COO: ClassVar[str] = "sparse.COO"
    BACKEND_SPARSE_GCXS: ClassVar[str] = "sparse.GCXS"
    BACKEND_SPARSE_DOK: ClassVar[str] = "sparse.DOK"
    BACKEND_SCIPY_COO: ClassVar[str] = "scipy.sparse.coo_matrix"
    BACKEND_SCIPY_CSR: ClassVar[str] = "scipy.sparse.csr_matrix"
    BACKEND_SCIPY_CSC: ClassVar[str] = "scipy.sparse.csc_matrix"
    BACKEND_SCIPY_COO_ARRAY: ClassVar[str] = "scipy.sparse.coo_array"
    BACKEND_SCIPY_CSR_ARRAY: ClassVar[str] = "scipy.sparse.csr_array"
    BACKEND_SCIPY_CSC_ARRAY: ClassVar[str] = "scipy.sparse.csc_array"
    BACKEND_CUPY_SCIPY_COO: ClassVar[str] = "cupyx.scipy.sparse.coo_matrix"
    BACKEND_CUPY_SCIPY_CSR: ClassVar[str] = "cupyx.scipy.sparse.csr_matrix"
    BACKEND_CUPY_SCIPY_CSC: ClassVar[str] = "cupyx.scipy.sparse.csc_matrix"
    BACKEND_ALL: ClassVar[tuple[str, ...]] = tuple(
        one.name for one in BACKENDS if one not in (CUDA, DOK)
    )
    CPU_BACKENDS: ClassVar[frozenset[str]] = _names("device", "cpu")
    CUDA_BACKENDS: ClassVar[frozenset[str]] = _names("device", "cuda")
    CUPY_BACKENDS: ClassVar[frozenset[str]] = _names("on_device", True)
    SPARSE_BACKENDS: ClassVar[frozenset[str]] = _names("is_sparse", True)
    DENSE_BACKENDS: ClassVar[frozenset[str]] = _names("is_sparse", False)
    D2_BACKENDS: ClassVar[frozenset[str]] = _names("is_matrix", True)
    ND_BACKENDS: ClassVar[frozenset[str]] = _names("is_matrix", False)


Offer = tuple[Backend, ...]
"""The backends that a UDF supports, the preferred one first."""


def choose_backends(native: Backend, offers: Sequence[Offer], *, corrected: bool) -> Offer:
    """Return the backend of each UDF, from the backend of the data and the offers of the UDFs.

    1. A UDF that offers the backend of the data gets it, since that needs no conversion. A UDF
       that offers both NumPy and CuPy therefore gets NumPy over NumPy chunks: it may run on any
       worker, and gives the same bits on all of them.
    2. Otherwise it gets a backend on the same device, and a sparse one for sparse data, if it
       offers such a backend.
    3. Among these, it gets the one with the cheapest conversion, which is done once for all UDFs
       with the same backend. Of equally cheap ones, it gets the one that it prefers.

    Corrected data are dense: the dense backend in the same memory then takes the place of `native`.
    """
    native = native.dense if corrected else native
    return tuple(_choose(native, offer) for offer in offers)


@lru_cache(maxsize=1024)
def _choose(native: Backend, offer: Offer) -> Backend:
    if native in offer:
        return native
    near = [one for one in offer if one.device == native.device] or offer
    near = [one for one in near if one.is_sparse and native.is_sparse] or near
    return near[0] if len(near) == 1 else min(near, key=lambda one: _cost(native, one))


def _cost(native: Backend, target: Backend) -> float:
    """Return the cost of a conversion, as measured by the authors of `sparseconverter`."""
    return float(converter("converting blocks").conversion_cost(native.name, target.name))


def to_backend(array: Any, backend: Backend, shape: tuple[int, ...]) -> Any:
    """Convert an array as `in_backend` does, and reshape it to (frames, *part of the signal)."""
    array = in_backend(array, backend)
    target = (shape[0], math.prod(shape[1:])) if backend.is_matrix and shape else shape
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
    if isinstance(source, SparseBackend):
        array = source.for_conversion(array)
        if backend_of(array) == backend:
            return array
    return converted(array, backend.name)


def to_host(array: Any) -> AnyArray:
    """Convert an array, a sparse array or a number to a NumPy array; do not copy NumPy arrays."""
    host: AnyArray = in_backend(array, NUMPY)
    return host


def plain_block(block: Any, what: str) -> Any:
    """Return a block as an array of a known backend: a NumPy array if its type is unknown.

    A block with masked values is refused, a mask that hides no value is dropped.
    """
    mask = getattr(block, "mask", None)
    if mask is not None and not callable(mask) and np.any(mask):
        raise UDFError(
            f"{what} has masked values, but its dask array announced none, and the values under "
            "the mask would count: fill them, with "
            "array.map_blocks(lambda block: np.ma.filled(block, 0), dtype=array.dtype)"
        )
    if isinstance(block, np.ndarray) or backend_of(block) != NUMPY or is_unknown_sparse(block):
        return block
    try:
        return np.asarray(block)
    except (TypeError, ValueError) as error:
        raise UDFError(
            f"{what} of type {type(block).__name__} came, which NumPy cannot convert to an array: "
            f"{error}"
        ) from None


def check_block(array: Any, shape: tuple[int, ...], dtype: np.dtype[Any], what: str) -> None:
    """Raise if an array has another shape, or cannot be cast to the announced dtype."""
    if tuple(array.shape) != shape:
        raise UDFError(
            f"{what} of shape {shape} was announced, but one of shape {tuple(array.shape)} came: "
            "correct the chunks of the dask array"
        )
    if array.dtype != dtype and not np.can_cast(array.dtype, dtype, "same_kind"):
        raise UDFError(
            f"{what} of dtype {dtype} was announced, but one of dtype {array.dtype} came: correct "
            "the dtype (meta) of the dask array"
        )
