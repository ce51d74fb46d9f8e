"""Call the declaring methods of a UDF and check all that they return; nothing runs on data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from udfdask.backends.backend import Backend
from udfdask.backends.table import known_backends
from udfdask.base.types import is_lazy
from udfdask.corrections.correction_set import NUMBERS
from udfdask.errors import ArgumentTypeError, ArgumentValueError, UDFError, UndeclaredBufferError
from udfdask.geometry.axes import Axis, Calibration
from udfdask.geometry.halo import BOUNDARIES, Boundary, Halo
from udfdask.geometry.shapes import Shape
from udfdask.geometry.tiling import TilePreferences
from udfdask.plan.arguments import Settings
from udfdask.plan.merge_tree import plan_merges
from udfdask.plan.parameters import new_instance
from udfdask.plan.recipe import Data, Recipe, UDFRecipe
from udfdask.udf import UDF, UDFMethod
from udfdask.udf.aux_data import AuxData, check_size, reshaped
from udfdask.udf.base import overrides
from udfdask.udf.buffers import BufferSpec
from udfdask.udf.meta import UDFMeta
from udfdask.udf.params import Params, lazy_places
from udfdask.udf.promises import NAMES, Promises

MOST_NEIGHBORS = 1_000_000
"""Largest number of frames on one side of a halo."""

SWITCHES = [name for name, default in vars(UDF).items() if isinstance(default, bool)]
"""Class attributes that are True or False."""


@dataclass(frozen=True, slots=True)
class Declared:
    """What a UDF has declared for a run."""

    recipe: UDFRecipe
    """What its tasks need to know."""
    tiles: TilePreferences
    """The tiles that it asks for."""
    units: dict[str, str | None]
    """The unit of each result; None if it is not known."""


def declare(udf: UDF, data: Data, calibration: Calibration, settings: Settings) -> Declared:
    """Return what the declaring methods of a UDF say about a run, after checks."""
    cls, name = type(udf), type(udf).__name__
    # A new instance, as in every task: the user's own does not see what these methods set.
    asked = new_instance(cls, udf._kwargs)
    meta = asked.meta = data.meta(calibration, settings.threads)
    input_dtype = _input_dtype(asked, meta)
    asked.meta = meta.with_input_dtype(input_dtype)
    aux = {name: value for name, value in udf._kwargs.items() if isinstance(value, AuxData)}
    if aux:
        asked.params = _with_all_aux(asked, aux, data.shape)
    _check_attributes(asked)
    method = _method(asked)
    buffers = _buffers(asked)
    outputs = {key: spec for key, spec in buffers.items() if spec.use != "private"}
    merge, progressive_merge = plan_merges(asked, buffers, data.grid, settings.split_every)
    bare = {name: value.without_data() for name, value in aux.items()}
    has_get_results = overrides(asked, "get_results")
    gathers_nav = merge.gathers_rows and any(s.kind == "nav" for s in buffers.values())
    given_units = asked.get_result_units()
    # a subclass inherits `keeps_units`, and may have other results
    _check_names(f"{name}.get_result_units()", given_units, {*outputs, *udf.keeps_units})
    recipe = UDFRecipe(
        cls=cls,
        # each task gets the rows of its own frames instead
        kwargs={**udf._kwargs, **{name: a for name, a in bare.items() if a.kind == "nav"}},
        lazy_params=tuple(k for k, value in udf._kwargs.items() if _is_computed_first(value)),
        aux=bare,
        method=method,
        input_dtype=input_dtype,
        buffers=buffers,
        merge=merge,
        progressive_merge=progressive_merge,
        has_get_results=has_get_results,
        elementwise=has_get_results and bool(asked.elementwise_results) and not gathers_nav,
        axes=_axes(asked, outputs),
        # a UDF without units of its own does not depend on the axes: its tasks keep their names
        calibration=calibration if overrides(asked, "get_result_units") else None,
        backends=allowed_backends(asked, settings.backends),
        contiguous_nav=bool(udf.contiguous_nav),
        promises=_promises_in_force(asked, method),
        halo=None if asked.halo is None else _halo(asked, data.shape.nav.dims),
    )
    tiles = _preferences(asked, bool(udf.whole_frames) and method is UDFMethod.TILE)
    return Declared(recipe, tiles, {key: given_units.get(key) for key in outputs})


def check_same_declaration(
    recipe: Recipe, number: int, kwargs: dict[str, Any], calibration: Calibration
) -> None:
    """Raise if a UDF declares something else with new parameters, aux data with their values."""
    old = recipe.udfs[number]
    settings = Settings(
        split_every=old.merge.fan_in or False, threads=recipe.threads, backends=old.backends
    )
    new = declare(old.cls(**kwargs), recipe, calibration, settings).recipe
    for name in ("buffers", "input_dtype", "method", "merge", "axes", "promises", "halo"):
        before, after = getattr(old, name), getattr(new, name)
        if name == "promises":  # an instance that declines shared sums gets the tile
            before, after = (replace(one, processes_sums=False) for one in (before, after))
        if before != after:
            raise ArgumentValueError(
                f"with these parameters {old.name} declares another {name.replace('_', ' ')} than "
                f"at the start of the run ({after}, not {before}): start a new run with them"
            )


def _is_computed_first(value: Any) -> bool:
    """Return whether a parameter is lazy, but not aux data of which tasks get their own rows."""
    if isinstance(value, AuxData):
        return value.is_lazy and value.kind != "nav"
    return is_lazy(value) or any(lazy_places(value))


def _input_dtype(udf: UDF, meta: UDFMeta) -> np.dtype[Any]:
    """Return the dtype in which a UDF sees the data, in native byte order."""
    dtype = meta.dataset_dtype  # `udf.meta` of an adapted UDF speaks LiberTEM
    computed = meta.corrections is not None or meta._interpolated
    preferred = udf.get_preferred_input_dtype()
    wrong = f"{type(udf).__name__}.get_preferred_input_dtype() returned {preferred!r}"
    if preferred is udf.USE_NATIVE_DTYPE and not computed:
        preferred = dtype  # USE_NATIVE_DTYPE is bool, which does not combine with dates
    more = [np.float32] if computed else []
    try:
        combined = np.result_type(dtype, np.dtype(preferred), *more).newbyteorder("=")
    except TypeError as error:
        wrong += f", which does not combine with the data's dtype {dtype}"
        raise ArgumentTypeError(f"{wrong}: {error}") from None
    # NumPy combines numbers with text to text
    if combined.kind not in (NUMBERS if computed else "biufcmM"):
        raise ArgumentTypeError(f"{wrong}: with data of dtype {dtype}, this would be {combined}")
    return combined


def _method(udf: UDF) -> UDFMethod:
    """Return the processing method, after a check that the UDF has it."""
    method: Any = udf.get_method()
    name = type(udf).__name__
    process = f"process_{method.value}" if isinstance(method, UDFMethod) else ""
    if not isinstance(method, UDFMethod) or not callable(getattr(udf, process, None)):
        raise UDFError(
            f"{name}.get_method() returned {method!r}: it must be a member of UDF.UDF_METHOD whose "
            "process_... method the UDF has"
        )
    needs_halo = method is UDFMethod.NEIGHBORHOOD
    if needs_halo != (udf.halo is not None) and method is not UDFMethod.PARTITION:
        raise UDFError(
            f"{name} has halo={udf.halo!r}, but get_method() chose {method}: a UDF with a halo "
            "has NEIGHBORHOOD or PARTITION, one without any other"
        )
    return method


def _halo(udf: UDF, nav_dims: int) -> Halo:
    """Return the frames around each position that a UDF sees, after checks."""
    name, given = type(udf).__name__, udf.halo
    if udf.boundary not in BOUNDARIES:
        raise ArgumentValueError(
            f"{name}.boundary must be one of {BOUNDARIES}, not {udf.boundary!r}"
        )
    if udf.contiguous_nav or udf.whole_frames:
        raise ArgumentValueError(
            f"{name} has a halo, and contiguous_nav or whole_frames, which are about tiles and "
            "flattened partitions: leave them out"
        )
    wrong = (
        f"{name}.halo = {given!r}: it must be an int from 0 to {MOST_NEIGHBORS} for all navigation "
        f"axes, or a tuple with an int or a pair (before, after) for each of the {nav_dims} axes"
    )
    axes = given if isinstance(given, (tuple, list)) else (given,) * nav_dims
    sides = [tuple(axis) if isinstance(axis, (tuple, list)) else (axis, axis) for axis in axes]
    numbers = [n for pair in sides for n in pair]
    if not all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) for n in numbers):
        raise ArgumentTypeError(wrong)
    in_range = all(0 <= n <= MOST_NEIGHBORS for n in numbers)  # a search would never end
    if [len(pair) for pair in sides] != [2] * nav_dims or not in_range:
        raise ArgumentValueError(wrong)
    return Halo(
        sides=tuple((int(before), int(after)) for before, after in sides),
        boundary=cast(Boundary, udf.boundary),
        in_roi=not udf.neighbors_outside_roi,
    )


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
    for key, spec in declared.items():
        if not str(key).isidentifier():
            raise ArgumentValueError(
                f"{name} declares a buffer called {key!r}: names must be Python identifiers"
            )
        if spec.use == "result_only" and not overrides(udf, "get_results"):
            raise UDFError(
                f"{name} declares the result_only buffer {key!r}, but has no get_results() that "
                "could fill it"
            )
    return dict(declared)


def _axes(udf: UDF, outputs: Mapping[str, BufferSpec]) -> dict[str, tuple[Axis, ...]]:
    """Return the axes of the extra dimensions of each result, after checks."""
    given: Any = udf.get_result_axes()
    who = f"{type(udf).__name__}.get_result_axes()"
    _check_names(who, given, outputs)
    every: dict[str, tuple[Axis, ...]] = {}
    for key, spec in outputs.items():
        extra, axes = spec.extra_shape, given.get(key)
        if axes is None:
            axes = tuple(Axis(name=f"{key}_dim_{k}") for k in range(len(extra)))
        axes = (axes,) if isinstance(axes, Axis) else tuple(axes)
        labels = [None if axis.labels is None else len(axis.labels) for axis in axes]
        if len(axes) != len(extra) or any(
            size not in (None, n) for size, n in zip(labels, extra, strict=True)
        ):
            raise ArgumentValueError(
                f"{who} gives {key!r} {len(axes)} axes, with {labels} labels, but its extra_shape "
                f"is {extra}: one Axis for each extra dimension is needed"
            )
        every[key] = axes
    return every


def _check_names(who: str, given: Mapping[str, Any], known: Any) -> None:
    """Raise if a method returns something about a result that does not exist."""
    if unknown := [key for key in given if key not in known]:
        raise UndeclaredBufferError(
            f"{who} names {unknown[0]!r}, which is no result; results are {sorted(known)}"
        )


def allowed_backends(udf: UDF, restricted: Sequence[Backend] | None) -> tuple[Backend, ...]:
    """Return the array backends that a UDF may be given, preferred first."""
    given = udf.get_backends()
    who = f"{type(udf).__name__}.get_backends() returned {given!r}"
    allowed = tuple(b for b in known_backends(given, who) if restricted is None or b in restricted)
    if not allowed:
        raise ArgumentValueError(
            f"{who}, but the run is restricted to "
            f"backends={tuple(one.name for one in restricted or ())}: name one of the UDF's in "
            "backends=, or add one of the run's to get_backends()"
        )
    if udf.halo is None:
        return allowed
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
    numbers: dict[str, float] = {}
    # the last two are for UDFs of LiberTEM, which mean the least depth by a depth
    for key in asked.keys() & {"depth", "total_size", "least_depth", "view_size"}:
        value = asked[key]
        if not isinstance(value, (int, float, np.integer, np.floating)) or not value > 0:
            raise ArgumentValueError(
                f"{name} returned {key}={value!r}: a positive number is needed, inf for no limit"
            )
        numbers[key] = float(value)
    return TilePreferences(**numbers, whole_frames=whole_frames)


def _check_attributes(udf: UDF) -> None:
    """Raise for class attributes of another type, which would be ignored or mean the opposite."""
    name = type(udf).__name__
    for switch in SWITCHES:
        if not isinstance(getattr(udf, switch), (bool, np.bool_)):  # "False" would count as True
            raise ArgumentTypeError(
                f"{name}.{switch} must be True or False, not {getattr(udf, switch)!r}"
            )
    for names in ("keeps_units", "default_plots"):
        if isinstance(getattr(udf, names), str):  # a comma was forgotten
            raise ArgumentTypeError(
                f"{name}.{names} must be a tuple of names of results, not {getattr(udf, names)!r}"
            )
    if not isinstance(udf.promises, Promises):
        raise ArgumentTypeError(
            f"{name}.promises must be an instance of udfdask.Promises, not {udf.promises!r}"
        )
    for promise in NAMES:
        # whole_frames = True is an attribute of the class; a promise written so has no effect
        if isinstance(getattr(udf, promise, None), bool):
            raise ArgumentTypeError(
                f"{name}.{promise} has no effect as an attribute, it is a promise: write "
                f"promises = udfdask.Promises({promise}={getattr(udf, promise)!r}) in the class"
            )


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
    off = {promise: False for promise, about in _ABOUT.items() if about is not method}
    # If a subclass overrides only `process_tile`, `process_sums` of its base may do something else.
    classes = (vars(cls).keys() for cls in type(udf).__mro__)
    first = next((own for own in classes if {"process_sums", "process_tile"} & own), ())
    if "process_sums" not in first or not callable(udf.process_sums):
        off["processes_sums"] = False
    if udf.whole_frames:
        off["adds_signal_parts"] = False
    return replace(udf.promises, **off)


def _with_all_aux(udf: UDF, aux: Mapping[str, AuxData], shape: Shape) -> Params:
    """Return the parameters that declaring methods see: all aux data, nav ones flattened."""
    from udfdask.geometry.labels import check_order  # few runs have aux data

    views = {}
    names = [axis.name for axis in udf.meta.calibration.axes]
    for name, data in aux.items():
        where = f"{type(udf).__name__}.params.{name}"
        check_size(data, shape, where)
        check_order(data.labels, names, f"aux data {where}")
        full = data.over(shape)
        flat = (shape.nav.size, *data.extra_shape)
        views[name] = reshaped(full, flat) if data.kind == "nav" else full
    return Params({**udf.params.__dict__, **views})
