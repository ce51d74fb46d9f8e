"""Make the plan of a run: every choice is made and every user mistake is raised here.

Nothing is computed. The result is one frozen value, from which `graph` builds tasks and `explain`
prints its text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from dask.array.core import Array as GraphArray

from udfdask import config
from udfdask.arrays.backends.table import backend_of, known_backends
from udfdask.arrays.geometry.axes import Axis, Calibration
from udfdask.arrays.geometry.chunk_grid import BoolArray, Grid
from udfdask.arrays.geometry.roi import empty_roi_warning, normalize_roi
from udfdask.arrays.geometry.shapes import Shape
from udfdask.plan.calibrate import read_calibration, with_pixels
from udfdask.plan.check_input import (
    check_array,
    check_dtypes,
    check_masks,
    check_matrix_rows,
    check_sig_dims,
    check_targets,
    check_udfs,
)
from udfdask.plan.copy_parameters import copy_parameters
from udfdask.plan.cost_warnings import cost_warnings
from udfdask.plan.declarations import new_instance, result_units
from udfdask.plan.make_recipe import make_recipe
from udfdask.plan.merge_tree import check_split_every
from udfdask.plan.recipe import DESCAN, Recipe
from udfdask.plan.shared_loading import needs_most_blocks, shares_data
from udfdask.tokens import tokenize_value
from udfdask.udf import UDF
from udfdask.udf.aux_data import AuxData
from udfdask.udf.nested_collections import is_lazy, lazy_places

if TYPE_CHECKING:
    from udfdask.plan.descan import PlannedDescan
    from udfdask.plan.memory import LoadingMemory
    from udfdask.plan.small_chunks import Chunks


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All decisions of a run: the recipe of its tasks, and where its data come from."""

    recipe: Recipe
    """Geometry and UDFs, as workers get them."""
    parameters: tuple[dict[str, Any], ...]
    """Parameters of each UDF, with all values of aux data: copies that only this run has."""
    calibration: Calibration
    """Axes of the data and unit of the values; pixel numbers by default."""
    units: tuple[dict[str, str | None], ...]
    """Units of the results of each UDF by name."""
    array_name: str
    """Name of the dask array that is processed."""
    aux: tuple[Any, ...]
    """Values of each of `recipe.aux_slots`, shape (*nav, *extra_shape): a NumPy array, or a dask
    array with the navigation chunks of the data."""
    joined: Chunks | None
    """The chunks after small ones are joined; None if the chunks of the array are processed."""
    frames_loaded: int
    """Number of frames that are loaded, also of those that are not selected."""
    second_pass: bool
    """Whether the data are loaded a second time, because a parameter is a result over them."""
    files: tuple[str, ...]
    """Files and stores that the data and lazy parameters are read from, if they can be found."""
    warnings: tuple[str, ...]
    """What will be slow or need much memory, and what to change."""

    @property
    def token(self) -> str:
        """Name of the run: equal for equal plans, different for all others."""
        return tokenize_value((self.array_name, self.recipe, self.aux, self.second_pass))


class FindLoading(Protocol):
    """A function that returns what loading a chunk of an array needs; None if it is not known.

    With `share`, as if the array had been made with blocks of this share of their size.
    """

    def __call__(
        self, array: GraphArray, plan: Plan, *, share: float | None = None
    ) -> LoadingMemory | None:
        """Return the memory in bytes."""


def make_plan(
    array: Any,
    udfs: Sequence[UDF],
    *,
    files: tuple[str, ...] = (),
    sig_dims: int = 2,
    roi: Any = None,
    axes: Sequence[Axis] | None = None,
    unit: str | None = None,
    corrections: Any = None,
    descan: Any = None,
    backends: Any = None,
    split_every: int | bool | None = None,
    merge_small: int | str | None = None,
    max_memory: int | str | None = None,
    loading: FindLoading | None = None,
) -> Plan:
    """Return the plan of a run of UDFs over a dask array of shape (*nav, *sig).

    `files` are those that the array and lazy parameters are read from. `loading` is called with an
    array and a plan, and only if there is a `max_memory`: it returns what loading a chunk needs.
    """
    options = {
        "files": files,
        "sig_dims": sig_dims,
        "roi": roi,
        "axes": axes,
        "unit": unit,
        "corrections": corrections,
        "descan": descan,
        "backends": backends,
        "split_every": split_every,
        "merge_small": merge_small,
    }
    plan = _make_plan(array, udfs, **options)
    if max_memory is not None:
        from udfdask.plan.memory_limit import check_memory  # few runs need it

        def plan_other(array: Any, udfs: Sequence[UDF], **changes: Any) -> Plan:
            return _make_plan(array, udfs, **{**options, **changes})

        check_memory(plan, array, udfs, max_memory, loading, plan_other)
    return plan


