"""HDF5 files, any of their datasets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from udfdask.axes import Axis
from udfdask.errors import FileFormatError
from udfdask.io.choice import Candidate, choose_dataset, listing, unknown_dataset
from udfdask.io.damage import check_values, reading
from udfdask.io.opened import OpenedFile, axis_from_coordinate, choose_sig_dims, name_axes
from udfdask.io.source import choose_chunks, lazy_array
from udfdask.optional import missing_package

SIGNATURE = b"\x89HDF\r\n\x1a\n"

_NETCDF = "_NCProperties"
"""The attribute in which the libraries of NetCDF 4 say that they wrote the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HDF5Dataset:
    """A dataset in an HDF5 file that is opened by each task that slices it.

    An open h5py file can neither be pickled nor kept open without blocking those who write it.
    """

    path: str
    """Absolute path of the file."""
    dataset: str
    """Path of the dataset inside the file."""
    shape: tuple[int, ...]
    """Shape of the whole dataset."""
    dtype: np.dtype[Any]
    """Type of the values."""

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def __getitem__(self, index: Any) -> np.ndarray[Any, Any]:
        """Return the part at `index`, read from the file."""
        import h5py

        part = f"dataset {self.dataset!r} at {index}"
        with reading(self.path, "HDF5", part=part), h5py.File(self.path, "r") as file:
            values: np.ndarray[Any, Any] = file[self.dataset][index]
        return values


def open_hdf5(
    file: Path, *, dataset: str | int | None, sig_dims: int | None, chunks: Any
) -> OpenedFile:
    """Take an HDF5 file and the dataset's path in it, or None; return it opened."""
    try:
        import h5py
    except ImportError as error:
        raise missing_package("h5py", purpose=f"reading {file.name}") from error
    with reading(file, "HDF5"), h5py.File(file, "r") as opened:
        name = _dataset_name(opened, dataset, file)
        found = opened[name]
        source = HDF5Dataset(path=str(file), dataset=name, shape=found.shape, dtype=found.dtype)
        _check_sources(found, file)
        axes = [_axis(found, dim) for dim in range(found.ndim)]
        stored = found.chunks
        format_name = "NetCDF 4" if _NETCDF in opened.attrs else "HDF5"
    check_values(file, source.shape, source.dtype, part=f"dataset {name!r}")
    sig = choose_sig_dims(sig_dims, source.ndim)
    wanted = choose_chunks(source.shape, source.dtype, sig, chunks, stored=stored)
    return OpenedFile(
        array=lazy_array(source, wanted, prefix="from-hdf5"),
        sig_dims=sig,
        reader=f"{format_name}, dataset {name}",
        title=file.stem,
        axes=name_axes(axes, sig),
    )


def _dataset_name(opened: Any, dataset: str | int | None, file: Path) -> str:
    """Take an open HDF5 file and the path asked for, or None; return a dataset's path in it."""
    import h5py

    if dataset is None:
        return choose_dataset(_datasets(opened), file=str(file)).name
    # Looked up rather than searched for in the list, which does not follow links.
    try:
        found = opened.get(str(dataset)) if str(dataset).strip("/") else None
    except RuntimeError:  # links in a circle
        found = None
    if isinstance(found, h5py.Dataset) and found.shape is not None:
        return str(dataset).strip("/")
    link = opened.get(str(dataset), getlink=True) if found is None and str(dataset) else None
    if isinstance(link, h5py.SoftLink | h5py.ExternalLink):
        other = f" of {link.filename}" if isinstance(link, h5py.ExternalLink) else ""
        raise FileFormatError(
            f"{dataset!r} in {file} is a link to {link.path!r}{other}, which cannot be opened: "
            "restore what it leads to, or pass dataset= as one of "
            f"{listing(_datasets(opened))}"
        )
    raise unknown_dataset(dataset, _datasets(opened), file=file.name)


def _datasets(opened: Any) -> list[Candidate]:
    """Take an open HDF5 file; return all datasets in it."""
    import h5py

    found: list[Candidate] = []

    def collect(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and item.shape is not None:
            found.append(Candidate(name=name, shape=item.shape, dtype=_dtype(item)))

    opened.visititems(collect)
    return found


def _dtype(dataset: Any) -> np.dtype[Any]:
    """Take a dataset; return its type, that of bytes where NumPy has none, as for HDF5's times."""
    try:
        dtype: np.dtype[Any] = dataset.dtype
    except TypeError:
        return np.dtype("V")
    return dtype


def _check_sources(dataset: Any, file: Path) -> None:
    """Raise if a virtual dataset is made of files that are not there: HDF5 would give zeros."""
    for source in dataset.virtual_sources() if dataset.is_virtual else ():
        name = source.file_name
        if name != "." and "%b" not in name and not (file.parent / name).exists():
            raise FileFormatError(
                f"{file} takes its dataset {dataset.name!r} from {name}, which is not in "
                f"{file.parent}: copy it there"
            )


def _axis(dataset: Any, dim: int) -> Axis | None:
    """Take an HDF5 dataset and a dimension of it; return what its dimension scale says."""
    described = dataset.dims[dim]
    if len(described) == 0:
        return Axis(name=described.label) if described.label else None
    scale = described[0]
    name = described.label or str(scale.name).rpartition("/")[2]
    if scale.shape != dataset.shape[dim : dim + 1]:
        return Axis(name=name)
    unit = scale.attrs.get("units")
    return axis_from_coordinate(name, scale[()], unit if isinstance(unit, str) else None)
