"""Read the arguments of a run: every check that needs no recipe, and values in one form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dask.array.core import Array as GraphArray

from udfdask import config
from udfdask.advice import Advice
from udfdask.backends.table import backend_of
from udfdask.geometry.axes import Calibration
from udfdask.geometry.chunk_grid import BoolArray
from udfdask.geometry.roi import (
    empty_roi_warning,
    lost_absence_warning,
    none_present_warning,
    normalize_roi,
    only_present,
)
from udfdask.geometry.shapes import Shape
from udfdask.plan.calibrate import read_calibration, with_pixels
from udfdask.plan.check_input import (
    check_array,
    check_masks_and_targets,
    check_matrix_rows,
    check_sig_dims,
    check_udfs,
)
from udfdask.plan.copy_parameters import copy_parameters
from udfdask.plan.declarations import new_instance
from udfdask.plan.merge_tree import check_split_every
from udfdask.plan.options import Options, parse_size
from udfdask.udf import UDF

if TYPE_CHECKING:
    from udfdask.plan.descan import PlannedDescan
    from udfdask.plan.small_chunks import Chunks


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """Checked arguments of a run."""

    udfs: list[UDF]
    """UDFs with parameters in pixels, which only this run has."""
    calibration: Calibration
    """Axes of the data and unit of the values; pixel numbers by default."""
    roi: BoolArray | None
    """Mask of the frames to process, shape nav, without absent ones; None for all."""
    fan_in: int | bool
    """Fan-in of merge trees; False for one step."""
    joined: Chunks | None
    """The chunks after small ones are joined; None if the chunks of the array are processed."""
    shifts: PlannedDescan | None
    """The shifts of all frames; None if they are not shifted."""
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
    sig_dims = asked.sig_dims
    check_array(array)
    check_sig_dims(sig_dims, array.ndim)
    check_udfs(udfs)
    check_masks_and_targets(udfs, files)
    check_matrix_rows(array, sig_dims)
    calibration = read_calibration(asked.axes, asked.unit, array.shape, sig_dims)
    udfs = [with_pixels(udf, calibration, array.shape, sig_dims) for udf in udfs]
    udfs = _with_copied_parameters([udf._for_run() for udf in udfs])
    fan_in = config.split_every() if asked.split_every is None else asked.split_every
    check_split_every(fan_in, "split_every")
    joined = None if asked.merge_small is None else _joined_chunks(array, asked.merge_small)
    nav = array.shape[: array.ndim - sig_dims]
    selected = normalize_roi(asked.roi, nav)
    roi = only_present(selected, asked.present, nav)
    shifts = None if asked.descan is None else _shifts(array, asked, roi)
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
    return Arguments(
        udfs=udfs,
        calibration=calibration,
        roi=roi,
        fan_in=fan_in,
        joined=joined,
        shifts=shifts,
        advice=tuple(Advice(kind, (text,)) for kind, text in texts.items() if text),
    )


def _with_copied_parameters(udfs: Sequence[UDF]) -> list[UDF]:
    """Return UDFs whose parameters do not change if the user changes an array afterwards."""
    memo: dict[int, Any] = {}
    copies = [copy_parameters(udf._kwargs, memo) for udf in udfs]
    return [
        udf
        if all(kwargs[name] is value for name, value in udf._kwargs.items())
        else new_instance(type(udf), kwargs)
        for udf, kwargs in zip(udfs, copies, strict=True)
    ]


def _joined_chunks(array: GraphArray, merge_small: Any) -> Chunks | None:
    """Return the chunks of an array after small ones are joined; None if they do not change."""
    from udfdask.plan.small_chunks import joined_chunks  # few runs need it

    least = parse_size(merge_small, "merge_small", "64 MiB")
    chunks = joined_chunks(array.chunks, array.dtype.itemsize, least)
    return None if chunks == array.chunks else chunks


def _shifts(array: GraphArray, asked: Options, roi: BoolArray | None) -> PlannedDescan | None:
    """Return the checked shifts of all frames; None if they are not shifted."""
    from udfdask.plan.descan import plan_descan  # few runs need it

    full = Shape(array.shape, sig_dims=asked.sig_dims)
    corrected, native = asked.corrections is not None, backend_of(array._meta)
    return plan_descan(asked.descan, full, array.dtype, roi, corrected=corrected, native=native)
