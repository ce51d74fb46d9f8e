"""Plan the shifts of frames: check what the user passed, and make it part of the recipe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from udfdask.backends.backend import NUMPY, Backend
from udfdask.descan.option import as_descan
from udfdask.descan.validate import check_fill, check_known, check_numbers, checked_shifts
from udfdask.geometry.chunk_grid import BoolArray
from udfdask.geometry.shapes import Shape
from udfdask.plan.recipe import DescanRecipe
from udfdask.udf.aux_data import AuxData


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedDescan:
    """The shifts of a run."""

    recipe: DescanRecipe
    """How frames are shifted."""
    values: Any
    """The shifts in pixels, a NumPy or dask array of shape (*nav, sig dims)."""
    warning: str
    """Warning about frames without a shift; empty if there is none."""


def plan_descan(
    given: Any,
    shape: Shape,
    dtype: np.dtype[Any],
    roi: BoolArray | None,
    *,
    corrected: bool,
    native: Backend = NUMPY,
) -> PlannedDescan | None:
    """Return the shifts of a run; None if frames are not shifted.

    `given` is what the user passed as ``descan=``. `corrected` says whether corrections come first,
    and `native` is the array backend of the chunks.
    """
    descan = as_descan(given)
    if descan is None:
        return None
    check_numbers(dtype)
    values = checked_shifts(descan, shape)
    # float64 for shifts of any precision: a task has few of them
    values = values.astype(np.float64)
    computed = descan.subpixel or corrected
    check_fill(descan.fill, np.result_type(dtype, np.float32) if computed else dtype)
    warning = ""
    if isinstance(values, np.ndarray):
        warning = check_known(values, roi)
        values.flags.writeable = False
    shifts = AuxData(
        kind="nav",
        extra_shape=(len(shape.sig),),
        dtype=values.dtype,
        data=None,
        shape=tuple(values.shape),
    )
    on_host = native.is_sparse and not native.on_device
    leaves_zeros = not computed and descan.fill == 0
    recipe = DescanRecipe(
        shifts=shifts,
        subpixel=descan.subpixel,
        fill=descan.fill,
        moves_entries=on_host and leaves_zeros and len(shape.sig) <= 2,
    )
    return PlannedDescan(recipe=recipe, values=values, warning=warning)
