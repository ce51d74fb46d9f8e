"""Check what each declaring method of a UDF answers: one function for each method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from udfdask.backends.backend import Backend
from udfdask.backends.table import known_backends
from udfdask.corrections.correction_set import NUMBERS
from udfdask.errors import ArgumentTypeError, ArgumentValueError, UDFError, UndeclaredBufferError
from udfdask.geometry.axes import Axis
from udfdask.geometry.halo import BOUNDARIES, Boundary, Halo
from udfdask.geometry.tiling import TilePreferences
from udfdask.udf import UDF, UDFMethod
from udfdask.udf.base import overrides
from udfdask.udf.buffers import BufferSpec
from udfdask.udf.meta import UDFMeta

MOST_NEIGHBORS = 1_000_000
"""Largest number of frames on one side of a halo."""


def input_dtype(udf: UDF, meta: UDFMeta) -> np.dtype[Any]:
    """Return the dtype in which a UDF sees the data, in native byte order."""
    dtype = meta.dataset_dtype  # `udf.meta` of an adapted UDF speaks LiberTEM
    computed = meta.corrections is not None or meta._interpolated
    preferred = udf.get_preferred_input_dtype()
    wrong = (
        f"{type(udf).__name__}.get_preferred_input_dtype() returned {preferred!r}, which does not "
        f"combine with the data's dtype {dtype}"
    )
    if preferred is udf.USE_NATIVE_DTYPE and not computed:
        preferred = dtype  # USE_NATIVE_DTYPE is bool, which does not combine with dates
    more = [np.float32] if computed else []
    try:
        combined = np.result_type(dtype, np.dtype(preferred), *more).newbyteorder("=")
    except TypeError as error:
        raise ArgumentTypeError(f"{wrong}: {error}") from None
    # NumPy combines numbers with text to text
    if combined.kind not in (NUMBERS if computed else "biufcmM"):
        raise ArgumentTypeError(f"{wrong}: the result would be {combined}")
    return combined


def method(udf: UDF) -> UDFMethod:
    """Return the processing method, after a check that the UDF has it."""
    method = udf.get_method()
    name = type(udf).__name__
    if not isinstance(method, UDFMethod):
        raise UDFError(
            f"{name}.get_method() must return a member of UDF.UDF_METHOD, not {method!r}"
        )
    if not callable(getattr(udf, f"process_{method.value}", None)):
        raise UDFError(
            f"{name}.get_method() chose {method}, but there is no process_{method.value}()"
        )
    needs_halo = method is UDFMethod.NEIGHBORHOOD
    if needs_halo != (udf.halo is not None) and method is not UDFMethod.PARTITION:
        raise UDFError(
            f"{name} has halo={udf.halo!r}, but get_method() chose {method}: a UDF with a halo "
            "has NEIGHBORHOOD or PARTITION, one without any other"
        )
    return method


def halo(udf: UDF, nav_dims: int) -> Halo:
    """Return the frames around each position that a UDF sees, after checks."""
    name, given = type(udf).__name__, udf.halo
    if udf.boundary not in BOUNDARIES:
        raise ArgumentValueError(
            f"{name}.boundary must be one of {', '.join(map(repr, BOUNDARIES))}, not "
            f"{udf.boundary!r}"
        )
    if udf.contiguous_nav or udf.whole_frames:
        raise ArgumentValueError(
            f"{name} has a halo, and contiguous_nav or whole_frames: these are about tiles and "
            "flattened partitions, leave them out"
        )
    wrong = (
        f"{name}.halo = {given!r}: it must be an int for all navigation axes, or a tuple with an "
        f"int or a pair (before, after) for each of the {nav_dims} navigation axes, such as 1, "
        f"(1, 2) or ((0, 1), 0), from 0 to {MOST_NEIGHBORS}"
    )
    axes = given if isinstance(given, (tuple, list)) else (given,) * nav_dims
    sides = [tuple(axis) if isinstance(axis, (tuple, list)) else (axis, axis) for axis in axes]
    numbers = [n for pair in sides for n in pair]
    if not all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) for n in numbers):
        raise ArgumentTypeError(wrong)
    in_range = all(len(pair) == 2 for pair in sides) and all(
        0 <= n <= MOST_NEIGHBORS for n in numbers
    )
    if len(axes) != nav_dims or not in_range:
        raise ArgumentValueError(wrong)
    return Halo(
        sides=tuple((int(before), int(after)) for before, after in sides),
        boundary=cast(Boundary, udf.boundary),
        in_roi=not udf.neighbors_outside_roi,
    )


def buffers(udf: UDF) -> dict[str, BufferSpec]:
    """Return the declared buffers, after checks."""
    declared: Any = udf.get_result_buffers()
    name = type(udf).__name__
    if not isinstance(declared, Mapping) or not all(
        isinstance(spec, BufferSpec) for spec in declared.values()
    ):
        raise ArgumentTypeError(
            f"{name}.get_result_buffers() must return a dictionary of self.buffer(...), "
            f"not {declared!r}"
        )
    for key in declared:
        if not str(key).isidentifier():
            raise ArgumentValueError(
                f"{name} declares a buffer called {key!r}: names must be Python identifiers"
            )
    unfilled = [key for key, spec in declared.items() if spec.use == "result_only"]
    if unfilled and not overrides(udf, "get_results"):
        raise UDFError(
            f"{name} declares result_only buffers {unfilled} but has no get_results() that could "
            "fill them"
        )
    return dict(declared)


def axes(udf: UDF, outputs: Mapping[str, BufferSpec]) -> dict[str, tuple[Axis, ...]]:
    """Return the axes of the extra dimensions of each result, after checks."""
    given: Any = udf.get_result_axes()
    who = f"{type(udf).__name__}.get_result_axes()"
    check_results(who, given, outputs)
    every: dict[str, tuple[Axis, ...]] = {}
    for key, spec in outputs.items():
        extra = spec.extra_shape
        axes = given.get(key)
        if axes is None:
            axes = tuple(Axis(name=f"{key}_dim_{k}") for k in range(len(extra)))
        axes = (axes,) if isinstance(axes, Axis) else tuple(axes)
        if not all(isinstance(axis, Axis) for axis in axes):
            raise ArgumentTypeError(
                f"{who} gives {key!r} {axes!r}: a tuple of udfdask.Axis is needed"
            )
        sizes = tuple(
            n if axis.labels is None else len(axis.labels)
            for axis, n in zip(axes, extra, strict=False)
        )
        if len(axes) != len(extra) or sizes != extra:
            raise ArgumentValueError(
                f"{who} gives {key!r} {len(axes)} axes with {sizes} positions, but its "
                f"extra_shape is {extra}: one Axis for each extra dimension is needed"
            )
        every[key] = axes
    return every


def check_results(who: str, given: Mapping[str, Any], known: Any) -> None:
    """Raise if a method returns something about a result that does not exist."""
    for key in given:
        if key not in known:
            raise UndeclaredBufferError(
                f"{who} names {key!r}, which is no result; results are {sorted(known)}"
            )


def allowed_backends(
    udf: UDF, restricted: Sequence[Backend] | None, *, is_dense: bool = False
) -> tuple[Backend, ...]:
    """Return the array backends that a UDF may be given, preferred first.

    With `is_dense`, only dense ones: windows of frames are dense.
    """
    given = udf.get_backends()
    who = f"{type(udf).__name__}.get_backends() returned {given!r}"
    offered = known_backends(given, who)
    allowed = tuple(one for one in offered if restricted is None or one in restricted)
    if not allowed:
        raise ArgumentValueError(
            f"{who}, but the run is restricted to "
            f"backends={tuple(one.name for one in restricted or ())}: name one of the UDF's in "
            "backends=, or add one of the run's to get_backends()"
        )
    dense = tuple(one for one in allowed if not one.is_sparse)
    if is_dense and not dense:
        raise ArgumentValueError(
            f"{type(udf).__name__} has a halo, and takes only sparse arrays: windows of frames are "
            "dense, so add 'numpy' to what get_backends() returns"
        )
    return dense if is_dense else allowed


def preferences(udf: UDF, whole_frames: bool) -> TilePreferences:
    """Return the tile preferences, after checks."""
    asked: Any = udf.get_tiling_preferences()
    name = f"{type(udf).__name__}.get_tiling_preferences()"
    if not isinstance(asked, Mapping):
        raise ArgumentTypeError(
            f"{name} must return a dictionary with depth and total_size, not {asked!r}"
        )
    # the last two are for UDFs of LiberTEM, which mean the least depth by a depth
    names = ("depth", "total_size", "least_depth", "view_size")
    chosen = {key: asked[key] for key in names if key in asked}
    for key, value in chosen.items():
        if not isinstance(value, (int, float, np.integer, np.floating)) or not value > 0:
            raise ArgumentValueError(
                f"{name} returned {key}={value!r}: a positive number is needed, inf for no limit"
            )
    numbers = {key: float(value) for key, value in chosen.items()}
    return TilePreferences(**numbers, whole_frames=whole_frames)
