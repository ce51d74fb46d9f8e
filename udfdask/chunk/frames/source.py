"""Read the selected frames of a chunk: tiles, stacks of frames, single pixels."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from udfdask.arrays.backends.backend import Backend, DenseBackend
from udfdask.arrays.backends.check_block import check_block
from udfdask.arrays.geometry.chunk_grid import BoolArray
from udfdask.types import AnyArray


class FrameSource(ABC):
    """The selected frames of a chunk, given as one block per signal chunk.

    All arrays that it returns are read-only. It never copies more than it returns.

    Parameters
    ----------
    blocks : sequence of array, each of shape (*nav_shape, *sizes of the signal chunk)
        In C order of the signal chunk grid, all of one backend.
    backend : Backend
        Array backend of the blocks.
    nav_shape : tuple of int
        Scan positions of the chunk along each navigation axis.
    sig_chunks : tuple of tuple of int
        Sizes of the signal chunks along each signal axis, in pixels.
    mask : numpy.ndarray of bool or None
        The selected frames, flattened; None for all.
    dtype : numpy.dtype
        Dtype of the dask array.
    """

    def __init__(
        self,
        blocks: Sequence[Any],
        backend: Backend,
        nav_shape: tuple[int, ...],
        sig_chunks: tuple[tuple[int, ...], ...],
        mask: BoolArray | None,
        dtype: np.dtype[Any],
    ) -> None:
        self._nav_shape = nav_shape
        self._positions = None if mask is None else np.flatnonzero(mask)
        self._sig_chunks = sig_chunks
        self._dtype = dtype
        self._sig = tuple(sum(c) for c in sig_chunks)
        self.backend = backend
        self.dense: DenseBackend = backend.dense
        sizes = itertools.product(*sig_chunks)
        self._blocks = [
            self._read(self._checked(block, size))
            for block, size in zip(blocks, sizes, strict=True)
        ]

    @property
    def n_blocks(self) -> int:
        """Number of signal chunks in this source."""
        return len(self._blocks)

    @property
    @abstractmethod
    def tiles_are_views(self) -> bool:
        """Whether tiles of many frames are views that kernels read without a copy."""

    @abstractmethod
    def _read(self, block: Any) -> Any:
        """Return a block in the form that frames are cut from."""

    @abstractmethod
    def tile(self, start: int, stop: int, number: int, index: tuple[slice, ...]) -> AnyArray:
        """Return rows `start` to `stop` of block `number`, cut to `index` in the signal, dense."""

    @abstractmethod
    def _pixels(self, number: int, start: int, stop: int, places: tuple[AnyArray, ...]) -> AnyArray:
        """Return some pixels of rows `start` to `stop` of block `number`, shape (rows, m)."""

    def _checked(self, block: Any, size: tuple[int, ...]) -> Any:
        """Return a block after a check: it must have the shape and dtype of the dask array."""
        check_block(block, self._nav_shape + size, self._dtype, "a chunk")
        return block

    def pixels(self, start: int, stop: int, places: AnyArray) -> AnyArray:
        """Return some pixels of rows `start` to `stop`, shape (rows, m).

        `places` are the positions in a frame, int, (sig dims, m). Excluded pixels are patched from
        pixels outside of their tile with this.
        """
        out = self.dense.empty((stop - start, places.shape[1]), self._dtype)
        starts = [np.cumsum((0, *sizes[:-1])) for sizes in self._sig_chunks]
        block_of = [
            np.searchsorted(first, place, side="right") - 1
            for first, place in zip(starts, places, strict=True)
        ]
        local = [p - first[k] for p, first, k in zip(places, starts, block_of, strict=True)]
        numbers = np.ravel_multi_index(block_of, [len(sizes) for sizes in self._sig_chunks])
        for number in np.unique(numbers):
            these = np.flatnonzero(numbers == number)
            out[:, these] = self._pixels(number, start, stop, tuple(p[these] for p in local))
        return self.dense.read_only(out)

    def frames(self, start: int, stop: int) -> AnyArray:
        """Return the full frames of rows `start` to `stop`, dense."""
        return self.window(start, stop, tuple(slice(0, n) for n in self._sig))

    def window(self, start: int, stop: int, index: tuple[slice, ...]) -> AnyArray:
        """Return a part of the frames of rows `start` to `stop`, dense, from any signal chunks."""
        if len(self._blocks) == 1:
            return self.tile(start, stop, 0, index)
        out = self.dense.empty((stop - start, *(i.stop - i.start for i in index)), self._dtype)
        for number, block in enumerate(signal_windows(self._sig_chunks)):
            common = [
                (max(i.start, b.start), min(i.stop, b.stop))
                for i, b in zip(index, block, strict=True)
            ]
            if all(first < last for first, last in common):
                there = _relative(common, block)
                out[(slice(None), *_relative(common, index))] = self.tile(
                    start, stop, number, there
                )
        return self.dense.read_only(out)


def _relative(spans: list[tuple[int, int]], window: tuple[slice, ...]) -> tuple[slice, ...]:
    """Return where the pixels from first to last along each axis are in a window."""
    return tuple(
        slice(first - w.start, last - w.start)
        for (first, last), w in zip(spans, window, strict=True)
    )


def signal_windows(sig_chunks: tuple[tuple[int, ...], ...]) -> list[tuple[slice, ...]]:
    """Return where each signal chunk lies in a frame, in C order."""
    windows = [
        [slice(stop - n, stop) for n, stop in zip(sizes, itertools.accumulate(sizes), strict=True)]
        for sizes in sig_chunks
    ]
    return list(itertools.product(*windows))
