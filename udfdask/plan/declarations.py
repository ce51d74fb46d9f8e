"""Call the declaring methods of a UDF and check all that they return; nothing runs on data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.axes import Calibration
from udfdask.geometry.axis_labels import check_order
from udfdask.geometry.shapes import Shape
from udfdask.geometry.tiling import TilePreferences
from udfdask.plan import answers
from udfdask.plan.data import Data, Settings
from udfdask.plan.merge_tree import plan_merges
from udfdask.plan.recipe import Recipe, UDFRecipe
from udfdask.tracebacks import add_origin
from udfdask.udf import UDF, UDFMethod
from udfdask.udf.aux_data import AuxData, check_size, reshaped
from udfdask.udf.base import overrides
from udfdask.udf.params import Params, is_lazy, lazy_places
from udfdask.udf.promises import NAMES, Promises

SWITCHES = (
    "merge_assigns_nav",
    "elementwise_results",
    "contiguous_nav",
    "writable_input",
    "whole_frames",
)
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


def declare(udf: UDF, data: Data, settings: Settings) -> Declared:
    """Return what the declaring methods of a UDF say about a run, after checks."""
    cls, name = type(udf), type(udf).__name__
    # A new instance, as in every task: the user's own does not see what these methods set.
    asked = new_instance(cls, udf._kwargs)
    meta = data.meta(settings.threads)
    asked.meta = meta
    input_dtype = answers.input_dtype(asked, meta)
    asked.meta = meta.with_input_dtype(input_dtype)
    aux = {name: value for name, value in udf._kwargs.items() if isinstance(value, AuxData)}
    if aux:
        asked.params = _with_all_aux(asked, aux, data.shape)
    method = answers.method(asked)
    buffers = answers.buffers(asked)
    outputs = {key: spec for key, spec in buffers.items() if spec.use != "private"}
    halo = None if asked.halo is None else answers.halo(asked, data.shape.nav.dims)
    merge, progressive_merge = plan_merges(asked, buffers, data.grid, settings.split_every)
    allowed = answers.allowed_backends(asked, settings.backends, is_dense=halo is not None)
    _check_attributes(asked)
    bare = {name: value.without_data() for name, value in aux.items()}
    has_get_results = overrides(asked, "get_results")
    gathers_nav = merge.gathers_rows and any(s.kind == "nav" for s in buffers.values())
    given_units = asked.get_result_units()
    # a subclass inherits `keeps_units`, and may have other results
    answers.check_results(f"{name}.get_result_units()", given_units, {*outputs, *udf.keeps_units})
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
        axes=answers.axes(asked, outputs),
        # a UDF without units of its own does not depend on the axes: its tasks keep their names
        calibration=data.calibration if overrides(asked, "get_result_units") else None,
        backends=allowed,
        contiguous_nav=bool(udf.contiguous_nav),
        promises=_promises_in_force(asked, method),
        halo=halo,
    )
    tiles = answers.preferences(asked, bool(udf.whole_frames) and method is UDFMethod.TILE)
    return Declared(recipe, tiles, {key: given_units.get(key) for key in outputs})


def check_same_declaration(
    recipe: Recipe, number: int, kwargs: dict[str, Any], calibration: Calibration
) -> None:
    """Raise if a UDF declares something else with new parameters, aux data with their values."""
    old = recipe.udfs[number]
    data = Data(
        shape=recipe.shape,
        dtype=recipe.dtype,
        grid=recipe.grid,
        sig_chunks=recipe.sig_chunks,
        calibration=calibration,
        corrections=recipe.corrections,
        descan=recipe.descan,
    )
    settings = Settings(
        split_every=old.merge.fan_in or False, threads=recipe.threads, backends=old.backends
    )
    new = declare(old.cls(**kwargs), data, settings).recipe
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


def _is_computed_first(value: Any) -> bool:
    """Return whether a parameter is lazy, and computed before the first chunk.

    Lazy aux data of kind nav are not: each task gets the rows of its own frames.
    """
    if isinstance(value, AuxData):
        return value.is_lazy and value.kind != "nav"
    return is_lazy(value) or any(lazy_places(value))


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
    classes = (vars(cls) for cls in type(udf).__mro__)
    first = next((own for own in classes if {"process_sums", "process_tile"} & own.keys()), None)
    has_sums = first is not None and "process_sums" in first
    return has_sums and callable(udf.process_sums)


def _with_all_aux(udf: UDF, aux: Mapping[str, AuxData], shape: Shape) -> Params:
    """Return the parameters that declaring methods see: all aux data, nav ones flattened."""
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
