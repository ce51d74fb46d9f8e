"""Make the recipe of a run from declared UDFs and the data, without dask."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from udfdask.backends.backend import NUMPY
from udfdask.corrections.planes import straddles
from udfdask.geometry.tiling import TilePreferences, TilingScheme, choose_tiling, sparse_tiling
from udfdask.plan.arguments import Settings
from udfdask.plan.declarations import Declared
from udfdask.plan.recipe import Data, Recipe, UDFRecipe, backends_for
from udfdask.udf import UDFMethod

MANY_BLOCKS = 4
"""With more signal chunks than this, UDFs that support it get one task per signal chunk."""


def make_recipe(declared: Sequence[Declared], data: Data, settings: Settings) -> Recipe:
    """Return the recipe of a run of UDFs, at least one, over these data."""
    udfs = tuple(one.recipe for one in declared)
    backends = backends_for(udfs, data.native, corrected=data.makes_dense)
    udfs = tuple(replace(udf, backend=b) for udf, b in zip(udfs, backends, strict=True))
    summed = _summed(udfs, data)
    tiles = TilePreferences.common([one.tiles for one in declared])
    # Frames are corrected before they are shifted, and each needs other pixels outside of a part.
    # Entries of sparse frames may move to another signal chunk.
    shifts_corrected = data.descan is not None and data.corrections is not None
    if shifts_corrected or (data.moves_entries and data.n_blocks > 1):
        tiles = replace(tiles, whole_frames=True)
    if all(udf.halo is None for udf in udfs):
        data = replace(data, grid=replace(data.grid, present=None))
    return Recipe(
        **{field.name: getattr(data, field.name) for field in fields(Data)},
        tiling=_dense_tiling(udfs, tiles, data, settings, summed),
        # Signal chunks are not cut into sparse tiles: a sparse tile is a view of its rows.
        sparse_tiling=sparse_tiling(
            data.sig_chunks, tiles, itemsize=_itemsize(udfs), max_frames=_max_frames(data)
        ),
        by_sig_chunk=_by_sig_chunk(udfs, data, settings.task_limit),
        threads=settings.threads,
        limits_threads=not all(udf.promises.starts_no_threads for udf in udfs),
        udfs=udfs,
        summed=summed,
    )


def _summed(udfs: Sequence[UDFRecipe], data: Data) -> tuple[int, ...]:
    """Return the numbers of the UDFs that share the sums of tiles: at least two, or none."""
    if len(udfs) == 1 or len(data.shape.sig) != 2:
        return ()
    from udfdask.udf.tile_sums import has_sums  # most runs do not need it

    corrects_sum = data.corrections is not None and data.descan is None
    numbers: dict[np.dtype[Any], list[int]] = {}
    for number, udf in enumerate(udfs):
        # a UDF that only sums frames corrects the sum, which takes less time than correcting frames
        corrects = corrects_sum and udf.promises.only_sums_frames
        if udf.promises.processes_sums and udf.backend == NUMPY and not corrects:
            numbers.setdefault(udf.input_dtype, []).append(number)
    return tuple(
        number
        for dtype, several in numbers.items()
        if len(several) > 1 and has_sums(dtype, data.shape.sig.size)
        for number in several
    )


def _itemsize(udfs: Sequence[UDFRecipe]) -> int:
    """Return the largest size of a converted value in bytes."""
    return max(udf.input_dtype.itemsize for udf in udfs)


def _max_frames(data: Data) -> int:
    """Return the number of selected frames of the largest chunk; 1 if there are no chunks."""
    return int(data.grid.counts.max()) if data.grid.n_chunks else 1


def _dense_tiling(
    udfs: Sequence[UDFRecipe],
    tiles: TilePreferences,
    data: Data,
    settings: Settings,
    summed: tuple[int, ...],
) -> TilingScheme:
    """Return the tiling of dense tiles, also of those that are made from sparse data.

    Corrections do not change tiles, as they do in LiberTEM, where broken rows fail: pixels outside
    of a tile that excluded ones are patched from are looked up.
    """
    on_device = all(udf.backend.on_device for udf in udfs)
    return choose_tiling(
        data.sig_chunks,
        tiles,
        itemsize=_itemsize(udfs),
        max_frames=_max_frames(data),
        tile_bytes=settings.device_tile_bytes if on_device else settings.tile_bytes,
        keep_frames=any(udf.method is UDFMethod.FRAME for udf in udfs),
        streamed=_can_stream(udfs, data, summed),
    )


def _can_stream(udfs: Sequence[UDFRecipe], data: Data, summed: tuple[int, ...]) -> bool:
    """Return whether each tile is read exactly once, not first by a conversion or correction."""
    native, dtype, promises = data.native, data.dtype, udfs[0].promises
    if (
        any(udf.backend.on_device != native.on_device for udf in udfs)  # moved
        or (native.on_device and native.is_sparse)  # made dense
        or data.descan is not None
        or (len(udfs) > 1 and len(summed) < len(udfs))
        or not all(udf.promises.streams_tiles for udf in udfs)
        or dtype.char in "egG"  # float16 and long doubles are converted for kernels
    ):
        return False
    if data.corrections is not None:
        from udfdask.corrections.correct_tile import precise  # few runs need it

        return promises.only_sums_frames and precise(dtype) is not None
    expected = dtype.newbyteorder("=") if promises.takes_any_byte_order else dtype
    # kernels swap the bytes of numbers as they load them, but those of complex values in a copy
    return udfs[0].input_dtype == expected and (dtype.isnative or dtype.kind != "c")


def _by_sig_chunk(udfs: Sequence[UDFRecipe], data: Data, task_limit: float) -> bool:
    """Return whether each signal chunk gets its own task: if all UDFs and corrections allow it.

    There must be many signal chunks, or navigation blocks that are too large for a task.
    """
    if data.n_blocks <= 1 or data.descan is not None:
        return False
    if not all(udf.promises.adds_signal_parts for udf in udfs) or _patches_across(data):
        return False
    block_bytes = int(data.grid.loaded.max(initial=0)) * data.dtype.itemsize * data.shape.sig.size
    return data.n_blocks > MANY_BLOCKS or block_bytes > task_limit


def _patches_across(data: Data) -> bool:
    """Return whether an excluded pixel is patched from a pixel in another signal chunk."""
    excluded = None if data.corrections is None else data.corrections.excluded_pixels
    if excluded is None:
        return False
    starts = [list(itertools.accumulate(sizes, initial=0))[:-1] for sizes in data.sig_chunks]
    return straddles(excluded, list(data.shape.sig), starts)
