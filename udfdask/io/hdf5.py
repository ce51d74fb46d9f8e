"""HDF5 files, any of their datasets."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np

from udfdask.arrays.geometry.axes import Axis
from udfdask.errors import FileFormatError, missing_package
from udfdask.io.choose_dataset import Candidate, choose_dataset, listing, unknown_dataset
from udfdask.io.damaged_files import check_values, reading
from udfdask.io.file_identity import FileIdentity
from udfdask.io.lazy_source import choose_chunks, lazy_array
from udfdask.io.opened_file import OpenedFile, axis_from_coordinate, choose_sig_dims, name_axes

SIGNATURE = b"\x89HDF\r\n\x1a\n"

_NETCDF = "_NCProperties"
"""The attribute in which the libraries of NetCDF 4 say that they wrote the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HDF5Dataset:
    """A dataset in an HDF5 file that is opened by each task that slices it.

    An open h5py file can neither be pickled nor kept open without blocking those who write it.
    """

    file: FileIdentity
    """The file as it was when it was opened: a task that finds another one raises."""
    others: tuple[FileIdentity, ...]
    """The same of other files that the values of virtual, external or linked datasets lie in."""
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

        where = f"dataset {self.dataset!r} at {index}"
        # A file of a virtual dataset that is gone would be read as fill values.
        with ExitStack() as stack:
            for file in (self.file, *self.others):
                stack.enter_context(file.unchanged())
            stack.enter_context(reading(self.file.path, "HDF5", part=where))
            with h5py.File(self.file.path, "r") as opened:
                part: np.ndarray[Any, Any] = opened[self.dataset][index]
                self.file.check(opened.id.get_vfd_handle())
        return part


def open_hdf5(
    file: Path, *, dataset: str | int | None, sig_dims: int | None, chunks: Any
) -> OpenedFile:
    """Take an HDF5 file and the dataset's path in it, or None; return it opened."""
    try:
        import h5py
    except ImportError as error:
        raise missing_package("h5py", purpose=f"reading {file.name}") from error
    identity = FileIdentity.of(file)  # before looking inside: a change in between is noticed
    with reading(file, "HDF5"), h5py.File(file, "r") as opened:
        name = _dataset_name(opened, dataset, file)
        found = opened[name]
        source = _source(found, name, identity)
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


def take_over(array: da.Array, identity: FileIdentity) -> HDF5Dataset | None:
    """Take a lazy array; if it is a dataset of an HDF5 file as it is, close the file and return it.

    Such an array cannot be pickled, and as long as it holds the file open nobody can write it.
    """
    node = array.dask.get(f"original-{array.name}")
    dataset = getattr(node, "value", node)
    # what is not installed has not made it
    if "h5py" not in sys.modules or not isinstance(dataset, sys.modules["h5py"].Dataset):
        return None
    source = _source(dataset, dataset.name, identity)
    dataset.file.close()
    return source


def _source(dataset: Any, name: str, identity: FileIdentity) -> HDF5Dataset:
    """Take an open dataset, its path in the file, and the file; return what tasks read it with."""
    return HDF5Dataset(
        file=identity,
        others=tuple(_others(dataset, Path(identity.path))),
        dataset=name,
        shape=dataset.shape,
        dtype=dataset.dtype,
    )


def _others(dataset: Any, file: Path) -> Iterator[FileIdentity]:
    """Take a dataset and the file it was opened from; give the other files that it leads to."""
    home = Path(dataset.file.filename)  # another one after an external link
    names = [] if home == file else [str(home)]
    if dataset.is_virtual:
        names += [source.file_name for source in dataset.virtual_sources()]
    names += [name for name, *_ in dataset.external or ()]
    for name in dict.fromkeys(names):
        if name == "." or "%" in name:  # the file itself, or a pattern for files to come
            continue
        # where HDF5 looks for it
        places = (Path(name), home.parent / name, home.parent / Path(name).name)
        found = next((place.resolve() for place in places if place.is_file()), None)
        if found is None:
            raise FileFormatError(
                f"dataset {dataset.name} of {file} lies in {name}, too, and there is no such file: "
                "fill values would be read in its place. Put the file back"
            )
        yield FileIdentity.of(found)


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
