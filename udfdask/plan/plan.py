"""Makes the plan of a run: every choice made, every user mistake raised, nothing computed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
from dask.array.core import Array as GraphArray
from dask.utils import format_bytes

from udfdask import config
from udfdask.arrays.backends.table import backend_of, fill_value, is_unknown_sparse
from udfdask.arrays.geometry.roi import normalize_roi
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.plan.copy_parameters import own_parameters
from udfdask.plan.declarations import known_backends, made_anew
from udfdask.plan.make_recipe import MANY_BLOCKS, make_recipe
from udfdask.plan.merge_tree import check_split_every
from udfdask.plan.recipe import Recipe
from udfdask.plan.shared_loading import needs_whole_run, shares_data
from udfdask.tokens import tokenize_value
from udfdask.udf import UDF
from udfdask.udf.aux_data import AuxData
from udfdask.udf.nested_collections import hidden_collection, is_lazy, lazy_places

CROWDS = ((10_000, 1 << 20), (50_000, 1 << 24))
"""Numbers of blocks above which a plan warns, if they have fewer bytes than this on average.

A block is two tasks, one that loads and one that works, of 0.1 ms on threads to 1 ms on a cluster.
A megabyte is processed in 1 ms.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a run will do: the recipe of its tasks, and where its data come from."""

    recipe: Recipe
    """Geometry and UDFs."""
    parameters: tuple[dict[str, Any], ...]
    """Parameters of each UDF, with all values of aux data; nobody else can change them."""
    array_name: str
    """Name of the dask array that is processed."""
    aux: tuple[Any, ...]
    """Values of each of `recipe.aux_slots`, shape (*nav, *extra_shape): a NumPy array, or a dask
    array with the navigation chunks of the data."""
    second_pass: bool
    """Whether a parameter needs a result over the same data, which are then loaded again."""
    files: tuple[str, ...]
    """Files and stores that the data and lazy parameters are read from, as far as is known."""
    warnings: tuple[str, ...]
    """What will be slow or need much memory, and what to change."""

    @property
    def token(self) -> str:
        """A name for the run: equal for equal plans, another one for anything else."""
        return tokenize_value((self.array_name, self.recipe, self.aux, self.second_pass))


def make_plan(
    array: Any,
    udfs: Sequence[UDF],
    *,
    files: tuple[str, ...] = (),
    sig_dims: int = 2,
    roi: Any = None,
    corrections: Any = None,
    backends: Any = None,
    split_every: int | bool | None = None,
) -> Plan:
    """Return the plan of a run of UDFs over a dask array of shape (*nav, *sig).

    `files` are those that the array and lazy parameters are read from.
    """
    check_array(array)
    check_sig_dims(sig_dims, array.ndim)
    check_udfs(udfs)
    _check_targets(udfs, files)
    udfs = _with_own_parameters([udf._for_run() for udf in udfs])
    allowed = None if backends is None else known_backends(backends, f"backends={backends!r}")
    _check_rows(array, sig_dims)
    n_nav = array.ndim - sig_dims
    nav = array.shape[:n_nav]
    lazy = [tuple(k for k, v in udf._kwargs.items() if _is_computed_first(v)) for udf in udfs]
    memory = config.worker_memory()
    fan_in = config.split_every() if split_every is None else split_every
    check_split_every(fan_in, "split_every")
    recipe = make_recipe(
        udfs,
        shape=array.shape,
        dtype=array.dtype,
        sig_dims=sig_dims,
        nav_chunks=array.chunks[:n_nav],
        sig_chunks=array.chunks[n_nav:],
        roi=normalize_roi(roi, nav),
        tile_bytes=config.tile_bytes(),
        device_tile_bytes=config.device_tile_bytes(),
        split_every=fan_in,
        threads=config.threads_per_task(),
        lazy_params=lazy,
        whole_bytes=math.inf if memory is None else memory / 4,
        corrections=corrections,
        backends=allowed,
        native=backend_of(array._meta),
    )
    _check_formats(recipe)
    aux = tuple(_aligned(udfs[k]._kwargs[name], recipe) for k, name in recipe.aux_slots)
    second_pass = any(
        shares_data(array, recipe.lazy_value(*slot)) for slot in recipe.lazy_slots
    ) or any(needs_whole_run(array, values, recipe) for values in aux)
    return Plan(
        recipe=recipe,
        parameters=tuple(udf._kwargs for udf in udfs),
        array_name=array.name,
        aux=aux,
        second_pass=second_pass,
        files=files,
        warnings=tuple(_warnings(recipe, array, memory)),
    )


def check_is_array(array: Any, call: str) -> None:
    """Raise if this is not a dask array, with what to pass to the function of this name."""
    if not isinstance(array, (da.Array, GraphArray)):
        from udfdask.plan.array_remedies import array_remedy  # most runs never need it

        kind, remedy = array_remedy(array, call)
        raise ArgumentTypeError(
            f"expected a dask array of shape (*nav, *sig), got {kind}: {remedy}"
        )


def check_array(array: Any) -> None:
    """Raise if this is not a dask array that can be processed."""
    check_is_array(array, "run_udf")
    if any(math.isnan(n) for n in array.shape):
        raise ArgumentValueError(
            f"the array has unknown chunk sizes, shape {array.shape}: call "
            "array.compute_chunk_sizes() first, or give the chunks where it is made"
        )
    if array.dtype.kind not in "biufcmM":
        raise ArgumentTypeError(
            f"the array has dtype {array.dtype}, expected numbers: convert it with "
            "array.astype(...), or pick one field of a structured array"
        )
    if isinstance(array._meta, np.ma.MaskedArray):
        raise ArgumentTypeError(
            "masked arrays are not supported: fill them with dask.array.ma.filled(array, value) "
            "and pass unwanted frames as roi="
        )
    _check_sparse(array)


def _check_sparse(array: da.Array) -> None:
    """Raise if the blocks are sparse in a way that cannot be processed."""
    if is_unknown_sparse(array._meta):
        raise ArgumentTypeError(
            f"the blocks are of type {type(array._meta).__name__}, a format out of which no frames "
            "are cut: convert them with array.map_blocks(lambda block: block.tocsr())"
        )
    if backend_of(array._meta).is_sparse and array.dtype.kind in "mM":
        raise ArgumentTypeError(
            f"the blocks are sparse arrays of dates, dtype {array.dtype}, and only numbers are "
            "supported: make them dense, or view them as int64"
        )
    filled = fill_value(array._meta)
    if filled != 0:
        raise ArgumentValueError(
            f"the blocks are sparse arrays with the fill value {filled!r}, and only 0 is "
            "supported: subtract it, array - fill_value, if that leaves them sparse, or make them "
            "dense with array.map_blocks(lambda block: block.todense(), "
            f"meta=numpy.empty({(0,) * array.ndim}, array.dtype))"
        )


def _check_rows(array: da.Array, sig_dims: int) -> None:
    """Raise if blocks are matrices and a frame is not one row of them."""
    if backend_of(array._meta).is_matrix and (array.ndim, sig_dims) != (2, 1):
        raise ArgumentValueError(
            f"the blocks are matrices of type {type(array._meta).__name__}, in which each row is a "
            f"frame: pass an array of two dimensions and sig_dims=1, not {array.ndim} dimensions "
            f"and sig_dims={sig_dims}; sparse.GCXS keeps the shape of scan and frames"
        )


def _check_formats(recipe: Recipe) -> None:
    """Raise if a UDF would be given a dtype in a format that does not have it."""
    for udf in recipe.udfs:
        backend = udf.backend
        for dtype in (udf.input_dtype, recipe.dtype):
            backend.dense.check_dtype(dtype)
        if not backend.holds(udf.input_dtype):
            raise ArgumentTypeError(
                f"{udf.name} is to be given {backend.name}, which has no dtype {udf.input_dtype}: "
                "return another dtype from get_preferred_input_dtype(), or restrict backends="
            )


def check_sig_dims(sig_dims: Any, ndim: int) -> None:
    """Raise if this is not a possible number of signal axes."""
    if isinstance(sig_dims, bool) or not isinstance(sig_dims, (int, np.integer)):
        hint = ""
        if _are_names(sig_dims):
            hint = (
                ": only a DataArray has names, import udfdask.xarray, then "
                f"data_array.udf.run_udf(udf, sig_dims={sig_dims!r})"
            )
        raise ArgumentTypeError(
            "sig_dims must be an integer, the number of trailing signal axes, not "
            f"{sig_dims!r}{hint}"
        )
    if not 1 <= sig_dims <= ndim:
        raise ArgumentValueError(
            f"sig_dims must be between 1 and {ndim}, the number of axes of the array, "
            f"not {sig_dims}"
        )


def _are_names(sig_dims: Any) -> bool:
    """Return whether these are names of axes, as a DataArray has them."""
    if isinstance(sig_dims, str):
        return not sig_dims.isdigit()
    return isinstance(sig_dims, (list, tuple)) and any(isinstance(s, str) for s in sig_dims)


def check_udfs(udfs: Any) -> None:
    """Raise if these are not UDF instances."""
    if len(udfs) == 0:
        raise ArgumentValueError("expected a UDF or a list of UDFs, got an empty list")
    for udf in udfs:
        if isinstance(udf, type) and issubclass(udf, UDF):
            raise ArgumentTypeError(
                f"expected an instance of a UDF, got the class {udf.__name__}: "
                f"write {udf.__name__}(...)"
            )
        if not isinstance(udf, UDF):
            raise ArgumentTypeError(
                f"expected a UDF or a list of UDFs, got {type(udf).__name__}: subclass "
                "udfdask.UDF, or run a plain function with map_frames"
            )
        for name, value in udf._kwargs.items():
            if kind := hidden_collection(value):
                raise ArgumentTypeError(
                    f"parameter {name!r} of {type(udf).__name__} has a dask collection inside of a "
                    f"{kind}, where it would be computed again for each frame: pass it as a "
                    "parameter of its own, in a list, tuple or dictionary, or compute it first"
                )


def _with_own_parameters(udfs: Sequence[UDF]) -> list[UDF]:
    """Return UDFs whose arrays nobody else can change before the run is computed."""
    seen: dict[int, Any] = {}
    own = [own_parameters(udf._kwargs, seen) for udf in udfs]
    return [
        udf if _same_objects(udf._kwargs, kwargs) else made_anew(type(udf), kwargs)
        for udf, kwargs in zip(udfs, own, strict=True)
    ]


def _same_objects(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two dictionaries with the same names hold the same objects."""
    return all(one[name] is other[name] for name in one)


