"""NetCDF files of the classic format, 3: described by xarray, their values mapped into memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from udfdask.arrays.geometry.axes import Axis
from udfdask.errors import missing_package
from udfdask.io.choose_dataset import Candidate, choose_dataset, unknown_dataset
from udfdask.io.damaged_files import check_values, reading
from udfdask.io.file_identity import FileIdentity
from udfdask.io.lazy_source import choose_chunks, lazy_array
from udfdask.io.memmap import MappedArray
from udfdask.io.opened_file import OpenedFile, axis_from_coordinate, choose_sig_dims, name_axes

SIGNATURES = (b"CDF\x01", b"CDF\x02")
"""What files begin with; those of NetCDF 4 are HDF5 files."""


def open_netcdf(
    file: Path, *, dataset: str | int | None, sig_dims: int | None, chunks: Any
) -> OpenedFile:
    """Take a NetCDF file and the variable's name in it, or None; return it opened."""
    identity = FileIdentity.of(file)  # before looking inside: a change in between is noticed
    with _read(file) as opened, reading(file, "NetCDF"):
        found = [
            Candidate(name=str(name), shape=variable.shape, dtype=variable.dtype)
            for name, variable in opened.data_vars.items()
        ]
        name = choose_dataset(found, file=str(file)).name if dataset is None else str(dataset)
        if name not in opened.data_vars:
            raise unknown_dataset(name, found, file=file.name)
        variable = opened[name]
        axes = [_axis(opened, str(dim)) for dim in variable.dims]
        check_values(file, variable.shape, variable.dtype, part=f"variable {name!r}")
        sig = choose_sig_dims(sig_dims, variable.ndim)
    source = _mapped(identity, name)
    wanted = choose_chunks(source.shape, source.dtype, sig, chunks)
    return OpenedFile(
        array=lazy_array(source, wanted, prefix="from-netcdf"),
        sig_dims=sig,
        reader=f"NetCDF, variable {name}",
        title=file.stem,
        axes=name_axes(axes, sig),
    )


def _mapped(identity: FileIdentity, name: str) -> MappedArray:
    """Take a NetCDF file and a variable's name; return where the file has its values."""
    from scipy.io import netcdf_file

    with reading(identity.path, "NetCDF"), netcdf_file(identity.path, "r", mmap=True) as opened:
        values = opened.variables[name].data
        whole = values
        while isinstance(whole.base, np.ndarray):
            whole = whole.base
        offset = byte_bounds(values)[0] - byte_bounds(whole)[0]
        source = MappedArray(
            file=identity,
            shape=values.shape,
            dtype=values.dtype,
            offset=offset,
            strides=values.strides,
        )
        del values, whole  # SciPy cannot close the file before
    return source


def _read(file: Path) -> Any:
    """Take a NetCDF file; return its xarray.Dataset, values as stored."""
    try:
        import xarray as xr
    except ImportError as error:
        package = error.name or "xarray"
        raise missing_package(package, purpose=f"reading {file.name}") from error
    with reading(file, "NetCDF"):
        return xr.open_dataset(file, engine="scipy", decode_cf=False)


def _axis(opened: Any, dim: str) -> Axis:
    """Take an open dataset and a dimension of it; return what its coordinate says."""
    if dim not in opened.coords:
        return Axis(name=dim)
    unit = opened[dim].attrs.get("units")
    return axis_from_coordinate(dim, opened[dim].values, unit if isinstance(unit, str) else None)
