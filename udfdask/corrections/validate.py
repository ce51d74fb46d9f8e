"""Check that a correction set fits the frames of a run."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from udfdask.corrections.correction_set import (
    NUMBERS,
    CorrectionSet,
    excluded_coordinates,
    plane_given,
)
from udfdask.corrections.planes import good_neighbors
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.labels import DataLabels, aligned, check_order
from udfdask.types import AnyArray, is_lazy

PLANES = ("dark", "gain")
"""Fields that can be dask arrays, which are computed in tasks."""


def checked(
    corrections: Any, sig: Sequence[int], dtype: np.dtype[Any], names: Sequence[Any] = ()
) -> CorrectionSet | None:
    """Return corrections with excluded pixels as coordinates; None if there is nothing to correct.

    `names` are those of the axes of the data. Dask arrays are not computed here; `with_planes`
    checks their values.
    """
    if corrections is None:
        return None
    if not isinstance(corrections, CorrectionSet):
        raise ArgumentTypeError(
            "corrections must be a udfdask.corrections.CorrectionSet, not a "
            f"{type(corrections).__name__}: write CorrectionSet(dark=..., gain=...)"
        )
    given = {name: getattr(corrections, name) for name in PLANES}
    excluded = corrections.excluded_pixels
    if excluded is None and all(plane is None for plane in given.values()):
        return None
    if dtype.kind not in NUMBERS:
        raise ArgumentTypeError(f"corrections need data that are numbers, not {dtype}")
    shape = tuple(map(int, sig))
    for name, labels in (corrections._labels or {}).items():
        check_order(labels, names, name)
    for name, plane in given.items():
        _check_plane(name, plane, shape, dtype)
    if excluded is not None:
        excluded = excluded_coordinates(excluded, shape)
        if not corrections.allow_empty:
            _check_empty(excluded, shape)
    for name, plane in given.items():
        _check_values(name, plane, excluded)
    return _changed(corrections, {"excluded_pixels": excluded, "_labels": None})


def aligned_corrections(corrections: Any, data: DataLabels) -> Any:
    """Return corrections with all frames in the order of the data of a run.

    Coordinates of excluded pixels, and other values, are returned unchanged.
    """
    if not isinstance(corrections, CorrectionSet) or corrections._labels is None:
        return corrections
    fields = {}
    for name, labels in corrections._labels.items():
        value = getattr(corrections, name)
        if name in PLANES or value.dtype == bool:
            fields[name] = aligned(value, labels, data, "sig", what=name, name=name)
    return _changed(corrections, {**fields, "_labels": None})


def lazy_planes(corrections: CorrectionSet | None) -> tuple[str, ...]:
    """Return the fields that are dask arrays."""
    return tuple(name for name in PLANES if is_lazy(getattr(corrections, name, None)))


def with_planes(
    corrections: CorrectionSet,
    values: Mapping[str, Any],
    sig: Sequence[int],
    dtype: np.dtype[Any],
) -> CorrectionSet:
    """Return corrections with checked, computed values in place of dask arrays."""
    planes = {}
    for name, value in values.items():
        plane = plane_given(name, value)
        _check_plane(name, plane, tuple(sig), dtype)
        _check_values(name, plane, corrections.excluded_pixels)
        planes[name] = plane
    return _changed(corrections, planes)


def _changed(corrections: CorrectionSet, fields: Mapping[str, Any]) -> CorrectionSet:
    """Return a copy with other values in some fields; the values must be checked already."""
    twin = copy.copy(corrections)
    twin.__setstate__(dict(fields))
    return twin


def _check_plane(name: str, plane: Any, sig: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    if plane is None:
        return
    if tuple(plane.shape) != sig:
        raise ArgumentValueError(
            f"{name} has shape {tuple(plane.shape)}, but frames have shape {sig}"
        )
    if plane.dtype.kind == "c" and dtype.kind != "c":
        raise ArgumentTypeError(
            f"{name} is {plane.dtype}, but the data are {dtype}: make it real, or the data complex"
        )


def _check_values(name: str, plane: Any, excluded: AnyArray | None) -> None:
    if plane is None or is_lazy(plane):
        return
    wrong = ~np.isfinite(plane)
    if excluded is not None:
        wrong[tuple(excluded)] = False
    if wrong.any():
        first = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise ArgumentValueError(
            f"{name} is {plane[first]} at pixel {first}, which is not excluded"
            f"{_more(int(wrong.sum()))}: add it to excluded_pixels, or correct {name}"
        )


def _check_empty(excluded: AnyArray, sig: tuple[int, ...]) -> None:
    _, counts = good_neighbors(excluded, sig)
    empty = np.flatnonzero(counts == 0)
    if empty.size:
        first = tuple(excluded[:, empty[0]].tolist())
        raise ArgumentValueError(
            f"excluded pixel {first} has no good neighbor to be patched from: exclude fewer "
            f"pixels, or pass allow_empty=True{_more(empty.size)}"
        )


def _more(n: int) -> str:
    """Return the number of further pixels, in words."""
    return f" ({n - 1} more like it)" if n > 1 else ""
