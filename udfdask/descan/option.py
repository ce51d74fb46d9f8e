"""What a user passes as ``descan=``: shifts of frames, and how they are applied."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np

from udfdask.errors import ArgumentTypeError


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
    >>> from udfdask.descan import Descan
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
            raise ArgumentTypeError(
                f"Descan needs the shifts of the frames, an array, not {self.shifts!r}"
            )
        if not isinstance(self.subpixel, (bool, np.bool_)):
            raise ArgumentTypeError(f"subpixel must be True or False, not {self.subpixel!r}")
        if not isinstance(self.fill, Number):
            raise ArgumentTypeError(f"fill must be a number, not {self.fill!r}")
        object.__setattr__(self, "subpixel", bool(self.subpixel))
        # a masked array is kept, and refused by the plan
        if isinstance(self.shifts, np.ndarray) and not isinstance(self.shifts, np.ma.MaskedArray):
            object.__setattr__(self, "shifts", _read_only(np.array(self.shifts)))

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)  # frozen from here on
        if type(self.shifts) is np.ndarray:
            _read_only(self.shifts)  # unpickling makes it writable

    def __repr__(self) -> str:
        given = self.shifts
        shape, dtype = getattr(given, "shape", None), getattr(given, "dtype", "")
        kind = type(given).__name__ if shape is None else f"{tuple(shape)} {dtype}"
        parts = [f"shifts={kind}{' lazy' * hasattr(given, '__dask_graph__')}"]
        if self.subpixel:
            parts.append("subpixel=True")
        if self.fill != 0:
            parts.append(f"fill={self.fill!r}")
        return f"Descan({', '.join(parts)})"


def as_descan(given: Any) -> Descan | None:
    """Return what a user passed as ``descan=`` as a `Descan`; None for no shifts."""
    return given if given is None or isinstance(given, Descan) else Descan(given)


def _read_only(array: Any) -> Any:
    array.flags.writeable = False
    return array
