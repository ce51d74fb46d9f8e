"""Call the declaring methods of a UDF and check all that they return; nothing runs on data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from udfdask.backends.backend import Backend
from udfdask.backends.table import known_backends
from udfdask.corrections.correction_set import NUMBERS
from udfdask.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    UDFError,
)
from udfdask.geometry.axes import Calibration
from udfdask.geometry.axis_labels import check_order
from udfdask.geometry.chunk_grid import Grid
from udfdask.geometry.shapes import Shape
from udfdask.plan.merge_tree import plan_merges
from udfdask.plan.recipe import Recipe, UDFRecipe
from udfdask.plan.result_axes import result_axes
from udfdask.tracebacks import add_origin
from udfdask.udf import UDF, UDFMethod
from udfdask.udf.aux_data import AuxData, check_size, reshaped
from udfdask.udf.base import overrides
from udfdask.udf.buffers import BufferSpec
from udfdask.udf.meta import UDFMeta
from udfdask.udf.params import Params
from udfdask.udf.promises import NAMES, Promises

SWITCHES = (
    "merge_assigns_nav",
    "elementwise_results",
    "contiguous_nav",
    "writable_input",
    "whole_frames",
)
"""Class attributes that are True or False."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TilePreferences:
    """The tiles that a UDF asks for."""

    depth: float
    """Largest number of frames in a tile."""
    total_size: float
    """Largest size of a tile in bytes."""
    least_depth: float
    """Number of frames that a tile should have at least: frames are cut into parts for it."""
    view_size: float
    """Size in bytes that a tile may have if it is a view, even if the setting is smaller."""
    whole_frames: bool
    """Whether its tiles must hold whole frames."""


def declare(
    udf: UDF,
    meta: UDFMeta,
    grid: Grid,
    lazy: tuple[str, ...],
    split_every: int | bool,
    backends: Sequence[Backend] | None = None,
) -> tuple[UDFRecipe, TilePreferences]:
    """Return the recipe of one UDF and its tile preferences, from its declaring methods.

    `lazy` names the parameters that tasks get as computed values; `backends` are those that the
    run is restricted to.
    """
    # A new instance, as in every task: the user's own does not see what these methods set.
    asked = new_instance(type(udf), udf._kwargs)
    asked.meta = meta
    input_dtype = _input_dtype(asked, meta)
    asked.meta = meta.with_input_dtype(input_dtype)
    aux = {name: value for name, value in udf._kwargs.items() if isinstance(value, AuxData)}
    if aux:
        asked.params = _with_all_aux(asked, aux, meta.dataset_shape)
    method = _method(asked)
    buffers = _buffers(asked)
    halo = None
    if asked.halo is not None:
        from udfdask.plan.read_halo import read_halo  # few UDFs have one

        halo = read_halo(asked, meta.dataset_shape.nav.dims)
    merge, progressive_merge = plan_merges(asked, buffers, grid, split_every)
    allowed = allowed_backends(asked, backends)
    if halo is not None:
        allowed = _dense_backends(asked, allowed)
    for name in SWITCHES:
        if not isinstance(getattr(asked, name), (bool, np.bool_)):  # "False" would count as True
            raise ArgumentTypeError(
                f"{type(udf).__name__}.{name} must be True or False, not {getattr(asked, name)!r}"
            )
    for name in ("keeps_units", "default_plots"):
        if isinstance(getattr(asked, name), str):  # a comma was forgotten
            raise ArgumentTypeError(
                f"{type(udf).__name__}.{name} must be a tuple of names of results, not "
                f"{getattr(asked, name)!r}"
            )
    bare = {name: value.without_data() for name, value in aux.items()}
    has_get_results = overrides(asked, "get_results")
    gathers_nav = merge.gathers_rows and any(s.kind == "nav" for s in buffers.values())
    part = UDFRecipe(
        cls=type(udf),
        # each task gets the rows of its own frames instead
        kwargs={**udf._kwargs, **{name: a for name, a in bare.items() if a.kind == "nav"}},
        lazy_params=lazy,
        aux=bare,
        method=method,
        input_dtype=input_dtype,
        buffers=buffers,
        merge=merge,
        progressive_merge=progressive_merge,
        has_get_results=has_get_results,
        elementwise=has_get_results and bool(asked.elementwise_results) and not gathers_nav,
        axes=result_axes(asked, buffers),
        # a UDF without units of its own does not depend on the axes: its tasks keep their names
        calibration=meta.calibration if overrides(asked, "get_result_units") else None,
        backends=allowed,
        contiguous_nav=bool(udf.contiguous_nav),
        promises=_promises_in_force(asked, method),
        halo=halo,
    )
    preferences = _preferences(asked, bool(udf.whole_frames) and method is UDFMethod.TILE)
    return part, preferences


