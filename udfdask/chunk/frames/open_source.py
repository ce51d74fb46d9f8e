"""Check the blocks of a chunk, and choose the source of its frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from udfdask.arrays.backends.backend import Backend
from udfdask.arrays.backends.check_block import plain_block
from udfdask.arrays.backends.convert import to_backend
from udfdask.arrays.backends.table import fill_value, is_unknown_sparse
from udfdask.arrays.geometry.chunk_grid import BoolArray
from udfdask.chunk.frames.dense import DenseSource
from udfdask.chunk.frames.source import FrameSource
from udfdask.chunk.frames.sparse import SparseSource
from udfdask.errors import UDFError


def source_of(
    blocks: Sequence[Any],
    kinds: Sequence[Backend],
    nav_shape: tuple[int, ...],
    sig_chunks: tuple[tuple[int, ...], ...],
    mask: BoolArray | None,
    dtype: np.dtype[Any],
) -> FrameSource:
    """Return the frames of a chunk; the arguments are those of `FrameSource`.

    `kinds` are the backends of the blocks. All blocks are converted to the backend of the first
    one. Raise if a block has masked values.
    """
    native, converted = converted_blocks(blocks, kinds, len(nav_shape), len(sig_chunks))
    source = SparseSource if native.is_sparse else DenseSource
    return source(converted, native, nav_shape, sig_chunks, mask, dtype)


def converted_blocks(
    blocks: Sequence[Any], kinds: Sequence[Backend], nav_dims: int, sig_dims: int
) -> tuple[Backend, list[Any]]:
    """Return the backend of the first block, and all blocks in this backend.

    Raise if a block has masked values, or a sparse format that frames cannot be read from.
    """
    native = kinds[0]
    converted = []
    for block, kind in zip(blocks, kinds, strict=True):
        plain = block
        if type(block) is not np.ndarray:  # of a NumPy array, only shape and dtype can be wrong
            plain = plain_block(block, "a chunk")
            _check_sparse(plain, kind, nav_dims, sig_dims)
        converted.append(plain if kind == native else to_backend(plain, native, plain.shape))
    return native, converted


def _check_sparse(block: Any, kind: Backend, nav_dims: int, sig_dims: int) -> None:
    """Raise if a sparse block cannot be processed: the plan has only seen the meta."""
    if is_unknown_sparse(block):
        raise UDFError(
            f"a chunk of type {type(block).__name__} came, a sparse format that frames cannot be "
            "read from: convert it, such as with array.map_blocks(lambda block: block.tocsr())"
        )
    filled = fill_value(block)
    if filled != 0:
        raise UDFError(
            f"a sparse chunk came with the fill value {filled!r}, expected 0: values that are not "
            "stored must be 0"
        )
    if kind.is_matrix and (nav_dims, sig_dims) != (1, 1):
        raise UDFError(
            f"a matrix of type {type(block).__name__} came, in which each row is a frame, but "
            f"chunks have {nav_dims} navigation and {sig_dims} signal dimensions: use sparse.GCXS, "
            "which keeps the shape of scan and frames"
        )
