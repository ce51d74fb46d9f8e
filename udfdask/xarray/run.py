"""Runs over DataArrays: labels become axes, then axes become labels."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Unpack

import xarray as xr

from udfdask.results.labels.from_dataarray import Arranged, name_output_dims, warn_if_huge
from udfdask.results.labels.labels import Labels
from udfdask.results.labels.layout import Layout, check_rename, make_layout
from udfdask.results.named_results import About
from udfdask.run.options import RunOptions
from udfdask.run.run_udf import describe_results, make_results, plan_run, show_warnings
from udfdask.scheduling.compute import compute
from udfdask.udf import UDF

_FRAME_RESULT = "result"
"""Name of the result of an AutoUDF."""

_UNNAMED = "__udfdask_result__"
"""Name of a variable while it must not be in the way of any dimension."""

_STACKLEVEL = 4
"""Of warnings: from here over the accessor to the user's line."""


def run_udf(
    data: Arranged,
    udf: UDF | Sequence[UDF],
    *,
    rename: Mapping[str, Hashable] | None,
    valid_masks: bool,
    **options: Unpack[RunOptions],
) -> xr.Dataset | tuple[xr.Dataset, ...]:
    """Return the Dataset of a UDF, or one for each."""

    def lay_out(abouts: Sequence[About]) -> list[Layout]:
        return make_layouts(abouts, data.labels, rename)

    datasets = _run(data, udf, lay_out, valid_masks, options)
    return datasets[0] if isinstance(udf, UDF) else datasets


def map_frames(data: Arranged, udf: UDF, output_dims: Sequence[Hashable] | None) -> xr.DataArray:
    """Return the labeled result of a UDF that calls a function with each frame."""

    def lay_out(abouts: Sequence[About]) -> list[Layout]:
        (layout,) = make_layouts(abouts, data.labels, {_FRAME_RESULT: _UNNAMED})
        if output_dims is None:
            return [layout]
        shape = abouts[0].buffers[_FRAME_RESULT].extra_shape
        return [name_output_dims(layout, _FRAME_RESULT, shape, output_dims, data.labels)]

    (dataset,) = _run(data, udf, lay_out, False, {})
    return dataset[_UNNAMED]


def make_layouts(
    abouts: Sequence[About], labels: Labels, rename: Mapping[str, Hashable] | None
) -> list[Layout]:
    """Return where the results of each UDF go, checked; none of them needs to exist yet."""
    check_rename(rename, [name for about in abouts for name in about.buffers])
    return [make_layout(about, labels, rename) for about in abouts]


def _run(
    data: Arranged,
    udf: UDF | Sequence[UDF],
    lay_out: Callable[[Sequence[About]], list[Layout]],
    valid_masks: bool,
    options: RunOptions,
) -> tuple[xr.Dataset, ...]:
    """Return a Dataset for each UDF, lazy ones of lazy data."""
    plan, array = plan_run(data.array, udf, sig_dims=data.sig_dims, roi=data.roi, **options)
    layouts = lay_out(describe_results(plan, 0))
    show_warnings(plan, stacklevel=_STACKLEVEL)
    warn_if_huge(data, _STACKLEVEL)
    results = make_results(plan, array)
    if not data.was_lazy:
        results = compute(*results)
    return tuple(
        result._labelled(layout, valid_masks)
        for result, layout in zip(results, layouts, strict=True)
    )
