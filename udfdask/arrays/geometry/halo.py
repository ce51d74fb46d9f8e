"""The halo of a UDF: the frames around each scan position, and where they come from.

Along each navigation axis, a window of frames around the positions `first` to `stop` begins
`before` positions earlier and ends `after` positions later. At the ends of the axis, the boundary
says which position stands for one that does not exist.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np

from udfdask.arrays.geometry.chunk_grid import BoolArray, Grid, IntArray

Boundary = Literal["mask", "nearest", "reflect", "periodic"]
"""What stands for frames beyond the ends of the scan."""

BOUNDARIES: tuple[str, ...] = get_args(Boundary)

Box = tuple[tuple[int, int], ...]
"""First and last position (excluded) along each navigation axis."""

ABSENT = -1
"""Source of a position that nothing stands for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Halo:
    """The frames around each position that a UDF sees."""

    sides: tuple[tuple[int, int], ...]
    """Number of frames before and after, along each navigation axis."""
    boundary: Boundary = "mask"
    """What stands for frames beyond the ends of the scan: nothing, or another frame."""
    in_roi: bool = False
    """Whether frames outside of the region of interest count as missing."""

    @property
    def window(self) -> tuple[int, ...]:
        """Number of frames around one position, along each navigation axis."""
        return tuple(before + 1 + after for before, after in self.sides)

    def around(self, box: Box) -> tuple[int, ...]:
        """Return the shape of the window around some positions."""
        return tuple(
            stop - first + before + after
            for (first, stop), (before, after) in zip(box, self.sides, strict=True)
        )

    def core(self, box: Box) -> tuple[slice, ...]:
        """Return where some positions are in the window around them."""
        return tuple(
            slice(before, before + stop - first)
            for (first, stop), (before, _) in zip(box, self.sides, strict=True)
        )

    def sources(self, box: Box, shape: Sequence[int]) -> list[IntArray]:
        """Return where the frames of a window are in the scan, along each axis; ABSENT if nowhere.

        `box` holds the positions that the window is around, `shape` is the shape of the scan.
        """
        return [
            _sources(self.boundary, first - before, stop + after, n)
            for (first, stop), (before, after), n in zip(box, self.sides, shape, strict=True)
        ]

    def exists(self, box: Box, grid: Grid) -> BoolArray:
        """Return which frames of a window exist, bool, of its shape."""
        sources = self.sources(box, grid.shape)
        found = np.ones((), dtype=bool)
        for along in sources:
            found = np.logical_and.outer(found, along != ABSENT)
        if self.in_roi and grid.roi is not None:
            found &= grid.roi[np.ix_(*sources)]  # what is absent is False already
        return found


def _sources(boundary: str, first: int, stop: int, n: int) -> IntArray:
    """Return the position in an axis of n frames that stands for each of `first` to `stop`."""
    wanted = np.arange(first, stop, dtype=np.int64)
    if boundary == "nearest":
        return np.clip(wanted, 0, n - 1)
    if boundary == "periodic":
        return wanted % n
    if boundary == "reflect":  # d c b a | a b c d | d c b a, as scipy.ndimage and dask have it
        turned: IntArray = wanted % (2 * n)
        return np.where(turned < n, turned, 2 * n - 1 - turned)
    return np.where((wanted >= 0) & (wanted < n), wanted, ABSENT)


class Piece(NamedTuple):
    """Some frames of a window that lie next to each other in one chunk."""

    chunk: tuple[int, ...]
    """Index of the chunk in dask's grid of chunks."""
    source: Box
    """Where the frames are in the scan."""
    place: tuple[slice, ...]
    """Where they are in the window."""


def pieces(halo: Halo, box: Box, grid: Grid) -> list[Piece]:
    """Return the pieces that a window around some positions consists of."""
    runs = [
        list(_runs(along, grid, axis)) for axis, along in enumerate(halo.sources(box, grid.shape))
    ]
    return [
        Piece(
            tuple(chunk for chunk, _, _ in parts),
            tuple(source for _, source, _ in parts),
            tuple(place for _, _, place in parts),
        )
        for parts in itertools.product(*runs)
    ]


def _runs(
    sources: IntArray, grid: Grid, axis: int
) -> itertools.chain[tuple[int, tuple[int, int], slice]]:
    """Return the runs of neighboring frames along one axis: chunk, first and stop, place."""
    chunks = grid.chunks_along(axis, sources)
    found = []
    start = 0
    for end in range(1, len(sources) + 1):
        same = end < len(sources) and (
            sources[end] == sources[end - 1] + 1 and chunks[end] == chunks[start]
        )
        if not same:
            if sources[start] != ABSENT:
                span = (int(sources[start]), int(sources[end - 1]) + 1)
                found.append((int(chunks[start]), span, slice(start, end)))
            start = end
    return itertools.chain(found)
