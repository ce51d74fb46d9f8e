"""Put a sequence of frames into a scan that has fewer or more positions than there are frames.

Each frame is copied at most once: each new block is made by one task of the blocks that contain its
frames. dask's own functions would flatten the scan, which joins chunks until they have whole rows.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import dask.array as da
import numpy as np
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from udfdask.backends.table import backend_of
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.chunk_grid import BoolArray, IntArray, as_index, as_range
from udfdask.geometry.roi import ABSENT_LAYER
from udfdask.graph.dask_internals.arrays import graph_array, make_array
from udfdask.graph.dask_internals.layers import ListedTasks
from udfdask.graph.dask_internals.tasks import List, Task, TaskRef
from udfdask.io.lazy_source import Chunks, choose_frame_chunks, explicit_chunks
from udfdask.io.opened_file import OpenedFile, choose_sig_dims, opened_array, sizes

Piece = tuple[tuple[int, ...], Any, Any]
"""The position of a block along the navigation axes, an index of these axes that gives some of its
frames, and their places in the new block, in C order."""


def arrange(array: Any, n_nav: int, nav_chunks: Chunks, offset: int) -> Any:
    """Return an array of the same frames in a scan with other chunks and perhaps another shape.

    Position k of the new scan has frame ``k + offset``, both counted in C order; where there is no
    such frame, it has zeros. `n_nav` is the number of navigation axes of `array`.
    """
    array = graph_array(array)
    if backend_of(array._meta).is_sparse:
        raise ArgumentTypeError(
            f"the frames are {type(array._meta).__name__} chunks, and sparse frames cannot be put "
            "at other positions of a scan: make them dense with map_blocks, or store them with all "
            "positions of the scan"
        )
    n_old, n_new = (math.prod(map(sum, axes)) for axes in (array.chunks[:n_nav], nav_chunks))
    is_complete = offset >= 0 and n_new + offset <= n_old
    prefix = "in-scan-" if is_complete else ABSENT_LAYER
    name = f"{prefix}{tokenize(array.name, n_nav, nav_chunks, offset)}"
    sig_chunks = array.chunks[n_nav:]
    sig_blocks = list(itertools.product(*(enumerate(sizes) for sizes in sig_chunks)))
    tasks: dict[Any, Task] = {}
    for place, numbers in _numbers(nav_chunks):
        pieces = _pieces(numbers + offset, array.chunks[:n_nav])
        shape = tuple(axis[k] for axis, k in zip(nav_chunks, place, strict=True))
        for sig in sig_blocks:
            behind = tuple(k for k, _ in sig)
            key = (name, *place, *behind)
            blocks = [TaskRef((array.name, *block, *behind)) for block, _, _ in pieces]
            where = [(frames, places) for _, frames, places in pieces]
            full = (*shape, *(size for _, size in sig))
            tasks[key] = Task(
                key, _new_block, List(*blocks), where, full, len(nav_chunks), array._meta
            )
    layers = {**array.dask.layers, name: ListedTasks(tasks)}
    graph = HighLevelGraph(layers, {**array.dask.dependencies, name: {array.name}})
    return make_array(graph, name, (*nav_chunks, *sig_chunks), array._meta)


def _numbers(nav_chunks: Chunks) -> Any:
    """Yield the position of each new block, and the numbers of its positions in C order."""
    shape = [sum(axis) for axis in nav_chunks]
    steps = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    bounds = [list(itertools.accumulate(axis, initial=0)) for axis in nav_chunks]
    for place in itertools.product(*(range(len(axis)) for axis in nav_chunks)):
        numbers = np.zeros(1, dtype=np.intp)
        for step, bound, k in zip(steps, bounds, place, strict=True):
            along = np.arange(bound[k], bound[k + 1], dtype=np.intp) * step
            numbers = (numbers[:, None] + along).reshape(-1)
        yield place, numbers


def _pieces(frames: IntArray, nav_chunks: Chunks) -> list[Piece]:
    """Return where the frames with these numbers are; numbers of no frame are left out."""
    shape = tuple(sum(axis) for axis in nav_chunks)
    places = np.flatnonzero((frames >= 0) & (frames < math.prod(shape)))
    if not len(places):
        return []
    if not shape:  # a single frame without navigation axes
        return [((), (), as_index(as_range(places)))]
    positions = np.unravel_index(frames[places], shape)
    bounds = [np.cumsum((0, *axis)) for axis in nav_chunks]
    along = [
        np.searchsorted(bound, at, side="right") - 1
        for bound, at in zip(bounds, positions, strict=True)
    ]
    numblocks = tuple(len(axis) for axis in nav_chunks)
    blocks = np.ravel_multi_index(tuple(along), numblocks)
    pieces: list[Piece] = []
    for block in np.unique(blocks):
        own = np.flatnonzero(blocks == block)
        at = tuple(int(k) for k in np.unravel_index(block, numblocks))
        inside = [
            position[own] - bound[k]
            for position, bound, k in zip(positions, bounds, at, strict=True)
        ]
        index = (as_index(as_range(inside[0])),) if len(inside) == 1 else tuple(inside)
        pieces.append((at, index, as_index(as_range(places[own]))))
    return pieces


def _new_block(
    blocks: list[Any], where: list[tuple[Any, Any]], shape: tuple[int, ...], n_nav: int, meta: Any
) -> Any:
    """Return a block of frames from other blocks, with zeros where there are none."""
    sig, n_frames = shape[n_nav:], math.prod(shape[:n_nav])
    if len(blocks) == 1 and where[0][1] == slice(0, n_frames) and _is_run(where[0][0]):
        return blocks[0][where[0][0] or None].reshape(shape)
    home = backend_of(meta).dense
    with home.at_work(own_stream=False):
        made = home.namespace().zeros((n_frames, *sig), dtype=meta.dtype)
        for block, (frames, places) in zip(blocks, where, strict=True):
            made[places] = block[frames or None]
        return made.reshape(shape)


def _is_run(frames: tuple[Any, ...]) -> bool:
    """Return whether frames of a block can be a view of it."""
    return all(isinstance(part, slice) for part in frames)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sequenced:
    """Where the frames of a sequence are in a scan, in C order."""

    nav: tuple[int, ...]
    """Shape of the scan."""
    n_frames: int
    """Number of frames in the sequence."""
    offset: int
    """Number of the frame at the first position; negative if positions before it are absent."""

    @property
    def first(self) -> int:
        """The first position that has a frame, counted in C order."""
        return max(0, -self.offset)

    @property
    def stop(self) -> int:
        """The position after the last one that has a frame; `first` if none has."""
        return max(self.first, min(math.prod(self.nav), self.n_frames - self.offset))

    @property
    def present(self) -> BoolArray | None:
        """The positions that have a frame, shape nav; None for all."""
        size = math.prod(self.nav)
        if (self.first, self.stop) == (0, size):
            return None
        mask = np.zeros(size, dtype=bool)
        mask[self.first : self.stop] = True
        mask.flags.writeable = False
        return mask.reshape(self.nav)


def sequenced(nav: tuple[int, ...], n_frames: int, sync_offset: Any, what: str) -> Sequenced:
    """Return where frames are; raise if the offset leaves out or moves away all of them."""
    try:
        if isinstance(sync_offset, (bool, np.bool_)):
            raise TypeError("a number of frames cannot be a bool")  # noqa: TRY301  # the cause
        offset = operator.index(sync_offset)
    except TypeError as error:
        raise ArgumentTypeError(
            f"sync_offset must be an integer number of frames, got {sync_offset!r}: pass a "
            "positive number to skip frames at the start, a negative one for absent frames there"
        ) from error
    if not -n_frames < offset < n_frames:
        raise ArgumentValueError(
            f"sync_offset={offset} does not fit {what}, which has {n_frames} frames"
            + (f": pass a number from {1 - n_frames} to {n_frames - 1}" if n_frames else "")
        )
    return Sequenced(nav=nav, n_frames=n_frames, offset=offset)


def with_sync_offset(
    frames: da.Array | OpenedFile,
    nav_shape: int | Sequence[int] | None = None,
    *,
    sync_offset: int = 0,
    sig_dims: int | None = None,
    chunks: Any = None,
) -> OpenedFile:
    """Put frames at other positions of a scan, whose first or last positions may have no frame.

    Use it if a detector started before or after the scan, or stopped too early or too late. The
    frames count as one sequence in C order. Runs treat positions without a frame like positions
    outside of a region of interest: UDFs do not see them, and their results are not valid.

    Parameters
    ----------
    frames : dask.array.Array or OpenedFile
        The frames, shape (n, *sig) or (*nav, *sig).
    nav_shape : int or sequence of int, optional
        Scan positions of the result, by default those of `frames`. Frames after the last position
        are left out, and positions after the last frame have none.
    sync_offset : int
        Positive: the number of frames to skip at the start. Negative: the number of positions
        without a frame at the start.
    sig_dims : int, optional
        Number of trailing signal dimensions. By default that of an opened file, otherwise 2, or 1
        if there are at most two dimensions.
    chunks : int, str or tuple, optional
        Chunks of all dimensions of the result, in any form that dask accepts. By default, those of
        `frames` if the scan keeps its shape; otherwise chunks of about as many frames.

    Returns
    -------
    OpenedFile
        The data in the new scan, shape (*nav_shape, *sig), which `run_udf` takes. Its attribute
        `present` is a mask of the positions that have a frame. In its `array`, the other
        positions are zeros.

    Raises
    ------
    ArgumentTypeError
        If an argument has the wrong type, or chunks are sparse.
    ArgumentValueError
        If there are not more frames than the size of `sync_offset`, some positions of `frames`
        have no frame already, the number of frames is not known, or an argument does not fit the
        data.

    Examples
    --------
    A scan of 2 x 3 positions, recorded by a detector that started 2 positions too late:

    >>> import dask.array as da, udfdask as ud
    >>> from udfdask.io import with_sync_offset
    >>> from udfdask.udfs import SumSigUDF
    >>> frames = da.ones((4, 8, 8), chunks=(2, 8, 8))
    >>> scan = with_sync_offset(frames, (2, 3), sync_offset=-2)
    >>> scan.array.shape, scan.present.sum()
    ((2, 3, 8, 8), np.int64(4))
    >>> ud.run_udf(scan, SumSigUDF())["intensity"].compute()
    array([[nan, nan, 64.],
           [64., 64., 64.]])
    """
    opened = _opened(frames, sig_dims)
    array, sig = opened.array, opened.sig_dims
    n_nav = array.ndim - sig
    source_nav = array.shape[:n_nav]
    nav = source_nav if nav_shape is None else sizes(nav_shape, name="nav_shape")
    place = sequenced(nav, math.prod(source_nav), sync_offset, "the data")
    unchanged = nav == source_nav
    if chunks is not None:
        asked = explicit_chunks((*nav, *array.shape[n_nav:]), array.dtype, chunks)
        grid, sig_chunks = asked[: len(nav)], asked[len(nav) :]
        array = array.rechunk((*array.chunks[:n_nav], *sig_chunks))
    elif unchanged:
        grid = array.chunks[:n_nav]
    else:
        grid = choose_frame_chunks(nav, math.prod(map(max, array.chunks[:n_nav])))
    if not unchanged or place.offset or grid != array.chunks[:n_nav]:
        array = arrange(array, n_nav, grid, place.offset)
    axes = opened.axes if unchanged else (*(None,) * len(nav), *opened.axes[n_nav:])
    made = opened_array(
        array, sig, reader=opened.reader, title=opened.title, axes=axes, unit=opened.unit
    )
    return replace(made, present=place.present)


def _opened(frames: Any, sig_dims: int | None) -> OpenedFile:
    """Return an array, or an opened file without absent positions, as an opened file."""
    if not isinstance(frames, OpenedFile):
        if not isinstance(frames, da.Array):
            raise ArgumentTypeError(
                f"expected a dask array or an opened file, got {type(frames).__name__}: pass "
                "dask.array.from_array(frames), or the dask array in a DataArray or a signal, its "
                "attribute data"
            )
        if not all(map(math.isfinite, frames.shape)):
            raise ArgumentValueError(
                f"the number of frames of the array is not known, its shape is {frames.shape}: "
                "call array.compute_chunk_sizes() first"
            )
        if any(str(name).startswith(ABSENT_LAYER) for name in frames.dask.layers):
            raise ArgumentValueError(
                "the array was made with sync_offset, and positions without a frame are zeros in "
                "it, which would count as frames: pass the opened file, or a part of it such as "
                "opened[2:5], in place of its array"
            )
        sig = choose_sig_dims(sig_dims, frames.ndim)
        return opened_array(frames, sig, reader="dask array", title="frames")
    if frames.present is not None:
        raise ArgumentValueError(
            "some positions of the data have no frame already: open the file without sync_offset, "
            "then pass the sum of both offsets"
        )
    if sig_dims is None:
        return frames
    return replace(frames, sig_dims=choose_sig_dims(sig_dims, frames.array.ndim))


def source_chunks(place: Sequenced, nav_chunks: Chunks) -> tuple[int, ...]:
    """Return chunks of a sequence of frames from which those of its scan are made without copies.

    Copies remain where a chunk has positions without a frame, or no whole rows of the scan.
    """
    if not nav_chunks:
        return (place.n_frames,)
    several = [axis for axis, parts in enumerate(nav_chunks) if len(parts) > 1]
    thick = (axis for axis, parts in enumerate(nav_chunks) if max(parts) > 1)
    last = len(nav_chunks) - 1
    # bands along this axis, one for each position along the axes before
    axis = max(next(thick, last), min(several[-1] if several else 0, last - 1))
    after = math.prod(place.nav[axis + 1 :])
    bounds = [after * each for each in itertools.accumulate(nav_chunks[axis], initial=0)]
    starts = range(place.offset, math.prod(place.nav) + place.offset, bounds[-1])
    borders = {start + bound for start in starts for bound in bounds}
    edges = sorted({0, place.n_frames} | {b for b in borders if 0 < b < place.n_frames})
    return tuple(stop - start for start, stop in itertools.pairwise(edges))
