"""Put a sequence of frames into a scan that has fewer or more positions than there are frames."""

from __future__ import annotations

import itertools
import math
import operator
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import dask.array as da
import numpy as np
from dask.base import tokenize

from udfdask.backends.table import backend_of
from udfdask.base.types import is_expression_array
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.axes import with_different_names
from udfdask.geometry.roi import ABSENT_LAYER
from udfdask.io.lazy_source import Chunks, StoredArray, choose_chunks, explicit_chunks
from udfdask.io.opened_file import OpenedFile, choose_sig_dims, opened_array, sizes


def _library(array: Any) -> Any:
    """Return the package that an array is of: dask.array or dask_array."""
    return sys.modules["dask_array"] if is_expression_array(array) else da


def _arrange(frames: da.Array, nav: tuple[int, ...], grid: Chunks, offset: int) -> Any:
    """Return a scan whose position k has frame ``k + offset``, in C order, or else zeros."""
    library = _library(frames)
    if len(nav) > 2:  # dask would make blocks of all positions of the last two axes
        step = math.prod(nav[1:])
        starts = range(offset, offset + nav[0] * step, step)
        scans = [_arrange(frames, nav[1:], grid[1:], start) for start in starts]
        return library.stack(scans).rechunk((*grid, *frames.chunks[1:]))
    n_positions = math.prod(nav)
    before = min(max(0, -offset), n_positions)
    found = frames[max(0, offset) :][: n_positions - before]
    parts = [_zeros(frames, before), found, _zeros(frames, n_positions - before - len(found))]
    scan = library.concatenate([part for part in parts if len(part)])
    if _in_order(grid):  # dask's reshape would join the blocks of a row
        blocks = tuple(map(math.prod, itertools.product(*grid)))
        chunks = (*grid, *frames.chunks[1:])
        shape = (*nav, *frames.shape[1:])
        return library.reshape_blockwise(scan.rechunk({0: blocks}), shape, chunks=chunks)
    rows = math.prod(nav[1:])
    scan = scan.rechunk({0: tuple(rows * n for n in grid[0]) if nav else 1})
    scan = scan.reshape(*nav, *frames.shape[1:])
    return scan.rechunk((*grid, *frames.chunks[1:]))


def _zeros(frames: da.Array, n: int) -> Any:
    name = f"{ABSENT_LAYER}{tokenize(frames.name, n)}"
    shape, chunks = (n, *frames.shape[1:]), (max(frames.chunks[0]), *frames.chunks[1:])
    return _library(frames).zeros_like(frames, shape=shape, chunks=chunks, name=name)


def _in_order(grid: Chunks) -> bool:
    """Return whether the positions of each block of a scan follow each other."""
    cut = max((axis for axis, parts in enumerate(grid) if len(parts) > 1), default=0)
    return bool(grid) and all(max(parts) == 1 for parts in grid[:cut])


def bands(grid: Chunks, n_frames: int, offset: int) -> tuple[int, ...]:
    """Return chunks of frames, of which most blocks of a scan with these chunks are views."""
    cuts = [axis for axis, parts in enumerate(grid) if len(parts) > 1] or [0]
    cut = cuts[-1] if _in_order(grid) else cuts[0]
    inner, outer = (math.prod(map(sum, part)) for part in (grid[cut + 1 :], grid[:cut]))
    blocks = [n * inner for n in grid[cut]] * outer if grid else [1]
    begin = offset % sum(blocks) - sum(blocks)
    starts = itertools.accumulate(itertools.cycle(blocks), initial=begin)
    inside = itertools.takewhile(lambda start: start < n_frames, starts)
    edges = [0, *(start for start in inside if start > 0), n_frames]
    return tuple(stop - start for start, stop in itertools.pairwise(edges))


