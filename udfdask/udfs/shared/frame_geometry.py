"""Check the frames, centers and radii of UDFs that work on 2-D frames."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.axes import pixel_size
from udfdask.geometry.units import CENTER_WORDS, Quantity, as_coordinate, as_quantity
from udfdask.masks import checks
from udfdask.masks.bins import number_of_bins
from udfdask.masks.polar import distance, rounded, rounding_matrix
from udfdask.udf import UDF


def frame_shape(udf: UDF, kinds: str = "biuf") -> tuple[int, int]:
    """Return the height and width of frames; raise unless they are 2-D and hold numbers.

    `kinds` are the kinds of dtypes that the UDF accepts.
    """
    sig, name = tuple(udf.meta.dataset_shape.sig), type(udf).__name__
    if len(sig) != 2:
        raise ArgumentValueError(
            f"{name} works on 2-D frames, but the signal has the shape {sig}: pass sig_dims=2 (a "
            "signal: signal.transpose(signal_axes=2)), or reshape or reduce the array so that its "
            "last two axes are y and x"
        )
    if 0 in sig:
        raise ArgumentValueError(f"{name} works on pixels, but frames have the shape {sig}")
    dtype = udf.meta.input_dtype
    if dtype.kind not in kinds:
        numbers, remedy = "real numbers", "take their real part or absolute value first"
        if "c" in kinds:
            numbers, remedy = "numbers", "convert them first, with .astype(...)"
        raise ArgumentTypeError(
            f"{name} works on {numbers}, but the data have dtype {dtype}: {remedy}"
        )
    return sig


def center_of(udf: UDF) -> tuple[Any, Any]:
    """Return the parameters cy and cx, in pixels; by default the middle of the frame.

    A run has put 0 of the axes in their place before, if that is inside of the frame.
    """
    p = udf.params
    ny, nx = udf.meta.dataset_shape.sig
    return ny // 2 if p.cy is None else p.cy, nx // 2 if p.cx is None else p.cx


def stretch_of(udf: UDF) -> tuple[float, float]:
    """Return the parameters stretch and stretch_angle."""
    return udf.params.stretch, udf.params.stretch_angle


def size_of_pixels(udf: UDF) -> tuple[float, str]:
    """Return the size of a pixel and its unit, for radii; (1, "px") if these have no unit."""
    return pixel_size(udf.meta.axes[-2:], is_stretched=udf.params.stretch != 1)


def nearest_distance(center: tuple[float, float], sig: tuple[int, ...]) -> float:
    """Return the distance between a center and the nearest pixel of a frame."""
    return math.hypot(
        *(min(max(round(float(c)), 0), n - 1) - c for c, n in zip(center, sig, strict=True))
    )


def farthest_distance(udf: UDF, center: tuple[float, float]) -> float:
    """Return the largest distance of a pixel from a center, where rings are round."""
    ny, nx = udf.meta.dataset_shape.sig
    cy, cx = center
    corners = np.array([(y - cy, x - cx) for y in (0, ny - 1) for x in (0, nx - 1)])
    return float(np.hypot(*rounded(rounding_matrix(*stretch_of(udf)), *corners.T)).max())


def is_lazy(value: Any) -> bool:
    """Return whether a parameter is a dask collection, which is checked when it is computed."""
    return hasattr(value, "__dask_graph__")


def is_open(value: Any) -> bool:
    """Return whether a parameter is a number only later: lazy, in a unit, or a word."""
    return is_lazy(value) or isinstance(value, Quantity | str)


def quantities(**given: Any) -> tuple[Any, ...]:
    """Return parameters, texts such as "10 mrad" as quantities; the plan converts them."""
    return tuple(as_quantity(name, value) for name, value in given.items())


def check_position(name: str, value: Any) -> tuple[Any, Any]:
    """Return a position (y, x) in pixels as floats; raise if it is not a pair of numbers.

    A coordinate in the unit of an axis stays as it is.
    """
    pair = [as_coordinate(f"{name}[{k}]", one) for k, one in enumerate(_pair(name, value))]
    y, x = (
        one if isinstance(one, Quantity | str) else checks.number(f"{name}[{k}]", one)
        for k, one in enumerate(pair)
    )
    return y, x


def _pair(name: str, value: Any) -> tuple[Any, Any]:
    """Return the members of a pair (y, x); a word stands for both."""
    if isinstance(value, str):
        if value in CENTER_WORDS:
            return value, value
        if value in ("find", "com"):
            method = ", method='com'" if value == "com" else ""
            raise ArgumentValueError(
                f"{name}={value!r} would read all data, but a run is planned without reading: "
                "write pattern = udfdask.run_udf(data, SumUDF())['intensity'] and then "
                f"{name}=find_center(pattern{method}), both from udfdask.udfs"
            )
    try:
        y, x = value
    except (TypeError, ValueError):
        raise ArgumentTypeError(
            f"{name} must be a position (y, x) in pixels, 'zero' or 'middle', not {value!r}"
        ) from None
    return y, x


def read_center(center: Any, cy: Any, cx: Any) -> tuple[Any, Any]:
    """Return the coordinates (cy, cx) of a common center, which are given in one of two ways.

    `center` is a pair (y, x) or a word; None if cy and cx are given, or None too. Raise if a
    coordinate is neither finite, nor lazy, nor in a unit, nor a word.
    """
    if center is not None:
        if cy is not None or cx is not None:
            raise ArgumentValueError(
                f"center={center!r} gives both coordinates: leave out cy and cx, or center"
            )
        cy, cx = _pair("center", center)
    cy, cx = (None if c is None else as_coordinate(n, c) for n, c in (("cy", cy), ("cx", cx)))
    for name, value in (("cy", cy), ("cx", cx)):
        if value is not None and not is_open(value):
            checks.number(name, value)
    return cy, cx


def check_radii(r: Any, ri: Any, *, finite: bool) -> None:
    """Raise if a radius is not a number or negative, or the inner radius is not smaller.

    None as the outer radius stands for the whole frame, as the inner radius for 0.
    """
    ri = 0 if ri is None else ri
    if not (r is None or is_open(r)):
        checks.radius("r", r, finite=finite)
    if not is_open(ri):
        checks.radius("ri", ri)
    if not (r is None or is_open(r) or is_open(ri)):
        checks.radii(r, ri, names=("r", "ri"), finite=finite)
    check_radii_in_unit(r, ri, names=("r", "ri"))


def check_radii_in_unit(outer: Any, inner: Any, *, names: tuple[str, str]) -> None:
    """Raise if both radii are in the same unit, and the inner radius is not smaller."""
    if not (isinstance(outer, Quantity) and isinstance(inner, Quantity)):
        return
    if outer.unit == inner.unit and inner.value >= outer.value:
        checks.raise_swapped(str(outer), str(inner), names=names)


def check_rings(r: Any, ri: Any, n_bins: Any) -> None:
    """Raise if the radii or the number of rings are invalid."""
    for name, value in (("r", r), ("ri", ri), ("n_bins", n_bins)):
        if is_lazy(value):
            raise ArgumentTypeError(
                f"{name} must be a number, not a lazy {type(value).__name__}: the shape of the "
                "result depends on it; compute it first"
            )
    check_radii(r, ri, finite=True)
    number_of_bins(n_bins, 1, 0)


def check_center_inside(udf: UDF, center: tuple[float, float]) -> None:
    """Raise if a center is outside the frame, more than a pixel away from it.

    This is for UDFs whose outer radius was not given: one that was can reach the frame.
    """
    cy, cx = center
    sig = tuple(udf.meta.dataset_shape.sig)
    if nearest_distance(center, sig) > 1:
        raise ArgumentValueError(
            f"the center (cy, cx) = ({cy!r}, {cx!r}) lies outside of frames of shape {sig}: "
            "correct it; numbers are in pixels. If the beam is there, pass the outer radius too"
        )


def check_rings_reach(udf: UDF, r: float | None, ri: float, *, open_ended: bool = False) -> None:
    """Raise if all rings are outside the frame: the center or its unit is probably wrong.

    If the outer radius is None, the rings end at the edge of the frame. With `open_ended`, no
    outer radius was given, and the center must be inside the frame.
    """
    cy, cx = center_of(udf)
    if is_lazy(cy) or is_lazy(cx):
        return
    if open_ended:
        check_center_inside(udf, (cy, cx))
    sig = tuple(udf.meta.dataset_shape.sig)
    d = distance(cx, cy, sig[1], sig[0], *stretch_of(udf))
    # the soft edge of a ring reaches half a pixel beyond its radius
    if (r is not None and d.min() >= r + 0.5) or d.max() <= ri - 0.5:
        raise ArgumentValueError(
            f"no pixel of frames of shape {sig} lies in the rings from ri={ri!r} to r={r!r} pixels "
            f"around (cy, cx) = ({cy!r}, {cx!r}): correct the center or the radii"
        )
