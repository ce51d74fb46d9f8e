"""The frames around a position that a UDF sees, and those that chunks need of other chunks.

Along each navigation axis, a window around the positions `first` to `stop` begins `before`
positions earlier and ends `after` positions later. The task that loads a chunk processes the
positions whose windows lie in it. For the others it keeps the frames near the borders, and cuts the
margins that other chunks need.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np

from udfdask.geometry.chunk_grid import BoolArray, Grid

Boundary = Literal["mask", "nearest", "reflect", "periodic"]
"""What stands for frames beyond the ends of the scan."""

BOUNDARIES: tuple[str, ...] = get_args(Boundary)

Box = tuple[tuple[int, int], ...]
"""First and last position (excluded) along each navigation axis."""


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

    def runs(self, axis: int, first: int, stop: int, n: int) -> list[Run]:
        """Return where the frames of a window around `first` to `stop` of n positions are."""
        before, after = self.sides[axis]
        start, end = first - before, stop + after
        within = (max(start, 0), min(end, n))
        runs = [Run(*within, within[0] - start)]
        if self.boundary != "mask":
            beyond = itertools.chain(range(start, within[0]), range(within[1], end))
            for wanted in beyond:
                source = _stand_in(self.boundary, wanted, n)
                last = runs[-1]
                place = wanted - start
                if source == last.stop and place == last.place + last.stop - last.first:
                    runs[-1] = Run(last.first, source + 1, last.place)
                else:
                    runs.append(Run(source, source + 1, place))
        return runs

    def exists(self, box: Box, grid: Grid) -> BoolArray:
        """Return which frames of a window around some positions exist, bool, of its shape."""
        exists = np.zeros(self.around(box), dtype=bool)
        usable = grid.usable(self.in_roi)
        for runs in itertools.product(*self._runs_of(box, grid)):
            source = tuple(slice(run.first, run.stop) for run in runs)
            exists[_places(runs)] = True if usable is None else usable[source]
        return exists

    def _runs_of(self, box: Box, grid: Grid) -> list[list[Run]]:
        return [
            self.runs(axis, first, stop, n)
            for axis, ((first, stop), n) in enumerate(zip(box, grid.shape, strict=True))
        ]

    def pieces(self, box: Box, grid: Grid, chunk: Sequence[int] | None = None) -> list[Piece]:
        """Return the pieces of a window around some positions, or only those in one chunk."""
        along = [
            [
                part
                for run in runs
                for part in _in_chunks(run, grid.starts[axis])
                if chunk is None or part[0] == chunk[axis]
            ]
            for axis, runs in enumerate(self._runs_of(box, grid))
        ]
        return [
            Piece(
                tuple(chunk for chunk, _ in parts),
                tuple((run.first, run.stop) for _, run in parts),
                _places([run for _, run in parts]),
            )
            for parts in itertools.product(*along)
        ]


class Run(NamedTuple):
    """Frames of a window that lie next to each other in the scan, along one axis."""

    first: int
    """Position of the first one in the scan."""
    stop: int
    """The position after the last one."""
    place: int
    """Where the first one is in the window."""


def _places(runs: Sequence[Run]) -> tuple[slice, ...]:
    """Return where frames are in the window, from their runs along each axis."""
    return tuple(slice(run.place, run.place + run.stop - run.first) for run in runs)


def _in_chunks(run: Run, starts: Sequence[int]) -> list[tuple[int, Run]]:
    """Return the parts of a run that lie in one chunk each, with the index of the chunk."""
    parts = []
    first = run.first
    while first < run.stop:
        following = bisect.bisect_right(starts, first)
        stop = min(run.stop, starts[following]) if following < len(starts) else run.stop
        parts.append((following - 1, Run(first, stop, run.place + first - run.first)))
        first = stop
    return parts


def _stand_in(boundary: str, wanted: int, n: int) -> int:
    """Return the position that stands for one beyond the ends of an axis of n frames."""
    if boundary == "nearest":
        return min(max(wanted, 0), n - 1)
    if boundary == "periodic":
        return wanted % n
    turned = wanted % (2 * n)  # d c b a | a b c d | d c b a, as scipy.ndimage and dask have it
    return turned if turned < n else 2 * n - 1 - turned


class Piece(NamedTuple):
    """Some frames of a window that lie next to each other in one chunk."""

    chunk: tuple[int, ...]
    """Index of the chunk in dask's grid of chunks."""
    source: Box
    """Where the frames are in the scan."""
    place: tuple[slice, ...]
    """Where they are in the window."""


SLAB_BYTES = 8 << 20
"""Size of the frames of a slab with their neighbors, in bytes, unless its margins need more."""


