"""Write computed results to an HDF5 file, completely or not at all."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from udfdask.arrays.geometry.axes import Axis
from udfdask.errors import missing_package
from udfdask.io.named_variables import Variable, variables_by_name
from udfdask.writing import HDF5, check_target, replacing


def write_hdf5(
    path: str | os.PathLike[str],
    results: Mapping[str, Mapping[str, Variable]],
    *,
    axes: Sequence[Axis] = (),
    attrs: Mapping[str, str] | None = None,
    overwrite: bool = False,
    sources: Sequence[str | os.PathLike[str]] = (),
) -> Path:
    """Write results to an HDF5 file; return its path. The arguments are those of `write_zarr`.

    Each result is a dataset called ``{udf}_{buffer}``. Its axes are dimension scales with units,
    which `open_file` and programs for NetCDF 4 read.
    """
    h5py = check_h5py()
    target = check_target(path, HDF5, overwrite=overwrite, sources=sources)
    variables = variables_by_name(results)
    with replacing(target) as unfinished, h5py.File(unfinished, "w") as file:
        file.attrs.update(attrs or {})
        scales = _write_scales(file, variables, axes)
        for name, variable in variables.items():
            dataset = file.create_dataset(name, data=variable.values)
            dataset.attrs.update(variable.attrs)
            for place, dim in zip(dataset.dims, variable.dims, strict=True):
                place.label = dim
                if dim in scales:
                    place.attach_scale(scales[dim])
    return target.named


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
    """Write the positions along each axis that a result has; return the datasets by name."""
    sizes = {
        dim: size
        for variable in variables.values()
        for dim, size in zip(variable.dims, variable.values.shape, strict=True)
    }
    scales = {}
    for axis in axes:
        if axis.name in sizes and axis.name not in variables:
            scale = file.create_dataset(axis.name, data=axis.positions(sizes[axis.name]))
            scale.make_scale(axis.name)
            if axis.unit:
                scale.attrs["units"] = axis.unit
            scales[axis.name] = scale
    return scales
