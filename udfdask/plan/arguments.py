"""Read the arguments of a run: every check that needs no declaration, and values in one form."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import dask.array as da
import numpy as np
from dask.utils import parse_bytes

from udfdask.advice import ARRAY, Advice, Door
from udfdask.backends.backend import NUMPY, Backend
from udfdask.backends.table import backend_of, known_backends
from udfdask.base import config
from udfdask.corrections import CorrectionSet
from udfdask.corrections.correction_set import checked
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.axes import Axis, Calibration, in_pixels
from udfdask.geometry.chunk_grid import BoolArray, Grid
from udfdask.geometry.electrons import volts
from udfdask.geometry.good_chunks import Chunks, joined_chunks
from udfdask.geometry.labels import check_axes
from udfdask.geometry.roi import ABSENT_LAYER, Region
from udfdask.geometry.shapes import Shape
from udfdask.geometry.tiling import DEVICE_TILE_BYTES, TILE_BYTES
from udfdask.plan.check_input import (
    check_array,
    check_masks_and_targets,
    check_matrix_rows,
    check_sig_dims,
    check_udfs,
)
from udfdask.plan.merge_tree import check_split_every
from udfdask.plan.parameters import with_copied_parameters
from udfdask.plan.recipe import Data, DescanRecipe
from udfdask.udf import UDF
from udfdask.udf.aux_data import AuxData

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from udfdask.corrections import Descan


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of a run as the user gave them; `run_udf` describes them."""

    sig_dims: int = 2
    roi: Region | None = None
    present: BoolArray | None = None
    """Mask of the scan positions that have a frame, shape nav; None for all."""
    axes: Sequence[Axis] | None = None
    unit: str | None = None
    voltage: str | tuple[float, str] | float | None = None
    corrections: CorrectionSet | None = None
    descan: Descan | ArrayLike | None = None
    backends: str | Sequence[str] | None = None
    split_every: int | bool | None = None
    merge_small: int | str | None = None
    max_memory: int | str | None = None
    door: Door = ARRAY
    """The entry point: advice is written in its terms."""


