"""Open NetCDF files of the classic format (NetCDF 3): SciPy describes them, tasks map them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from udfdask.geometry.axes import Axis, axis_of_values
from udfdask.io.choose_dataset import Candidate, choose_dataset, unknown_dataset
from udfdask.io.damaged_files import check_values, reading
from udfdask.io.file_identity import FileIdentity
from udfdask.io.hdf5_axes import text
from udfdask.io.memmap import MappedArray
from udfdask.io.opened_file import OpenedFile, open_source


def open_netcdf(
    file: Path, *, dataset: str | int | None, sig_dims: int | None, chunks: Any
) -> OpenedFile:
    """Open a variable of a NetCDF file, by default the one that contains the frames."""
    identity = FileIdentity.of(file)  # before the header is read, so that a change is noticed
    sources, dims, coordinates, units = _variables(identity)
    candidates = [Candidate(name=n, shape=s.shape, dtype=s.dtype) for n, s in sources.items()]
    name = choose_dataset(candidates, file=str(file)).name if dataset is None else str(dataset)
    if name not in sources:
        raise unknown_dataset(name, candidates, file=file.name)
    source = sources[name]
    check_values(file, source.shape, source.dtype, part=f"variable {name!r}")
    return open_source(
        source,
        sig_dims=sig_dims,
        chunks=chunks,
        prefix="from-netcdf",
        reader=f"NetCDF, variable {name}",
        title=file.stem,
        axes=[coordinates.get(dim, Axis(name=dim)) for dim in dims[name]],
        unit=units[name],
    )


def _variables(
    identity: FileIdentity,
) -> tuple[dict[str, MappedArray], dict[str, tuple[str, ...]], dict[str, Axis], dict[str, Any]]:
    """Return the variables of a NetCDF file, their dimensions, its axes, and the variables' units.

    An axis is described by a variable with the name of its dimension.
    """
    from scipy.io import netcdf_file

    sources, dims, coordinates, units = {}, {}, {}, {}
    with reading(identity.path, "NetCDF"), netcdf_file(identity.path, "r", mmap=True) as opened:
        for name, variable in opened.variables.items():
            unit = text(getattr(variable, "units", None))
            if variable.dimensions == (name,):
                coordinates[name] = axis_of_values(name, variable.data, unit)
            else:
                units[name] = unit
                sources[name] = _mapped(variable.data, identity)
                dims[name] = variable.dimensions
        variable = None  # SciPy cannot close a file that is mapped and in use
    return sources, dims, coordinates, units


def _mapped(values: np.ndarray[Any, Any], identity: FileIdentity) -> MappedArray:
    """Return the place of a view of a mapped file, which tasks map again."""
    file_bytes = values
    while isinstance(file_bytes.base, np.ndarray):
        file_bytes = file_bytes.base
    return MappedArray(
        file=identity,
        shape=values.shape,
        dtype=values.dtype,
        offset=byte_bounds(values)[0] - byte_bounds(file_bytes)[0],
        strides=values.strides,
    )
