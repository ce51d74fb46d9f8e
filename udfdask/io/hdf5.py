"""Open datasets of HDF5 files."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np

from udfdask.arrays.geometry.axes import Axis, axis_of_values
from udfdask.errors import FileFormatError, missing_package
from udfdask.io.choose_dataset import (
    Candidate,
    choose_dataset,
    choose_result,
    listing,
    unknown_dataset,
)
from udfdask.io.chunk_decoders import DamagedChunk
from udfdask.io.damaged_files import COPY_AGAIN, check_values, reading
from udfdask.io.file_identity import FileIdentity
from udfdask.io.hdf5_chunks import ChunkTable, contiguous_offset
from udfdask.io.lazy_source import FileArray
from udfdask.io.memmap import MappedArray, c_strides
from udfdask.io.nexus_axes import nexus_axis
from udfdask.io.opened_file import OpenedFile, open_source
from udfdask.io.result_marks import marked_results
from udfdask.io.stored_chunks import LibraryNeeded, read_part
from udfdask.once_per_process import OncePerProcess

SIGNATURE = b"\x89HDF\r\n\x1a\n"

_NETCDF = "_NCProperties"
"""Attribute of files that were written by the NetCDF 4 library."""


_tables = OncePerProcess(32)
"""Tables of the chunks of the last 32 datasets: to list 100,000 chunks takes 0.2 s."""


def _h5py() -> Any:
    """Return the package h5py, with the filters of hdf5plugin if it is installed."""
    with contextlib.suppress(ImportError):
        importlib.import_module("hdf5plugin")
    return importlib.import_module("h5py")


@dataclass(frozen=True, slots=True, kw_only=True)
class HDF5Dataset(FileArray):
    """A dataset in an HDF5 file that each task opens.

    An open h5py file cannot be pickled, and it prevents other programs from writing to the file.
    """

    others: tuple[FileIdentity, ...]
    """Other files that contain values of a virtual, external or linked dataset."""
    contiguous: MappedArray | None
    """The same values as one part of the file, which tasks map; None for other layouts."""
    dataset: str
    """Path of the dataset inside the file."""

    def __getitem__(self, index: Any) -> np.ndarray[Any, Any]:
        """Return the part at `index`, read from the file."""
        _flush(self.file.path)
        if self.contiguous is not None:
            return self.contiguous[index]
        try:
            return self._from_chunks(index)
        except LibraryNeeded:
            return self._from_library(index)
        except DamagedChunk as error:
            raise FileFormatError(
                f"{self.file.path}, dataset {self.dataset!r} at {index}, cannot be read as HDF5: "
                f"a stored chunk is damaged ({error}). {COPY_AGAIN}"
            ) from error

    def _from_chunks(self, index: Any) -> np.ndarray[Any, Any]:
        """Return a part of which HDF5 reads nothing; raise `LibraryNeeded` if HDF5 has to."""
        table = _tables.get((self.file, self.dataset), self._table)
        if table is None:
            raise LibraryNeeded("unknown filters, or values that NumPy does not have")
        with FileIO(self.file.open()) as stream:
            part = read_part(
                index,
                shape=self.shape,
                dtype=self.dtype,
                stored=table.stored,
                read_chunk=table.reader(stream),
            )
            self.file.check(stream.fileno())  # new values could be mixed with old ones
        return part

    def _table(self) -> ChunkTable | None:
        """Return the table of the chunks, if they can be read without HDF5."""
        if self.others:
            return None
        with (
            self.file.unchanged(),
            reading(self.file.path, "HDF5", part=f"dataset {self.dataset!r}"),
            _h5py().File(self.file.path, "r") as opened,
        ):
            return ChunkTable.of(opened[self.dataset])

    def _from_library(self, index: Any) -> np.ndarray[Any, Any]:
        """Return the part at `index`, read by HDF5."""
        h5py = _h5py()
        where = f"dataset {self.dataset!r} at {index}"
        # HDF5 reads fill values in place of a missing file of a virtual dataset.
        with ExitStack() as stack:
            for file in (self.file, *self.others):
                stack.enter_context(file.unchanged())
            stack.enter_context(reading(self.file.path, "HDF5", part=where))
            opened = stack.enter_context(h5py.File(self.file.path, "r"))
            dataset = opened[self.dataset]
            with reading(self.file.path, "HDF5", part=where, advice=_advice(dataset)):
                part: np.ndarray[Any, Any] = dataset[index]
            self.file.check(opened.id.get_vfd_handle())
        return part


def _advice(dataset: Any) -> str:
    """Return what to do if an open dataset cannot be read."""
    from h5py import h5z

    properties = dataset.id.get_create_plist()
    filters = [properties.get_filter(n) for n in range(properties.get_nfilters())]
    missing = [
        f"{name.decode(errors='replace')} (number {number})"
        for number, _, _, name in filters
        if not h5z.filter_avail(number)
    ]
    if not missing:
        return COPY_AGAIN
    return (
        f"HDF5 does not have the filter {' and '.join(missing)} with which it was written: pip "
        "install hdf5plugin, or set HDF5_PLUGIN_PATH to the folder of the filter, and start Python "
        "again"
    )


def _flush(path: str) -> None:
    """Write to a file what this process still has in memory for it, so that tasks notice it.

    HDF5 keeps values that were written with h5py until the file is closed. After it has written
    new values, the file is not the one that was opened.
    """
    if "h5py" not in sys.modules:
        return
    from h5py import h5f

    for opened in h5f.get_obj_ids(h5f.OBJ_ALL, h5f.OBJ_FILE):
        # the file may be closed by now, or it is only in memory
        with contextlib.suppress(ValueError, RuntimeError, OSError):
            if opened.get_intent() & h5f.ACC_RDWR and Path(os.fsdecode(opened.name)).samefile(path):
                h5f.flush(opened)


def open_hdf5(
    file: Path, *, dataset: str | int | None, sig_dims: int | None, chunks: Any
) -> OpenedFile:
    """Open a dataset of an HDF5 file, by default the one that contains the frames."""
    try:
        h5py = _h5py()
    except ImportError as error:
        raise missing_package("h5py", purpose=f"reading {file.name}") from error
    identity = FileIdentity.of(file)  # before the file is opened, so that a change is noticed
    with reading(file, "HDF5"), _not_being_written(file), h5py.File(file, "r") as opened:
        name = _dataset_name(opened, dataset, file, sig_dims)
        h5_dataset = opened[name]
        source = _source(h5_dataset, name, identity)
        axes = [_axis(h5_dataset, dim) for dim in range(h5_dataset.ndim)]
        stored = h5_dataset.chunks
        unit = h5_dataset.attrs.get("units")
        format_name = "NetCDF 4" if _NETCDF in opened.attrs else "HDF5"
    check_values(file, source.shape, source.dtype, part=f"dataset {name!r}")
    return open_source(
        source,
        sig_dims=sig_dims,
        chunks=chunks,
        stored=stored,
        prefix="from-hdf5",
        reader=f"{format_name}, dataset {name}",
        title=file.stem,
        axes=axes,
        unit=unit,
    )


@contextlib.contextmanager
def _not_being_written(file: Path) -> Iterator[None]:
    """Say what to do if HDF5 does not open a file because another program writes to it."""
    try:
        yield
    except OSError as error:
        if not isinstance(error, BlockingIOError) and "already open for write" not in str(error):
            raise
        raise FileFormatError(
            f"{file} is open in a program that writes to it: close it there. If there is no such "
            f"program, because it has crashed, run: h5clear -s {file}"
        ) from error


def take_over(array: da.Array, identity: FileIdentity) -> HDF5Dataset | None:
    """Close the HDF5 file of HyperSpy's lazy array and return its dataset; None for other arrays.

    An array of an open HDF5 file cannot be pickled, and it prevents writing to the file.
    """
    node = array.dask.get(f"original-{array.name}")
    dataset = getattr(node, "value", node)
    # if h5py has not been imported, the array is not from HDF5
    if "h5py" not in sys.modules or not isinstance(dataset, sys.modules["h5py"].Dataset):
        return None
    source = _source(dataset, dataset.name, identity)
    dataset.file.close()
    return source


def _source(dataset: Any, name: str, identity: FileIdentity) -> HDF5Dataset:
    """Return the source with which tasks read an open dataset."""
    others = tuple(_other_files(dataset, Path(identity.path)))
    if not others and dataset.file.mode == "r+":
        # this process also writes to the file, and not all values are in it yet
        dataset.flush()
        dataset.file.flush()
        identity = FileIdentity.of(identity.path)
    offset = None if others else contiguous_offset(dataset)
    contiguous = None
    if offset is not None:
        contiguous = MappedArray(
            file=identity,
            shape=dataset.shape,
            dtype=dataset.dtype,
            offset=offset,
            strides=c_strides(dataset.shape, dataset.dtype.itemsize),
        )
    return HDF5Dataset(
        file=identity,
        others=others,
        contiguous=contiguous,
        dataset=name,
        shape=dataset.shape,
        dtype=dataset.dtype,
        stored=dataset.chunks,
    )


def _other_files(dataset: Any, file: Path) -> Iterator[FileIdentity]:
    """Yield the files other than `file` that contain values of a dataset."""
    home = Path(dataset.file.filename)  # differs from `file` after an external link
    names = [] if home == file else [str(home)]
    if dataset.is_virtual:
        names += [source.file_name for source in dataset.virtual_sources()]
    names += [name for name, *_ in dataset.external or ()]
    for name in dict.fromkeys(names):
        if name == "." or "%" in name:  # the file itself, or a pattern for later files
            continue
        # the places in which HDF5 searches
        places = (Path(name), home.parent / name, home.parent / Path(name).name)
        other = next((place.resolve() for place in places if place.is_file()), None)
        if other is None:
            raise FileFormatError(
                f"dataset {dataset.name} of {file} also needs the file {name}, which does not "
                "exist: HDF5 would read fill values instead. Put the file back"
            )
        yield FileIdentity.of(other)


def _dataset_name(opened: Any, dataset: str | int | None, file: Path, sig_dims: int | None) -> str:
    """Return the path of the user's dataset in an open HDF5 file, or of a suitable one."""
    import h5py

    if dataset is None:
        results = marked_results(opened.attrs)
        if results is not None:
            found = choose_result(results, _datasets(opened), sig_dims=sig_dims, file=str(file))
            return found.name
        return choose_dataset(_datasets(opened), file=str(file)).name
    # The list of datasets does not follow links, so look the path up.
    try:
        item = opened.get(str(dataset)) if str(dataset).strip("/") else None
    except RuntimeError:  # a circle of links
        item = None
    if isinstance(item, h5py.Dataset) and item.shape is not None:
        return str(dataset).strip("/")
    link = opened.get(str(dataset), getlink=True) if item is None and str(dataset) else None
    if isinstance(link, h5py.SoftLink | h5py.ExternalLink):
        other = f" of {link.filename}" if isinstance(link, h5py.ExternalLink) else ""
        raise FileFormatError(
            f"{dataset!r} in {file} is a link to {link.path!r}{other}, which cannot be opened: "
            "restore the target of the link, or pass dataset= as one of "
            f"{listing(_datasets(opened))}"
        )
    raise unknown_dataset(dataset, _datasets(opened), file=file.name)


def _datasets(opened: Any) -> list[Candidate]:
    """Return all datasets in an open HDF5 file."""
    import h5py

    datasets: list[Candidate] = []

    def collect(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and item.shape is not None:
            datasets.append(Candidate(name=name, shape=item.shape, dtype=_dtype(item)))

    opened.visititems(collect)
    return datasets


def _dtype(dataset: Any) -> np.dtype[Any]:
    """Return the type of a dataset; raw bytes if NumPy has no such type, as for HDF5's times."""
    try:
        dtype: np.dtype[Any] = dataset.dtype
    except TypeError:
        return np.dtype("V")
    return dtype


def _axis(dataset: Any, dim: int) -> Axis | None:
    """Return the axis that an HDF5 dimension scale or NeXus describes; None if there is none."""
    described = dataset.dims[dim]
    if len(described) == 0:
        named = Axis(name=described.label) if described.label else None
        return named or nexus_axis(dataset, dim)
    scale = described[0]
    name = described.label or str(scale.name).rpartition("/")[2]
    if scale.shape != dataset.shape[dim : dim + 1]:
        return Axis(name=name)
    return axis_of_values(name, scale[()], scale.attrs.get("units"))
