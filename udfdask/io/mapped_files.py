"""Open files that tasks map into memory: NumPy's .npy, and the classic format of NetCDF (3)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from udfdask.geometry.axes import Axis, axis_of_values
from udfdask.io.choose_dataset import Candidate, choose_dataset, unknown_dataset
from udfdask.io.file_identity import (
    COPY_AGAIN,
    FileIdentity,
    check_values,
    existing_file,
    reading,
)
from udfdask.io.memmap import MappedArray
from udfdask.io.opened_file import OpenedFile, open_source

MAGIC = b"\x93NUMPY"
"""First bytes of .npy files."""


def open_npy(file: Path, *, sig_dims: int | None, chunks: Any) -> OpenedFile:
    """Open a .npy file."""
    identity = FileIdentity.of(file)  # before the header is read, so that a change is noticed
    source = MappedArray.of(_mapped(file), identity)
    how: dict[str, Any] = {"sig_dims": sig_dims, "chunks": chunks}
    return open_source(source, prefix="from-npy", reader="NumPy", title=file.stem, **how)


def read_npy(path: str | os.PathLike[str]) -> np.ndarray[Any, Any]:
    """Return the array in a .npy file, read into memory."""
    return np.array(_mapped(existing_file(path)))


def _mapped(file: Path) -> np.memmap[Any, Any]:
    """Return the array in a .npy file, mapped into memory."""
    with reading(file, "a .npy file", advice=f"{COPY_AGAIN} with numpy.save"):
        mapped = np.lib.format.open_memmap(file, mode="r")
    check_values(str(file), mapped.shape, mapped.dtype)
    return mapped


def open_netcdf(
    file: Path, *, dataset: str | int | None, sig_dims: int | None, chunks: Any
) -> OpenedFile:
    """Open a variable of a NetCDF 3 file, by default the one that contains the frames."""
    from scipy.io import netcdf_file

    from udfdask.io.hdf5_axes import text

    identity = FileIdentity.of(file)
    sources: dict[str, MappedArray] = {}
    units, dims, axes = dict[str, Any](), dict[str, Any](), dict[str, Axis]()
    with reading(file, "NetCDF"), netcdf_file(file, "r", mmap=True) as opened:
        for name, variable in opened.variables.items():
            unit = text(getattr(variable, "units", None))
            if variable.dimensions == (name,):  # the positions along a dimension
                axes[name] = axis_of_values(name, variable.data, unit)
            else:
                sources[name] = _place(variable.data, identity)
                dims[name], units[name] = variable.dimensions, unit
        variable = None  # SciPy cannot close a file that is mapped and in use
    candidates = [Candidate(name=n, shape=s.shape, dtype=s.dtype) for n, s in sources.items()]
    name = choose_dataset(candidates, file=str(file)).name if dataset is None else str(dataset)
    if name not in sources:
        raise unknown_dataset(name, candidates, file=file.name)
    check_values(f"{file}, variable {name!r},", sources[name].shape, sources[name].dtype)
    return open_source(
        sources[name],
        sig_dims=sig_dims,
        chunks=chunks,
        prefix="from-netcdf",
        reader=f"NetCDF, variable {name}",
        title=file.stem,
        axes=[axes.get(dim, Axis(name=dim)) for dim in dims[name]],
        unit=units[name],
    )


def _place(values: np.ndarray[Any, Any], identity: FileIdentity) -> MappedArray:
    """Return the place of SciPy's view of the mapped file."""
    whole = values
    while isinstance(whole.base, np.ndarray):
        whole = whole.base
    return MappedArray(
        file=identity,
        shape=values.shape,
        dtype=values.dtype,
        offset=byte_bounds(values)[0] - byte_bounds(whole)[0],
        strides=values.strides,
    )
