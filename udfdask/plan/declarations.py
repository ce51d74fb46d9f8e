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
    UndeclaredBufferError,
)
from udfdask.geometry.axes import Axis, Calibration
from udfdask.geometry.axis_labels import check_order
from udfdask.geometry.chunk_grid import Grid
from udfdask.geometry.shapes import Shape
from udfdask.plan.merge_tree import plan_merges
from udfdask.plan.promises import promises_in_force
from udfdask.plan.recipe import Recipe, UDFRecipe
from udfdask.tracebacks import add_origin
from udfdask.udf import UDF, UDFMethod
from udfdask.udf.aux_data import AuxData, check_size, reshaped
from udfdask.udf.base import overrides
from udfdask.udf.buffers import BufferSpec
from udfdask.udf.meta import UDFMeta
from udfdask.udf.params import Params


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
    _check_switches(asked)
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
        axes=_axes(asked, buffers),
        # a UDF without units of its own does not depend on the axes: its tasks keep their names
        calibration=meta.calibration if overrides(asked, "get_result_units") else None,
        backends=allowed,
        contiguous_nav=bool(udf.contiguous_nav),
        promises=promises_in_force(asked, method, buffers),
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


SWITCHES = (
    "merge_assigns_nav",
    "elementwise_results",
    "contiguous_nav",
    "writable_input",
    "whole_frames",
)


def _check_switches(udf: UDF) -> None:
    """Raise if a class attribute is not of its type: a bool, or names of results."""
    for name in SWITCHES:
        value = getattr(udf, name)
        if not isinstance(value, (bool, np.bool_)):
            raise ArgumentTypeError(
                f"{type(udf).__name__}.{name} must be True or False, not {value!r}"
            )
    for name in ("keeps_units", "default_plots"):
        named: Any = getattr(udf, name)
        if not isinstance(named, (tuple, list)) or not all(isinstance(n, str) for n in named):
            raise ArgumentTypeError(
                f"{type(udf).__name__}.{name} must be a tuple of names of results, not {named!r}"
            )


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


def _axes(udf: UDF, buffers: Mapping[str, BufferSpec]) -> dict[str, tuple[Axis, ...]]:
    """Return the axes of the extra dimensions of each result, after checks."""
    given = udf.get_result_axes()
    name = f"{type(udf).__name__}.get_result_axes()"
    if not isinstance(given, Mapping):
        raise ArgumentTypeError(
            f"{name} must return a dictionary of tuples of Axis, not {type(given).__name__}"
        )
    outputs = {k: s for k, s in buffers.items() if s.use != "private"}
    for key in given:
        if key not in outputs:
            raise UndeclaredBufferError(
                f"{name} names {key!r}, which is no result; results are {sorted(outputs)}"
            )
    return {k: _axes_of(k, s.extra_shape, given.get(k), name) for k, s in outputs.items()}


def _axes_of(key: str, extra: tuple[int, ...], given: Any, who: str) -> tuple[Axis, ...]:
    """Return the axes of the extra dimensions of one result, after checks."""
    if given is None:
        return tuple(Axis(name=f"{key}_dim_{k}") for k in range(len(extra)))
    axes = (given,) if isinstance(given, Axis) else tuple(given)
    if not all(isinstance(a, Axis) for a in axes):
        raise ArgumentTypeError(f"{who} gives {key!r} {given!r}: a tuple of udfdask.Axis is needed")
    if len(axes) != len(extra):
        raise ArgumentValueError(
            f"{who} gives {key!r} {len(axes)} axes, but its extra_shape is {extra}: one Axis for "
            "each extra dimension is needed"
        )
    if len({a.name for a in axes}) != len(axes):
        raise ArgumentValueError(f"{who} gives {key!r} two axes of the same name")
    for axis, n in zip(axes, extra, strict=True):
        if axis.labels is not None and len(axis.labels) != n:
            raise ArgumentValueError(
                f"{who} gives axis {axis.name!r} of {key!r} {len(axis.labels)} labels for {n} "
                "positions"
            )
    return axes