def _make_plan(
    array: Any,
    udfs: Sequence[UDF],
    *,
    files: tuple[str, ...],
    sig_dims: int,
    roi: Any,
    axes: Sequence[Axis] | None,
    unit: str | None,
    corrections: Any,
    descan: Any,
    backends: Any,
    split_every: int | bool | None,
    merge_small: int | str | None,
) -> Plan:
    """Return the plan of a run, whatever memory it needs."""
    check_array(array)
    check_sig_dims(sig_dims, array.ndim)
    check_udfs(udfs)
    check_masks(udfs)
    check_targets(udfs, files)
    check_matrix_rows(array, sig_dims)
    calibration = read_calibration(axes, unit, array.shape, sig_dims)
    udfs = [with_pixels(udf, calibration, sig_dims) for udf in udfs]
    udfs = _with_copied_parameters([udf._for_run() for udf in udfs])
    fan_in = config.split_every() if split_every is None else split_every
    check_split_every(fan_in, "split_every")
    n_nav = array.ndim - sig_dims
    joined = None if merge_small is None else _joined_chunks(array, merge_small)
    chunks = joined or array.chunks
    selected = normalize_roi(roi, array.shape[:n_nav])
    shifts = None
    if descan is not None:
        shifts = _shifts(array, descan, sig_dims, selected, corrected=corrections is not None)
    memory = config.worker_memory()
    task_limit = math.inf if memory is None else memory / 4
    no_position = empty_roi_warning(roi, selected)
    recipe = make_recipe(
        udfs,
        shape=array.shape,
        dtype=array.dtype,
        sig_dims=sig_dims,
        nav_chunks=chunks[:n_nav],
        sig_chunks=chunks[n_nav:],
        roi=selected,
        tile_bytes=config.tile_bytes(),
        device_tile_bytes=config.device_tile_bytes(),
        split_every=fan_in,
        threads=config.threads_per_task(),
        lazy_params=[_params_computed_first(udf) for udf in udfs],
        max_task_bytes=task_limit,
        corrections=corrections,
        calibration=calibration,
        descan=None if shifts is None else shifts.recipe,
        backends=None if backends is None else known_backends(backends, f"backends={backends!r}"),
        native=backend_of(array._meta),
    )
    check_dtypes(recipe)
    aux = tuple(
        _aligned(udfs[k]._kwargs[name], recipe) for k, name in recipe.aux_slots if k != DESCAN
    )
    if shifts is not None:
        aux = (*aux, shifts.in_chunks(recipe))
    return Plan(
        recipe=recipe,
        parameters=tuple(udf._kwargs for udf in udfs),
        calibration=calibration,
        units=tuple(
            result_units(recipe, number, udf, calibration) for number, udf in enumerate(udfs)
        ),
        array_name=array.name,
        aux=aux,
        joined=joined,
        frames_loaded=_frames_loaded(array, recipe),
        second_pass=_needs_second_pass(array, recipe, aux, joined),
        files=files,
        warnings=(
            *([no_position] if no_position else []),
            *([shifts.warning] if shifts is not None and shifts.warning else []),
            *(text for udf in udfs for text in udf._warnings(calibration)),
            *cost_warnings(recipe, task_limit),
        ),
    )


def _shifts(
    array: GraphArray, descan: Any, sig_dims: int, roi: BoolArray | None, *, corrected: bool
) -> PlannedDescan | None:
    """Return the checked shifts of all frames; None if they are not shifted."""
    from udfdask.plan.descan import plan_descan  # few runs need it

    full = Shape(array.shape, sig_dims=sig_dims)
    native = backend_of(array._meta)
    return plan_descan(descan, full, array.dtype, roi, corrected=corrected, native=native)


def _needs_second_pass(
    array: GraphArray, recipe: Recipe, aux: Sequence[Any], joined: Chunks | None
) -> bool:
    """Return whether the data are loaded once more for a parameter that is a result over them."""
    return any(shares_data(array, recipe.lazy_value(*slot)) for slot in recipe.lazy_slots) or any(
        # the tasks of joined chunks load the data for themselves
        shares_data(array, values) if joined else needs_most_blocks(array, values, recipe)
        for values in aux
        if is_lazy(values)
    )


def _joined_chunks(array: GraphArray, merge_small: Any) -> Chunks | None:
    """Return the chunks of an array after small ones are joined; None if they do not change."""
    from udfdask.plan.parse_size import parse_size  # few runs need it
    from udfdask.plan.small_chunks import joined_chunks

    least = parse_size(merge_small, "merge_small", "64 MiB")
    chunks = joined_chunks(array.chunks, array.dtype.itemsize, least)
    return None if chunks == array.chunks else chunks


def _frames_loaded(array: GraphArray, recipe: Recipe) -> int:
    """Return the number of frames in the chunks of an array that have a selected frame."""
    if not isinstance(array._meta, np.ndarray):  # joined chunks of other types are whole
        return int(recipe.grid.loaded.sum())
    n_nav = len(recipe.shape.nav)
    return int(Grid.of(array.chunks[:n_nav], recipe.grid.roi).loaded.sum())


def _with_copied_parameters(udfs: Sequence[UDF]) -> list[UDF]:
    """Return UDFs whose parameters do not change if the user changes an array afterwards."""
    memo: dict[int, Any] = {}
    copies = [copy_parameters(udf._kwargs, memo) for udf in udfs]
    return [
        udf
        if all(kwargs[name] is value for name, value in udf._kwargs.items())
        else new_instance(type(udf), kwargs)
        for udf, kwargs in zip(udfs, copies, strict=True)
    ]


def _params_computed_first(udf: UDF) -> tuple[str, ...]:
    """Return the names of the lazy parameters that are computed before the first chunk.

    Lazy aux data of kind nav are not: each task gets the rows of its own frames.
    """
    return tuple(
        name
        for name, value in udf._kwargs.items()
        if (
            value.is_lazy and value.kind != "nav"
            if isinstance(value, AuxData)
            else is_lazy(value) or any(lazy_places(value))
        )
    )


def _aligned(aux: AuxData, recipe: Recipe) -> Any:
    """Return the values for each frame, lazy ones with the navigation chunks of the data."""
    values = aux.over(recipe.shape)
    if aux.is_lazy:
        values = values.rechunk((*recipe.grid.nav_chunks, *((n,) for n in aux.extra_shape)))
    return values
