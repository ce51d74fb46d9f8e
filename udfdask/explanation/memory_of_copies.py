"""Predict the memory for copies: of tiles, and of frames that neighbors need.

Tiles are copied if their frames are gathered, converted, corrected or shifted. Runs with a halo
keep frames at the borders of chunks, and make windows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from udfdask.geometry.halo import slabs
from udfdask.plan.recipe import Recipe, UDFRecipe
from udfdask.udf import UDFMethod


def copies_of_tiles(recipe: Recipe, rows: int, *, gathered: bool) -> int:
    """Return the size of the copies of tiles that exist at the same time.

    `rows` is the number of frames of the largest chunk. `gathered` says whether frames are copied
    to be neighbors, because the block is a view of a larger one.
    """
    as_they_are = recipe.native.is_sparse and not recipe.makes_dense
    alone = [udf for udf in recipe.udfs if udf.halo is None]
    dense = [udf for udf in alone if not (as_they_are and udf.backend.is_sparse)]
    sparse = [udf for udf in alone if as_they_are and udf.backend.is_sparse]
    copies = max((_sparse_copies(recipe, udf, rows) for udf in sparse), default=0)
    if not dense:
        return copies
    tiling, frame = recipe.tiling, recipe.shape.sig.size
    by_method = {m: [udf for udf in dense if udf.method is m] for m in UDFMethod}
    tiles, frames = by_method[UDFMethod.TILE], by_method[UDFMethod.FRAME]
    whole = tiling.whole_frames or not tiles
    assembled = recipe.n_blocks > 1 and not recipe.by_sig_chunk
    gathered = gathered or not _all_selected(recipe)
    views = not gathered and _tiles_are_views(recipe, dense)
    depth = tiling.depth if views and not assembled else tiling.frame_depth
    full_frames = tiles + frames if whole else frames
    if full_frames:
        copies = max(copies, _tile_copies(recipe, full_frames, frame * depth, assembled, gathered))
    if not whole:
        deep = tiling.depth if views else tiling.gathered_depth
        part = math.prod(tiling.sig_shape)
        cut = _tile_copies(recipe, tiles, part * deep, False, gathered)
        shifts_tiles = recipe.descan is not None and not recipe.descan.moves_entries
        if shifts_tiles and (recipe.n_blocks > 1 or gathered):
            # a part of shifted frames is made from a window around it, at most the full frames
            cut += (frame - part * gathered) * deep * recipe.dtype.itemsize
        copies = max(copies, cut)
    partitions = by_method[UDFMethod.PARTITION]
    if partitions:
        copies = max(copies, _tile_copies(recipe, partitions, frame * rows, assembled, gathered))
    return copies


def _tiles_are_views(recipe: Recipe, udfs: Iterable[UDFRecipe]) -> bool:
    """Return whether tiles are views of the blocks, and no UDF gets copies on another device."""
    if recipe.native.is_sparse or recipe.descan is not None:
        return False
    return all(udf.backend.on_device == recipe.native.on_device for udf in udfs)


def _all_selected(recipe: Recipe) -> bool:
    """Return whether all frames of the chunks that are loaded are selected."""
    return bool(np.array_equal(recipe.grid.loaded, recipe.grid.counts))


def _tile_copies(
    recipe: Recipe, udfs: Iterable[UDFRecipe], pixels: int, assembled: bool, gathered: bool
) -> int:
    """Return the size of the copies of one tile for some UDFs."""
    native = recipe.dtype
    copies = pixels * native.itemsize * (assembled + (gathered or recipe.native.is_sparse))
    converted: set[np.dtype[np.generic]] = set()
    private = 0
    corrected = recipe.corrections is not None
    descan = recipe.descan if recipe.descan and not recipe.descan.moves_entries else None
    late = descan is not None and (corrected or descan.subpixel)
    if descan is not None and not late:
        copies += pixels * native.itemsize
    for udf in udfs:
        dtype = udf.input_dtype
        size = pixels * dtype.itemsize
        if udf.cls.writable_input:
            private = max(private, size)
        if corrected and late:  # a corrected tile, before it is shifted
            private = max(private, size)
        if corrected or late:
            if late or not udf.promises.only_sums_frames:
                converted.add(dtype)
        elif not udf.cls.writable_input:
            given = native.newbyteorder("=") if udf.promises.takes_any_byte_order else native
            if dtype != given:
                converted.add(dtype)
    return copies + private + sum(pixels * dtype.itemsize for dtype in converted)


def _sparse_copies(recipe: Recipe, udf: UDFRecipe, rows: int) -> int:
    """Return the size of the sparse tiles of a UDF that are converted, as if they were dense."""
    if udf.backend == recipe.native and udf.input_dtype == recipe.dtype:
        return 0
    pixels = min(rows, recipe.sparse_tiling.depth) * recipe.shape.sig.size
    return pixels * udf.input_dtype.itemsize


def waiting_borders(recipe: Recipe) -> int:
    """Return the size of the frames at the borders of chunks that wait for other chunks.

    Chunks are loaded in C order: a border waits until the next line of chunks has been loaded.
    """
    halos, grid = recipe.halos(range(len(recipe.udfs))), recipe.grid
    if not halos or grid.n_chunks < 2:
        return 0
    sizes = [max(axis, default=0) for axis in grid.nav_chunks]
    every = math.prod(sizes)
    if any(map(recipe.keeps_chunks, range(len(recipe.udfs)))):
        return _waiting(recipe) * every * recipe.shape.sig.size * recipe.dtype.itemsize
    kept = sum(
        every
        - math.prod(
            max(0, n - 2 * (before + after)) if len(axis) > 1 else n
            for n, (before, after), axis in zip(sizes, halo.sides, grid.nav_chunks, strict=True)
        )
        for halo in halos
    )
    waiting = _waiting(recipe)
    return waiting * min(kept, len(halos) * every) * recipe.shape.sig.size * recipe.dtype.itemsize


def _waiting(recipe: Recipe) -> int:
    """Return the number of chunks that wait for the next line of chunks."""
    halos, grid = recipe.halos(range(len(recipe.udfs))), recipe.grid
    sizes = [max(axis, default=0) for axis in grid.nav_chunks]
    cut = next((axis for axis, n in enumerate(grid.numblocks) if n > 1), 0)
    depth = max(1 + -(-max(halo.sides[cut]) // max(1, sizes[cut])) for halo in halos)
    line = math.prod(grid.numblocks[cut + 1 :])
    return min(grid.n_chunks, depth * line + 2)


def copies_of_windows(recipe: Recipe) -> int:
    """Return the size of the windows of frames that one task makes at a time."""
    frame, grid = recipe.shape.sig.size, recipe.grid
    largest = 0
    box = tuple((0, max(axis, default=0)) for axis in grid.nav_chunks)
    for udf in recipe.udfs:
        if udf.halo is not None:
            itemsize = max(recipe.dtype.itemsize, udf.input_dtype.itemsize)
            first = slabs(udf.halo, box, frame * itemsize)[:1]
            frames = max((math.prod(udf.halo.around(slab)) for slab in first), default=0)
            # as they came, and as the UDF is given them
            made = frames * frame * (recipe.dtype.itemsize + udf.input_dtype.itemsize)
            largest = max(largest, made)
    return largest
