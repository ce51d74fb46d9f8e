"""Merge the partial results of chunks; plain arrays, no dask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from udfdask.backends.backend import locked
from udfdask.backends.table import backend_of, in_backend
from udfdask.base.types import AnyArray
from udfdask.chunk.partial_result import Partial
from udfdask.chunk.task_context import merge_context
from udfdask.chunk.udf_instance import Instance
from udfdask.errors import ArgumentTypeError, ArgumentValueError, UDFError
from udfdask.geometry.chunk_grid import BoolArray
from udfdask.geometry.shapes import Shape
from udfdask.geometry.slices import Slice
from udfdask.plan.recipe import Recipe
from udfdask.udf.aux_data import concatenate_rows
from udfdask.udf.base import overrides
from udfdask.udf.buffers import BufferSpec, PartialViews, Views
from udfdask.udf.written_methods import quoted


def merge_partials(
    recipe: Recipe, number: int, partials: Sequence[Partial], checked: bool = False
) -> Partial:
    """Carry out one merge of the merge tree of a UDF; without partials, return new buffers."""
    mode = recipe.udfs[number].merge.mode
    if not partials:
        return empty_partial(recipe, number)
    if mode == "all":
        return merge_all(recipe, number, partials, checked)
    if mode == "tree":
        return merge_group(recipe, number, partials)
    *before, partial = partials  # of chains and rows: at most one earlier partial result
    return merge_next(recipe, number, before[0] if before else None, partial)


def merge_group(recipe: Recipe, number: int, partials: Sequence[Partial]) -> Partial:
    """Return the partials merged, in their order, into new preprocessed buffers."""
    with merge_context(recipe):
        first, stop = partials[0].first, partials[-1].stop
        aux = concatenate_rows([p.aux for p in partials])
        dest = _new_dest(recipe, number, first, stop, aux)
        for partial in partials:
            _merge_one(dest, partial, merged_before=(first, partial.first))
        return _as_partial(dest)


def merge_next(
    recipe: Recipe,
    number: int,
    before: Partial | None,
    partial: Partial,
    merged: BoolArray | None = None,
) -> Partial:
    """Return a partial merged into the result so far, with its own nav rows; see `_merge_one`."""
    with merge_context(recipe):
        dest = _new_dest(recipe, number, partial.first, partial.stop, partial.aux)
        if before is not None:
            for name, spec in dest.declared.allocated.items():
                if spec.kind != "nav":
                    dest.arrays[name][...] = before.arrays[name]
        _merge_one(dest, partial, merged_before=(0, partial.first) if merged is None else merged)
        return _as_partial(dest)


def empty_partial(recipe: Recipe, number: int) -> Partial:
    """Return the result of merging no chunks: new preprocessed buffers."""
    with merge_context(recipe):
        declared = recipe.udfs[number]
        aux = {
            name: locked(np.empty((0, *declared.aux[name].extra_shape), declared.aux[name].dtype))
            for name in declared.nav_aux
        }
        return _as_partial(_new_dest(recipe, number, 0, 0, aux))


def _new_dest(
    recipe: Recipe, number: int, first: int, stop: int, aux: dict[str, AnyArray]
) -> Instance:
    """Return a UDF with new preprocessed buffers over the rows of the chunks `first` to `stop`."""
    backends = recipe.xp_backend(number), recipe.merge_backend(number)
    instance = Instance(recipe, number, first, stop, aux, *backends)
    if overrides(instance.udf, "preprocess"):
        instance.call("preprocess")
    return instance


def _as_partial(instance: Instance) -> Partial:
    """Return the merged buffers of a UDF; `cleanup` is not called, as it closes task data only."""
    return Partial(instance.arrays, *instance.cursor.chunks, dict(instance.aux))


def _merge_one(
    dest: Instance, partial: Partial, merged_before: tuple[int, int] | BoolArray
) -> None:
    """Merge a partial into `dest`, whose views and coordinates are those of the partial's rows."""
    grid, cursor = dest.recipe.grid, dest.cursor
    before = grid.n_rows(cursor.chunks[0], partial.first)
    rows = slice(before, before + grid.n_rows(partial.first, partial.stop))
    cursor.start, cursor.stop, cursor.merged = rows.start, rows.stop, merged_before
    specs = dest.declared.allocated
    into = {
        name: dest.arrays[name][rows] if spec.kind == "nav" else dest.arrays[name]
        for name, spec in specs.items()
    }
    # copies, because a merge may write to src, and other tasks may have the same arrays
    copy = not dest.declared.promises.merge_only_reads_src
    source = {name: _writable(partial.arrays[name], copy) for name in specs}
    dest.udf.results.__dict__.update(into)
    for name, values in dest.aux.items():
        dest.udf.params.__dict__[name] = values[rows]
    dest.call("merge", Views(into), Views(source))


def _writable(array: Any, copy: bool) -> Any:
    """Return a writable array (kernels are compiled for those): a copy if asked or needed."""
    writable = not isinstance(array, np.ndarray) or array.flags.writeable
    return array.copy() if copy or not writable else array