def check_same_declaration(
    recipe: Recipe, number: int, kwargs: dict[str, Any], calibration: Calibration
) -> None:
    """Raise if a UDF declares something else with new parameters, aux data with their values."""
    old = recipe.udfs[number]
    meta = UDFMeta(
        grid=recipe.grid,
        dataset_shape=recipe.shape,
        dataset_dtype=recipe.dtype,
        threads=recipe.threads,
        corrections=recipe.corrections,
        calibration=calibration,
        interpolated=recipe.descan is not None and recipe.descan.subpixel,
    )
    fan_in = old.merge.fan_in or False
    new, _ = declare(old.cls(**kwargs), meta, recipe.grid, (), fan_in, old.backends)
    for name in ("buffers", "input_dtype", "method", "merge", "axes", "promises", "halo"):
        before, after = getattr(old, name), getattr(new, name)
        if name == "promises":  # an instance that declines shared sums gets the tile
            before, after = (replace(one, processes_sums=False) for one in (before, after))
        if before != after:
            raise ArgumentValueError(
                f"with these parameters {old.name} declares another {name.replace('_', ' ')} than "
                f"at the start of the run ({after}, not {before}): start a new run with them"
            )


def new_instance(cls: type[UDF], kwargs: Mapping[str, Any]) -> UDF:
    """Return `cls(**kwargs)`: the declaring methods, each chunk and each merge have their own."""
    try:
        return cls(**kwargs)
    except Exception as error:
        add_origin(
            error,
            f"raised by {cls.__name__}(**kwargs), which makes a new instance for each task: a "
            "UDF's __init__ must accept the keyword arguments that it gives to super().__init__",
        )
        raise


_ABOUT = {
    "adds_signal_parts": UDFMethod.TILE,
    "only_sums_frames": UDFMethod.TILE,
    "streams_tiles": UDFMethod.TILE,
    "processes_stacks": UDFMethod.FRAME,
    "processes_sums": UDFMethod.TILE,
}
"""Promises that count only if this method processes the data."""


def _promises_in_force(udf: UDF, method: UDFMethod) -> Promises:
    """Return the promises that count in a run with this processing method."""
    name, promises = type(udf).__name__, udf.promises
    if not isinstance(promises, Promises):
        raise ArgumentTypeError(
            f"{name}.promises must be an instance of udfdask.Promises, not {promises!r}"
        )
    if promises.processes_stacks and not hasattr(udf, "process_stack"):
        raise ArgumentValueError(
            f"{name} promises processes_stacks, but has no method process_stack"
        )
    for promise in NAMES:
        # whole_frames = True is an attribute of the class; a promise written so has no effect
        if isinstance(getattr(udf, promise, None), bool):
            raise ArgumentTypeError(
                f"{name}.{promise} has no effect as an attribute, it is a promise: write "
                f"promises = udfdask.Promises({promise}={getattr(udf, promise)!r}) in the class"
            )
    off = {promise: False for promise, about in _ABOUT.items() if about is not method}
    if not _has_own_sums(udf):
        off["processes_sums"] = False
    if udf.whole_frames:
        off["adds_signal_parts"] = False
    return replace(promises, **off)


def _has_own_sums(udf: UDF) -> bool:
    """Return whether `process_sums` belongs to the `process_tile` of a UDF, and is not declined.

    If a subclass overrides only `process_tile`, the method of its base may do something else.
    """
    if not callable(getattr(udf, "process_sums", None)):
        return False
    first = next(
        vars(cls) for cls in type(udf).__mro__ if {"process_sums", "process_tile"} & set(vars(cls))
    )
    return "process_sums" in first


