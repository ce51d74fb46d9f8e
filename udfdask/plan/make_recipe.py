"""Make the recipe of a run from UDFs and sizes, without dask.

`run_chunk(make_recipe(udfs, shape=..., dtype=...), 0, [array])` processes a whole array in a test.
Only the declaring methods of the UDFs are called here.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from udfdask.backends.backend import NUMPY, Backend
from udfdask.corrections import CorrectionSet
from udfdask.corrections.planes import straddles
from udfdask.corrections.validate import checked
from udfdask.geometry.axes import Calibration, in_pixels
from udfdask.geometry.chunk_grid import BoolArray, Grid
from udfdask.geometry.shapes import Shape
from udfdask.geometry.tiling import (
    DEVICE_TILE_BYTES,
    TILE_BYTES,
    TilingScheme,
    choose_tiling,
    sparse_tiling,
)
from udfdask.plan.declarations import TilePreferences, declare
from udfdask.plan.recipe import DescanRecipe, Recipe, UDFRecipe, backends_for
from udfdask.udf import UDF, UDFMethod
from udfdask.udf.meta import UDFMeta

MANY_BLOCKS = 4
"""With more signal chunks than this, UDFs that support it get one task per signal chunk."""

SigChunks = tuple[tuple[int, ...], ...]
"""Chunk sizes along each signal axis, in pixels."""


def make_recipe(
    udfs: Sequence[UDF],
    *,
    shape: Sequence[int],
    dtype: Any,
    sig_dims: int = 2,
    nav_chunks: Sequence[Sequence[int]] | None = None,
    sig_chunks: Sequence[Sequence[int]] | None = None,
    roi: BoolArray | None = None,
    tile_bytes: int = TILE_BYTES,
    device_tile_bytes: int = DEVICE_TILE_BYTES,
    split_every: int | bool = 8,
    threads: int = 1,
    lazy_params: Sequence[Sequence[str]] | None = None,
    max_task_bytes: float = math.inf,
    corrections: CorrectionSet | None = None,
    descan: DescanRecipe | None = None,
    backends: Sequence[Backend] | None = None,
    native: Backend = NUMPY,
    calibration: Calibration | None = None,
    present: BoolArray | None = None,
) -> Recipe:
    """Return the recipe of a run; chunk sizes as dask has them, one chunk by default.

    If a navigation block has more than `max_task_bytes`, a task takes one of its signal chunks, if
    all UDFs support it. `present` has the positions that have a frame. `backends` restricts what
    UDFs are given; `native` is the array backend of the chunks.
    """
    full, data_dtype = Shape(shape, sig_dims=sig_dims), np.dtype(dtype)
    grid = Grid.of([[n] for n in full.nav] if nav_chunks is None else nav_chunks, roi)
    sigs = [[n] for n in full.sig] if sig_chunks is None else sig_chunks
    sizes: SigChunks = tuple(tuple(map(int, axis)) for axis in sigs)
    calibration = calibration or in_pixels(len(full), sig_dims)
    names = [axis.name for axis in calibration.axes]
    corrections = checked(corrections, full.sig, data_dtype, names)
    meta = UDFMeta(
        grid=grid,
        dataset_shape=full,
        dataset_dtype=data_dtype,
        threads=threads,
        corrections=corrections,
        calibration=calibration,
        interpolated=descan is not None and descan.subpixel,
    )
    lazy = [()] * len(udfs) if lazy_params is None else lazy_params
    declared = [
        declare(udf, meta, grid, tuple(names), split_every, backends)
        for udf, names in zip(udfs, lazy, strict=True)
    ]
    if present is not None and any(udf.halo is not None for udf, _ in declared):
        grid = replace(grid, present=present)
    corrected, shifted = corrections is not None, descan is not None
    moves_entries = descan is not None and descan.moves_entries
    makes_dense = corrected or (shifted and not moves_entries)
    udf_recipes = [udf for udf, _ in declared]
    chosen = backends_for(udf_recipes, native, corrected=makes_dense)
    udf_recipes = [replace(udf, backend=b) for udf, b in zip(udf_recipes, chosen, strict=True)]
    summed = _summed(udf_recipes, full, corrected and not shifted)
    limits = _tile_limits(udf_recipes, [preferences for _, preferences in declared], grid)
    # Frames are corrected before they are shifted, and each needs other pixels outside of a part.
    # Entries of sparse frames may move to another signal chunk.
    several = math.prod(map(len, sizes)) > 1
    limits["whole_frames"] |= (shifted and corrected) or (moves_entries and several)
    if all(udf.backend.on_device for udf in udf_recipes):
        tile_bytes = device_tile_bytes
    return Recipe(
        grid=grid,
        shape=full,
        dtype=data_dtype,
        sig_chunks=sizes,
        tiling=_dense_tiling(
            sizes,
            udf_recipes,
            limits
            | {
                "least_depth": max(p.least_depth for _, p in declared),
                "view_size": min(p.view_size for _, p in declared),
            },
            tile_bytes,
            data_dtype,
            native,
            corrected,
            shifted,
            summed,
        ),
        # Signal chunks are not cut into sparse tiles: a sparse tile is a view of its rows.
        sparse_tiling=sparse_tiling(sizes, **limits),
        by_sig_chunk=not shifted
        and _by_sig_chunk(sizes, udf_recipes, grid, data_dtype, corrections, max_task_bytes),
        threads=threads,
        limits_threads=not all(udf.promises.starts_no_threads for udf in udf_recipes),
        udfs=tuple(udf_recipes),
        summed=summed,
        corrections=corrections,
        descan=descan,
        native=native,
    )


def _summed(udf_recipes: Sequence[UDFRecipe], shape: Shape, corrects_sum: bool) -> tuple[int, ...]:
    """Return the numbers of the UDFs that share the sums of tiles: at least two, or none.

    `corrects_sum` says whether UDFs that only sum frames correct their sum.
    """
    if len(udf_recipes) == 1 or len(shape.sig) != 2:
        return ()
    from udfdask.udf.tile_sums import has_sums  # most runs do not need it

    numbers: dict[np.dtype[Any], list[int]] = {}
    for number, udf in enumerate(udf_recipes):
        # a UDF that only sums frames corrects the sum, which takes less time than correcting frames
        corrects = corrects_sum and udf.promises.only_sums_frames
        if udf.promises.processes_sums and udf.backend == NUMPY and not corrects:
            numbers.setdefault(udf.input_dtype, []).append(number)
    return tuple(
        number
        for dtype, several in numbers.items()
        if len(several) > 1 and has_sums(dtype, shape.sig.size)
        for number in several
    )


def _tile_limits(
    udf_recipes: Sequence[UDFRecipe], preferences: Sequence[TilePreferences], grid: Grid
) -> dict[str, Any]:
    """Return the arguments that dense and sparse tilings share: limits that suit all UDFs."""
    return {
        "whole_frames": any(p.whole_frames for p in preferences),
        "itemsize": max(udf.input_dtype.itemsize for udf in udf_recipes),
        "max_frames": int(grid.counts.max()) if grid.n_chunks else 1,
        "depth": min(p.depth for p in preferences),
        "total_size": min(p.total_size for p in preferences),
    }


def _dense_tiling(
    sig_chunks: SigChunks,
    udf_recipes: Sequence[UDFRecipe],
    limits: Mapping[str, Any],
    tile_bytes: int,
    dtype: np.dtype[Any],
    native: Backend,
    corrected: bool,
    shifted: bool,
    summed: tuple[int, ...],
) -> TilingScheme:
    """Return the tiling of dense tiles, also of those that are made from sparse data.

    Corrections do not change tiles: the pixels outside of a tile that excluded pixels are patched
    from are looked up (`FrameSource.pixels`). LiberTEM grows or shifts tiles until no tile border
    meets an excluded pixel, which fails on broken rows.
    """
    no_transfer = all(udf.backend.on_device == native.on_device for udf in udf_recipes)
    made_dense = native.on_device and native.is_sparse
    return choose_tiling(
        sig_chunks,
        **limits,
        tile_bytes=tile_bytes,
        keep_frames=any(udf.method is UDFMethod.FRAME for udf in udf_recipes),
        streamed=no_transfer
        and not made_dense
        and not shifted
        and _can_stream(udf_recipes, dtype, corrected, summed),
    )


def _can_stream(
    udf_recipes: Sequence[UDFRecipe],
    data: np.dtype[Any],
    corrected: bool,
    summed: tuple[int, ...],
) -> bool:
    """Return whether each tile is read exactly once, not first by a conversion or correction."""
    promises = udf_recipes[0].promises
    read_once = len(udf_recipes) == 1 or len(summed) == len(udf_recipes)
    streams = all(udf.promises.streams_tiles for udf in udf_recipes)
    if not read_once or not streams or data.char in "egG":
        return False  # float16 and long doubles are converted for kernels
    if corrected:
        from udfdask.corrections.correct_tile import precise  # few runs need it

        return promises.only_sums_frames and precise(data) is not None
    expected = data.newbyteorder("=") if promises.takes_any_byte_order else data
    # kernels swap the bytes of numbers as they load them, but those of complex values in a copy
    return udf_recipes[0].input_dtype == expected and (data.isnative or data.kind != "c")


def _by_sig_chunk(
    sig_chunks: SigChunks,
    udf_recipes: Sequence[UDFRecipe],
    grid: Grid,
    dtype: np.dtype[Any],
    corrections: CorrectionSet | None,
    max_task_bytes: float,
) -> bool:
    """Return whether each signal chunk gets its own task.

    It needs UDFs that support it, no correction that needs pixels of another signal chunk, and
    either many signal chunks or navigation blocks that are too large for one task.
    """
    n_blocks = math.prod(map(len, sig_chunks))
    if n_blocks <= 1 or not all(udf.promises.adds_signal_parts for udf in udf_recipes):
        return False
    if _patches_across(corrections, sig_chunks):
        return False
    frames = int(grid.loaded.max(initial=0))
    block_bytes = frames * dtype.itemsize * math.prod(map(sum, sig_chunks))
    return n_blocks > MANY_BLOCKS or block_bytes > max_task_bytes


def _patches_across(corrections: CorrectionSet | None, sig_chunks: SigChunks) -> bool:
    """Return whether an excluded pixel is patched from a pixel in another signal chunk."""
    if corrections is None or (excluded := corrections.excluded_pixels) is None:
        return False
    starts = [list(itertools.accumulate(sizes, initial=0))[:-1] for sizes in sig_chunks]
    return straddles(excluded, [sum(sizes) for sizes in sig_chunks], starts)
