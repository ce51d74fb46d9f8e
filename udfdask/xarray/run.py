"""Runs over DataArrays: labels become axes, then axes become labels."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Unpack

import xarray as xr

from udfdask.errors import UDFWarning
from udfdask.graph.run_inputs import inputs_of
from udfdask.plan.plan import make_plan
from udfdask.results.explanation import Explanation
from udfdask.results.labels.from_dataarray import (
    Arranged,
    align_roi,
    arrange,
    name_output_dims,
    warn_if_huge,
)
from udfdask.results.labels.labels import wants_attributes
from udfdask.results.labels.layout import Layout, check_rename, make_layout
from udfdask.results.result import About
from udfdask.run.options import RunOptions
from udfdask.run.run_udf import as_list, describe_results, make_results
from udfdask.run.run_udf import explain as explain_unlabelled
from udfdask.scheduling.compute import compute
from udfdask.udf import UDF

_FRAME_RESULT = "result"
"""Name of the result of an AutoUDF."""

_UNNAMED = "__udfdask_result__"
"""Name of a variable while it must not be in the way of any dimension."""

_STACKLEVEL = 4
"""Of warnings: from here over the accessor to the user's line."""


def run_udf(
    array: xr.DataArray,
    udf: UDF | Sequence[UDF],
    *,
    sig_dims: Any,
    roi: Any,
    rename: Mapping[str, Hashable] | None,
    keep_attrs: bool | None,
    valid_masks: bool,
    **options: Unpack[RunOptions],
) -> xr.Dataset | tuple[xr.Dataset, ...]:
    """Return the Dataset of a UDF, or one for each."""
    arranged = arrange(array, sig_dims, keep_attrs=wants_attributes(keep_attrs))

    def lay_out(abouts: Sequence[About]) -> list[Layout]:
        return make_layouts(abouts, arranged, rename)

    datasets = _run(arranged, as_list(udf), roi, lay_out, valid_masks, options)
    return datasets[0] if isinstance(udf, UDF) else datasets


def map_frames(
    array: xr.DataArray,
    udf: UDF,
    *,
    sig_dims: Any,
    roi: Any,
    output_dims: Sequence[Hashable] | None,
    keep_attrs: bool | None,
) -> xr.DataArray:
    """Return the labeled result of a UDF that calls a function with each frame."""
    arranged = arrange(array, sig_dims, keep_attrs=wants_attributes(keep_attrs))

    def lay_out(abouts: Sequence[About]) -> list[Layout]:
        (layout,) = make_layouts(abouts, arranged, {_FRAME_RESULT: _UNNAMED})
        if output_dims is None:
            return [layout]
        shape = abouts[0].buffers[_FRAME_RESULT].extra_shape
        return [name_output_dims(layout, _FRAME_RESULT, shape, output_dims, arranged.labels)]

    (dataset,) = _run(arranged, [udf], roi, lay_out, False, {})
    mapped = dataset[_UNNAMED].rename(array.name)
    return mapped.assign_attrs(array.attrs) if _keeps_all(keep_attrs) else mapped


def explain(
    array: xr.DataArray,
    udf: UDF | Sequence[UDF],
    *,
    sig_dims: Any,
    roi: Any,
    **options: Unpack[RunOptions],
) -> Explanation:
    """Return what a run would do."""
    arranged = arrange(array, sig_dims, keep_attrs=False)
    return explain_unlabelled(
        arranged.data,
        udf,
        sig_dims=arranged.sig_dims,
        roi=align_roi(roi, arranged.array, arranged.labels.nav),
        **options,
    )


def make_layouts(
    abouts: Sequence[About], arranged: Arranged, rename: Mapping[str, Hashable] | None
) -> list[Layout]:
    """Return where the results of each UDF go, checked; none of them needs to exist yet."""
    check_rename(rename, [name for about in abouts for name in about.buffers])
    return [make_layout(about, arranged.labels, rename) for about in abouts]


def _run(
    arranged: Arranged,
    udfs: list[UDF],
    roi: Any,
    lay_out: Callable[[Sequence[About]], list[Layout]],
    valid_masks: bool,
    options: RunOptions,
) -> tuple[xr.Dataset, ...]:
    """Return a Dataset for each UDF, lazy ones of lazy data."""
    labels = arranged.labels
    inputs = inputs_of(arranged.data, udfs)
    plan = make_plan(
        inputs.array,
        inputs.udfs,
        files=inputs.files,
        sig_dims=arranged.sig_dims,
        roi=align_roi(roi, arranged.array, labels.nav),
        **options,
    )
    layouts = lay_out(describe_results(plan, 0))
    for text in plan.warnings:
        warnings.warn(text, UDFWarning, stacklevel=_STACKLEVEL)
    warn_if_huge(arranged, _STACKLEVEL)
    results = make_results(plan, inputs.array)
    if not arranged.was_lazy:
        results = compute(*results)
    return tuple(
        result._labelled(layout, valid_masks)
        for result, layout in zip(results, layouts, strict=True)
    )


def _keeps_all(keep_attrs: bool | None) -> bool:
    """Return whether somebody asked for all attributes, xarray's option included."""
    return (xr.get_options()["keep_attrs"] if keep_attrs is None else keep_attrs) is True
