"""Makes the recipe of a run from UDFs and sizes alone, without dask.

`run_chunk(make_recipe(udfs, shape=..., dtype=...), 0, [array])` runs a whole array in a test. Only
the declaring methods of the UDFs run here.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from udfdask.arrays.backends.backend import Backend
from udfdask.arrays.backends.dense_backends import NUMPY
from udfdask.arrays.geometry.chunk_grid import BoolArray, Grid
from udfdask.arrays.geometry.shapes import Shape
from udfdask.arrays.geometry.tiling import (
    DEVICE_TILE_BYTES,
    TILE_BYTES,
    choose_tiling,
    sparse_tiling,
)
from udfdask.corrections import CorrectionSet
from udfdask.corrections.correct_sum import precise
from udfdask.corrections.neighbors import straddles
from udfdask.corrections.validate import checked
from udfdask.errors import ArgumentValueError
from udfdask.plan.declarations import declare
from udfdask.plan.recipe import Recipe, UDFRecipe, backends_for
from udfdask.udf import UDF, UDFMethod
from udfdask.udf.meta import UDFMeta

MANY_BLOCKS = 4
"""Signal chunks per task beyond which UDFs that can are run one signal chunk a task."""


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
    whole_bytes: float = math.inf,
    corrections: CorrectionSet | None = None,
    backends: Sequence[Backend] | None = None,
    native: Backend = NUMPY,
) -> Recipe:
    """Return the recipe of a run; sizes as dask has them, one chunk by default.

    `whole_bytes` is the size of a navigation block in bytes from which a task takes one signal
    chunk, if all UDFs can. `backends` restricts what UDFs are given, `native` is what chunks are.
    """
    full = Shape(shape, sig_dims=sig_dims)
    dt = np.dtype(dtype)
    nav_chunks = [[n] for n in full.nav] if nav_chunks is None else nav_chunks
    sig_chunks = [[n] for n in full.sig] if sig_chunks is None else sig_chunks
    grid = Grid.of(nav_chunks, roi)
    sigs = tuple(tuple(map(int, c)) for c in sig_chunks)
    corrections = checked(corrections, full.sig, dt)
    facts = UDFMeta(
        grid=grid, dataset_shape=full, dataset_dtype=dt, threads=threads, corrections=corrections
    )
    lazy = [()] * len(udfs) if lazy_params is None else lazy_params
    parts = []
    preferences = []
    for udf, names in zip(udfs, lazy, strict=True):
        part, preference = declare(udf, facts, grid, tuple(names), split_every, backends)
        parts.append(part)
        preferences.append(preference)
    max_frames = int(grid.counts.max()) if grid.n_chunks else 1
    chosen = backends_for(parts, native, corrected=corrections is not None)
    parts = [replace(p, backend=backend) for p, backend in zip(parts, chosen, strict=True)]
    if all(backend.on_device for backend in chosen):
        tile_bytes = device_tile_bytes
    limits: dict[str, Any] = {
        "whole_frames": any(
            u.whole_frames and p.method is UDFMethod.TILE for u, p in _pair(udfs, parts)
        ),
        "itemsize": max(p.input_dtype.itemsize for p in parts),
        "max_frames": max_frames,
        "depth": min(p["depth"] for p in preferences),
        "total_size": min(p["total_size"] for p in preferences),
    }
    tiling = choose_tiling(
        sigs,
        **limits,
        tile_bytes=tile_bytes,
        keep_frames=any(p.method is UDFMethod.FRAME for p in parts),
        streamed=_stay_where_they_are(native, chosen)
        and _can_stream(parts, dt, corrections is not None),
    )
    blocks = math.prod(len(c) for c in sigs)
    heaviest = max((math.prod(grid.bounds(k)[1]) for k in range(grid.n_chunks)), default=0)
    by_sig_chunk = (
        all(p.promises.adds_signal_parts for p in parts)
        and blocks > 1
        and not _patches_across(corrections, sigs)
        and (blocks > MANY_BLOCKS or heaviest * full.sig.size * dt.itemsize > whole_bytes)
    )
    _check_contiguous(udfs, parts, grid)
    return Recipe(
        grid=grid,
        shape=full,
        dtype=dt,
        sig_chunks=sigs,
        tiling=tiling,
        sparse_tiling=sparse_tiling(sigs, **limits),
        by_sig_chunk=by_sig_chunk,
        threads=threads,
        guarded=not all(p.promises.starts_no_threads for p in parts),
        udfs=tuple(parts),
        corrections=corrections,
        native=native,
    )


def _stay_where_they_are(native: Backend, chosen: Sequence[Backend]) -> bool:
    """Return whether no tile is moved between host and device, nor made dense."""
    if native.on_device and native.is_sparse:
        return False
    return all(backend.on_device == native.on_device for backend in chosen)


def _can_stream(parts: Sequence[UDFRecipe], data: np.dtype[Any], corrected: bool) -> bool:
    """Return whether nobody looks at a tile twice, be it to convert or to correct it."""
    promises = parts[0].promises
    if len(parts) > 1 or not promises.streams_tiles or data.char in "egG":
        return False  # float16 and long doubles are converted for kernels
    if corrected:
        return promises.only_sums_frames and precise(data) is not None
    wanted = data.newbyteorder("=") if promises.takes_any_byte_order else data
    # complex values are turned round in a copy
    return parts[0].input_dtype == wanted and (data.isnative or data.kind != "c")


def _patches_across(
    corrections: CorrectionSet | None, sig_chunks: tuple[tuple[int, ...], ...]
) -> bool:
    """Return whether an excluded pixel is patched from another signal chunk."""
    excluded = None if corrections is None else corrections.excluded_pixels
    if excluded is None:
        return False
    starts = [list(itertools.accumulate(sizes, initial=0))[:-1] for sizes in sig_chunks]
    return straddles(excluded, [sum(sizes) for sizes in sig_chunks], starts)


def redeclare(recipe: Recipe, number: int, kwargs: dict[str, Any]) -> None:
    """Raise if other parameters, aux data with their values, change what a UDF declares."""
    old = recipe.udfs[number]
    facts = UDFMeta(
        grid=recipe.grid,
        dataset_shape=recipe.shape,
        dataset_dtype=recipe.dtype,
        threads=recipe.threads,
        corrections=recipe.corrections,
    )
    fan_in = old.merge.fan_in or False
    new, _ = declare(old.cls(**kwargs), facts, recipe.grid, (), fan_in, old.backends)
    for what in ("buffers", "input_dtype", "method", "merge", "axes", "promises"):
        before, after = getattr(old, what), getattr(new, what)
        if before != after:
            raise ArgumentValueError(
                f"with these parameters {old.name} declares another {what.replace('_', ' ')} than "
                f"at the start of the run ({after}, not {before}): parameters that decide what is "
                "declared need a new run"
            )


def _pair(udfs: Sequence[UDF], parts: Sequence[UDFRecipe]) -> list[tuple[UDF, UDFRecipe]]:
    """Return UDFs beside their recipes."""
    return list(zip(udfs, parts, strict=True))


def _check_contiguous(udfs: Sequence[UDF], parts: Sequence[UDFRecipe], grid: Grid) -> None:
    """Refuse whole partitions with contiguous rows where chunks have none."""
    for udf, part in _pair(udfs, parts):
        if udf.contiguous_nav and part.method is UDFMethod.PARTITION:
            for chunk in range(grid.n_chunks):
                if not isinstance(grid.rows(chunk), range):
                    start, shape = grid.bounds(chunk)
                    raise ArgumentValueError(
                        f"{part.name} asks for contiguous_nav and processes whole partitions, but "
                        f"the chunk at {start} of shape {shape} is not contiguous in a scan of "
                        f"shape {grid.shape}: rechunk so that only the first navigation axis is "
                        "chunked"
                    )
