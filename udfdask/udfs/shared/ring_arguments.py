"""Checks what is given as a ring or a disc of a frame."""

from __future__ import annotations

from typing import Any

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.masks import checks
from udfdask.udf.meta import UDFMeta


def ring_radii(rad_in: Any, rad_out: Any) -> tuple[float, float]:
    """Return the radii of a ring, 0 or more pixels, the inner one smaller."""
    inner = checks.radius("rad_in", rad_in)
    outer = checks.radius("rad_out", rad_out, finite=False)
    if inner >= outer:
        raise ArgumentValueError(
            f"rad_in must be smaller than rad_out, but {rad_in!r} >= {rad_out!r}: swap them or "
            "make the ring wider"
        )
    return inner, outer


def centre_given(name: str, value: Any) -> tuple[float, float]:
    """Return a position (y, x) in pixels, as floats."""
    try:
        y, x = value
    except (TypeError, ValueError):
        raise ArgumentTypeError(
            f"{name} must be a position (y, x) in pixels, not {value!r}"
        ) from None
    return checks.number(f"{name}[0]", y), checks.number(f"{name}[1]", x)


def check_frames(udf: str, meta: UDFMeta, kinds: str) -> None:
    """Raise unless frames have two axes and hold numbers of these kinds of dtypes."""
    sig = tuple(meta.dataset_shape.sig)
    if len(sig) != 2:
        raise ArgumentValueError(
            f"{udf} needs frames (y, x), but the signal has the shape {sig}: pass sig_dims=2, or "
            "reshape the data"
        )
    if meta.input_dtype.kind not in kinds:
        numbers = "numbers" if "c" in kinds else "real numbers"
        raise ArgumentTypeError(f"{udf} needs {numbers}, not {meta.input_dtype}")
