"""Compute a stack of masks once per process, and cut it into matrices for tiles."""

from __future__ import annotations

import functools
import math
import threading
import types
from collections.abc import Callable, Hashable
from typing import Any, Literal, get_args

import numpy as np

from udfdask.base.names.naming import Identity, identity_of
from udfdask.base.once_per_process import OncePerProcess
from udfdask.base.types import AnyArray
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.masks import checks

Sparse = Literal[
    "scipy.sparse", "scipy.sparse.csr", "scipy.sparse.csc", "sparse.pydata", "sparse.pydata.GCXS"
]
"""LiberTEM's names of sparse formats: ``scipy.sparse`` is CSR, ``sparse.pydata`` is COO."""

SPARSE: tuple[Sparse, ...] = get_args(Sparse)


def chosen_format(name: str, value: Any, default: Sparse) -> Sparse | Literal[False] | None:
    """Return a choice, checked: a format, False for dense, None for no choice."""
    if value is None or (isinstance(value, str) and value in SPARSE):
        return value
    if isinstance(value, bool):
        return default if value else False
    raise ArgumentValueError(
        f"{name} must be None, True, False or one of {', '.join(map(repr, SPARSE))}, not {value!r}"
    )


Region = tuple[tuple[int, int], ...]
"""First pixel and number of pixels along each signal axis."""


def dense_matrix(masks: Any, region: Region, dtype: np.dtype[Any], transpose: bool) -> AnyArray:
    """Return a read-only, C-contiguous matrix of shape (n, pixels), or transposed."""
    if isinstance(masks, np.ndarray):
        flat = _flat(masks, region)
        matrix = np.ascontiguousarray(flat.T if transpose else flat, dtype=dtype)
    else:
        place, shape, values = _placed(masks, region, transpose)
        matrix = np.zeros(shape, dtype=dtype)
        matrix[place] = values
    matrix = matrix.view()  # the flag of the stack, or of a factory's array, must not change
    matrix.flags.writeable = False
    return matrix


def _flat(masks: AnyArray, region: Region) -> AnyArray:
    index = tuple(slice(first, first + size) for first, size in region)
    return masks[(slice(None), *index)].reshape(len(masks), math.prod(n for _, n in region))


def _placed(masks: Any, region: Region, transpose: bool) -> tuple[Any, tuple[int, int], AnyArray]:
    rows, columns, values = entries(masks, region)
    n, pixels = len(masks), math.prod(size for _, size in region)
    if transpose:
        return (columns, rows), (pixels, n), values
    return (rows, columns), (n, pixels), values


def sparse_matrix(
    masks: Any, region: Region, dtype: np.dtype[Any], transpose: bool, form: Sparse
) -> Any:
    """Return a sparse matrix of shape (n, pixels), or transposed, in the format `form`."""
    place, shape, values = _placed(masks, region, transpose)
    if form.startswith("scipy.sparse"):
        import scipy.sparse

        make = scipy.sparse.csc_matrix if form.endswith("csc") else scipy.sparse.csr_matrix
        matrix = make((values.astype(dtype), place), shape=shape, dtype=dtype)
        matrix.sort_indices()
        return matrix
    sparse, values = checks.needs_sparse("a matrix of pydata's sparse"), values.astype(dtype)
    coo = sparse.COO(coords=np.stack(place), data=values, shape=shape, has_duplicates=False)
    return sparse.GCXS(coo) if form.endswith("GCXS") else coo