def slabs(halo: Halo, box: Box, frame_bytes: int) -> list[Box]:
    """Return the slabs of a box, for frames of this size.

    The frames in the windows of two slabs are made twice. So a slab has at least as many positions
    along an axis as its margins.
    """
    around, rest = halo.around(box), SLAB_BYTES
    cuts = []
    for axis, ((first, stop), (before, after)) in enumerate(zip(box, halo.sides, strict=True)):
        line = max(1, frame_bytes * math.prod(around[axis + 1 :]))
        n = max(1, before + after, rest // line - before - after)
        cuts.append([(start, min(start + n, stop)) for start in range(first, stop, n)])
        # only if one line of positions is too large is it cut as well
        rest = max(1, rest // (min(n, stop - first) + before + after))
    return list(itertools.product(*cuts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """The selected positions of a chunk, as boxes."""

    inside: tuple[Box, ...]
    """Positions whose windows need no other chunk."""
    seams: tuple[Box, ...]
    """Positions whose windows need frames of other chunks."""


def divide(halo: Halo, chunk: int, grid: Grid) -> Division:
    """Return the selected positions of a chunk, divided."""
    index = grid.index(chunk)
    inside: list[Box] = []
    seams: list[Box] = []
    for box in map(grid.selected_box, _boxes(halo, box_of(grid, index), grid)):
        if box is not None:
            others = (piece.chunk for piece in halo.pieces(box, grid) if piece.chunk != index)
            needs_others = any(grid.has_usable(other, halo.in_roi) for other in others)
            (seams if needs_others else inside).append(box)
    return Division(inside=tuple(inside), seams=tuple(seams))


def box_of(grid: Grid, index: Sequence[int]) -> Box:
    """Return the positions of a chunk at an index of dask's grid of chunks."""
    start, shape = grid.bounds_at(index)
    return tuple((first, first + n) for first, n in zip(start, shape, strict=True))


def _boxes(halo: Halo, bounds: Box, grid: Grid) -> list[Box]:
    """Return boxes that fill a chunk: the middle, whose windows need no boundary, comes first."""
    rest, borders = list(bounds), list[Box]()
    for axis, ((first, stop), (before, after)) in enumerate(zip(bounds, halo.sides, strict=True)):
        middle = (first + before, stop - after)
        if middle[0] < middle[1]:
            for border in ((first, middle[0]), (middle[1], stop)):
                if border[0] < border[1]:
                    borders.append((*rest[:axis], border, *rest[axis + 1 :]))
            rest[axis] = middle
        elif any(
            run.first < first or stop < run.stop
            for run in halo.runs(axis, first, stop, grid.shape[axis])
        ):
            break  # each window needs another chunk
    return [tuple(rest), *borders]


def _pieces_at_seams(
    halo: Halo, chunk: int, grid: Grid, other: tuple[int, ...] | None = None
) -> Iterator[Piece]:
    """Yield the pieces of all windows at the borders of a chunk: those in one other, or all."""
    for box in divide(halo, chunk, grid).seams:
        yield from halo.pieces(box, grid, other)


def own_pieces(halo: Halo, chunk: int, grid: Grid) -> list[Box]:
    """Return the frames of a chunk that the windows at its own borders need."""
    pieces = _pieces_at_seams(halo, chunk, grid, grid.index(chunk))
    return list(dict.fromkeys(piece.source for piece in pieces))


def margin(halos: Iterable[Halo], chunk: int, other: tuple[int, ...], grid: Grid) -> list[Box]:
    """Return the frames that a chunk needs of another one: few boxes, maybe with some more."""
    boxes = [
        piece.source
        for halo in halos
        if grid.has_usable(other, halo.in_roi)
        for piece in _pieces_at_seams(halo, chunk, grid, other)
    ]
    if not boxes:
        return []
    return list(itertools.product(*map(_joined_spans, zip(*boxes, strict=True))))


def _joined_spans(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    union: list[tuple[int, int]] = []
    for first, stop in sorted(spans):
        if union and first <= union[-1][1]:
            union[-1] = (union[-1][0], max(stop, union[-1][1]))
        else:
            union.append((first, stop))
    return union


def neighbors(halos: Sequence[Halo], chunk: int, grid: Grid) -> list[tuple[int, ...]]:
    """Return the chunks that a chunk needs frames of; maybe some more that are loaded anyway."""
    index = grid.index(chunk)
    pieces = (piece for halo in halos for piece in halo.pieces(box_of(grid, index), grid))
    around = {piece.chunk for piece in pieces} - {index}
    empty = set() if grid.roi is None else {i for i in around if not grid.has_selected(i)}
    if empty:  # only then: it takes longer, and a graph asks for each of its chunks
        around -= empty - {
            piece.chunk
            for halo in halos
            for piece in _pieces_at_seams(halo, chunk, grid)
            if grid.has_usable(piece.chunk, halo.in_roi)
        }
    return sorted(around)


def loaded_for_others(halos: Sequence[Halo], grid: Grid) -> set[tuple[int, ...]]:
    """Return the chunks without selected frames that are loaded, because others need frames."""
    if grid.roi is None or not halos:
        return set()
    needed = (index for chunk in range(grid.n_chunks) for index in neighbors(halos, chunk, grid))
    return {index for index in needed if not grid.has_selected(index)}


def frames_that_travel(halos: Iterable[Halo], grid: Grid) -> int:
    """Return the number of frames that chunks need of other chunks, at most; axis by axis."""
    total = 0
    for halo in halos:
        with_margins = 1
        for n, sizes, starts, (before, after) in zip(
            grid.shape, grid.nav_chunks, grid.starts, halo.sides, strict=True
        ):
            spans = [(a - before, a + size + after) for a, size in zip(starts, sizes, strict=True)]
            if halo.boundary != "periodic":
                spans = [(max(0, first), min(n, stop)) for first, stop in spans]
            with_margins *= sum(min(n, stop - first) for first, stop in spans)
        total += with_margins - grid.size
    return total
