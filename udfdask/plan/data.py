"""What a run is planned for: its data as UDFs see them, and its settings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from udfdask import config
from udfdask.backends.backend import NUMPY, Backend
from udfdask.corrections import CorrectionSet
from udfdask.geometry.axes import Calibration
from udfdask.geometry.chunk_grid import BoolArray, Grid
from udfdask.geometry.shapes import Shape
from udfdask.geometry.tiling import DEVICE_TILE_BYTES, TILE_BYTES
from udfdask.plan.recipe import DescanRecipe
from udfdask.udf.aux_data import AuxData
from udfdask.udf.meta import UDFMeta


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """The data of a run, and what happens to them before UDFs see them."""

    shape: Shape
    """Shape of the data set."""
    dtype: np.dtype[Any]
    """Dtype of the data set."""
    grid: Grid
    """Navigation chunks, ROI, and the positions that have a frame."""
    sig_chunks: tuple[tuple[int, ...], ...]
    """Chunk sizes along each signal axis, in pixels."""
    calibration: Calibration
    """Axes of the data and unit of the values."""
    corrections: CorrectionSet | None = None
    """Checked corrections."""
    descan: DescanRecipe | None = None
    """Shifts of the corrected frames."""
    native: Backend = NUMPY
    """Array backend of the chunks."""

    def meta(self, threads: int) -> UDFMeta:
        """Return what declaring methods of UDFs see."""
        return UDFMeta(
            grid=self.grid,
            dataset_shape=self.shape,
            dataset_dtype=self.dtype,
            threads=threads,
            corrections=self.corrections,
            calibration=self.calibration,
            interpolated=self.descan is not None and self.descan.subpixel,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What users and the configuration decide about the tasks of a run."""

    tile_bytes: int = TILE_BYTES
    """Size of a tile in bytes."""
    device_tile_bytes: int = DEVICE_TILE_BYTES
    """The same on a CUDA device."""
    split_every: int | bool = 8
    """Fan-in of merge trees; False for one step."""
    threads: int = 1
    """Threads that BLAS, OpenMP and numba may use in a task."""
    task_limit: float = math.inf
    """Bytes that the data of a task should have at most: a task then takes one signal chunk."""
    backends: Sequence[Backend] | None = None
    """The array backends that UDFs may be given; None for all."""


def task_limit() -> float:
    """Return the number of bytes that the data of one task should need at most."""
    memory = config.worker_memory()
    return math.inf if memory is None else memory / 4


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
    """Return the shifts of a run from what the user passed; None if frames are not shifted."""
    from udfdask.descan import validate  # few runs shift frames
    from udfdask.descan.option import as_descan

    descan = as_descan(given)
    if descan is None:
        return None
    validate.check_numbers(dtype)
    # float64 for shifts of any precision: a task has few of them
    values = validate.checked_shifts(descan, shape).astype(np.float64)
    computed = descan.subpixel or corrected
    validate.check_fill(descan.fill, np.result_type(dtype, np.float32) if computed else dtype)
    warning = ""
    if isinstance(values, np.ndarray):
        warning = validate.check_known(values, roi)
        values.flags.writeable = False
    shifts = AuxData(
        kind="nav",
        extra_shape=(len(shape.sig),),
        dtype=values.dtype,
        data=None,
        shape=tuple(values.shape),
    )
    is_on_host = native.is_sparse and not native.on_device
    leaves_zeros = not computed and descan.fill == 0
    recipe = DescanRecipe(
        shifts=shifts,
        subpixel=descan.subpixel,
        fill=descan.fill,
        moves_entries=is_on_host and leaves_zeros and len(shape.sig) <= 2,
    )
    return PlannedDescan(recipe=recipe, values=values, warning=warning)
