"""Makes results of merged buffers: `get_results`, its checks, valid masks, shapes and fills."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from udfdask.arrays.backends.convert import to_host
from udfdask.arrays.backends.read_only import locked
from udfdask.arrays.geometry.chunk_grid import BoolArray, as_index
from udfdask.chunk.device_context import merge_device
from udfdask.chunk.partial_result import Finalized, Partial
from udfdask.chunk.udf_instance import Instance, limit_threads
from udfdask.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    InvalidMaskError,
    UDFError,
    UndeclaredBufferError,
)
from udfdask.plan.recipe import Recipe, UDFRecipe
from udfdask.types import AnyArray
from udfdask.udf.base import MaskedResult
from udfdask.udf.buffers import BufferSpec, Results


def finalize(
    recipe: Recipe,
    number: int,
    chunk: int | None,
    rows: Sequence[Partial],
    whole: Partial | None,
    merged: BoolArray | None = None,
    aux: Mapping[str, AnyArray] | None = None,
) -> Finalized:
    """Return what `get_results` makes of merged buffers.

    `rows` holds partials with the nav rows (of chunk `chunk`, or of all chunks in order if that is
    None), `whole` the merged sig and single buffers. `merged` says which rows of the run have been
    merged, if not all; `aux` has the aux data of its frames, if not the partials.
    """
    with limit_threads(recipe), merge_device(recipe):
        grid = recipe.grid
        span = (0, grid.n_chunks) if chunk is None else (chunk, chunk + 1)
        declared = recipe.udfs[number]
        if aux is None:
            aux = _aux_rows(recipe, declared, chunk, rows if whole is None or rows else [whole])
        instance = Instance(recipe, number, *span, aux)
        cursor = instance.cursor
        cursor.merged = (0, grid.n_chunks) if merged is None else merged
        cursor.flat = chunk is None
        cursor.alone = chunk is not None
        for name, spec in instance.declared.allocated.items():
            if spec.kind != "nav":
                assert whole is not None
                instance.arrays[name][...] = to_host(whole.arrays[name])
                continue
            target = instance.arrays[name]
            for partial in rows:
                if chunk is None:
                    where = as_index(grid.rows_of(partial.first, partial.stop))
                    target[where] = to_host(partial.arrays[name])
                else:
                    target[...] = to_host(rows_of_chunk(recipe, partial, name, chunk))
        if chunk is None:
            instance.view_all(grid)
        returned = instance.call("get_results")
        results = _checked(instance, returned)
        arrays, masks = {}, {}
        for name, spec in instance.declared.outputs.items():
            if _left_out(results, name, spec):
                arrays[name] = instance.arrays[name]
                continue
            value = results[name]
            if isinstance(value, np.ma.MaskedArray):
                value = MaskedResult(value.data, ~np.ma.getmaskarray(value))
            if isinstance(value, MaskedResult):
                arrays[name], full = _fit(instance, name, spec, value.array)
                masks[name] = _fit_mask(instance, name, value.mask, full, arrays[name])
            else:
                arrays[name], _ = _fit(instance, name, spec, value)
        return Finalized(arrays, masks, chunk)


def _aux_rows(
    recipe: Recipe, declared: UDFRecipe, chunk: int | None, sources: Sequence[Partial]
) -> dict[str, AnyArray]:
    """Return the aux data of the frames at hand: of a chunk, or of the run in scan order."""
    grid = recipe.grid
    if not declared.carries_aux:
        return {}
    n_rows = grid.n_frames if chunk is None else grid.count(chunk)
    found = {}
    for name in declared.nav_aux:
        aux = declared.aux[name]
        rows = np.empty((n_rows, *aux.extra_shape), dtype=aux.dtype)
        for partial in sources:
            if chunk is None:
                where = as_index(grid.rows_of(partial.first, partial.stop))
                rows[where] = partial.aux[name]
            else:
                rows[...] = _cut(recipe, partial.aux[name], partial, chunk)
        found[name] = locked(rows)
    return found


def _cut(recipe: Recipe, array: AnyArray, partial: Partial, chunk: int) -> AnyArray:
    """Return the rows of one chunk out of an array over the rows of a partial."""
    start = recipe.grid.n_rows(partial.first, chunk)
    return array[start : start + recipe.grid.count(chunk)]


def rows_of_chunk(recipe: Recipe, partial: Partial, name: str, chunk: int) -> AnyArray:
    """Return the rows of one chunk out of a partial that holds it."""
    return _cut(recipe, partial.arrays[name], partial, chunk)


def _checked(instance: Instance, returned: Any) -> Mapping[str, Any]:
    """Return what get_results gave, checked against the declaration."""
    declared = instance.declared
    if isinstance(returned, Results):
        returned = {k: v for k, v in vars(returned).items() if v is not None}
    if not isinstance(returned, Mapping):
        raise ArgumentTypeError(
            f"{declared.name}.get_results() must return a dictionary of arrays, "
            f"not {type(returned).__name__}"
        )
    for name in returned:
        if name not in declared.buffers:
            raise UndeclaredBufferError(
                f"{declared.name}.get_results() returned {name!r}, which is not declared in "
                f"get_result_buffers(); declared are {sorted(declared.buffers)}"
            )
        if declared.buffers[name].use == "private":
            raise UDFError(
                f"{declared.name}.get_results() returned {name!r}, which is declared "
                "use='private': leave it out, or declare it without use"
            )
    for name, spec in declared.buffers.items():
        if spec.use == "result_only" and _left_out(returned, name, spec):
            raise UDFError(
                f"{declared.name}.get_results() left out {name!r}, which is declared "
                "use='result_only' and so exists nowhere else"
            )
    return returned


def _left_out(returned: Mapping[str, Any], name: str, spec: BufferSpec) -> bool:
    """Return whether a result is not given: None is a value of objects alone."""
    return name not in returned or (returned[name] is None and spec.dtype.kind != "O")


def _fit(
    instance: Instance, name: str, spec: BufferSpec, value: Any
) -> tuple[AnyArray, tuple[int, ...]]:
    """Return a result in declared dtype and shape, and the shape of what came before compressing.

    Nav results may come as rows, in full navigation shape, or in any shape of either size.
    """
    declared, grid = instance.declared, instance.recipe.grid
    array = to_host(value)
    if array.dtype.kind != spec.dtype.kind and not (spec.dtype.kind == "O"):
        raise UDFError(
            f"{declared.name}.get_results() returned {name!r} with dtype {array.dtype}, but the "
            f"buffer is declared as {spec.dtype}: return the declared kind of dtype, or declare "
            f"the buffer as {array.dtype}"
        )
    first, stop = instance.cursor.chunks
    n_rows = grid.n_rows(first, stop)
    target = spec.shape(n_rows, instance.recipe.shape.sig)
    if spec.dtype.kind == "O" and array.shape != target and spec.kind == "single":
        boxed = np.empty(target, dtype=object)
        if boxed.size == 1:
            boxed[...] = [value] if boxed.ndim == 1 else value
            return boxed, target
    if array.size == int(np.prod(target)):
        shaped = array.reshape(target)
    elif spec.kind == "nav" and array.size == grid.size * int(np.prod(spec.extra_shape)):
        full = array.reshape((*grid.shape, *spec.extra_shape))
        window: Any = grid.roi if grid.roi is not None else np.ones(grid.shape, dtype=bool)
        shaped = full[window]
        if (first, stop) != (0, grid.n_chunks):
            shaped = shaped[as_index(grid.rows_of(first, stop))]
    else:
        raise ArgumentValueError(
            f"{declared.name}.get_results() returned {name!r} with shape {array.shape}, where "
            f"{target} was expected"
            + (f" (or the navigation shape {grid.shape} first)" if spec.kind == "nav" else "")
        )
    return shaped.astype(spec.dtype, copy=False), tuple(array.shape)


def _fit_mask(
    instance: Instance, name: str, mask: Any, came: tuple[int, ...], array: AnyArray
) -> AnyArray:
    """Return a valid mask in the shape of its fitted result."""
    declared = instance.declared
    given = to_host(mask)
    if given.dtype != bool:
        raise InvalidMaskError(
            f"{declared.name}.get_results() gave {name!r} a mask of dtype {given.dtype}: a valid "
            "mask must be boolean, True where the result is valid"
        )
    try:
        full = np.broadcast_to(given, came)
    except ValueError:
        raise InvalidMaskError(
            f"{declared.name}.get_results() gave {name!r} a mask of shape {given.shape}, which "
            f"does not broadcast to the result's shape {came}"
        ) from None
    spec = declared.buffers[name]
    if full.size == array.size:
        return full.reshape(array.shape).copy()
    as_bool = BufferSpec(kind=spec.kind, extra_shape=spec.extra_shape, dtype=np.dtype(bool))
    return _fit(instance, name, as_bool, full)[0]
