"""What a user passes as ``descan=``: shifts of frames, and checks that they fit a run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np

from udfdask.backends.table import backend_of, to_host
from udfdask.base.types import is_lazy
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.chunk_grid import BoolArray
from udfdask.geometry.labels import check_in_pixels
from udfdask.geometry.shapes import Shape


@dataclass(frozen=True, eq=False, repr=False)
class Descan:
    """Shifts that are removed from frames, for `run_udf(..., descan=)`.

    UDFs see each frame shifted back: pixel (y, x) has the value of pixel (y + dy, x + dx) of the
    frame, where (dy, dx) is the shift of the frame. A feature at center + shift is then at the
    center, as with ``descan=com["raw_shifts"]`` for the result `com` of a `CoMUDF`.
    ``descan=shifts`` means ``descan=Descan(shifts)``.

    Parameters
    ----------
    shifts : array-like of numbers, shape (*nav, sig dims)
        The shift of each frame along each signal axis, (y, x) for images, in pixels: a NumPy or
        dask array. With one signal axis, also of shape `nav`.
    subpixel : bool
        If False, shifts are rounded to whole pixels, halves to the even number, and the data keep
        their dtype. If True, frames are interpolated linearly along each signal axis, and UDFs get
        at least float32.
    fill : number
        Value of the pixels that come from outside of the frame.

    Raises
    ------
    ArgumentTypeError
        If `subpixel` is not a bool, `fill` is not a number, or `shifts` is None.

    Notes
    -----
    Only `run_udf` knows the scan. It refuses shifts of another shape, complex or infinite ones,
    and a `fill` that the dtype of the data cannot hold. A frame whose shift contains NaN, or is as
    large as the frame, is empty: all its pixels have the value `fill`.

    The chunks of a dask array are computed with those of the data. A NumPy array is copied.

    Examples
    --------
    >>> import dask.array as da, numpy as np, udfdask as ud
    >>> from udfdask.corrections import Descan
    >>> from udfdask.udfs import SumUDF
    >>> spots = np.eye(4, dtype="uint8").reshape((4, 1, 4))  # frame n has a spot at x = n
    >>> shifts = np.array([(0, n - 1) for n in range(4)])
    >>> x = da.from_array(spots, chunks=(2, 1, 4))
    >>> ud.run_udf(x, SumUDF(), descan=shifts)["intensity"].compute()
    array([[0, 4, 0, 0]])
    >>> half = Descan(shifts - (0, 0.5), subpixel=True)
    >>> half
    Descan(shifts=(4, 2) float64, subpixel=True)
    >>> ud.run_udf(x, SumUDF(), descan=half)["intensity"].compute()
    array([[0., 2., 2., 0.]], dtype=float32)
    """

    shifts: Any
    """The shift of each frame, shape (*nav, sig dims), in pixels."""
    subpixel: bool = False
    """Whether frames are shifted by parts of a pixel."""
    fill: Any = 0
    """Value of the pixels that come from outside of the frame."""

    def __post_init__(self) -> None:
        if self.shifts is None or isinstance(self.shifts, Descan):
            raise ArgumentTypeError(f"Descan needs the shifts of the frames, not {self.shifts!r}")
        if not isinstance(self.subpixel, (bool, np.bool_)):
            raise ArgumentTypeError(f"subpixel must be True or False, not {self.subpixel!r}")
        if not isinstance(self.fill, Number):
            raise ArgumentTypeError(f"fill must be a number, not {self.fill!r}")
        fields: dict[str, Any] = {"subpixel": bool(self.subpixel)}
        # a masked array is kept, and refused by the plan
        if isinstance(self.shifts, np.ndarray) and not isinstance(self.shifts, np.ma.MaskedArray):
            fields["shifts"] = np.array(self.shifts)
        self.__setstate__(fields)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)  # frozen from here on
        if type(self.shifts) is np.ndarray:
            self.shifts.flags.writeable = False  # unpickling makes it writable

    def __repr__(self) -> str:
        given = self.shifts
        shape, dtype = getattr(given, "shape", None), getattr(given, "dtype", "")
        kind = type(given).__name__ if shape is None else f"{tuple(shape)} {dtype}"
        parts = [f"shifts={kind}{' lazy' * is_lazy(given)}"]
        if self.subpixel:
            parts.append("subpixel=True")
        if self.fill != 0:
            parts.append(f"fill={self.fill!r}")
        return f"Descan({', '.join(parts)})"


def checked_shifts(
    descan: Descan, shape: Shape, dtype: np.dtype[Any], roi: BoolArray | None, *, computed: bool
) -> tuple[Any, str]:
    """Return shifts as a NumPy or dask array, float64, shape (*nav, sig dims), and a warning.

    `computed` says that frames have at least float32 pixels. Values of dask arrays are checked in
    tasks (`FrameShifts`). The warning is empty if all selected frames have a shift.
    """
    if dtype.kind not in "biufc":
        raise ArgumentTypeError(f"descan needs data that are numbers, not {dtype}")
    shifts, nav, n = _array(descan.shifts), tuple(shape.nav), len(shape.sig)
    if shifts.dtype.kind not in "iuf":
        raise ArgumentTypeError(
            f"descan has shifts of dtype {shifts.dtype}, expected real numbers in pixels"
        )
    if n == 1 and shifts.shape == nav:
        shifts = shifts[..., np.newaxis]
    if any(map(math.isnan, shifts.shape)):
        raise ArgumentValueError(
            f"descan has shifts of unknown shape {shifts.shape}: call compute_chunk_sizes() first"
        )
    if shifts.shape != (*nav, n):
        raise ArgumentValueError(
            f"descan has shifts of shape {shifts.shape}, but a scan of shape {nav} with {n} signal "
            f"ax{'is' if n == 1 else 'es'} needs {(*nav, n)}{_remedy(shifts.shape, nav, n)}"
        )
    _check_fill(descan.fill, np.result_type(dtype, np.float32) if computed else dtype)
    shifts = shifts.astype(np.float64)  # shifts of any precision: a task has few of them
    if not isinstance(shifts, np.ndarray):
        return shifts, ""
    shifts.flags.writeable = False
    selected = np.full(nav, True) if roi is None else roi
    infinite = np.isinf(shifts).any(axis=-1) & selected
    if infinite.any():
        place = tuple(np.argwhere(infinite)[0].tolist())
        raise ArgumentValueError(
            f"descan has an infinite shift at scan position {place}: pass NaN for frames to leave "
            "empty, or roi= to leave them out"
        )
    lost = np.count_nonzero(np.isnan(shifts).any(axis=-1) & selected)
    warning = (
        f"descan has no shift (NaN) for {lost} of {np.count_nonzero(selected)} frames, which "
        "become empty: leave them out with roi=np.isfinite(shifts).all(axis=-1)"
    )
    return shifts, warning if lost else ""


def _remedy(given: tuple[int, ...], nav: tuple[int, ...], n: int) -> str:
    """Return the call that makes the right shape out of a shape, if there is one."""
    if given == (n, *nav):
        return "; np.moveaxis(shifts, 0, -1) moves the axis"
    if given == (n,):
        return f"; np.broadcast_to(shift, {(*nav, n)}) has the same shift for all frames"
    if given == (math.prod(nav), n):
        return f"; shifts.reshape({(*nav, n)}) has the shape of the scan"
    return ""


def _array(shifts: Any) -> Any:
    check_in_pixels("descan", shifts, "raw_shifts")
    if isinstance(getattr(shifts, "_meta", shifts), np.ma.MaskedArray):
        raise ArgumentTypeError("descan has masked shifts: fill them, as with array.filled(np.nan)")
    is_labeled, kind = hasattr(shifts, "dims"), type(shifts).__name__
    if not is_labeled and is_lazy(shifts) and isinstance(getattr(shifts, "chunks", 0), tuple):
        return shifts
    if isinstance(shifts, (list, tuple, np.ndarray, Number)) or backend_of(shifts).on_device:
        try:
            return to_host(shifts)
        except ValueError as error:
            raise ArgumentValueError(f"descan has shifts that are no array: {error}") from None
    remedy = "pass its .data, in the order of the axes of the data"
    if shifts is Descan:
        kind, remedy = "class", "write Descan(shifts)"
    elif kind.startswith("Delayed"):
        remedy = "make it an array with dask.array.from_delayed"
    elif kind == "Result":
        remedy = 'pass one of its arrays, such as result["raw_shifts"]'
    elif not is_labeled:
        remedy = "convert it with np.asarray(...)"
    raise ArgumentTypeError(
        f"descan takes a NumPy or dask array, or a udfdask.corrections.Descan, "
        f"not a {kind}: {remedy}"
    )


def _check_fill(fill: Any, dtype: np.dtype[Any]) -> None:
    """Raise if the dtype of shifted frames cannot hold the fill value."""
    try:
        with np.errstate(all="ignore"):
            held = dtype.kind == "c" or (
                not isinstance(fill, (complex, np.complexfloating))
                and (dtype.kind == "f" or bool(np.asarray(fill).astype(dtype) == fill))
            )
    except (TypeError, ValueError, OverflowError):
        held = False
    if not held:
        raise ArgumentValueError(
            f"descan has fill={fill!r}, which frames of dtype {dtype} cannot hold: convert the data"
        )
