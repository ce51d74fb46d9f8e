"""Chooses how frames are cut out of the blocks of a chunk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from udfdask.backends import names
from udfdask.backends.converting import to_backend
from udfdask.backends.kinds import backend_of
from udfdask.grid import BoolArray
from udfdask.sources.dense import DenseSource
from udfdask.sources.device import DeviceSource
from udfdask.sources.frames import FrameSource
from udfdask.sources.sparse import SparseSource


def source_of(
    blocks: Sequence[Any],
    nav_shape: tuple[int, ...],
    sig_chunks: tuple[tuple[int, ...], ...],
    mask: BoolArray | None,
    dtype: np.dtype[Any],
) -> FrameSource:
    """Return the frames of a chunk; the arguments are those of `FrameSource`.

    Blocks that are not of the backend of the first one are converted to it.
    """
    backend = backend_of(blocks[0])
    alike = [
        block if backend_of(block) == backend else to_backend(block, backend, block.shape)
        for block in blocks
    ]
    kind = DeviceSource if backend == names.CUPY else DenseSource
    if backend in names.SPARSE_BACKENDS:
        return SparseSource(alike, nav_shape, sig_chunks, mask, dtype)
    return kind(alike, nav_shape, sig_chunks, mask, dtype)
