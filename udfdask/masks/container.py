"""Hold the masks of a UDF, and cut them to the current tile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.slices import Slice
from udfdask.masks import checks
from udfdask.masks.stack import (
    Factories,
    MaskStack,
    Region,
    Sparse,
    chosen_format,
    dense_matrix,
    shared_stack,
    sparse_matrix,
)


class MaskContainer:
    """A stack of masks that is computed when it is needed, and cut to tiles.

    Only functions are sent to the workers. Each process computes the masks once for all containers
    with equal factories, and keeps the last 8 stacks that it used.

    Parameters
    ----------
    mask_factories : callable, or list or tuple of callables
        One callable that returns a whole stack of shape (n, *sig), or one callable for each mask,
        of shape sig. The callables take no arguments and return NumPy arrays, or sparse arrays of
        SciPy or of the package `sparse`, which must depend only on their code and bound values.
    dtype : dtype, optional
        Dtype of the matrices; by default the dtype of the masks.
    use_sparse : bool or str, optional
        Format of the matrices: False for dense NumPy arrays, True for `default_sparse`,
        ``'scipy.sparse'`` or ``'scipy.sparse.csr'`` for a `csr_matrix`, ``'scipy.sparse.csc'``
        for a `csc_matrix`, ``'sparse.pydata'`` for a `sparse.COO`, ``'sparse.pydata.GCXS'`` for
        a `sparse.GCXS`. By default `default_sparse` if all masks are sparse, otherwise dense.
    count : int, optional
        Number of masks: `len` then does not have to compute the masks.
    backend : {None, 'numpy'}
        Array backend of the matrices.
    default_sparse : str
        The sparse format to use if `use_sparse` does not name one.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If an argument has a wrong type or value. What the callables return is checked when the
        masks are first needed, usually on a worker.

    Examples
    --------
    >>> from functools import partial
    >>> from udfdask import Shape, Slice
    >>> from udfdask.masks import MaskContainer, circular
    >>> masks = MaskContainer([partial(circular, 8, 8, 16, 16, r) for r in (2, 3)])
    >>> tile = Slice(origin=(0, 0, 0), shape=Shape((10, 4, 16), sig_dims=2))
    >>> len(masks), masks.get(tile).shape
    (2, (64, 2))
    """

    def __init__(
        self,
        mask_factories: Callable[[], Any] | Sequence[Callable[[], Any]],
        dtype: DTypeLike | None = None,
        use_sparse: bool | str | None = None,
        count: int | None = None,
        backend: str | None = None,
        default_sparse: str = "scipy.sparse",
    ) -> None:
        _check_backend(backend)
        default = chosen_format("default_sparse", default_sparse, "scipy.sparse")
        if not default:
            raise ArgumentValueError("default_sparse must be the name of a sparse format")
        given: Any = mask_factories
        if not callable(given):
            if not isinstance(given, (list, tuple)) or not all(map(callable, given)):
                raise ArgumentTypeError(
                    "mask_factories must be a callable that returns a stack of masks, or a list of "
                    f"callables, not {given!r:.80}: for an array, write lambda: array"
                )
            if not given or count not in (None, len(given)):
                raise ArgumentValueError(
                    f"count={count} was given, but there are {len(given)} mask_factories"
                    if given
                    else "mask_factories is empty: expected a callable that returns a mask"
                )
            given = tuple(given)
        self.mask_factories: Factories = given
        self._dtype = None if dtype is None else checks.dtype(dtype)
        self._use_sparse = chosen_format("use_sparse", use_sparse, default)
        self.count = None if count is None else checks.integer("count", count, least=0)
        self.backend = "numpy"
        self.default_sparse: Sparse = default

    def __repr__(self) -> str:
        size = "a stack" if callable(self.mask_factories) else len(self.mask_factories)
        return f"MaskContainer({size}, dtype={self._dtype}, use_sparse={self._use_sparse!r})"

    def __reduce__(self) -> tuple[Any, ...]:  # computed masks are not sent to other processes
        options = (self._dtype, self._use_sparse, self.count, self.backend, self.default_sparse)
        return (MaskContainer, (self.mask_factories, *options))

    def __len__(self) -> int:
        if self.count is not None:
            return self.count
        if callable(self.mask_factories):
            return len(self._stack.masks)
        return len(self.mask_factories)

    @cached_property
    def _stack(self) -> MaskStack:
        """The masks, shared by all containers of this process with equal factories."""
        as_sparse = None if self._use_sparse is None else self._use_sparse is not False
        stack = shared_stack(self.mask_factories, as_sparse)
        if self.count not in (None, len(stack.masks)):
            raise ArgumentValueError(
                f"mask_factories returned {len(stack.masks)} masks, but count={self.count}"
            )
        return stack

    @property
    def computed_masks(self) -> Any:
        """All masks, shape (n, *sig): a read-only NumPy array or a `sparse.COO`."""
        return self._stack.masks

    @property
    def use_sparse(self) -> Sparse | Literal[False]:
        """Name of the sparse format of the matrices, or False if they are dense."""
        if self._use_sparse is not None:
            return self._use_sparse
        return self.default_sparse if self._stack.is_sparse else False

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the matrices: the chosen dtype, otherwise the dtype of the masks."""
        return np.dtype(self._stack.masks.dtype) if self._dtype is None else self._dtype

    def get(
        self,
        key: Slice,
        dtype: DTypeLike | None = None,
        sparse_backend: bool | str | None = None,
        transpose: bool = True,
        backend: str | None = None,
    ) -> Any:
        """Return the masks within a tile as a matrix, for a dot product with the flattened tile.

        Parameters
        ----------
        key : Slice
            Position of the tile, usually `UDF.meta.slice`; its navigation part is ignored.
        dtype : dtype, optional
            Dtype of the matrix; by default the dtype of the container.
        sparse_backend : bool or str, optional
            Format of the matrix, as `use_sparse`; by default the format of the container.
        transpose : bool
            Whether masks are columns: ``tile.reshape(n, -1) @ masks.get(key)``.
        backend : {None, 'numpy'}
            Array backend of the matrix.

        Returns
        -------
        numpy.ndarray or sparse matrix, shape (pixels, n_masks) or (n_masks, pixels)
            All threads get the same object for equal arguments: do not change it. A dense matrix
            is C-contiguous and read-only.

        Raises
        ------
        ArgumentTypeError, ArgumentValueError
            If an argument has a wrong type or value, or `key` is not inside the masks.

        Examples
        --------
        >>> import numpy as np
        >>> from udfdask import Shape, Slice
        >>> from udfdask.masks import MaskContainer, gradient_x
        >>> masks = MaskContainer([lambda: gradient_x(4, 3), lambda: np.ones((3, 4))])
        >>> tile = Slice(origin=(7, 1, 0), shape=Shape((2, 1, 4), sig_dims=2))
        >>> print(masks.get(tile, transpose=False))
        [[0. 1. 2. 3.]
         [1. 1. 1. 1.]]
        """
        if not isinstance(key, Slice):
            raise ArgumentTypeError(
                f"the key must be a Slice, such as self.meta.slice, not {key!r}"
            )
        _check_backend(backend)
        chosen = chosen_format("sparse_backend", sparse_backend, self.default_sparse)
        form = self.use_sparse if chosen is None else chosen
        how = (
            self._region(key.sig),
            self.dtype if dtype is None else checks.dtype(dtype),
            bool(transpose),
        )
        make = dense_matrix if form is False else partial(sparse_matrix, form=form)
        return self._stack.once((*how, form), lambda: make(self._stack.masks, *how))

    def get_for_sig_slice(
        self,
        sig_slice: Slice,
        dtype: DTypeLike | None = None,
        sparse_backend: bool | str | None = None,
        transpose: bool = True,
        backend: str | None = None,
    ) -> Any:
        """Return the masks within a part of the signal, such as `UDF.meta.sig_slice`.

        Parameters
        ----------
        sig_slice, dtype, sparse_backend, transpose, backend : object
            As in `get`, which returns the same.

        Returns
        -------
        numpy.ndarray or sparse matrix, shape (pixels, n_masks) or (n_masks, pixels)
            As from `get`.

        Examples
        --------
        >>> import numpy as np
        >>> from udfdask import Shape, Slice
        >>> from udfdask.masks import MaskContainer
        >>> masks = MaskContainer(lambda: np.ones((3, 8, 8)))
        >>> masks.get_for_sig_slice(Slice((0, 0), Shape((4, 8), sig_dims=2))).shape
        (32, 3)
        """
        return self.get(sig_slice, dtype, sparse_backend, transpose, backend)

    def _region(self, part: Slice) -> Region:
        """Return a signal slice as a region; raise if it is not inside the masks."""
        sig, region = self._stack.masks.shape[1:], tuple(zip(part.origin, part.shape, strict=True))
        if len(region) != len(sig):
            raise ArgumentValueError(
                f"masks of shape {sig} and a slice of shape {tuple(part.shape)}: both need "
                "the same number of axes. For one mask, pass a list with the callable"
            )
        if not all(o >= 0 and o + n <= size for (o, n), size in zip(region, sig, strict=True)):
            raise ArgumentValueError(
                f"the slice with the origin {part.origin} and the shape {tuple(part.shape)} is not "
                f"inside masks of shape {sig}"
            )
        return region


def _check_backend(backend: Any) -> None:
    if backend not in (None, "numpy"):
        raise ArgumentValueError(
            f"backend must be None or 'numpy', not {backend!r}: see sparse_backend"
        )
