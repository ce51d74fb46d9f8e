"""Name records: equal names for equal data, UDF, parameters, code and chunk, in every process."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info

from udfdask.geometry.chunk_grid import BoolArray
from udfdask.names.origins import distribution_version, own_version
from udfdask.plan.recipe import DESCAN, Recipe

_DEPTHS = ("depth", "gathered_depth", "frame_depth")
"""The fields of a tiling that depend on the largest chunk of a run."""

NameOf = Callable[[Any], str]
"""Returns the name of any value, dask collections included; raises an UnnamedError."""


def versions() -> dict[str, str]:
    """Return the packages and the processor that decide the values of a partial result."""
    found = {name: distribution_version(name) for name in ("dask", "numba", "numpy")}
    python = platform.python_version()
    return {"udfdask": own_version(), "python": python, "processor": processor(), **found}


@lru_cache(maxsize=1)
def processor() -> str:
    """Return what decides in which order this processor sums up: vectors, BLAS and settings.

    With AVX2, the last bits of a product of matrices differ from those with AVX-512.
    """
    vectors = np.show_config(mode="dicts")["SIMD Extensions"]
    # NumPy's own is loaded first; another library may bring another version of it
    blas = next((lib["architecture"] for lib in threadpool_info() if "architecture" in lib), None)
    settings = [os.environ.get(name) for name in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")]
    return repr((platform.machine(), vectors, blas, settings))


def udf_name(recipe: Recipe, number: int, aux: Sequence[Any], name_of: NameOf) -> str:
    """Return the name of a UDF in a run; chunks, ROI and versions are not part of it.

    `aux` holds the values of each of `recipe.aux_slots`.
    """
    udf = recipe.udfs[number]
    # All fields, so that a new one cannot be forgotten. Numbers of chunks are in the merge trees.
    # The sums that UDFs share do not depend on which other UDFs share them, see `TileSums`. The
    # depth of tiles depends on the ROI: `ChunkNames` adds it.
    nothing: Any = None
    no_depths: Any = dict.fromkeys(_DEPTHS, 0)
    alone = replace(
        recipe,
        grid=nothing,
        tiling=replace(recipe.tiling, **no_depths),
        sparse_tiling=replace(recipe.sparse_tiling, **no_depths),
        udfs=(replace(udf, merge=nothing, progressive_merge=nothing),),
        summed=(0,) if number in recipe.summed else (),
        token="",
    )
    # other UDFs of the run decide these: how rows are cut into tiles
    together = (recipe.contiguous_nav, sorted({u.backend.dense.name for u in recipe.udfs}))
    ours = (number, DESCAN)
    values = [v for (k, _), v in zip(recipe.aux_slots, aux, strict=True) if k in ours]
    return name_of((alone, udf.merge.mode, udf.carries_aux, together, values))


def with_versions(udf: str) -> str:
    """Return the name of a UDF together with the versions of the packages that run it."""
    return _digest("UDF", udf, versions())


class ChunkNames:
    """Names of the partial results of a UDF over the chunks of a run.

    They depend on the part of the ROI in the chunk only, so that they are valid for other ROIs too;
    those of a UDF with a halo also on all frames that can be neighbors. If the UDF looked beyond
    the chunk while it ran, the name of its record is followed by `of_run`.
    """

    def __init__(self, data: str, udf: str, number: int, recipe: Recipe) -> None:
        self._recipe = recipe
        roi, halo = recipe.grid.roi, recipe.udfs[number].halo
        usable = None if halo is None else _packed(recipe.grid.usable(halo.in_roi))
        self._start = ("chunk", data, udf, usable)
        all_frames = [_packed(mask) for mask in (roi, recipe.grid.present)]
        tilings = (recipe.tiling, recipe.sparse_tiling)
        self.of_run = f"-{_digest('run', all_frames, tilings)}"
        # The rows of a chunk are contiguous or not, depending on frames around the chunk.
        self._always = self.of_run if recipe.contiguous_nav and roi is not None else ""
        self._depths = [getattr(tiling, name) for tiling in tilings for name in _DEPTHS]

    def name(self, chunk: int) -> str:
        """Return the name of a chunk."""
        grid = self._recipe.grid
        mask, n_rows = grid.mask(chunk), grid.count(chunk)
        part = b"" if mask is None else np.packbits(mask).tobytes()
        # a tile that may have more frames than the chunk has all of them
        depths = [min(depth, n_rows) for depth in self._depths]
        return _digest(*self._start, grid.bounds(chunk), part, depths, self._always)


def _packed(mask: BoolArray | None) -> bytes | None:
    """Return a mask as bytes, with one bit per frame."""
    return None if mask is None else np.packbits(mask).tobytes()


def merge_name(udf: str, of_run: str, mode: str, checked: bool, sources: Sequence[str]) -> str:
    """Return the name of a merge of partial results, which belongs to one ROI."""
    return _digest("merge", udf, of_run, mode, checked, list(sources))


def _digest(*parts: Any) -> str:
    """Return a hash of plain values."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()
