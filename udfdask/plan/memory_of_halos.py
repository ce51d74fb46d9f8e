"""Predict the memory of runs with a halo: frames at the borders of chunks, and windows."""

from __future__ import annotations

import math

from udfdask.geometry.halo import slabs
from udfdask.plan.recipe import Recipe


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
