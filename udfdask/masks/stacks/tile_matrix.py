"""Cut matrices from a stack of masks, for dot products with flattened tiles."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from udfdask.masks import checks
from udfdask.masks.stacks.formats import Sparse
from udfdask.types import AnyArray

Region = tuple[tuple[int, int], ...]
"""First pixel and number of pixels along each signal axis."""


def dense_matrix(masks: Any, region: Region, dtype: np.dtype[Any], transpose: bool) -> AnyArray:
    """Return a read-only, C-contiguous matrix of shape (n, pixels), or transposed."""
    n, pixels = len(masks), math.prod(size for _, size in region)
    shape = (pixels, n) if transpose else (n, pixels)
    if isinstance(masks, np.ndarray):
        flat = _flat(masks, region)
        matrix = np.ascontiguousarray(flat.T if transpose else flat, dtype=dtype)
    else:
        rows, columns, values = entries(masks, region)
        matrix = np.zeros(shape, dtype=dtype)
        matrix[(columns, rows) if transpose else (rows, columns)] = values
    matrix = matrix.view()  # the flag of the stack, or of a factory's array, must not change
    matrix.flags.writeable = False
    return matrix


def _flat(masks: AnyArray, region: Region) -> AnyArray:
    """Return the masks within a region, shape (n, pixels)."""
    index = tuple(slice(first, first + size) for first, size in region)
    return masks[(slice(None), *index)].reshape(len(masks), math.prod(n for _, n in region))


def sparse_matrix(
    masks: Any, region: Region, dtype: np.dtype[Any], transpose: bool, form: Sparse
) -> Any:
    """Return a sparse matrix of shape (n, pixels), or transposed, in the format `form`."""
    rows, columns, values = entries(masks, region)
    n, pixels = len(masks), math.prod(size for _, size in region)
    place, shape = ((columns, rows), (pixels, n)) if transpose else ((rows, columns), (n, pixels))
    values = values.astype(dtype)
    if form.startswith("scipy.sparse"):
        import scipy.sparse

        make = scipy.sparse.csc_matrix if form.endswith("csc") else scipy.sparse.csr_matrix
        matrix = make((values, place), shape=shape, dtype=dtype)
        matrix.sort_indices()
        return matrix
    sparse = checks.needs_sparse("a matrix of pydata's sparse")
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