def bands_of_parts(
    parts: Sequence[StoredArray], nav_shape: int | Sequence[int], sync_offset: Any
) -> list[Chunks]:
    """Return chunks of the parts of a sequence of frames that will be put into a scan."""
    nav, (_, *sig) = sizes(nav_shape, name="nav_shape"), parts[0].shape
    stored = parts[0].stored and (*(1,) * (len(nav) - 1), *parts[0].stored)
    scan = StoredArray(shape=(*nav, *sig), dtype=parts[0].dtype, stored=stored)
    grid = choose_chunks(scan, len(sig))
    ends = list(itertools.accumulate(part.shape[0] for part in parts))
    offset = check_offset(sync_offset or 0, ends[-1])
    cuts = itertools.accumulate(bands(grid[: len(nav)], ends[-1], offset))
    edges = sorted({0, *cuts, *ends})
    return [
        (
            tuple(b - a for a, b in itertools.pairwise(edges) if end - part.shape[0] <= a < end),
            *grid[len(nav) :],
        )
        for part, end in zip(parts, ends, strict=True)
    ]


def check_offset(sync_offset: Any, n_frames: int) -> int:
    """Return the user's offset; raise if it leaves out or moves away all frames."""
    try:
        offset = operator.index(sync_offset)
    except TypeError as error:
        raise ArgumentTypeError(
            f"sync_offset must be an integer number of frames, got {sync_offset!r}"
        ) from error
    if not -n_frames < offset < n_frames:
        raise ArgumentValueError(
            f"sync_offset={offset} does not fit the data, which has {n_frames} frames: pass a "
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
    offset = check_offset(sync_offset, n_frames)
    grid = array.chunks
    if chunks is not None:
        grid = explicit_chunks((*nav, *array.shape[n_nav:]), array.dtype, chunks)
    elif not unchanged:
        positions = StoredArray(shape=nav, dtype=np.dtype(bool))
        nbytes = math.prod(map(max, array.chunks[:n_nav]))
        grid = (*choose_chunks(positions, 0, nbytes=nbytes), *array.chunks[n_nav:])
    array = array.rechunk((*array.chunks[:n_nav], *grid[len(nav) :]))
    if offset or not unchanged:
        # dask's `concatenate` would convert other byte orders
        stored, array = array.dtype, array.view(array.dtype.newbyteorder("="))
        array = array if n_nav else array[None]
        for _ in range(1, n_nav):
            array = array.reshape(-1, *array.shape[2:])
        array = _arrange(array, nav, grid[: len(nav)], offset).view(stored)
    axes = opened.axes if unchanged else (*(None,) * len(nav), *opened.axes[n_nav:])
    mask = np.zeros(math.prod(nav), dtype=bool)
    mask[max(0, -offset) : max(0, n_frames - offset)] = True
    mask.flags.writeable = False
    present = None if mask.all() else mask.reshape(nav)
    axes = with_different_names(axes, sig)
    return replace(opened, array=array.rechunk(grid), axes=axes, present=present)


def with_nav_shape(
    opened: OpenedFile, nav_shape: int | Sequence[int], *, chunks: Any = None
) -> OpenedFile:
    """Return an opened file whose scan has another shape, with as many positions as frames."""
    nav, n_frames = (
        sizes(nav_shape, name="nav_shape"),
        math.prod(opened.array.shape[: -opened.sig_dims]),
    )
    if math.prod(nav) != n_frames:
        raise ArgumentValueError(
            f"nav_shape={nav} has {math.prod(nav)} positions, but {opened.title} has {n_frames} "
            "frames: pass the shape of the scan, and if the detector missed frames or recorded too "
            "many, sync_offset=0"
        )
    return with_sync_offset(opened, nav, chunks=chunks)


def _opened(frames: Any, sig_dims: int | None) -> OpenedFile:
    """Return an array, or an opened file without absent positions, as an opened file."""
    if isinstance(frames, OpenedFile):
        opened, is_absent = frames, frames.present is not None
    elif isinstance(frames, _library(frames).Array):
        nodes = frames.expr.walk() if is_expression_array(frames) else ()
        names = [node._name for node in nodes] or frames.dask.layers
        is_absent = any(str(name).startswith(ABSENT_LAYER) for name in names)
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
