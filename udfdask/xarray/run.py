"""Run UDFs over a DataArray and label their results."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any, Unpack

import xarray as xr

from udfdask.advice import Door
from udfdask.errors import ArgumentValueError
from udfdask.results.layout import Labels, Layout, check_rename, make_dataset, make_layout
from udfdask.results.named_results import ResultInfo
from udfdask.run.options import RunOptions
from udfdask.run.read_masks import read_labeled, read_values
from udfdask.run.run_udf import make_infos, make_results, plan_run, show_warnings
from udfdask.scheduling.compute import compute
from udfdask.udf import UDF
from udfdask.xarray.align import align_mask
from udfdask.xarray.from_dataarray import Arranged


def run(
    data: Arranged,
    udf: UDF | Sequence[UDF] | Mapping[str, UDF],
    *,
    rename: Mapping[str, Hashable] | None = None,
    valid_masks: bool = False,
    **options: Unpack[RunOptions],
) -> tuple[xr.Dataset, ...]:
    """Return a Dataset for each UDF, lazy if the data are lazy."""
    udf, chosen = read_arguments(data, udf, options)
    plan, array = plan_run(
        data.array, udf, sig_dims=data.sig_dims, roi=data.roi, door=door_of(data), **chosen
    )
    infos = make_infos(plan)
    layouts = make_layouts(infos, data.labels, rename)
    show_warnings(plan)
    results = make_results(plan, array)
    if not data.was_lazy:
        results = compute(*results)
    return tuple(
        make_dataset(result, layout, valid_masks)
        for result, layout in zip(results, layouts, strict=True)
    )


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


def check_free(names: Sequence[str], array: xr.DataArray) -> None:
    """Raise if a name of a result is that of a dimension or coordinate of the data."""
    taken = {*array.dims, *array.coords}
    if used := [name for name in names if name in taken]:
        raise ArgumentValueError(
            f"output_names={tuple(names)}: {used[0]!r} is a dimension or coordinate of the data: "
            f"choose another name, such as '{used[0]}_found'"
        )
