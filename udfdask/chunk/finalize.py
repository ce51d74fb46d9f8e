"""Make results from merged buffers: call `get_results`, check what it returns, fit it to shape."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from udfdask.backends.backend import NUMPY, locked
from udfdask.backends.table import to_host
from udfdask.base.types import AnyArray
from udfdask.chunk.merge import check_kind, check_returned
from udfdask.chunk.partial_result import Finalized, Partial
from udfdask.chunk.task_context import merge_context
from udfdask.chunk.udf_instance import Instance
from udfdask.errors import (
    ArgumentValueError,
    InvalidMaskError,
    UDFError,
    UndeclaredBufferError,
)
from udfdask.geometry.chunk_grid import BoolArray, as_index
from udfdask.plan.recipe import Recipe, UDFRecipe
from udfdask.udf.buffers import BufferSpec, Results
from udfdask.udf.processing import MaskedResult
from udfdask.udf.written_methods import quoted


def finalize(
    recipe: Recipe,
    number: int,
    chunk: int | None,
    rows: Sequence[Partial],
    reduced: Partial | None,
    merged: BoolArray | None = None,
    aux: Mapping[str, AnyArray] | None = None,
) -> Finalized:
    """Return what `get_results` makes of merged buffers.

    `rows` holds partials with the nav rows (of chunk `chunk`, or of all chunks in order if that is
    None), `reduced` the merged sig and single buffers. `merged` has the rows of the run that have
    been merged, if not all; `aux` has the aux data of its frames, if the partials do not.
    """
    with merge_context(recipe):
        grid = recipe.grid
        span = (0, grid.n_chunks) if chunk is None else (chunk, chunk + 1)
        declared = recipe.udfs[number]
        if aux is None:
            sources = rows if reduced is None or rows else [reduced]
            aux = {}
            for name in declared.nav_aux if declared.carries_aux else ():
                extra_shape, dtype = declared.aux[name].extra_shape, declared.aux[name].dtype
                values = np.empty((grid.n_rows(*span), *extra_shape), dtype=dtype)
                _fill_rows(recipe, values, chunk, [(p, p.aux[name]) for p in sources])
                aux[name] = locked(values)
        # as in LiberTEM, get_results is given NumPy arrays, also where `xp` is CuPy
        instance = Instance(recipe, number, *span, aux, recipe.xp_backend(number), NUMPY)
        cursor = instance.cursor
        cursor.merged = (0, grid.n_chunks) if merged is None else merged
        cursor.flat = chunk is None
        cursor.alone = chunk is not None
        for name, spec in declared.allocated.items():
            if spec.kind == "nav":
                parts = [(partial, partial.arrays[name]) for partial in rows]
                _fill_rows(recipe, instance.arrays[name], chunk, parts)
            else:
                assert reduced is not None
                instance.arrays[name][...] = to_host(reduced.arrays[name])
        if chunk is None:
            instance.view_all(grid)
        returned = instance.call("get_results")
        if isinstance(returned, Results):
            returned = {k: v for k, v in vars(returned).items() if v is not None}
        _check_names(declared, returned)
        return Finalized(*_fitted(instance, returned), None if chunk is None else span)


def _fill_rows(
    recipe: Recipe, target: AnyArray, chunk: int | None, parts: Sequence[tuple[Partial, AnyArray]]
) -> None:
    """Copy rows, each given with its partial, to an array over a chunk or over the whole run."""
    grid = recipe.grid
    for partial, array in parts:
        if chunk is None:
            target[as_index(grid.rows_of(partial.first, partial.stop))] = to_host(array)
        else:
            start = grid.n_rows(partial.first, chunk)
            target[...] = to_host(array[start : start + grid.count(chunk)])


def _fitted(
    instance: Instance, returned: Mapping[str, Any]
) -> tuple[dict[str, AnyArray], dict[str, AnyArray]]:
    """Return all results and valid masks in the declared shapes; buffers where none is returned."""
    arrays, masks = {}, {}
    for name, spec in instance.declared.outputs.items():
        if _left_out(returned, name, spec):
            arrays[name] = instance.arrays[name]
            continue
        value = returned[name]
        if isinstance(value, np.ma.MaskedArray):
            value = MaskedResult(value.data, ~np.ma.getmaskarray(value))
        if isinstance(value, MaskedResult):
            arrays[name], shape = _fit(instance, name, spec, value.array)
            masks[name] = _fit_mask(instance, name, value.mask, shape, arrays[name])
        else:
            arrays[name], _ = _fit(instance, name, spec, value)
    return arrays, masks


def _check_names(declared: UDFRecipe, returned: Mapping[str, Any]) -> None:
    """Raise if `get_results` returned a name that is no result, or left out a result."""
    specs, who = declared.buffers, f"{declared.name}.get_results()"
    check_returned(returned, specs, who, UndeclaredBufferError)
    if private := [name for name in returned if specs[name].use == "private"]:
        raise UDFError(
            f"{who} returned {quoted(private)}, declared use='private': leave it out, or declare "
            "it without use"
        )
    only = [name for name, spec in specs.items() if spec.use == "result_only"]
    if absent := [name for name in only if _left_out(returned, name, specs[name])]:
        raise UDFError(
            f"{who} left out {quoted(absent)}, which is declared use='result_only' and so exists "
            "nowhere else"
        )


def _left_out(returned: Mapping[str, Any], name: str, spec: BufferSpec) -> bool:
    """Return whether a result is missing: None is a value only if the dtype is object."""
    return name not in returned or (returned[name] is None and spec.dtype.kind != "O")


def _fit(
    instance: Instance, name: str, spec: BufferSpec, value: Any
) -> tuple[AnyArray, tuple[int, ...]]:
    """Return a result in the declared dtype and shape, and the shape in which it was returned.

    A UDF may return nav results as rows, in the full navigation shape, or in any shape of either
    size.
    """
    declared, grid = instance.declared, instance.recipe.grid
    array = to_host(value)
    if spec.dtype.kind != "O":
        check_kind(array, spec, name, f"{declared.name}.get_results()")
    cursor = instance.cursor
    target = spec.shape(cursor.stop - cursor.start, instance.recipe.shape.sig)
    if spec.dtype.kind == "O" and array.shape != target and spec.kind == "single":
        boxed = np.empty(target, dtype=object)
        if boxed.size == 1:
            boxed[...] = [value] if boxed.ndim == 1 else value
            return boxed, target
    if array.size == math.prod(target):
        shaped = array.reshape(target)
    elif spec.kind == "nav" and array.size == grid.size * math.prod(spec.extra_shape):
        full = array.reshape((*grid.shape, *spec.extra_shape))
        window: Any = grid.roi if grid.roi is not None else np.ones(grid.shape, dtype=bool)
        shaped = full[window]
        if cursor.alone:
            shaped = shaped[as_index(cursor.rows(grid))]
    else:
        raise ArgumentValueError(
            f"{declared.name}.get_results() returned {name!r} with shape {array.shape}, where "
            f"{target} was expected"
            + (f" (or the navigation shape {grid.shape} first)" if spec.kind == "nav" else "")
        )
    return shaped.astype(spec.dtype, copy=False), tuple(array.shape)


def _fit_mask(
    instance: Instance, name: str, mask: Any, shape: tuple[int, ...], array: AnyArray
) -> AnyArray:
    """Return a valid mask in the shape of its fitted result; `shape` is that before fitting."""
    given, spec = to_host(mask), instance.declared.buffers[name]
    try:
        if given.dtype != bool:
            raise ValueError  # noqa: TRY301
        full = np.broadcast_to(given, shape)
    except ValueError:
        raise InvalidMaskError(
            f"{instance.declared.name}.get_results() gave {name!r} a mask of dtype {given.dtype} "
            f"and shape {given.shape}: a valid mask must be boolean, True where the result is "
            f"valid, and must broadcast to the result's shape {shape}"
        ) from None
    if full.size == array.size:
        return full.reshape(array.shape).copy()
    as_bool = BufferSpec(kind=spec.kind, extra_shape=spec.extra_shape, dtype=np.dtype(bool))
    return _fit(instance, name, as_bool, full)[0]