def merge_all(recipe: Recipe, number: int, partials: Sequence[Partial], check: bool) -> Partial:
    """Return the partials merged by one call of `merge_all`.

    With `check`, the same partials, at least two, are also merged in two uneven parts, and both
    results must agree: in a tree, `merge_all` is called on its own results.
    """
    with merge_context(recipe):
        merged = _merge_all(recipe, number, partials)
        if check:
            cut = len(partials) // 2 + 1 if len(partials) > 2 else 1
            parts = [_merge_all(recipe, number, some) for some in (partials[:cut], partials[cut:])]
            again, udf = _merge_all(recipe, number, parts), recipe.udfs[number]
            for name, spec in udf.allocated.items():
                if not _agree(merged.arrays[name], again.arrays[name], spec):
                    raise UDFError(
                        f"{udf.name}.merge_all() is not associative: buffer {name!r} of a group of "
                        "chunks is different when the group is merged in two parts first, as for "
                        "an average of averages or a median. Keep sums and counts in buffers and "
                        f"divide in get_results(), or set split_every=False on {udf.name} (or in "
                        "run_udf) to have merge_all called once on all chunks"
                    )
        return merged


def _merge_all(recipe: Recipe, number: int, partials: Sequence[Partial]) -> Partial:
    """Return the partials merged by one call, in the declared dtypes and shapes."""
    first, stop = partials[0].first, partials[-1].stop
    aux = concatenate_rows([p.aux for p in partials])
    backends = recipe.xp_backend(number), recipe.merge_backend(number)
    instance = Instance(recipe, number, first, stop, aux, *backends)
    instance.cursor.merged = (first, stop)
    declared, sig, ordered = instance.declared, recipe.shape.sig, {}
    for p in partials:
        rows = recipe.grid.rows_of(p.first, p.stop)
        shape = Shape((len(rows), *sig), sig_dims=len(sig))
        origin = (int(rows[0]), *(0 for _ in sig))
        where = Slice(origin, shape, None if isinstance(rows, range) else rows)
        ordered[where] = PartialViews({k: a.copy() for k, a in p.arrays.items()})
    merged = instance.call("merge_all", ordered)
    who = f"{declared.name}.merge_all()"
    check_returned(merged, declared.allocated, who, ArgumentValueError)
    absent = [name for name in declared.allocated if name not in merged]
    if absent and declared.merge.repeats_merge_all:
        raise UDFError(
            f"{who} left out {quoted(absent)}. It is called on groups of chunks and then on its "
            "own results, so it must return every declared buffer; or set split_every=False on "
            f"{declared.name} (or in run_udf) to have it called once on all chunks"
        )
    for name in merged:
        target = instance.arrays[name]
        value = in_backend(merged[name], backend_of(target))
        if value.size:
            check_kind(value, declared.allocated[name], name, who)
        if value.size != target.size:
            raise ArgumentValueError(
                f"{who} returned {name!r} with shape {value.shape}, where {target.shape} was "
                "expected"
            )
        target[...] = value.reshape(target.shape)
    return Partial(instance.arrays, first, stop, aux)


def _agree(one: AnyArray, other: AnyArray, spec: BufferSpec) -> bool:
    """Return whether two results are equal: floats up to rounding, all others exactly."""
    if spec.dtype.kind not in "fc":
        # objects need not have a comparison
        return spec.dtype.kind == "O" or bool(np.array_equal(one, other))
    finite = np.abs(one[np.isfinite(one)])
    scale = float(finite.max()) if finite.size else 0.0
    # another order of summation rounds differently, more so where large values cancel
    rtol = 1e3 * float(np.finfo(spec.dtype).eps)
    how: Any = {"rtol": rtol, "atol": rtol * scale, "equal_nan": True}
    if spec.dtype.kind == "c":  # NumPy compares complex values exactly if a part is infinite
        return np.allclose(one.real, other.real, **how) and np.allclose(one.imag, other.imag, **how)
    return np.allclose(one, other, **how)


def check_returned(
    returned: Any, declared: Mapping[str, BufferSpec], method: str, error: type[Exception]
) -> None:
    """Raise unless a method has returned a dictionary with names of buffers."""
    if not isinstance(returned, Mapping):
        raise ArgumentTypeError(
            f"{method} must return a dictionary of arrays, not {type(returned).__name__}"
        )
    if unknown := [name for name in returned if name not in declared]:
        raise error(
            f"{method} returned {quoted(unknown)}, not declared in get_result_buffers(); "
            f"declared are {sorted(declared)}"
        )


def check_kind(value: AnyArray, spec: BufferSpec, name: str, method: str) -> None:
    """Raise if an array has another kind of dtype than its buffer."""
    if value.dtype.kind != spec.dtype.kind:
        raise UDFError(
            f"{method} returned {name!r} with dtype {value.dtype}, but the buffer is declared as "
            f"{spec.dtype}: return the declared kind of dtype, or declare the buffer as "
            f"{value.dtype}"
        )
