"""Make Datasets of results: as a user wants them, and as they are in files."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING

from udfdask.io.labeled_array import coordinate
from udfdask.results.labels import labels_of_axes
from udfdask.results.layout import Layout, check_rename, make_layout
from udfdask.results.named_results import ResultInfo

if TYPE_CHECKING:
    import xarray as xr

    from udfdask.results.outputs import ResultOutputs


def default_layout(info: ResultInfo, rename: Mapping[str, Hashable] | None) -> Layout:
    """Return the layout of results in a Dataset with default names."""
    check_rename(rename, info.buffers)
    shape = (*info.nav_shape, *info.sig_shape)
    labels = labels_of_axes(info.calibration.axes, shape, len(info.nav_shape))
    return make_layout(info, labels, rename).with_attributes(info.origin)


def make_dataset(result: ResultOutputs, layout: Layout, valid_masks: bool) -> xr.Dataset:
    """Return results as a Dataset with this layout."""
    masks = result.valid_mask if valid_masks else None
    made = layout.fill(result._plain_arrays, masks, result._visited_frames)
    notes = result._info.short_notes(is_lazy=False)
    return made.assign_attrs(note="\n".join(notes)) if notes else made


def dataset_in_file(
    result: ResultOutputs, rename: Mapping[str, Hashable] | None
) -> tuple[xr.Dataset, dict[str, Hashable]]:
    """Return the Dataset in a file of results, and the names of valid masks there."""
    info, own = result._info, result._own_masks
    layout = default_layout(info, rename)
    masks = {name: layout.places[name].mask_name for name in own}
    dataset = layout.add_validity(make_dataset(result, layout, False), own, info.grid.roi)
    if info.grid.roi is not None:  # also results without scan positions have their region
        for axis, n in zip(info.calibration.axes, info.nav_shape, strict=False):
            dataset = dataset.assign_coords(coordinate(axis.name, axis, n))
    return dataset, masks
