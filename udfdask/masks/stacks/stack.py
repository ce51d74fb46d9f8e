"""Compute a stack of masks from factories once per process, and cut it into matrices."""

from __future__ import annotations

import functools
import threading
import types
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Literal

import numpy as np

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.masks import checks
from udfdask.masks.stacks.formats import Sparse
from udfdask.masks.stacks.tile_matrix import Region, dense_matrix, sparse_matrix
from udfdask.once_per_process import OncePerProcess
from udfdask.tokens import Identity, identity_of

Factories = Callable[[], Any] | tuple[Callable[[], Any], ...]

MOST_REGIONS = 2048
"""Number of matrices that a stack keeps; the matrices of all tiles are as large as the stack."""


class MaskStack:
    """Masks of one shape, and the matrices that were cut from them. Threads share it: read-only.

    `masks` has the shape (n, *sig) and is a read-only NumPy array or a `sparse.COO`.
    """

    __slots__ = ("_matrices", "is_sparse", "masks")

    def __init__(self, factories: Factories, as_sparse: bool | None) -> None:
        stacks = _call(factories)
        self.is_sparse = all(map(is_sparse, stacks)) if as_sparse is None else as_sparse
        self.masks = _join(stacks, self.is_sparse)
        self._matrices = OncePerProcess(MOST_REGIONS)

    @property
    def sig(self) -> tuple[int, ...]:
        """Shape of a mask."""
        return tuple(self.masks.shape[1:])

    def matrix(
        self,
        region: Region,
        dtype: np.dtype[Any],
        form: Sparse | Literal[False],
        transpose: bool,
    ) -> Any:
        """Return the masks within a region as a matrix, (n, pixels) or transposed."""

        def make() -> Any:
            if form is False:
                return dense_matrix(self.masks, region, dtype, transpose)
            return sparse_matrix(self.masks, region, dtype, transpose, form)

        return self.once((region, dtype, form, transpose), make)

    def once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return what `make` makes of the masks, once per process for each key."""
        return self._matrices.get(key, make)


def _call(factories: Factories) -> list[Any]:
    """Call the factories; return stacks (k, *sig) of equal masks' shape, dense or `sparse.COO`."""
    if callable(factories):
        stack = _as_array(factories(), "mask_factories")
        if stack.ndim < 2:
            raise ArgumentValueError(
                "a single callable must return a whole stack of masks, of shape (n, *sig), but "
                f"mask_factories returned the shape {stack.shape}. For one mask, pass a list that "
                "contains the callable"
            )
        return [stack]
    masks = [_as_array(f(), f"mask_factories[{i}]") for i, f in enumerate(factories)]
    first = masks[0].shape
    for i, mask in enumerate(masks):
        if mask.ndim < 1 or mask.shape != first:
            raise ArgumentValueError(
                "all masks must have the shape of a frame, but mask_factories[0] returned "
                f"{first} and mask_factories[{i}] {mask.shape}"
            )
    return [mask.reshape((1, *first)) for mask in masks]


def _as_array(mask: Any, source: str) -> Any:
    """Return a factory's mask as a NumPy array, or as a `sparse.COO` with the fill value 0."""
    if is_sparse(mask):
        sparse = checks.needs_sparse("a sparse mask")
        mask = sparse.COO(mask)
        if mask.fill_value == 0:
            return mask
        mask = mask.todense()
    try:
        array = np.asarray(mask)
    except (TypeError, ValueError) as e:
        raise ArgumentTypeError(f"{source} must return an array, but: {e}") from None
    if array.dtype.kind not in "biufc":
        raise ArgumentTypeError(
            f"{source} must return an array of numbers or bools, not {type(mask).__name__} of "
            f"dtype {array.dtype}"
        )
    return array


def is_sparse(mask: Any) -> bool:
    """Return whether an array is a sparse array of the package `sparse` or of SciPy."""
    return type(mask).__module__.partition(".")[0] in ("scipy", "sparse")


def _join(stacks: Sequence[Any], as_sparse: bool) -> Any:
    """Join several stacks into a new one: a read-only array or a `sparse.COO`."""
    if not as_sparse:
        dense = [s.todense() if is_sparse(s) else s for s in stacks]
        joined = np.concatenate(dense)  # a copy: later changes of a factory's array do not count
        joined.flags.writeable = False
        return joined
    sparse = checks.needs_sparse("a sparse stack of masks")
    return sparse.concatenate([s if is_sparse(s) else sparse.COO.from_numpy(s) for s in stacks])


# few stacks, because they are large: 500 dense masks of 256 x 256 pixels are 125 MiB in float32
_STACKS = OncePerProcess(8)
_LOCKS = OncePerProcess(64)


def shared_stack(factories: Factories, as_sparse: bool | None) -> MaskStack:
    """Return the stack of some factories; the first thread that needs it computes it.

    A factory may change its own state when it is called, for example because it counts its calls
    or draws random numbers. Containers that are made from it later must get the same stack.
    Therefore the stack is stored under the identity before the call and under the one after it.
    The lock keeps other threads from reading the state in between.
    """
    fresh: list[MaskStack] = []

    def make() -> MaskStack:
        fresh.append(MaskStack(factories, as_sparse))
        return fresh[0]

    with _LOCKS.get(_code_of(factories), threading.RLock):
        stack: MaskStack = _STACKS.get((identity_of(factories), as_sparse), make)
        if fresh:
            _STACKS.get((identity_of(factories), as_sparse), lambda: stack)
    return stack


def _code_of(factories: Factories) -> Hashable:
    """Return the code of factories, which is the same even if their state changes."""
    each = factories if isinstance(factories, tuple) else (factories,)
    return tuple(map(_code, each))


def _code(factory: Any) -> Hashable:
    """Return the code of a function, without `functools.partial`; otherwise the type."""
    while isinstance(factory, functools.partial):
        factory = factory.func
    return factory.__code__ if isinstance(factory, types.FunctionType) else Identity(type(factory))
