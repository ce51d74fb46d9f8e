"""Describe the corrections of a detector in one frozen value."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.labels import labels_of, plain_array
from udfdask.types import AnyArray, is_lazy

NUMBERS = "biufc"
"""Kinds of dtypes that can be corrected, and that dark and gain can have."""


def _dense(value: Any) -> Any:
    """Convert a sparse array to a NumPy array; return any other value unchanged."""
    for method in ("toarray", "todense"):
        if not isinstance(value, np.ndarray) and hasattr(value, method):
            return getattr(value, method)()
    return value


def plane_given(name: str, value: Any) -> Any:
    """Return a private copy in native byte order, a dask array unchanged, or None for None."""
    if value is None:
        return None
    value = plain_array(value)
    if is_lazy(value):
        if not isinstance(getattr(value, "chunks", None), tuple):
            raise ArgumentTypeError(
                f"{name} must be a NumPy, dask or sparse array, not a {type(value).__name__}: "
                "convert it to a dask array, with dask.array.from_delayed for a Delayed"
            )
        if any(math.isnan(n) for n in value.shape):
            raise ArgumentValueError(
                f"{name} is a dask array of unknown shape {value.shape}: call "
                "compute_chunk_sizes() on it first"
            )
        _refuse_masked(name, value._meta, f"dask.array.ma.filled({name}, 0)")
        array = value
    else:
        _refuse_masked(name, value, f"{name}.filled(0)")
        array = _array(name, _dense(value))
    if array.dtype.kind not in NUMBERS:
        raise ArgumentTypeError(f"{name} must contain numbers, not {array.dtype}")
    if array is value and is_lazy(value):
        return value
    return np.array(array, dtype=array.dtype.newbyteorder("="), order="C")


def _refuse_masked(name: str, value: Any, remedy: str) -> None:
    """Raise if an array, or the meta of a dask array, is a masked array."""
    if isinstance(value, np.ma.MaskedArray):
        raise ArgumentTypeError(
            f"{name} is a masked array: pass {remedy}, and its mask as excluded_pixels"
        )


def _array(name: str, value: Any) -> AnyArray:
    """Convert a value to a NumPy array; raise for ragged lists."""
    try:
        return np.asarray(value)
    except ValueError as error:
        raise ArgumentTypeError(f"{name} cannot be converted to an array: {error}") from None


def excluded_given(value: Any) -> AnyArray | None:
    """Return a boolean mask of shape sig, or coordinates, int64; None for None."""
    if value is None:
        return None
    value = plain_array(value)
    if is_lazy(value):
        raise ArgumentTypeError(
            "excluded_pixels must be known when the run is planned: compute them first"
        )
    dense = _dense(value)
    array = _array("excluded_pixels", dense)
    if dense is not value:
        array = array != 0
    if array.size == 0:  # no pixel, in any form: a list, coordinates, a mask
        return np.zeros(0, dtype=np.int64)
    if array.dtype.kind not in "biu":
        raise ArgumentTypeError(
            "excluded_pixels must be a boolean mask, a sparse array or integer coordinates, not "
            f"{array.dtype}"
        )
    return np.array(array, dtype=bool if array.dtype == bool else np.int64, order="C")


def excluded_coordinates(excluded: AnyArray, sig: tuple[int, ...]) -> AnyArray:
    """Return the coordinates of excluded pixels, int64, (sig dims, pixels), in C order."""
    if excluded.dtype == bool:
        if excluded.shape != sig:
            raise ArgumentValueError(
                f"excluded_pixels has shape {excluded.shape}, but frames have shape {sig}"
            )
        return np.array(np.nonzero(excluded), dtype=np.int64)
    places = excluded
    if places.ndim == 1:  # one pixel, or pixels along the only axis
        places = places.reshape((1, -1)) if len(sig) == 1 else places.reshape((-1, 1))
    if excluded.size == 0:
        return np.zeros((len(sig), 0), dtype=np.int64)
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
        given = {name: getattr(self, name) for name in ("dark", "gain", "excluded_pixels")}
        labels = {name: found for name, value in given.items() if (found := labels_of(value))}
        self.__setstate__(
            {
                "dark": plane_given("dark", self.dark),
                "gain": plane_given("gain", self.gain),
                "excluded_pixels": excluded_given(self.excluded_pixels),
                "allow_empty": self.allow_empty,
                "_labels": labels or None,
            }
        )
        # a run aligns those with labels first
        shapes = {n: v.shape for n, v in self._frames().items() if n not in labels}
        if len(set(shapes.values())) > 1:
            each = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
            raise ArgumentValueError(f"corrections must all have the shape of a frame, not {each}")

    def _frames(self) -> dict[str, Any]:
        """Return the fields that have the shape of a frame."""
        given = {"dark": self.dark, "gain": self.gain}
        if self.excluded_pixels is not None and self.excluded_pixels.dtype == bool:
            given["excluded_pixels"] = self.excluded_pixels
        return {name: value for name, value in given.items() if value is not None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)  # frozen from here on
        for value in state.values():
            if hasattr(value, "flags"):  # a NumPy array, which unpickling makes writable
                value.flags.writeable = False

    def __repr__(self) -> str:
        parts = [
            f"{name}={value.shape} {value.dtype}{' lazy' * is_lazy(value)}"
            for name, value in (("dark", self.dark), ("gain", self.gain))
            if value is not None
        ]
        excluded = self.excluded_pixels
        if excluded is not None:
            n = excluded.sum() if excluded.dtype == bool else excluded[:1].size
            parts.append(f"excluded_pixels={n}")
        if not self.allow_empty:
            parts.append("allow_empty=False")
        return f"CorrectionSet({', '.join(parts)})"
