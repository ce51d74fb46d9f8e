"""NetCDF files of the classic format, 3, as xarray reads them with SciPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from udfdask.axes import Axis
from udfdask.errors import FileFormatError
from udfdask.io.choice import Candidate, choose_dataset, unknown_dataset
from udfdask.io.opened import OpenedFile, axis_from_coordinate, choose_sig_dims, name_axes
from udfdask.io.source import choose_chunks
from udfdask.optional import missing_package

SIGNATURES = (b"CDF\x01", b"CDF\x02")
"""What files begin with; those of NetCDF 4 are HDF5 files."""


def open_netcdf(
    file: Path, *, dataset: str | int | None, sig_dims: int | None, chunks: Any
) -> OpenedFile:
    """Take a NetCDF file and the variable's name in it, or None; return it opened."""
    with _read(file) as opened:
        found = [
            Candidate(name=str(name), shape=variable.shape, dtype=variable.dtype)
            for name, variable in opened.data_vars.items()
        ]
        name = choose_dataset(found, file=file.name).name if dataset is None else str(dataset)
        if name not in opened.data_vars:
            raise unknown_dataset(name, found, file=file.name)
        variable = opened[name]
        axes = [_axis(opened, str(dim)) for dim in variable.dims]
        sig = choose_sig_dims(sig_dims, variable.ndim)
        wanted = choose_chunks(variable.shape, variable.dtype, sig, chunks)
        by_dim = dict(zip(variable.dims, wanted, strict=True))
    return OpenedFile(
        array=_read(file, by_dim)[name].data,
        sig_dims=sig,
        reader=f"NetCDF, variable {name}",
        title=file.stem,
        axes=name_axes(axes, sig),
    )


def _read(file: Path, chunks: Any = None) -> Any:
    """Take a NetCDF file and chunks by dimension; return its xarray.Dataset, values as stored."""
    try:
        import xarray as xr
    except ImportError as error:
        package = error.name or "xarray"
        raise missing_package(package, purpose=f"reading {file.name}") from error
    try:
        return xr.open_dataset(file, engine="scipy", decode_cf=False, chunks=chunks)
    except (ValueError, TypeError, OSError, IndexError, KeyError) as error:
        raise FileFormatError(
            f"{file.name} cannot be read as NetCDF ({type(error).__name__}: {error}): is the file "
            "complete?"
        ) from error


def _axis(opened: Any, dim: str) -> Axis:
    """Take an open dataset and a dimension of it; return what its coordinate says."""
    if dim not in opened.coords:
        return Axis(name=dim)
    unit = opened[dim].attrs.get("units")
    return axis_from_coordinate(dim, opened[dim].values, unit if isinstance(unit, str) else None)