def result_units(
    recipe: Recipe, number: int, udf: UDF, calibration: Calibration
) -> dict[str, str | None]:
    """Return the unit of each result of a UDF, after checks; None if it is not known.

    `udf` is the UDF of this number with its parameters in pixels.
    """
    declared = recipe.udfs[number]
    asked = new_instance(type(udf), udf._kwargs)
    asked.meta = UDFMeta(
        grid=recipe.grid,
        dataset_shape=recipe.shape,
        dataset_dtype=recipe.dtype,
        input_dtype=declared.input_dtype,
        corrections=recipe.corrections,
        calibration=calibration,
    )
    given = asked.get_result_units()
    name = f"{declared.name}.get_result_units()"
    if not isinstance(given, Mapping):
        raise ArgumentTypeError(
            f"{name} must return a dictionary of texts, not {type(given).__name__}"
        )
    outputs = list(declared.outputs)
    for key, unit in given.items():
        if key not in outputs and key not in udf.keeps_units:
            raise UndeclaredBufferError(
                f"{name} names {key!r}, which is no result; results are {sorted(outputs)}"
            )
        if not (unit is None or isinstance(unit, str)):
            raise ArgumentTypeError(
                f"{name} gives {key!r} the unit {unit!r}: a text such as 'mrad' is needed, or None"
            )
    return {key: given.get(key) for key in outputs}


def _input_dtype(udf: UDF, meta: UDFMeta) -> np.dtype[Any]:
    """Return the dtype in which a UDF sees the data, in native byte order."""
    dtype = meta.dataset_dtype  # `udf.meta` of an adapted UDF speaks LiberTEM
    computed = meta.corrections is not None or meta._interpolated
    preferred = udf.get_preferred_input_dtype()
    try:
        more = [np.float32] if computed else []
        if preferred is udf.USE_NATIVE_DTYPE and not computed:
            preferred = dtype  # USE_NATIVE_DTYPE is bool, which does not combine with dates
        combined = np.result_type(dtype, np.dtype(preferred), *more).newbyteorder("=")
    except TypeError as e:
        raise ArgumentTypeError(
            f"{type(udf).__name__}.get_preferred_input_dtype() returned {preferred!r}, which "
            f"does not combine with the data's dtype {dtype}: {e}"
        ) from None
    # NumPy combines numbers with text to text
    if combined.kind not in (NUMBERS if computed else "biufcmM"):
        raise ArgumentTypeError(
            f"{type(udf).__name__}.get_preferred_input_dtype() returned {preferred!r}, which "
            f"does not combine with the data's dtype {dtype}: the result would be {combined}"
        )
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
    if udf.halo is not None and method not in with_halo:
        raise UDFError(
            f"{name} has halo={udf.halo!r}, but get_method() chose {method}: choose NEIGHBORHOOD "
            "or PARTITION, or leave the halo out"
        )
    if udf.halo is None and method is UDFMethod.NEIGHBORHOOD:
        raise UDFError(
            f"{name}.get_method() chose {method}, but there is no halo: set halo = 1 in the class "
            "for the frames next to each position"
        )
    return method


def _buffers(udf: UDF) -> dict[str, BufferSpec]:
    """Return the declared buffers, after checks."""
    declared = udf.get_result_buffers()
    name = type(udf).__name__
    if not isinstance(declared, Mapping):
        raise ArgumentTypeError(
            f"{name}.get_result_buffers() must return a dictionary of self.buffer(...), "
            f"not {type(declared).__name__}"
        )
    for key, spec in declared.items():
        if not str(key).isidentifier():
            raise ArgumentValueError(
                f"{name} declares a buffer called {key!r}: names must be Python identifiers"
            )
        if not isinstance(spec, BufferSpec):
            raise ArgumentTypeError(
                f"{name} declares buffer {key!r} as {type(spec).__name__}: use self.buffer(...)"
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
    asked = udf.get_tiling_preferences()
    if not isinstance(asked, Mapping):
        raise ArgumentTypeError(
            f"{type(udf).__name__}.get_tiling_preferences() must return a dictionary with depth "
            f"and total_size, not {type(asked).__name__}"
        )
    chosen: dict[str, float] = {}
    # the last two are for UDFs of LiberTEM, which mean the least depth by a depth
    defaults = {"depth": np.inf, "total_size": np.inf, "least_depth": 1, "view_size": 1}
    for key, default in defaults.items():
        value = asked.get(key, default)
        if not isinstance(value, (int, float, np.integer, np.floating)) or not value > 0:
            raise ArgumentValueError(
                f"{type(udf).__name__}.get_tiling_preferences() returned {key}={value!r}: a "
                "positive number is needed, inf for no limit"
            )
        chosen[key] = float(value)
    return TilePreferences(**chosen, whole_frames=whole_frames)
