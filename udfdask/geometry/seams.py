"""Divide the positions of a chunk: those whose window lies in the chunk, and those at its borders.

The first are processed by the task that loads the chunk, which then lets the chunk go. For the
others it keeps the frames near the borders, and cuts the margins that other chunks need.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from udfdask.geometry.chunk_grid import BoolArray, Grid
from udfdask.geometry.halo import Box, Halo, Piece


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
    bounds = box_of(grid, index)
    inside: list[Box] = []
    seams: list[Box] = []
    for box in map(grid.selected_box, _boxes(halo, bounds, grid)):
        if box is not None:
            (inside if _is_inside(halo, box, index, bounds, grid) else seams).append(box)
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
        elif not _is_inside_along(halo, axis, (first, stop), (first, stop), grid):
            break  # each window needs another chunk
    return [tuple(rest), *borders]


def _is_inside(halo: Halo, box: Box, index: tuple[int, ...], bounds: Box, grid: Grid) -> bool:
    """Return whether all frames of a window that exist are in the chunk."""
    if grid.usable(halo.in_roi) is not None:
        parts = halo.pieces(box, grid)
        return all(p.chunk == index or not grid.has_usable(p.chunk, halo.in_roi) for p in parts)
    return all(
        _is_inside_along(halo, axis, box[axis], bounds[axis], grid) for axis in range(len(box))
    )


def _is_inside_along(
    halo: Halo, axis: int, span: tuple[int, int], bounds: tuple[int, int], grid: Grid
) -> bool:
    """Return whether the frames of a window that exist are in the chunk, along one axis."""
    runs = halo.runs(axis, *span, grid.shape[axis])
    return all(bounds[0] <= run.first and run.stop <= bounds[1] for run in runs)


def own_pieces(halo: Halo, chunk: int, grid: Grid) -> list[Box]:
    """Return the frames of a chunk that the windows at its own borders need."""
    boxes = (piece.source for piece in _pieces_at_seams(halo, chunk, grid, grid.index(chunk)))
    return list(dict.fromkeys(boxes))


def margin(halos: Iterable[Halo], chunk: int, other: tuple[int, ...], grid: Grid) -> list[Box]:
    """Return the frames that a chunk needs of another one, at an index of dask's grid."""
    boxes = [
        piece.source
        for halo in halos
        if grid.has_usable(other, halo.in_roi)
        for piece in _pieces_at_seams(halo, chunk, grid, other)
    ]
    return _joined(boxes)


def _pieces_at_seams(
    halo: Halo, chunk: int, grid: Grid, other: tuple[int, ...] | None = None
) -> Iterable[Piece]:
    """Return the pieces of all windows at the borders of a chunk: those in one other, or all."""
    seams = divide(halo, chunk, grid).seams
    return itertools.chain.from_iterable(halo.pieces(box, grid, other) for box in seams)


def _joined(boxes: list[Box]) -> list[Box]:
    """Return boxes that cover some boxes, each frame once: few and perhaps larger ones."""
    if not boxes:
        return []
    spans = [_joined_spans([box[axis] for box in boxes]) for axis in range(len(boxes[0]))]
    return list(itertools.product(*spans))


def _joined_spans(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    union: list[tuple[int, int]] = []
    for first, stop in sorted(spans):
        if union and first <= union[-1][1]:
            union[-1] = (union[-1][0], max(stop, union[-1][1]))
        else:
            union.append((first, stop))
    return union


def neighbors(halos: Sequence[Halo], chunk: int, grid: Grid) -> list[tuple[int, ...]]:
    """Return the chunks that a chunk needs frames of, by index in dask's grid, in order.

    Some of those that have selected frames, and so are loaded anyway, may not be needed.
    """
    index = grid.index(chunk)
    bounds = box_of(grid, index)
    around = {piece.chunk for halo in halos for piece in halo.pieces(bounds, grid)} - {index}
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


def loaded_chunks(halos: Sequence[Halo], grid: Grid) -> BoolArray:
    """Return which chunks have selected frames, or frames that others need; shape `numblocks`."""
    loaded = np.zeros(math.prod(grid.numblocks), bool)
    loaded[grid.selected] = True
    loaded = loaded.reshape(grid.numblocks)
    for index in loaded_for_others(halos, grid):
        loaded[index] = True
    return loaded


def frames_that_travel(halos: Iterable[Halo], grid: Grid) -> int:
    """Return the number of frames that chunks need of other chunks, at most."""
    return sum(_travelling(halo, grid) for halo in halos)


def _travelling(halo: Halo, grid: Grid) -> int:
    """Return the same for one halo: the frames of the chunks with their margins, less the chunks.

    The numbers of frames along each axis multiply, so that no chunk is looked at by itself.
    """
    with_margins = 1
    for n, sizes, starts, (before, after) in zip(
        grid.shape, grid.nav_chunks, grid.starts, halo.sides, strict=True
    ):
        spans = [(a - before, a + size + after) for a, size in zip(starts, sizes, strict=True)]
        if halo.boundary != "periodic":
            spans = [(max(0, first), min(n, stop)) for first, stop in spans]
        with_margins *= sum(min(n, stop - first) for first, stop in spans)
    return with_margins - grid.size
