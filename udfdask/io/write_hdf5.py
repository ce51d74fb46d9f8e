"""Write computed results to an HDF5 file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from udfdask.errors import missing_package
from udfdask.geometry.axes import Axis
from udfdask.io.named_variables import Variable, positions_in_file
from udfdask.io.result_marks import mark


def write_hdf5(
    path: Path, variables: Mapping[str, Variable], axes: Sequence[Axis], attrs: Mapping[str, str]
) -> None:
    """Write results to an HDF5 file; `axes` are those of the data.

    Each result is a dataset called ``{udf}_{buffer}``. Its axes are dimension scales with units,
    which `open_file` and programs for NetCDF 4 read.
    """
    h5py = check_h5py()
    with h5py.File(path, "w") as file:
        file.attrs.update({**attrs, **mark(n for n, each in variables.items() if not each.mask_of)})
        scales = _write_scales(file, variables, axes)
        for name, variable in variables.items():
            dataset = file.create_dataset(name, data=variable.values)
            dataset.attrs.update(variable.attrs)
            for place, dim in zip(dataset.dims, variable.dims, strict=True):
                place.label = dim
                if dim in scales:
                    place.attach_scale(scales[dim])


def check_h5py() -> Any:
    """Return the package h5py; raise if it is not installed."""
    try:
        import h5py
    except ImportError as error:
        raise missing_package("h5py", purpose="writing an HDF5 file") from error
    return h5py


def hdf5_obstacle(variables: Mapping[str, Variable]) -> str:
    """Return why an HDF5 file cannot hold these results; empty if it can."""
    for name, variable in variables.items():
        if variable.values.dtype.kind not in "biufc":
            return f"{name} contains {variable.values.dtype} values, not numbers"
    return ""


def _write_scales(
    file: Any, variables: Mapping[str, Variable], axes: Sequence[Axis]
) -> dict[str, Any]:
    """Write positions and labels along the axes of results; return the datasets by name."""
    scales = {}
    for dim, (axis, positions) in positions_in_file(variables, axes).items():
        scales[dim] = scale = file.create_dataset(dim, data=positions)
        scale.make_scale(dim)
        if axis.unit:
            scale.attrs["units"] = axis.unit
    return scales
