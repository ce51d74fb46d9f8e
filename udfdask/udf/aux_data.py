"""Auxiliary data: a parameter with a value for each frame or pixel; a UDF sees the current part."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from udfdask.backends.backend import locked
from udfdask.backends.table import backend_of
from udfdask.base.types import AnyArray, Kind
from udfdask.errors import ArgumentTypeError, ArgumentValueError, NotAvailableError
from udfdask.geometry.labels import AxisLabels, DataLabels, aligned, labels_of, plain_array
from udfdask.geometry.shapes import Shape
from udfdask.udf.buffers import check_extra_shape, check_kind


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class AuxData:
    """Hold values for each frame (`nav`), each pixel (`sig`) or the whole run (`single`).

    Created by `UDF.aux_data` and passed to a UDF as a parameter. While the UDF runs, the parameter
    is a read-only array with the values that belong to the current data.

    Examples
    --------
    >>> import numpy as np, udfdask as ud
    >>> factors = ud.UDF.aux_data(np.arange(6.0).reshape(2, 3), kind="nav")
    >>> factors.kind, factors.shape, factors.dtype
    ('nav', (2, 3), dtype('float64'))
    """

    kind: Kind
    """Whether there is one value for each frame, for each pixel, or for the run."""
    extra_shape: tuple[int, ...]
    """Shape of each value."""
    dtype: np.dtype[Any]
    """Dtype of the values."""
    data: Any
    """All values: a NumPy or dask array in any layout; None in a task, which gets its own part."""
    shape: tuple[int, ...]
    """Shape of the data as the user passed them."""
    labels: AxisLabels | None = None
    """Labels of the axes of the data, if they are a DataArray or a signal."""

    @property
    def is_lazy(self) -> bool:
        """Whether the values are a dask array."""
        return hasattr(self.data, "__dask_graph__")

    @property
    def nbytes(self) -> int:
        """Size in bytes of the values that are in memory; lazy values count as 0."""
        return 0 if self.data is None or self.is_lazy else int(self.data.nbytes)

    def without_data(self) -> AuxData:
        """Return a copy without the values, which is cheap to send to tasks."""
        return replace(self, data=None, labels=None)

    def with_data(self, data: Any) -> AuxData:
        """Return a copy with other values, in any layout of the right size."""
        values = np.asarray(data, self.dtype)
        return replace(self, data=values, shape=tuple(np.shape(data)), labels=None)

    def full_shape(self, shape: Shape) -> tuple[int, ...]:
        """Return the full shape: (*nav or *sig, *extra_shape); (1,) for a single number."""
        if self.kind == "single":
            return self.extra_shape or (1,)
        return (*(shape.nav if self.kind == "nav" else shape.sig), *self.extra_shape)

    def over(self, shape: Shape) -> Any:
        """Return all values for a dataset, of `full_shape`; a NumPy array is a read-only view."""
        full = reshaped(self.data, self.full_shape(shape))
        if isinstance(full, np.ndarray):
            full.flags.writeable = False
        return full


def reshaped(values: Any, shape: tuple[int, ...]) -> Any:
    """Reshape a NumPy or dask array."""
    # dask cannot reshape an array with several axes but no elements
    return values.reshape(shape) if values.size else np.empty_like(values, shape=shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnavailableAux(NDArrayOperatorsMixin):
    """Stand in for the aux data of all frames on a worker, where only shape and dtype are known.

    If `get_result_buffers` uses values and fails here, the declaration of the plan counts.
    """

    name: str
    """Name of the parameter."""
    shape: tuple[int, ...]
    """Shape of all values, (frames, *extra_shape)."""
    dtype: np.dtype[Any]
    """Dtype of the values."""

    def _no_values(self, *args: Any, **kwargs: Any) -> Any:
        raise NotAvailableError(
            f"the values of aux data params.{self.name} are not available here: a task only has "
            "the values of its own frames; use them in get_task_data or in later methods"
        )

    __array__ = __array_ufunc__ = __getitem__ = __len__ = _no_values

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._no_values()


def make_aux(data: Any, kind: Any, extra_shape: Any, dtype: Any) -> AuxData:
    """Create aux data; raise if an argument is invalid."""
    labels, data = labels_of(data), plain_array(data)
    dtype = None if dtype is None else np.dtype(dtype)
    if isinstance(getattr(data, "_meta", data), np.ma.MaskedArray):
        raise ArgumentTypeError(
            "aux_data got a masked array, but masks are not kept: fill the masked values, with "
            "array.filled(value) or dask.array.ma.filled(array, value)"
        )
    if hasattr(data, "__dask_graph__"):
        has_chunks = isinstance(getattr(data, "chunks", None), tuple)
        is_array = has_chunks and not backend_of(data._meta).is_sparse
    else:
        is_array = not hasattr(data, "dtype") or isinstance(data, (np.ndarray, np.generic))
        if is_array:  # lists are converted to a dtype
            data = np.asarray(data, dtype=None if hasattr(data, "dtype") else dtype)
    if not is_array:
        raise ArgumentTypeError(
            f"aux_data takes a NumPy or dask array, not a {type(data).__name__}: convert it with "
            "np.asarray(...), pass its .data, or make it dense with .todense(), also in its blocks"
        )
    native = data.dtype.newbyteorder("=")
    if dtype is not None and native != dtype.newbyteorder("="):
        raise ArgumentTypeError(
            f"aux_data got data of dtype {data.dtype}, but dtype={dtype} was declared: pass "
            f"dtype={str(data.dtype)!r}, or convert the data with .astype(...)"
        )
    if any(math.isnan(n) for n in data.shape):
        raise ArgumentValueError(
            f"aux_data got a dask array of unknown shape {data.shape}: call "
            "compute_chunk_sizes() on it first"
        )
    return AuxData(
        kind=check_kind(kind, "aux_data"),
        extra_shape=check_extra_shape(extra_shape),
        dtype=native,
        data=data.astype(native, copy=False),
        shape=tuple(data.shape),
        labels=labels,
    )


def aligned_aux(aux: AuxData, data: DataLabels, what: str) -> AuxData:
    """Return aux data in the order of the data of a run; `what` names them in messages."""
    if aux.labels is None:
        return aux
    values = aligned(aux.data, aux.labels, data, aux.kind, what=what)
    return replace(aux, data=values, shape=tuple(values.shape), labels=None)


def check_size(aux: AuxData, shape: Shape, where: str) -> None:
    """Raise unless aux data have one value for each frame or pixel of a dataset."""
    full = aux.full_shape(shape)
    if math.prod(aux.shape) != math.prod(full):
        raise ArgumentValueError(
            f"aux data {where} of kind {aux.kind!r} have shape {aux.shape}, but a dataset of "
            f"shape {shape.nav} + {shape.sig} needs {full}, or any layout of that size"
        )


def concatenate_rows(parts: Sequence[dict[str, AnyArray]]) -> dict[str, AnyArray]:
    """Join the rows of several partial results, parameter by parameter."""
    if len(parts) == 1:
        return parts[0]
    return {name: locked(np.concatenate([p[name] for p in parts])) for name in parts[0]}