def entries(masks: Any, region: Region) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return the nonzero values in a region, with their mask numbers and flat pixel numbers."""
    if isinstance(masks, np.ndarray):
        flat = _flat(masks, region)
        rows, columns = np.nonzero(flat)
        return rows, columns, flat[rows, columns]
    # NumPy, because slicing a COO makes numba compile for seconds in each process
    which, *where = masks.coords
    inside = np.ones(len(which), dtype=bool)
    for axis, (first, size) in zip(where, region, strict=True):
        inside &= (axis >= first) & (axis < first + size)
    local = [axis[inside] - first for axis, (first, _) in zip(where, region, strict=True)]
    columns = np.ravel_multi_index(local, tuple(size for _, size in region))
    return which[inside], columns, masks.data[inside]


Factories = Callable[[], Any] | tuple[Callable[[], Any], ...]

MOST_REGIONS = 2048
"""Number of matrices that a stack keeps; the matrices of all tiles are as large as the stack."""


class MaskStack:
    """Masks of one shape, and the matrices that were cut from them. Threads share it: read-only.

    `masks` has the shape (n, *sig) and is a read-only NumPy array or a `sparse.COO`. `once` keeps
    what is made of the masks, once per process for each key.
    """

    __slots__ = ("is_sparse", "masks", "once")

    def __init__(self, factories: Factories, as_sparse: bool | None) -> None:
        if callable(factories):
            stacks = [_as_array(factories(), "mask_factories")]
            if stacks[0].ndim < 2:
                raise ArgumentValueError(
                    "a single callable returns a whole stack, (n, *sig), not the shape "
                    f"{stacks[0].shape}. For one mask, pass a list with the callable"
                )
        else:
            masks = [_as_array(f(), f"mask_factories[{i}]") for i, f in enumerate(factories)]
            first = masks[0].shape
            for i, mask in enumerate(masks):
                if mask.ndim < 1 or mask.shape != first:
                    raise ArgumentValueError(
                        "all masks must have the shape of a frame, but mask_factories[0] returned "
                        f"{first} and mask_factories[{i}] {mask.shape}"
                    )
            stacks = [mask.reshape((1, *first)) for mask in masks]
        self.is_sparse = all(map(is_sparse, stacks)) if as_sparse is None else as_sparse
        if self.is_sparse:
            sparse = checks.needs_sparse("a sparse stack of masks")
            coo = [s if is_sparse(s) else sparse.COO.from_numpy(s) for s in stacks]
            self.masks = sparse.concatenate(coo)
        else:  # a copy: later changes of a factory's array do not count
            self.masks = np.concatenate([s.todense() if is_sparse(s) else s for s in stacks])
            self.masks.flags.writeable = False
        self.once = OncePerProcess(MOST_REGIONS).get


def _as_array(mask: Any, source: str) -> Any:
    """Return a factory's mask as a NumPy array, or as a `sparse.COO` with the fill value 0."""
    if is_sparse(mask):
        mask = checks.needs_sparse("a sparse mask").COO(mask)
        if mask.fill_value == 0:
            return mask
        mask = mask.todense()
    array = np.asarray(mask)
    if array.dtype.kind not in "biufc":
        raise ArgumentTypeError(
            f"{source} must return an array of numbers, not {type(mask).__name__} of {array.dtype}"
        )
    return array


def is_sparse(mask: Any) -> bool:
    """Return whether an array is a sparse array of the package `sparse` or of SciPy."""
    return type(mask).__module__.partition(".")[0] in ("scipy", "sparse")


# few stacks, because they are large: 500 dense masks of 256 x 256 pixels are 125 MiB in float32
_STACKS = OncePerProcess(8)
_LOCKS = OncePerProcess(64)


def shared_stack(factories: Factories, as_sparse: bool | None) -> MaskStack:
    """Return the stack of some factories; the first thread that needs it computes it.

    A factory may change its own state when it is called, as if it draws random numbers. Containers
    that are made from it later must get the same stack: it is stored under the identity before the
    call and under the one after it. The lock keeps other threads from reading the state in between.
    """
    fresh: list[MaskStack] = []

    def make() -> MaskStack:
        fresh.append(MaskStack(factories, as_sparse))
        return fresh[0]

    several = factories if isinstance(factories, tuple) else (factories,)
    with _LOCKS.get(tuple(map(_code, several)), threading.RLock):
        stack: MaskStack = _STACKS.get((identity_of(factories), as_sparse), make)
        if fresh:
            _STACKS.get((identity_of(factories), as_sparse), lambda: stack)
    return stack


def _code(factory: Any) -> Hashable:
    """Return the code of a function, which is the same even if its state changes, or the type."""
    while isinstance(factory, functools.partial):
        factory = factory.func
    return factory.__code__ if isinstance(factory, types.FunctionType) else Identity(type(factory))