def _with_all_aux(udf: UDF, aux: Mapping[str, AuxData], shape: Shape) -> Params:
    """Return the parameters that declaring methods see: all aux data, nav ones flattened."""
    views = {}
    for name, data in aux.items():
        where = f"{type(udf).__name__}.params.{name}"
        check_size(data, shape, where)
        names = [axis.name for axis in udf.meta.calibration.axes]
        check_order(data.labels, names, f"aux data {where}")
        full = data.over(shape)
        flat = (shape.nav.size, *data.extra_shape)
        views[name] = reshaped(full, flat) if data.kind == "nav" else full
    return Params({**udf.params.__dict__, **views})


def _input_dtype(udf: UDF, meta: UDFMeta) -> np.dtype[Any]:
    """Return the dtype in which a UDF sees the data, in native byte order."""
    dtype = meta.dataset_dtype  # `udf.meta` of an adapted UDF speaks LiberTEM
    computed = meta.corrections is not None or meta._interpolated
    preferred = udf.get_preferred_input_dtype()
    more = [np.float32] if computed else []
    wrong = (
        f"{type(udf).__name__}.get_preferred_input_dtype() returned {preferred!r}, which does not "
        f"combine with the data's dtype {dtype}"
    )
    if preferred is udf.USE_NATIVE_DTYPE and not computed:
        preferred = dtype  # USE_NATIVE_DTYPE is bool, which does not combine with dates
    try:
        combined = np.result_type(dtype, np.dtype(preferred), *more).newbyteorder("=")
    except TypeError as error:
        raise ArgumentTypeError(f"{wrong}: {error}") from None
    # NumPy combines numbers with text to text
    if combined.kind not in (NUMBERS if computed else "biufcmM"):
        raise ArgumentTypeError(f"{wrong}: the result would be {combined}")
    return combined


def _method(udf: UDF) -> UDFMethod:
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
    with_halo = (UDFMethod.NEIGHBORHOOD, UDFMethod.PARTITION)
    without_halo = (UDFMethod.TILE, UDFMethod.FRAME, UDFMethod.PARTITION)
    if method not in (without_halo if udf.halo is None else with_halo):
        raise UDFError(
            f"{name} has halo={udf.halo!r}, but get_method() chose {method}: a UDF with a halo "
            "has NEIGHBORHOOD or PARTITION, one without any other"
        )
    return method


def _buffers(udf: UDF) -> dict[str, BufferSpec]:
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


def allowed_backends(udf: UDF, restricted: Sequence[Backend] | None) -> tuple[Backend, ...]:
    """Return the array backends that a UDF may be given, preferred first."""
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
    return allowed


def _dense_backends(udf: UDF, allowed: tuple[Backend, ...]) -> tuple[Backend, ...]:
    """Return the dense ones of some array backends: windows of frames are dense."""
    dense = tuple(one for one in allowed if not one.is_sparse)
    if not dense:
        raise ArgumentValueError(
            f"{type(udf).__name__} has a halo, and takes only sparse arrays: windows of frames are "
            "dense, so add 'numpy' to what get_backends() returns"
        )
    return dense


def _preferences(udf: UDF, whole_frames: bool) -> TilePreferences:
    """Return the tile preferences, after checks."""
    asked: Any = udf.get_tiling_preferences()
    name = f"{type(udf).__name__}.get_tiling_preferences()"
    if not isinstance(asked, Mapping):
        raise ArgumentTypeError(
            f"{name} must return a dictionary with depth and total_size, not {asked!r}"
        )
    # the last two are for UDFs of LiberTEM, which mean the least depth by a depth
    defaults = {"depth": np.inf, "total_size": np.inf, "least_depth": 1, "view_size": 1}
    chosen = {key: asked.get(key, default) for key, default in defaults.items()}
    for key, value in chosen.items():
        if not isinstance(value, (int, float, np.integer, np.floating)) or not value > 0:
            raise ArgumentValueError(
                f"{name} returned {key}={value!r}: a positive number is needed, inf for no limit"
            )
    return TilePreferences(
        **{key: float(value) for key, value in chosen.items()}, whole_frames=whole_frames
    )
