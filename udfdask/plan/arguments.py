"""Read the arguments of a run: every check that needs no declaration, and values in one form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from dask.array.core import Array as GraphArray
from dask.utils import parse_bytes

from udfdask import config
from udfdask.advice import ARRAY, Advice, Door
from udfdask.backends.table import backend_of, known_backends
from udfdask.corrections import CorrectionSet
from udfdask.corrections.validate import checked
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.axes import Axis, Calibration, in_pixels
from udfdask.geometry.chunk_grid import BoolArray, Grid
from udfdask.geometry.good_chunks import Chunks, joined_chunks
from udfdask.geometry.roi import (
    empty_roi_warning,
    lost_absence_warning,
    none_present_warning,
    normalize_roi,
    only_present,
)
from udfdask.geometry.shapes import Shape
from udfdask.plan.check_input import (
    check_array,
    check_masks_and_targets,
    check_matrix_rows,
    check_sig_dims,
    check_udfs,
)
from udfdask.plan.copy_parameters import with_copied_parameters
from udfdask.plan.data import Data, Settings, plan_descan, task_limit
from udfdask.plan.merge_tree import check_split_every
from udfdask.plan.pixels import Frame, with_pixels
from udfdask.udf import UDF

if TYPE_CHECKING:
    from udfdask.plan.data import PlannedDescan


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of a run as the user gave them; `run_udf` describes them."""

    sig_dims: int = 2
    roi: Any = None
    present: BoolArray | None = None
    """Mask of the scan positions that have a frame, shape nav; None for all."""
    axes: Sequence[Axis] | None = None
    unit: str | None = None
    corrections: CorrectionSet | None = None
    descan: Any = None
    backends: Any = None
    split_every: int | bool | None = None
    merge_small: int | str | None = None
    max_memory: int | str | None = None
    door: Door = ARRAY
    """The entry point: advice is written in its terms."""


NAMES = frozenset(field.name for field in fields(Options))
"""The names of all options."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """Checked arguments of a run."""

    udfs: tuple[UDF, ...]
    """UDFs with parameters in pixels, which only this run has."""
    data: Data
    """The data as UDFs see them, in the chunks that are processed."""
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

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If an argument is invalid.
    UDFError
        If a UDF has another mistake.
    """
    check_array(array)
    check_sig_dims(asked.sig_dims, array.ndim)
    check_udfs(udfs)
    check_masks_and_targets(udfs, files)
    check_matrix_rows(array, asked.sig_dims)
    calibration = _read_calibration(asked, array.shape)
    frame = Frame.of(calibration, array.shape, asked.sig_dims)
    udfs = with_copied_parameters([with_pixels(udf, frame)._for_run() for udf in udfs])
    settings = _read_settings(asked)
    joined = None if asked.merge_small is None else _joined_chunks(array, asked.merge_small)
    shape = Shape(array.shape, sig_dims=asked.sig_dims)
    selected = normalize_roi(asked.roi, shape.nav)
    roi = only_present(selected, asked.present, shape.nav)
    shifts = _read_shifts(array, asked, shape, roi)
    lost = ""
    if asked.present is None:
        sees = any(udf.halo is not None and udf.neighbors_outside_roi for udf in udfs)
        lost = lost_absence_warning(map(str, array.dask.layers), asked.roi is not None, sees)
    texts = {
        "empty roi": empty_roi_warning(asked.roi, selected)
        or none_present_warning(roi, asked.present),
        "absent frames": lost,
        "descan": "" if shifts is None else shifts.warning,
    }
    chunks, n_nav = joined or array.chunks, shape.nav.dims
    names = [axis.name for axis in calibration.axes]
    data = Data(
        shape=shape,
        dtype=array.dtype,
        grid=Grid.of(chunks[:n_nav], roi, only_present(None, asked.present, shape.nav)),
        sig_chunks=chunks[n_nav:],
        calibration=calibration,
        corrections=checked(asked.corrections, shape.sig, array.dtype, names),
        descan=None if shifts is None else shifts.recipe,
        native=backend_of(array._meta),
    )
    return Arguments(
        udfs=udfs,
        data=data,
        settings=settings,
        joined=joined,
        shifts=None if shifts is None else shifts.values,
        advice=tuple(Advice(kind, (text,)) for kind, text in texts.items() if text),
    )


def _read_calibration(asked: Options, shape: Sequence[int]) -> Calibration:
    """Return the checked axes and unit of the data; by default pixel numbers."""
    if not isinstance(asked.unit, str | None):
        raise ArgumentTypeError(f"unit must be a text such as 'counts', not {asked.unit!r}")
    if asked.axes is None:
        axes = in_pixels(len(shape), asked.sig_dims).axes
        return Calibration(axes=axes, unit=asked.unit)
    from udfdask.geometry.axis_labels import check_axes  # many runs have none

    return Calibration(axes=check_axes(asked.axes, shape, asked.sig_dims), unit=asked.unit)


def _read_settings(asked: Options) -> Settings:
    """Return the checked options about tasks, and the configuration."""
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


def _joined_chunks(array: GraphArray, merge_small: Any) -> Chunks | None:
    """Return the chunks of an array after small ones are joined; None if they do not change."""
    least = parse_size(merge_small, "merge_small", "64 MiB")
    chunks = joined_chunks(array.chunks, array.dtype.itemsize, least)
    return None if chunks == array.chunks else chunks


def _read_shifts(
    array: GraphArray, asked: Options, shape: Shape, roi: BoolArray | None
) -> PlannedDescan | None:
    """Return the checked shifts of all frames; None if they are not shifted."""
    if asked.descan is None:
        return None
    corrected, native = asked.corrections is not None, backend_of(array._meta)
    return plan_descan(asked.descan, shape, array.dtype, roi, corrected=corrected, native=native)


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