NAMES = frozenset(field.name for field in fields(Options))
"""The names of all options."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """Checked arguments of a run."""

    udfs: tuple[UDF, ...]
    """UDFs with parameters in pixels, which only this run has."""
    data: Data
    """The data as UDFs see them, in the chunks that are processed."""
    calibration: Calibration
    """Axes of the data, unit of the values, and voltage."""
    settings: Settings
    """What users and the configuration decide about tasks."""
    joined: Chunks | None
    """The chunks after small ones are joined; None if the chunks of the array are processed."""
    shifts: Any
    """The shifts of all frames in pixels; None if they are not shifted."""
    advice: tuple[Advice, ...]
    """What is probably not meant."""


def read_arguments(
    array: Any, udfs: Sequence[UDF], asked: Options, files: tuple[str, ...]
) -> Arguments:
    """Return the checked arguments of a run over a dask array of shape (*nav, *sig).

    `files` are those that the array and parameters are read from.
    """
    check_array(array)
    check_sig_dims(asked.sig_dims, array.ndim)
    check_udfs(udfs)
    check_masks_and_targets(udfs, files)
    check_matrix_rows(array, asked.sig_dims)
    shape, native = Shape(array.shape, sig_dims=asked.sig_dims), backend_of(array._meta)
    calibration = _read_calibration(asked, shape)
    if any(udf.calibrated for udf in udfs):
        from udfdask.plan.pixels import Frame, with_pixels  # other parameters have no unit

        frame = Frame.of(calibration, shape)
        udfs = [with_pixels(udf, frame) for udf in udfs]
    udfs = with_copied_parameters([udf._for_run() for udf in udfs])
    settings = _read_settings(asked)
    joined = None if asked.merge_small is None else _joined_chunks(array, asked.merge_small)
    roi, present, texts = _read_positions(array, udfs, asked, shape.nav)
    descan, shifts = None, None
    if asked.descan is not None:
        corrected = asked.corrections is not None
        descan, shifts, texts["descan"] = plan_descan(
            asked.descan, shape, array.dtype, roi, corrected=corrected, native=native
        )
    chunks, n_nav = joined or array.chunks, shape.nav.dims
    corrections = asked.corrections
    if corrections is not None:
        names = [axis.name for axis in calibration.axes]
        corrections = checked(corrections, shape.sig, array.dtype, names)
    data = Data(
        shape=shape,
        dtype=array.dtype,
        grid=Grid.of(chunks[:n_nav], roi, present),
        sig_chunks=chunks[n_nav:],
        corrections=corrections,
        descan=descan,
        native=native,
    )
    return Arguments(
        udfs=udfs,
        data=data,
        calibration=calibration,
        settings=settings,
        joined=joined,
        shifts=shifts,
        advice=tuple(Advice(kind, (text,)) for kind, text in texts.items() if text),
    )


def _read_calibration(asked: Options, shape: Shape) -> Calibration:
    """Return the checked axes, unit and voltage of the data; by default pixel numbers."""
    if not isinstance(asked.unit, str | None):
        raise ArgumentTypeError(f"unit must be a text such as 'counts', not {asked.unit!r}")
    if asked.axes is None:
        axes = in_pixels(len(shape), shape.sig_dims).axes
    else:
        axes = check_axes(asked.axes, shape, shape.sig_dims)
    voltage = None if asked.voltage is None else volts(asked.voltage)
    return Calibration(axes=axes, unit=asked.unit, voltage=voltage)


def _read_settings(asked: Options) -> Settings:
    fan_in = config.split_every() if asked.split_every is None else asked.split_every
    check_split_every(fan_in, "split_every")
    given = asked.backends
    return Settings(
        tile_bytes=config.tile_bytes(),
        device_tile_bytes=config.device_tile_bytes(),
        split_every=fan_in,
        threads=config.threads_per_task(),
        task_limit=task_limit(),
        backends=None if given is None else known_backends(given, f"backends={given!r}"),
    )


def task_limit() -> float:
    """Return the number of bytes that the data of one task should need at most."""
    memory = config.worker_memory()
    return math.inf if memory is None else memory / 4


def _joined_chunks(array: da.Array, merge_small: Any) -> Chunks | None:
    """Return the chunks of an array after small ones are joined; None if they do not change."""
    least = parse_size(merge_small, "merge_small", "64 MiB")
    chunks = joined_chunks(array.chunks, array.dtype.itemsize, least)
    return None if chunks == array.chunks else chunks


def _read_positions(
    array: da.Array, udfs: Sequence[UDF], asked: Options, nav: Shape
) -> tuple[BoolArray | None, BoolArray | None, dict[str, str]]:
    """Return the selected positions with a frame, all positions with one, and warnings."""
    is_known = asked.present is not None
    lacks_frames = not is_known and any(
        str(layer).startswith(ABSENT_LAYER) for layer in array.dask.layers
    )
    if asked.roi is None and not is_known and not lacks_frames:
        return None, None, {}
    from udfdask.geometry import roi as positions  # many runs process all frames

    selected = positions.normalize_roi(asked.roi, nav)
    roi = positions.only_present(selected, asked.present, nav)
    texts = {"empty roi": positions.empty_warning(asked.roi, selected, roi)}
    sees = any(udf.halo is not None and udf.neighbors_outside_roi for udf in udfs)
    if lacks_frames and (asked.roi is None or sees):
        texts["absent frames"] = positions.absence_warning(asked.roi is not None, sees)
    return roi, positions.only_present(None, asked.present, nav), texts


def plan_descan(
    given: Any,
    shape: Shape,
    dtype: np.dtype[Any],
    roi: BoolArray | None,
    *,
    corrected: bool,
    native: Backend = NUMPY,
) -> tuple[DescanRecipe | None, Any, str]:
    """Return how frames are shifted, the shifts of shape (*nav, sig dims), and a warning."""
    from udfdask.corrections.descan import Descan, checked_shifts  # few runs shift frames

    if given is None:
        return None, None, ""
    descan = given if isinstance(given, Descan) else Descan(given)
    computed = descan.subpixel or corrected
    values, warning = checked_shifts(descan, shape, dtype, roi, computed=computed)
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
    return recipe, values, warning


def parse_size(value: Any, name: str, example: str) -> int:
    """Return a number of bytes, at least 1; `name` is that of the option, for messages."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer, str)):
        raise ArgumentTypeError(
            f"{name} must be a number of bytes or a text such as {example!r}, not {value!r}"
        )
    try:
        # dask reads an empty text as 1 byte
        empty = isinstance(value, str) and not value.strip()
        size = 0 if empty else parse_bytes(value if isinstance(value, str) else int(value))
    except (ValueError, OverflowError):
        size = 0
    if size < 1:
        raise ArgumentValueError(
            f"{name}={value!r} is not a size: write a number of bytes, at least 1, or a text such "
            f"as {example!r}"
        )
    return int(size)
