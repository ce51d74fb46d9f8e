"""Make the recipe of a run over data of some shape: what users of the engine alone start with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from udfdask.backends.backend import NUMPY, Backend
from udfdask.corrections import CorrectionSet
from udfdask.corrections.correction_set import checked
from udfdask.geometry.axes import in_pixels
from udfdask.geometry.chunk_grid import BoolArray, Grid
from udfdask.geometry.shapes import Shape
from udfdask.plan import make_recipe as plan_recipe
from udfdask.plan.arguments import Settings
from udfdask.plan.declarations import declare
from udfdask.plan.recipe import Data, DescanRecipe, Recipe
from udfdask.udf import UDF


def make_recipe(
    udfs: Sequence[UDF],
    *,
    shape: Sequence[int],
    dtype: Any,
    sig_dims: int = 2,
    nav_chunks: Sequence[Sequence[int]] | None = None,
    sig_chunks: Sequence[Sequence[int]] | None = None,
    roi: BoolArray | None = None,
    corrections: CorrectionSet | None = None,
    descan: DescanRecipe | None = None,
    native: Backend = NUMPY,
    **settings: Any,
) -> Recipe:
    """Return the recipe of a run; chunk sizes as dask has them, one chunk by default.

    ``run_chunk(make_recipe(udfs, shape=..., dtype=...), 0, [array])`` processes a whole array.
    `settings` are those of `Settings`.
    """
    full, data_dtype = Shape(shape, sig_dims=sig_dims), np.dtype(dtype)
    sizes = [[n] for n in full.sig] if sig_chunks is None else sig_chunks
    data = Data(
        shape=full,
        dtype=data_dtype,
        grid=Grid.of([[n] for n in full.nav] if nav_chunks is None else nav_chunks, roi),
        sig_chunks=tuple(tuple(map(int, axis)) for axis in sizes),
        corrections=None if corrections is None else checked(corrections, full.sig, data_dtype),
        descan=descan,
        native=native,
    )
    chosen = Settings(**settings)
    declared = [declare(udf, data, in_pixels(len(full), sig_dims), chosen) for udf in udfs]
    return plan_recipe.make_recipe(declared, data, chosen)
