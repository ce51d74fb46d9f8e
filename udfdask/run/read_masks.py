"""Align what comes with labels with the data of an accessor: masks, aux data, options of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from udfdask.corrections import Descan
from udfdask.corrections.correction_set import aligned_corrections
from udfdask.errors import ArgumentValueError
from udfdask.geometry.labels import (
    DataLabels,
    aligned,
    check_in_pixels,
    check_is_one_array,
    is_labeled,
    labels_of,
    plain_array,
    vectors_of,
)
from udfdask.plan.parameters import new_instance
from udfdask.udf import UDF
from udfdask.udf.aux_data import AuxData, aligned_aux


def read_labeled(
    udf: Any, options: Mapping[str, Any], data: DataLabels, read: Callable[[Any], Any]
) -> tuple[Any, dict[str, Any]]:
    """Return the UDFs and options of a run with all values in the order of the data.

    `read` returns the array of a mask that it knows, and every other value unchanged.
    """
    chosen = dict(options)
    if "corrections" in chosen:
        chosen["corrections"] = aligned_corrections(chosen["corrections"], data)
    if "descan" in chosen:
        chosen["descan"] = _read_descan(chosen["descan"], data)
    return read_masks(udf, read, data), chosen


def _read_descan(descan: Any, data: DataLabels) -> Any:
    """Return ``descan=`` as `udfdask.run_udf` takes it, in the order of the data."""
    shifts = descan.shifts if isinstance(descan, Descan) else descan
    check_is_one_array("descan", shifts, "raw_shifts")
    if not is_labeled(shifts):
        return descan
    check_in_pixels("descan", shifts, "raw_shifts")
    shifts = vectors_of(shifts, "descan", data.nav)
    labels, n = labels_of(shifts), len(data.sig)
    values = aligned(
        plain_array(shifts),
        labels,
        data,
        "nav",
        what="descan",
        name="shifts",
        advice="shifts.reindex_like(data) fills in NaN, which makes frames empty",
    )
    rest = tuple(values.shape[len(data.nav) :])
    if labels is not None and rest != (n,) and (n > 1 or rest):
        raise ArgumentValueError(
            f"descan has the dimensions {labels.dims}, but needs navigation dimensions of the "
            f"data, which are {data.nav}, and one more of size {n}: the shift along {data.sig}"
        )
    return replace(descan, shifts=values) if isinstance(descan, Descan) else values


def read_masks(udf: Any, read: Callable[[Any], Any], data: DataLabels | None = None) -> Any:
    """Return one UDF, or a list, tuple or dictionary of them, with masks as plain arrays.

    Auxiliary data are aligned with the data of the run, if these are given. Others are unchanged.
    """
    if not isinstance(udf, UDF):
        many = isinstance(udf, (dict, list, tuple))
        return _each(udf, lambda one: read_masks(one, read, data)) if many else udf
    made = read_values(type(udf), udf._kwargs, read, data)
    if all(made[name] is given for name, given in udf._kwargs.items()):
        return udf
    return new_instance(type(udf), made)


def read_detectors(detectors: Any, read: Callable[[Any], Any]) -> Any:
    """Return one UDF or mask, or several of them, with masks as plain arrays."""

    def read_one(detector: Any) -> Any:
        return read_masks(detector, read) if isinstance(detector, UDF) else read(detector)

    return _each(detectors, read_one)


def read_values(
    cls: type[UDF],
    kwargs: Mapping[str, Any],
    read: Callable[[Any], Any],
    data: DataLabels | None,
) -> dict[str, Any]:
    """Return some parameters of a UDF with plain arrays as masks, and aligned aux data."""
    made = dict(kwargs)
    for name, given in kwargs.items():
        if name == cls._mask_parameter:
            made[name] = _each(given, read)
        elif isinstance(given, AuxData) and data is not None:
            made[name] = aligned_aux(given, data, f"{cls.__name__}.params.{name}")
    return made


def _each(values: Any, change: Callable[[Any], Any]) -> Any:
    """Change a value, or each in a list, tuple or dictionary."""
    if isinstance(values, dict):
        return {name: change(value) for name, value in values.items()}
    if isinstance(values, (list, tuple)):  # subclasses may take other values
        made = map(change, values)
        return list(made) if isinstance(values, list) else tuple(made)
    return change(values)
