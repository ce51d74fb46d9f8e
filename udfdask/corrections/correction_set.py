"""The corrections of a detector in one frozen value, and checks that they fit the frames."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from udfdask.base.types import AnyArray, is_lazy
from udfdask.corrections.planes import good_neighbors
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.labels import DataLabels, aligned, check_order, labels_of, plain_array

NUMBERS = "biufc"
"""Kinds of dtypes that can be corrected, and that dark and gain can have."""

PLANES = ("dark", "gain")
"""Fields that can be dask arrays, which are computed in tasks."""


@dataclass(frozen=True, eq=False, repr=False)
class CorrectionSet:
    """Dark frame, gain map and broken pixels of a detector, for `run_udf(..., corrections=)`.

    UDFs see ``(x - dark) * gain`` instead of each frame ``x``. Then each excluded pixel gets the
    unweighted mean of its good neighbors, after their correction.

    Parameters
    ----------
    dark : array-like, shape sig, optional
        Dark frame, in the unit of the data: a NumPy, dask or sparse array. It is subtracted first.
    gain : array-like, shape sig, optional
        Factor for each pixel, the inverse of a flat field: a NumPy, dask or sparse array.
    excluded_pixels : array-like, optional
        Broken pixels: a boolean mask of shape sig (True = excluded), a sparse array of that shape
        with entries where pixels are excluded, or integer coordinates of shape (sig dims, pixels),
        as `numpy.nonzero` returns them. You can write one pixel as ``(y, x)``.
    allow_empty : bool
        If True, an excluded pixel without a good neighbor keeps its value after dark and gain
        correction. If False, `run_udf` raises an error for such a pixel.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If an argument has a wrong type, the shapes contradict each other, or the shape of a dask
        array is unknown. Only `run_udf` knows the frames: it refuses other shapes, pixels outside
        the frame, and NaN or infinite values of `dark` and `gain` in pixels that are not excluded.

    Notes
    -----
    The correction is computed in ``result_type(data, preference of the UDF, float32)``: in float32
    for uint16 data and in float64 for int32 data, even if the UDF asks for the native dtype. Long
    doubles are computed in float64.

    Neighbors of a pixel are the up to ``3**n - 1`` pixels that share a side, edge or corner with
    it, where `n` is the number of signal axes.

    Dask arrays are computed in tasks, once per run, and their values are checked there. A run of an
    accessor aligns DataArrays and signals with the data by the names of their axes, and DataArrays
    by their coordinates. Any other run refuses other orders of axes.

    Arrays are copied: if you change them later, the corrections do not change.

    Examples
    --------
    >>> import dask.array as da, numpy as np, udfdask as ud
    >>> from udfdask.corrections import CorrectionSet
    >>> from udfdask.udfs import SumUDF
    >>> x = da.full((4, 6, 3, 3), 10, dtype="uint16", chunks=(2, 6, 3, 3))
    >>> dark = np.ones((3, 3))
    >>> corrections = CorrectionSet(dark=dark, gain=dark / 2, excluded_pixels=(1, 1))
    >>> corrections
    CorrectionSet(dark=(3, 3) float64, gain=(3, 3) float64, excluded_pixels=1)
    >>> ud.run_udf(x, SumUDF(), corrections=corrections)["intensity"].compute()
    array([[108., 108., 108.],
           [108., 108., 108.],
           [108., 108., 108.]], dtype=float32)
    """

    dark: Any = None
    """Dark frame, shape sig, in the unit of the data."""
    gain: Any = None
    """Factor for each pixel, shape sig."""
    excluded_pixels: Any = None
    """Broken pixels: a boolean mask of shape sig, or coordinates, int64, (sig dims, pixels). A UDF
    always sees coordinates."""
    allow_empty: bool = True
    """Whether a pixel without good neighbors keeps its value."""
    _labels: Any = field(default=None, init=False)
    """Labels of the axes of the fields that are DataArrays or signals, until a run aligns them."""

    def __post_init__(self) -> None:
        if not isinstance(self.allow_empty, bool):
            raise ArgumentTypeError(f"allow_empty must be True or False, not {self.allow_empty!r}")
        given = {name: getattr(self, name) for name in (*PLANES, "excluded_pixels")}
        labels = {name: found for name, value in given.items() if (found := labels_of(value))}
        fields = {name: _plane(name, given[name]) for name in PLANES}
        fields["excluded_pixels"] = _excluded(self.excluded_pixels)
        self.__setstate__({**fields, "_labels": labels or None})
        shapes = {
            name: value.shape
            for name, value in fields.items()
            # a run aligns those with labels first
            if value is not None and name not in labels and (name in PLANES or value.dtype == bool)
        }
        if len(set(shapes.values())) > 1:
            each = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
            raise ArgumentValueError(f"corrections must all have the shape of a frame, not {each}")

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)  # frozen from here on
        for value in state.values():
            if hasattr(value, "flags"):  # a NumPy array, which unpickling makes writable
                value.flags.writeable = False

    def __repr__(self) -> str:
        given = {name: getattr(self, name) for name in PLANES}
        parts = [
            f"{name}={value.shape} {value.dtype}{' lazy' * is_lazy(value)}"
            for name, value in given.items()
            if value is not None
        ]
        excluded = self.excluded_pixels
        if excluded is not None:
            n = excluded.sum() if excluded.dtype == bool else excluded[:1].size
            parts.append(f"excluded_pixels={n}")
        return f"CorrectionSet({', '.join(parts + ['allow_empty=False'] * (not self.allow_empty))})"


def _plane(name: str, value: Any) -> Any:
    """Return a private copy in native byte order, a dask array unchanged, or None for None."""
    if value is None:
        return None
    value = plain_array(value)
    if not is_lazy(value):
        value = _array(name, value)
    elif not isinstance(getattr(value, "chunks", None), tuple):
        raise ArgumentTypeError(
            f"{name} must be a NumPy, dask or sparse array, not a {type(value).__name__}: use "
            "dask.array.from_delayed"
        )
    elif any(map(math.isnan, value.shape)):
        raise ArgumentValueError(f"{name} has an unknown shape: call compute_chunk_sizes() first")
    else:
        _refuse_masked(name, value._meta)
    if value.dtype.kind not in NUMBERS:
        raise ArgumentTypeError(f"{name} must contain numbers, not {value.dtype}")
    if is_lazy(value):
        return value
    return np.array(value, dtype=value.dtype.newbyteorder("="), order="C")


def _excluded(value: Any) -> AnyArray | None:
    """Return a boolean mask of shape sig, or coordinates, int64; None for None."""
    if value is None:
        return None
    value = plain_array(value)
    if is_lazy(value):
        raise ArgumentTypeError(
            "excluded_pixels must be known when the run is planned: compute them first"
        )
    array = _array("excluded_pixels", value)
    if hasattr(value, "todense"):
        array = array != 0
    if array.size == 0:  # no pixel, in any form: a list, coordinates, a mask
        return np.zeros(0, dtype=np.int64)
    if array.dtype.kind not in "biu":
        raise ArgumentTypeError(
            "excluded_pixels must be a boolean mask, a sparse array or integer coordinates, not "
            f"{array.dtype}"
        )
    return np.array(array, dtype=bool if array.dtype == bool else np.int64, order="C")


def _array(name: str, value: Any) -> AnyArray:
    """Return a NumPy array, a sparse array or a list as a NumPy array."""
    _refuse_masked(name, value)
    try:
        return np.asarray(value.todense() if hasattr(value, "todense") else value)
    except ValueError as error:  # ragged
        raise ArgumentTypeError(f"{name} cannot be converted to an array: {error}") from None


def _refuse_masked(name: str, value: Any) -> None:
    if isinstance(value, np.ma.MaskedArray):
        raise ArgumentTypeError(
            f"{name} is a masked array: fill it, and pass its mask as excluded_pixels"
        )


def excluded_coordinates(excluded: AnyArray, sig: tuple[int, ...]) -> AnyArray:
    """Return the coordinates of excluded pixels, int64, (sig dims, pixels), in C order."""
    if excluded.dtype == bool:
        if excluded.shape != sig:
            raise ArgumentValueError(
                f"excluded_pixels has shape {excluded.shape}, but frames have shape {sig}"
            )
        return np.array(np.nonzero(excluded), dtype=np.int64)
    if excluded.size == 0:
        return np.zeros((len(sig), 0), dtype=np.int64)
    places = excluded
    if places.ndim == 1:  # one pixel, or pixels along the only axis
        places = places.reshape((1, -1) if len(sig) == 1 else (-1, 1))
    if places.ndim != 2 or len(places) != len(sig):
        hint = "; make a mask boolean, with .astype(bool)" if excluded.shape == sig else ""
        raise ArgumentValueError(
            f"excluded_pixels has shape {excluded.shape}, but for frames of shape {sig} expected "
            f"a boolean mask of that shape, or coordinates of shape ({len(sig)}, pixels){hint}"
        )
    outside = (places < 0).any(axis=0) | (places >= np.reshape(sig, (-1, 1))).any(axis=0)
    if outside.any():
        first = tuple(places[:, outside][:, 0].tolist())
        raise ArgumentValueError(
            f"excluded_pixels contains pixel {first}, which is outside frames of shape {sig}"
        )
    flat = np.unique(np.ravel_multi_index(tuple(places), sig))
    return np.array(np.unravel_index(flat, sig), dtype=np.int64)


def checked(
    corrections: Any, sig: Sequence[int], dtype: np.dtype[Any], names: Sequence[Any] = ()
) -> CorrectionSet | None:
    """Return corrections with excluded pixels as coordinates; None if there is nothing to correct.

    `names` are those of the axes of the data. Dask arrays are not computed here; `with_planes`
    checks their values.
    """
    if not isinstance(corrections, CorrectionSet):
        raise ArgumentTypeError(
            "corrections must be a udfdask.corrections.CorrectionSet, not a "
            f"{type(corrections).__name__}: write CorrectionSet(dark=..., gain=...)"
        )
    excluded, shape = corrections.excluded_pixels, tuple(map(int, sig))
    if excluded is None and corrections.dark is None and corrections.gain is None:
        return None
    if dtype.kind not in NUMBERS:
        raise ArgumentTypeError(f"corrections need data that are numbers, not {dtype}")
    for name, labels in (corrections._labels or {}).items():
        check_order(labels, names, name)
    if excluded is not None:
        excluded = excluded_coordinates(excluded, shape)
        empty = excluded[:, good_neighbors(excluded, shape)[1] == 0]
        if empty.size and not corrections.allow_empty:
            raise ArgumentValueError(
                f"excluded pixel {tuple(empty[:, 0].tolist())} has no good neighbor to be patched "
                f"from: exclude fewer pixels, or pass allow_empty=True{_more(empty.shape[1])}"
            )
    for name in PLANES:
        _check_plane(name, getattr(corrections, name), shape, dtype, excluded)
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


def part_of(
    corrections: CorrectionSet, index: tuple[slice | int, ...], sig: Sequence[int]
) -> CorrectionSet:
    """Return the corrections of a part of frames of shape `sig`."""
    planes = {name: getattr(corrections, name) for name in PLANES}
    if (excluded := corrections.excluded_pixels) is not None:
        planes["excluded_pixels"] = np.zeros(sig, bool)
        planes["excluded_pixels"][tuple(excluded_coordinates(excluded, tuple(sig)))] = True
    fields = {name: None if plane is None else plane[index] for name, plane in planes.items()}
    return _changed(corrections, fields)


def with_planes(
    corrections: CorrectionSet, values: Mapping[str, Any], sig: Sequence[int], dtype: np.dtype[Any]
) -> CorrectionSet:
    """Return corrections with checked, computed values in place of dask arrays."""
    planes = {name: _plane(name, value) for name, value in values.items()}
    for name, plane in planes.items():
        _check_plane(name, plane, tuple(sig), dtype, corrections.excluded_pixels)
    return _changed(corrections, planes)


def _changed(corrections: CorrectionSet, fields: Mapping[str, Any]) -> CorrectionSet:
    """Return a copy with other values in some fields; the values must be checked already."""
    twin = copy.copy(corrections)
    twin.__setstate__(dict(fields))
    return twin


def _check_plane(
    name: str, plane: Any, sig: tuple[int, ...], dtype: np.dtype[Any], excluded: AnyArray | None
) -> None:
    """Raise if a plane does not fit the frames, or has values that are not finite."""
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
    if is_lazy(plane):
        return
    wrong = ~np.isfinite(plane)
    if excluded is not None:
        wrong[tuple(excluded)] = False
    if wrong.any():
        first = tuple(np.argwhere(wrong)[0].tolist())
        raise ArgumentValueError(
            f"{name} is {plane[first]} at pixel {first}, which is not excluded"
            f"{_more(int(wrong.sum()))}: add it to excluded_pixels, or correct {name}"
        )


def _more(n: int) -> str:
    """Return the number of further pixels, in words."""
    return f" ({n - 1} more like it)" if n > 1 else ""