def _check_targets(udfs: Sequence[UDF], sources: Sequence[str]) -> None:
    """Raise if a file that a UDF writes must not be written."""
    targets = [target for udf in udfs for target in udf._targets(sources)]
    if targets:
        from udfdask.writing import check_apart  # few runs need it

        check_apart(targets)


def _is_computed_first(value: Any) -> bool:
    """Return whether a parameter is lazy, or holds something lazy, and tasks want it whole."""
    if isinstance(value, AuxData):
        return value.is_lazy and value.kind != "nav"
    return is_lazy(value) or any(lazy_places(value))


def _aligned(aux: AuxData, recipe: Recipe) -> Any:
    """Return the values for each frame, lazy ones with the navigation chunks of the data."""
    values = aux.over(recipe.shape)
    if aux.is_lazy:
        values = values.rechunk((*recipe.grid.nav_chunks, *((n,) for n in aux.extra_shape)))
    return values


def _warnings(recipe: Recipe, array: da.Array, memory: int | None) -> list[str]:
    """Return what will need much memory, with numbers and what to change."""
    found: list[str] = []
    grid, sig = recipe.grid, recipe.shape.sig
    if not grid.n_chunks:
        return found
    frame_bytes = sig.size * recipe.dtype.itemsize
    frames = max(math.prod(grid.bounds(k)[1]) for k in range(grid.n_chunks))
    blocks = math.prod(len(c) for c in recipe.sig_chunks)
    heaviest = frames * frame_bytes
    limit = math.inf if memory is None else memory / 4
    share = f"a quarter of a worker's memory ({format_bytes(int(limit))})" if memory else ""
    if recipe.by_sig_chunk:
        heaviest = frames * recipe.dtype.itemsize * math.prod(max(c) for c in recipe.sig_chunks)
    fit = max(1, frames * (128 << 20) // max(heaviest, 1))
    call = _rechunk_call(recipe, fit)
    sparse = recipe.native.is_sparse  # how much they hold is not known
    if heaviest > limit and not sparse:
        found.append(
            f"the data of one task take {format_bytes(heaviest)} ({frames} frames of "
            f"{format_bytes(frame_bytes)}), more than {share}: {call}"
        )
    elif blocks > MANY_BLOCKS and not recipe.by_sig_chunk:
        cannot = [u.name for u in recipe.udfs if not u.promises.adds_signal_parts]
        names = ", ".join(dict.fromkeys(cannot))
        why = f"{names} cannot go on from one signal chunk to the next"
        if not cannot:
            why = "excluded pixels are patched from the signal chunk next to theirs"
        found.append(
            f"a task takes {blocks} signal chunks, {format_bytes(heaviest)} together, because "
            f"{why}: {call}"
        )
    found += _many_blocks(recipe, blocks)
    gathered = sum(
        s.nbytes(grid.n_frames, sig)
        for u in recipe.udfs
        if (u.finish and not u.elementwise) or u.merge.gathers_rows
        for s in u.buffers.values()
        if s.kind == "nav"
    )
    if gathered > limit:
        found.append(
            f"nav results of {format_bytes(gathered)} are gathered in one task, more than {share}: "
            "if get_results works row by row, set elementwise_results = True on the UDF"
        )
    return found


def _many_blocks(recipe: Recipe, sig_blocks: int) -> list[str]:
    """Return a warning if there are so many small blocks that dask is busier than the UDFs."""
    grid, frame_bytes = recipe.grid, recipe.shape.sig.size * recipe.dtype.itemsize
    count = grid.n_chunks * sig_blocks
    size = grid.n_frames * frame_bytes // count
    if not any(count > many and size < small for many, small in CROWDS):
        return []
    call = _rechunk_call(recipe, max(1, (128 << 20) // max(frame_bytes, 1)))
    text = (
        f"{count} blocks of {format_bytes(size)} make at least {2 * count} tasks, and dask needs "
        f"0.1 ms for each task on threads, 1 ms on a cluster: {call}. It is faster still to choose "
        "such chunks where the array is made, for example when the file is opened"
    )
    return [text]


def _rechunk_call(recipe: Recipe, frames: int) -> str:
    """Return the rechunk call that leaves whole frames, at most so many, in a chunk."""
    sizes = []
    for full in reversed(recipe.shape.nav):
        take = max(1, min(full, frames))
        sizes.append(take)
        frames //= take
    nav = tuple(reversed(sizes))
    return f"array.rechunk({(*nav, *(-1 for _ in recipe.shape.sig))}) would do better"
