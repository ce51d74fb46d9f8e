"""Puts sparse pieces of frames beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from udfdask.arrays.backends import names
from udfdask.arrays.backends.detect import backend_of
from udfdask.arrays.backends.read_only import locked_sparse


def joined(pieces: Sequence[Any], counts: Sequence[int]) -> Any:
    """Return sparse frames from their signal parts, in the backend of those.

    Parts are in C order, `counts` of them along each signal axis. Matrices have one signal axis.
    """
    if len(pieces) == 1:
        return pieces[0]
    backend = backend_of(pieces[0])
    if backend in names.D2_BACKENDS:
        return locked_sparse(_beside_each_other(pieces, backend))
    import sparse

    for axis in range(len(counts), 0, -1):
        n = counts[axis - 1]
        groups = [pieces[k : k + n] for k in range(0, len(pieces), n)]
        pieces = [sparse.concatenate(group, axis=axis) for group in groups]
    whole = pieces[0]
    if backend == names.SPARSE_GCXS and tuple(whole.compressed_axes) != (0,):
        whole = whole.change_compressed_axes((0,))
    return locked_sparse(whole)


def _beside_each_other(matrices: Sequence[Any], backend: str) -> Any:
    """Return matrices beside each other, in their format."""
    if backend in names.CUPY_BACKENDS:
        from cupyx.scipy import sparse as package
    else:
        from scipy import sparse as package
    return package.hstack(matrices, format=matrices[0].format)
