"""What UDFs of 2-D frames ask of the data: two signal axes, real numbers, a centre."""

from __future__ import annotations

from typing import Any

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.udf import UDF


def two_axes(udf: UDF) -> tuple[int, int]:
    """Return height and width of a frame; raise if it is not 2-D, or its values not real."""
    sig, name = tuple(udf.meta.dataset_shape.sig), type(udf).__name__
    if len(sig) != 2:
        raise ArgumentValueError(
            f"{name} works on 2-D frames, but the signal has the shape {sig}: pass sig_dims=2, or "
            "reshape or reduce the array so that its last two axes are y and x"
        )
    dtype = udf.meta.input_dtype
    if dtype.kind not in "biuf":
        raise ArgumentTypeError(
            f"{name} works on real numbers, but the data have dtype {dtype}: take their real "
            "part or absolute value first"
        )
    return sig


def centre_of(udf: UDF) -> tuple[Any, Any]:
    """Return the parameters cy and cx, in pixels; by default the middle of the frame."""
    p = udf.params
    ny, nx = udf.meta.dataset_shape.sig
    return ny // 2 if p.cy is None else p.cy, nx // 2 if p.cx is None else p.cx

