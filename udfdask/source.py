"""Cuts tiles and frames out of the blocks of a chunk: views where memory allows, else small copies.

Nothing returned here is writable, and what is copied is never larger than what was asked for.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from udfdask.errors import UDFError
from udfdask.grid import BoolArray
from udfdask.types import AnyArray


class FrameSource:
    """The selected frames of a chunk, given as one block per signal chunk.

    Parameters
    ----------
    blocks : sequence of array, each of shape (*nav_shape, *sizes of the signal chunk)
        In C order of the signal chunk grid.
    nav_shape : tuple of int
        Scan positions of the chunk along each navigation axis.
    sig_chunks : tuple of tuple of int
        Sizes of the signal chunks along each signal axis, in pixels.
    mask : numpy.ndarray of bool or None
        Which frames are selected, flat; None for all.
    """

    def __init__(
        self,
        blocks: Sequence[Any],
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
        sizes = itertools.product(*sig_chunks)
        self._blocks = [
            self._flat(self._check(block, size)) for block, size in zip(blocks, sizes, strict=True)
        ]

    @property
    def n_blocks(self) -> int:
        """Number of signal chunks here."""
        return len(self._blocks)

    @property
    def together(self) -> bool:
        """Whether tiles of many frames are views that kernels read as they are.

        The pixels of a frame are neighbours, and the next frame lies behind it.
        """
        flat = 1 + len(self._sig)
        return self._positions is None and all(
            block.ndim == flat
            and block[:1].flags.c_contiguous
            and block.strides[0] >= 0
            and block.flags.aligned
            for block in self._blocks
        )

    def _check(self, block: Any, size: tuple[int, ...]) -> AnyArray:
        """Return a block as a read-only array; it must be what the dask array announced."""
        array = np.asarray(block)
        if array.shape != self._nav_shape + size:
            raise UDFError(
                f"a chunk of shape {self._nav_shape + size} was announced, but one of shape "
                f"{array.shape} came: correct the chunks of the dask array"
            )
        if array.dtype != self._dtype and not np.can_cast(array.dtype, self._dtype, "same_kind"):
            raise UDFError(
                f"a chunk of dtype {self._dtype} was announced, but one of dtype {array.dtype} "
                "came: correct the dtype (meta) of the dask array"
            )
        if array.flags.writeable:
            array = array.view()
            array.flags.writeable = False
        return array

    def _flat(self, block: AnyArray) -> AnyArray:
        """Return a block with flat navigation if that is a view of it, else as it is."""
        if len(self._nav_shape) == 1:
            return block
        try:
            flat = block.reshape((-1, *block.shape[len(self._nav_shape) :]), copy=False)
        except ValueError:
            return block
        flat.flags.writeable = False
        return flat

    def tile(self, start: int, stop: int, number: int, index: tuple[slice, ...]) -> AnyArray:
        """Return rows `start` to `stop` of block `number`, cut to `index` in the signal."""
        block = self._blocks[number]
        first, last = start, stop
        if self._positions is not None:
            first, last = int(self._positions[start]), int(self._positions[stop - 1]) + 1
        together = last - first == stop - start
        if block.ndim == 1 + len(index):
            if together:
                return block[(slice(first, last), *index)]
            assert self._positions is not None
            return _locked(block[(slice(None), *index)][self._positions[start:stop]])
        if together:
            *outer, line = (int(i) for i in np.unravel_index(first, self._nav_shape))
            end = line + stop - start
            if end <= self._nav_shape[-1]:  # all in one line of the scan
                place: tuple[Any, ...] = (*outer, slice(line, end), *index)
                line_of_frames: AnyArray = block[place]
                return line_of_frames
        chosen = np.arange(first, last)
        if not together:
            assert self._positions is not None
            chosen = self._positions[start:stop]
        places = np.unravel_index(chosen, self._nav_shape)
        nav = (slice(None),) * len(self._nav_shape)
        return _locked(block[(*nav, *index)][places])

    def pixels(self, start: int, stop: int, places: AnyArray) -> AnyArray:
        """Return some pixels of rows `start` to `stop`, shape (rows, m).

        `places` are those in a frame, int, (sig dims, m).
        """
        chosen = np.arange(start, stop)
        if self._positions is not None:
            chosen = self._positions[start:stop]
        out = np.empty((stop - start, places.shape[1]), dtype=self._blocks[0].dtype)
        starts = [np.cumsum((0, *sizes[:-1])) for sizes in self._sig_chunks]
        block_of = [
            np.searchsorted(first, place, side="right") - 1
            for first, place in zip(starts, places, strict=True)
        ]
        local = [p - first[k] for p, first, k in zip(places, starts, block_of, strict=True)]
        numbers = np.ravel_multi_index(block_of, [len(sizes) for sizes in self._sig_chunks])
        for number in np.unique(numbers):
            block, these = self._blocks[number], numbers == number
            flat = block.ndim == 1 + len(local)
            nav = (chosen,) if flat else np.unravel_index(chosen, self._nav_shape)
            index = (*(n[:, np.newaxis] for n in nav), *(place[these] for place in local))
            out[:, these] = block[index]
        return _locked(out)

    def frames(self, start: int, stop: int) -> AnyArray:
        """Return the whole frames of rows `start` to `stop`."""
        everything = (slice(None),) * len(self._sig)
        if len(self._blocks) == 1:
            return self.tile(start, stop, 0, everything)
        out = np.empty((stop - start, *self._sig), dtype=self._blocks[0].dtype)
        ends = [list(itertools.accumulate(c)) for c in self._sig_chunks]
        windows = itertools.product(
            *(
                [slice(e - n, e) for e, n in zip(end, sizes, strict=True)]
                for end, sizes in zip(ends, self._sig_chunks, strict=True)
            )
        )
        for number, window in enumerate(windows):
            out[(slice(None), *window)] = self.tile(start, stop, number, everything)
        return _locked(out)


def convert(array: AnyArray, dtype: np.dtype[Any]) -> AnyArray:
    """Return a piece in a dtype: itself, or a read-only converted copy."""
    return array if array.dtype == dtype else _locked(array.astype(dtype))


def _locked(array: AnyArray) -> AnyArray:
    """Return a fresh array, made read-only."""
    array.flags.writeable = False
    return array
