"""Put a sequence of frames into a scan that has fewer or more positions than there are frames.

Each frame is copied at most once: each new block is made by one task of the blocks that contain its
frames. dask's own functions would flatten the scan, which joins chunks until they have whole rows.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from dask.array.core import slices_from_chunks
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from udfdask.backends.table import backend_of
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.axes import with_different_names
from udfdask.geometry.chunk_grid import as_index, as_range
from udfdask.geometry.roi import ABSENT_LAYER
from udfdask.io.lazy_source import Chunks, StoredArray, choose_chunks, explicit_chunks
from udfdask.io.opened_file import OpenedFile, choose_sig_dims, opened_array, sizes


def _arrange(array: da.Array, n_nav: int, nav_chunks: Chunks, offset: int) -> da.Array:
    """Return a scan whose position k has frame ``k + offset``, in C order, or else zeros."""
    sig_chunks = array.chunks[n_nav:]
    blocks = list(np.ndindex(*array.numblocks[:n_nav]))
    parts = slices_from_chunks(array.chunks[:n_nav])
    owner = np.empty(array.shape[:n_nav], np.intp)  # the block of each frame
    for number, part in enumerate(parts):
        owner[part] = number
    nav = tuple(map(sum, nav_chunks))
    numbers = np.arange(math.prod(nav)).reshape(nav) + offset
    prefix = "in-scan-" if _present(nav, owner.size, offset) is None else ABSENT_LAYER
    name = f"{prefix}{tokenize(array.name, n_nav, nav_chunks, offset)}"
    tasks: dict[Any, Any] = {}
    new_blocks = np.ndindex(*map(len, nav_chunks))
    for place, new_part in zip(new_blocks, slices_from_chunks(nav_chunks), strict=True):
        where: list[tuple[Any, Any]] = []
        frames, needed = numbers[new_part].ravel(), []
        places = np.flatnonzero((frames >= 0) & (frames < owner.size))
        owners = owner.ravel()[frames[places]]
        for number in np.unique(owners):
            own = places[owners == number]
            at = np.unravel_index(frames[own], owner.shape) if n_nav else ()
            inside = [k - begin.start for k, begin in zip(at, parts[number], strict=True)]
            index = tuple(as_index(as_range(k)) if n_nav == 1 else k for k in inside)
            where.append((index or None, as_index(as_range(own))))
            needed.append(blocks[number])
        for behind in np.ndindex(*map(len, sig_chunks)):
            sig = [sizes[k] for sizes, k in zip(sig_chunks, behind, strict=True)]
            how = {"where": where, "nav": numbers[new_part].shape, "sig": tuple(sig)}
            keys = [(array.name, *block, *behind) for block in needed]
            make = partial(_new_block, meta=array._meta, **how)
            tasks[(name, *place, *behind)] = (make, keys)
    layers: dict[str, Any] = {**array.dask.layers, name: tasks}
    graph = HighLevelGraph(layers, {**array.dask.dependencies, name: {array.name}})
    return da.Array(graph, name, (*nav_chunks, *sig_chunks), meta=array._meta)


def _new_block(
    blocks: list[Any], *, where: list[tuple[Any, Any]], nav: Any, sig: Any, meta: Any
) -> Any:
    """Return a block of frames from other blocks, with zeros where there are none."""
    n_frames = math.prod(nav)
    if len(blocks) == 1 and where[0][1] == slice(0, n_frames):
        index = where[0][0]
        if index is None or isinstance(index[0], slice):  # a view
            return blocks[0][index].reshape(*nav, *sig)
    home = backend_of(meta).dense
    with home.at_work(own_stream=False):
        made = home.namespace().zeros((n_frames, *sig), dtype=meta.dtype)
        for block, (index, places) in zip(blocks, where, strict=True):
            made[places] = block[index]
        return made.reshape(*nav, *sig)


def _present(nav: tuple[int, ...], n_frames: int, offset: int) -> Any:
    """Return the positions of a scan that have a frame, bool, shape nav; None for all."""
    mask = np.zeros(math.prod(nav), dtype=bool)
    mask[max(0, -offset) : max(0, n_frames - offset)] = True
    mask.flags.writeable = False
    return None if mask.all() else mask.reshape(nav)


def check_offset(sync_offset: Any, n_frames: int, what: str) -> int:
    """Return the user's offset; raise if it leaves out or moves away all frames."""
    try:
        offset = operator.index(sync_offset)
    except TypeError as error:
        raise ArgumentTypeError(
            f"sync_offset must be an integer number of frames, got {sync_offset!r}"
        ) from error
    if not -n_frames < offset < n_frames:
        raise ArgumentValueError(
            f"sync_offset={offset} does not fit {what}, which has {n_frames} frames: pass a "
            f"number from {1 - n_frames} to {n_frames - 1}"
        )
    return offset


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
        The number of frames to skip at the start, or if negative, of positions without a frame.
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
        `present` is a mask of the positions that have a frame; the others are zeros in `array`.

    Raises
    ------
    ArgumentTypeError
        If an argument has the wrong type, or chunks are sparse.
    ArgumentValueError
        If there are not more frames than the size of `sync_offset`, some positions of `frames`
        have no frame already, or an argument does not fit the data.

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
    n_frames, unchanged = math.prod(source_nav), nav == source_nav
    offset = check_offset(sync_offset, n_frames, "the data")
    if chunks is not None:
        asked = explicit_chunks((*nav, *array.shape[n_nav:]), array.dtype, chunks)
        grid = asked[: len(nav)]
        array = array.rechunk((*array.chunks[:n_nav], *asked[len(nav) :]))
    elif unchanged:
        grid = array.chunks[:n_nav]
    else:
        positions = StoredArray(shape=nav, dtype=np.dtype(bool))
        grid = choose_chunks(positions, 0, nbytes=math.prod(map(max, array.chunks[:n_nav])))
    if not unchanged or offset or grid != array.chunks[:n_nav]:
        array = _arrange(array, n_nav, grid, offset)
    axes = opened.axes if unchanged else (*(None,) * len(nav), *opened.axes[n_nav:])
    present = _present(nav, n_frames, offset)
    return replace(opened, array=array, axes=with_different_names(axes, sig), present=present)


