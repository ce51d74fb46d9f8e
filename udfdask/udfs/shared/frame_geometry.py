"""What UDFs of 2-D frames ask of the data, and of the centre and the radii that they are given.

`udfdask.masks` is imported where it is needed: `import udfdask` goes without its modules.
"""

from __future__ import annotations

import math
from typing import Any

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.masks import checks
from udfdask.udf import UDF
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


def two_axes(udf: UDF) -> tuple[int, int]:
    """Return height and width of a frame; raise if it is not 2-D or empty, or not of reals."""
    sig, name = tuple(udf.meta.dataset_shape.sig), type(udf).__name__
    if len(sig) != 2:
        raise ArgumentValueError(
            f"{name} works on 2-D frames, but the signal has the shape {sig}: pass sig_dims=2, or "
            "reshape or reduce the array so that its last two axes are y and x"
        )
    if 0 in sig:
        raise ArgumentValueError(f"{name} works on pixels, but frames have the shape {sig}")
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


def is_lazy(value: Any) -> bool:
    """Return whether a parameter is a dask collection, which is checked when it is computed."""
    return hasattr(value, "__dask_graph__")


def check_rings_reach(udf: UDF, r: float | None, ri: float) -> None:
    """Raise if all rings lie outside of the frame, which is most often a wrong centre or unit.

    With None as the outer radius they end where the frame does.
    """
    cy, cx = centre_of(udf)
    if is_lazy(cy) or is_lazy(cx):
        return
    sig = tuple(udf.meta.dataset_shape.sig)
    pairs = list(zip((cy, cx), sig, strict=True))
    nearest = math.hypot(*(min(max(round(float(c)), 0), n - 1) - c for c, n in pairs))
    farthest = math.hypot(*(max(abs(c), abs(n - 1 - c)) for c, n in pairs))
    # edges are one pixel soft
    if (r is not None and nearest >= r + 0.5) or farthest <= ri - 0.5:
        raise ArgumentValueError(
            f"no pixel of frames of shape {sig} lies in the rings from ri={ri!r} to r={r!r} pixels "
            f"around (cy, cx) = ({cy!r}, {cx!r}): correct the centre or the radii"
        )


def check_centre(cy: Any, cx: Any) -> None:
    """Raise if a given centre is no finite number of pixels."""
    from udfdask.masks import checks

    for name, value in (("cy", cy), ("cx", cx)):
        if value is not None and not is_lazy(value):
            checks.number(name, _no_text(name, value))


def _no_text(name: str, value: Any) -> Any:
    """Return a value; raise if it is text, of which `float` would make a number."""
    if isinstance(value, (str, bytes)):
        raise ArgumentTypeError(
            f"{name} must be a number of pixels, not {value!r} of type {type(value).__name__}"
        )
    return value


def check_radii(r: Any, ri: Any, *, finite: bool) -> None:
    """Raise if given radii are no numbers, negative, or the inner one is not smaller."""
    from udfdask.masks import checks

    if r is not None and not is_lazy(r):
        checks.radius("r", _no_text("r", r), finite=finite)
    if ri is not None and not is_lazy(ri):
        checks.radius("ri", _no_text("ri", ri))
    if r is None or is_lazy(r) or is_lazy(ri):
        return
    if (ri or 0) >= r:
        raise ArgumentValueError(
            f"ri must be smaller than r, but {ri!r} >= {r!r}: r is the outer radius; swap them or "
            "make the ring wider"
        )


def check_rings(cy: Any, cx: Any, r: Any, ri: Any, n_bins: Any) -> None:
    """Raise if there are no rings with this centre, these radii and this number."""
    from udfdask.masks.bins import number_of_bins

    for name, value in (("r", r), ("ri", ri), ("n_bins", n_bins)):
        if is_lazy(value):
            raise ArgumentTypeError(
                f"{name} must be a number, not a lazy {type(value).__name__}: the shape of the "
                "result depends on it; compute it first"
            )
    check_centre(cy, cx)
    check_radii(r, ri, finite=True)
    number_of_bins(n_bins, 1, 0)
