"""Run UDFs over a DataArray and label their results."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any, Unpack

import xarray as xr

from udfdask.advice import Door
from udfdask.results.labels.align import align_mask
from udfdask.results.labels.from_dataarray import Arranged, name_output_dims, warn_if_huge
from udfdask.results.labels.labels import Labels
from udfdask.results.labels.layout import Layout, check_rename, make_layout
from udfdask.results.named_results import ResultInfo
from udfdask.run.options import RunOptions
from udfdask.run.read_masks import read_labeled, read_values
from udfdask.run.run_udf import in_form_of, make_infos, make_results, plan_run, show_warnings
from udfdask.run.virtual_image import IMAGE
from udfdask.scheduling.compute import compute
from udfdask.udf import UDF

_FRAME_RESULT = "result"
"""Name of the result of `AutoUDF`."""

_UNNAMED = "__udfdask_result__"
"""Temporary name of a variable, which no dimension has."""


def run_udf(
    data: Arranged,
    udf: UDF | Sequence[UDF] | Mapping[str, UDF],
    *,
    rename: Mapping[str, Hashable] | None,
    valid_masks: bool,
    **options: Unpack[RunOptions],
) -> xr.Dataset | tuple[xr.Dataset, ...] | dict[str, xr.Dataset]:
    """Return the Dataset of one UDF, or a tuple or dictionary with a Dataset for each UDF."""

    def lay_out(infos: Sequence[ResultInfo]) -> list[Layout]:
        return make_layouts(infos, data.labels, rename)

    return in_form_of(udf, _run(data, udf, lay_out, valid_masks, options))


def virtual_image(
    data: Arranged, udf: UDF, name: Hashable, **options: Unpack[RunOptions]
) -> xr.DataArray:
    """Return the labeled image of a virtual detector, with this name."""

    def lay_out(infos: Sequence[ResultInfo]) -> list[Layout]:
        return make_layouts(infos, data.labels, {IMAGE: _UNNAMED})

    (dataset,) = _run(data, udf, lay_out, False, options)
    notes = {key: text for key, text in dataset.attrs.items() if key == "note"}
    return dataset[_UNNAMED].rename(name).assign_attrs(notes)


def map_frames(
    data: Arranged, udf: Mapping[str, UDF], output_dims: str | Sequence[Hashable] | None
) -> xr.DataArray:
    """Return the labeled result of a UDF, by its name, that calls a function with each frame."""

    def lay_out(infos: Sequence[ResultInfo]) -> list[Layout]:
        (layout,) = make_layouts(infos, data.labels, {_FRAME_RESULT: _UNNAMED})
        if output_dims is None:
            return [layout]
        shape = infos[0].buffers[_FRAME_RESULT].extra_shape
        return [name_output_dims(layout, _FRAME_RESULT, shape, output_dims, data.labels)]

    (dataset,) = _run(data, udf, lay_out, False, {})
    return dataset[_UNNAMED]


def read_arguments(
    data: Arranged, udf: Any, options: Mapping[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """Return UDFs and options of a run, aligned with the data, and with their axes."""
    labels, calibration = data.axis_labels, data.calibration
    udf, chosen = read_labeled(udf, options, labels, partial(align_mask, data=labels))
    return udf, {"axes": calibration.axes, "unit": calibration.unit, **chosen}


def reader_of_changes(data: Arranged) -> Callable[..., dict[str, Any]]:
    """Return a function that aligns changes of the parameters of a UDF with the data."""
    labels = data.axis_labels
    return partial(read_values, read=partial(align_mask, data=labels), data=labels)


def make_layouts(
    infos: Sequence[ResultInfo], labels: Labels, rename: Mapping[str, Hashable] | None
) -> list[Layout]:
    """Return the checked layout for the results of each UDF, before the results exist."""
    check_rename(rename, [name for info in infos for name in info.buffers])
    return [make_layout(info, labels, rename) for info in infos]


def door_of(data: Arranged) -> Door:
    """Return the entry point of users who have a DataArray with these dimensions."""
    return Door("dataarray", tuple(data.labels.dims))


def _run(
    data: Arranged,
    udf: UDF | Sequence[UDF] | Mapping[str, UDF],
    lay_out: Callable[[Sequence[ResultInfo]], list[Layout]],
    valid_masks: bool,
    options: RunOptions,
) -> tuple[xr.Dataset, ...]:
    """Return a Dataset for each UDF, lazy if the data are lazy."""
    udf, chosen = read_arguments(data, udf, options)
    plan, array = plan_run(
        data.array, udf, sig_dims=data.sig_dims, roi=data.roi, door=door_of(data), **chosen
    )
    layouts = lay_out(make_infos(plan, array, lambda: 0))
    show_warnings(plan)
    warn_if_huge(data)
    results = make_results(plan, array)
    if not data.was_lazy:
        results = compute(*results)
    return tuple(
        result._make_dataset(layout, valid_masks)
        for result, layout in zip(results, layouts, strict=True)
    )