def _opened(frames: Any, sig_dims: int | None) -> OpenedFile:
    """Return an array, or an opened file without absent positions, as an opened file."""
    if isinstance(frames, OpenedFile):
        opened, is_absent = frames, frames.present is not None
    elif isinstance(frames, da.Array):
        is_absent = any(str(name).startswith(ABSENT_LAYER) for name in frames.dask.layers)
        sig = choose_sig_dims(sig_dims, frames.ndim)  # names of axes depend on it
        opened = opened_array(frames, sig, reader="dask array", title="frames")
    else:
        raise ArgumentTypeError(
            f"expected a dask array or an opened file, got {type(frames).__name__}: pass "
            "dask.array.from_array(frames), or the attribute data of a DataArray or a signal"
        )
    if backend_of(opened.array._meta).is_sparse:
        raise ArgumentTypeError("sparse frames cannot be moved: make them dense with map_blocks")
    if is_absent:
        raise ArgumentValueError(
            "some positions have no frame already, and zeros would count as frames: pass the "
            "opened file without sync_offset, with the sum of both offsets, or a part such as "
            "opened[2:5]"
        )
    sig = choose_sig_dims(sig_dims, opened.array.ndim, known=opened.sig_dims)
    return replace(opened, sig_dims=sig)


def source_chunks(nav_chunks: Chunks, n_frames: int, offset: int) -> tuple[int, ...]:
    """Return chunks of frames, bands along a scan, of which blocks of it are mostly views."""
    if not nav_chunks:
        return (n_frames,)
    nav = tuple(map(sum, nav_chunks))
    axis = next((axis for axis, parts in enumerate(nav_chunks) if len(parts) > 1), 0)
    bounds = [math.prod(nav[axis + 1 :]) * each for each in itertools.accumulate(nav_chunks[axis])]
    starts = range(offset, math.prod(nav) + offset, bounds[-1])
    borders = {start + bound for start in starts for bound in (0, *bounds)}
    edges = sorted({0, n_frames} | {b for b in borders if 0 < b < n_frames})
    return tuple(stop - start for start, stop in itertools.pairwise(edges))
