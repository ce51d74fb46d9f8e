"""Chooses how frames are cut out of the blocks of a chunk."""

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

    `kinds` are the backends of the blocks. Blocks that are not of that of the first one are
    converted to it. Blocks with masked values are refused.
    """
    native = kinds[0]
    alike = []
    for block, kind in zip(blocks, kinds, strict=True):
        known = block
        if type(block) is not np.ndarray:  # nothing else can be wrong with those
            known = plain_block(block, "a chunk")
            _check_sparse(known, kind, len(nav_shape), len(sig_chunks))
        alike.append(known if kind == native else to_backend(known, native, known.shape))
    source = SparseSource if native.is_sparse else DenseSource
    return source(alike, native, nav_shape, sig_chunks, mask, dtype)


def _check_sparse(block: Any, kind: Backend, nav_dims: int, sig_dims: int) -> None:
    """Raise if a block is sparse in a way that the plan would have refused, had it known."""
    if is_unknown_sparse(block):
        raise UDFError(
            f"a chunk of type {type(block).__name__} came, a format out of which no frames are "
            "cut: convert it, such as with array.map_blocks(lambda block: block.tocsr())"
        )
    filled = fill_value(block)
    if filled != 0:
        raise UDFError(
            f"a sparse chunk came whose fill value is {filled!r}: values that are not stored "
            "have to be 0"
        )
    if kind.is_matrix and (nav_dims, sig_dims) != (1, 1):
        raise UDFError(
            f"a matrix of type {type(block).__name__} came, in which each row is a frame, where "
            f"chunks have {nav_dims} navigation and {sig_dims} signal dimensions: sparse.GCXS "
            "keeps the shape of scan and frames"
        )
