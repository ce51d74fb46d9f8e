"""Open datasets of HDF5 files; tasks decode most stored chunks without HDF5."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from io import FileIO
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np

from udfdask.base.once_per_process import OncePerProcess
from udfdask.errors import FileFormatError, missing_package
from udfdask.io.file_identity import COPY_AGAIN, FileIdentity, check_values, reading, unchanged
from udfdask.io.hdf5_axes import describe, get_item, text
from udfdask.io.hdf5_datasets import existing_file_of, find_dataset, other_files
from udfdask.io.hdf5_voltage import read_voltage
from udfdask.io.lazy_source import Chunks, StoredArray, Values, choose_chunks, lazy_array
from udfdask.io.memmap import MappedArray, c_strides
from udfdask.io.opened_file import OpenedFile, choose_sig_dims, opened_array
from udfdask.io.stored_chunks import (
    DamagedChunk,
    Decode,
    LibraryNeeded,
    StoredBytes,
    hdf5_decoder,
    read_part,
)
from udfdask.io.sync_offset import bands_of_parts, with_nav_shape

_MOST_STORED = 4_000_000  # chunks: a process keeps 16 bytes for each, and lists one in about 1 us

_ADVICE = f"If it is compressed with a filter of hdf5plugin, pip install hdf5plugin. {COPY_AGAIN}"

_DETECTOR = "entry/instrument/detector"

_tables = OncePerProcess(32)
"""Tables of the chunks of the last 32 datasets: to list 100,000 chunks takes 0.2 s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _ChunkTable:
    """Positions and sizes of a dataset's chunks, and their decoder; size 0 is for HDF5 itself."""

    offsets: Values
    sizes: Values
    decode: Decode | None

    @classmethod
    def of(cls, dataset: Any) -> _ChunkTable | None:
        """Return the table of an open dataset; None if HDF5 itself has to read it."""
        if not (hasattr(dataset.id, "chunk_iter") and _is_plain(dataset) and dataset.chunks):
            return None
        if dataset.maxshape.count(None) == 1 and dataset.maxshape[0] is not None:
            return None  # HDF5 2.0 lists the chunks of an extensible array at wrong positions
        grid = [-(-n // step) for n, step in zip(dataset.shape, dataset.chunks, strict=True)]
        filters = _filters(dataset)
        decode = hdf5_decoder(filters)
        if not 0 < np.prod(grid, dtype=float) <= _MOST_STORED or (filters and decode is None):
            return None
        offsets, sizes = np.zeros(grid, np.int64), np.zeros(grid, np.int64)
        stored = dataset.chunks

        def note(chunk: Any) -> None:
            # a bit is set for each filter that was not applied to this chunk
            if chunk.filter_mask == 0 and chunk.byte_offset is not None:
                place = tuple(at // n for at, n in zip(chunk.chunk_offset, stored, strict=True))
                offsets[place], sizes[place] = chunk.byte_offset, chunk.size

        dataset.id.chunk_iter(note)
        return cls(offsets=offsets, sizes=sizes, decode=decode)


@dataclass(frozen=True, slots=True, kw_only=True)
class HDF5Dataset(StoredArray):
    """A dataset in an HDF5 file that each task opens.

    An open h5py file cannot be pickled, and it prevents other programs from writing to the file.
    `others` are files with values of a virtual or external dataset.
    """

    file: FileIdentity
    others: tuple[FileIdentity, ...]
    dataset: str

    def __getitem__(self, index: Any) -> Values:
        """Return the part at `index`, read from the file."""
        try:
            return self._from_chunks(index)
        except LibraryNeeded:
            return self._from_library(index)
        except DamagedChunk as error:
            raise FileFormatError(
                f"{self.file.path}, dataset {self.dataset!r} at {index}, cannot be read as HDF5: "
                f"a stored chunk is damaged ({error}). {COPY_AGAIN}"
            ) from error

    def _from_chunks(self, index: Any) -> Values:
        """Return a part of which HDF5 reads nothing; raise `LibraryNeeded` if HDF5 has to."""
        table = _tables.get((self.file, self.dataset), self._table)
        if table is None or self.stored is None:
            raise LibraryNeeded("unknown filters, or values that NumPy does not have")
        with FileIO(self.file.open()) as stream:
            stored_bytes = StoredBytes(table.decode)

            def read_chunk(place: tuple[int, ...], out: Values) -> None:
                size = int(table.sizes[place])
                # HDF5 can store incomplete chunks at the edges without filters
                if size == 0 or (size == out.nbytes and table.decode is not None):
                    raise LibraryNeeded(f"chunk {place} is missing, or stored in another way")
                stream.seek(int(table.offsets[place]))
                stored_bytes.read(stream, size, out)

            part = read_part(index, self.shape, self.dtype, self.stored, read_chunk)
            self.file.check(stream.fileno())  # new values could be mixed with old ones
        return part

    def _table(self) -> _ChunkTable | None:
        """Return the table of the chunks, if they can be read without HDF5."""
        if self.others:
            return None
        with unchanged([self.file]), _opened(Path(self.file.path)) as opened:
            return _ChunkTable.of(opened[self.dataset])

    def _from_library(self, index: Any) -> Values:
        where = f"dataset {self.dataset!r} at {index}"
        with (
            unchanged((self.file, *self.others)),
            reading(self.file.path, "HDF5", part=where, advice=_ADVICE),
            _h5py().File(self.file.path, "r") as opened,
        ):
            dataset = opened[self.dataset]
            part: Values = dataset[index]
            self.file.check(opened.id.get_vfd_handle())
            if self.others:
                # HDF5 keeps them open, and reads fill values in place of those that are too many
                os.close(self.file.open())
        return part


def _filters(dataset: Any) -> list[tuple[int, tuple[int, ...]]]:
    properties = dataset.id.get_create_plist()
    filters = [properties.get_filter(n) for n in range(properties.get_nfilters())]
    return [(number, values) for number, _, values, _ in filters]


def _check_filters(dataset: Any) -> None:
    """Raise if an open dataset needs hdf5plugin, which is not installed."""
    import h5py

    filters = _filters(dataset)
    known = all(h5py.h5z.filter_avail(number) for number, _ in filters)
    if not known and hdf5_decoder(filters) is None and sys.modules.get("hdf5plugin") is None:
        raise ImportError(
            f"{dataset.file.filename} is compressed with HDF5's filter {filters[-1][0]}: reading "
            "it needs hdf5plugin, which is not installed: pip install hdf5plugin",
            name="hdf5plugin",
        )


def _is_plain(dataset: Any) -> bool:
    """Return whether the values of a dataset are in its file as NumPy has them in memory."""
    import h5py

    return (
        dataset.dtype.kind in "iufc"
        and dataset.id.get_type() == h5py.h5t.py_create(dataset.dtype)
        and not dataset.is_virtual
        and not dataset.external
        and dataset.file.userblock_size == 0
    )


def _h5py(purpose: str = "reading HDF5") -> Any:
    """Return the package h5py, with the filters of hdf5plugin if it is installed."""
    with contextlib.suppress(ImportError):
        importlib.import_module("hdf5plugin")
    try:
        return importlib.import_module("h5py")
    except ImportError as error:
        raise missing_package("h5py", purpose=purpose) from error


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[Any]:
    with reading(file, "HDF5"), _h5py(f"reading {file.name}").File(file, "r") as opened:
        yield opened


def open_hdf5(
    file: Path,
    *,
    dataset: str | int | None,
    sig_dims: int | None,
    chunks: Any,
    nav_shape: int | Sequence[int] | None = None,
    sync_offset: int | None = None,
) -> OpenedFile:
    """Open a dataset of an HDF5 file, by default the one that contains the frames.

    With a `nav_shape`, the caller puts the frames into this scan.
    """
    identity = FileIdentity.of(file)  # before the file is opened, so that a change is noticed
    with _opened(file) as opened:
        chosen = find_dataset(opened, dataset, str(file))
        names = [part.name for part in chosen.parts] or [chosen.name]
        group = opened[names[0].rpartition("/")[0] or "/"]
        axes, unit, known = describe(group, opened[names[0]], chosen.shape)
        sources = [_source(opened[name], identity) for name in names]
        reader = "NetCDF 4, dataset " if "_NCProperties" in opened.attrs else "HDF5, dataset "
        reader += f"{names[0]} to {names[-1]}" if names[1:] else names[0]
        # RosettaSciIO and Direct Electron store dimensions from the last to the first one
        is_foreign = names[0].startswith("signals/") or file.suffix.lower() == ".de5"
        order = -1 if is_foreign and "emd_group_type" in group.attrs else 1
        check_values(f"{file}, {reader},", chosen.shape, chosen.dtype)
        sig = choose_sig_dims(sig_dims, len(chosen.shape), known=known)
        nav, corrections = nav_shape, None
        voltage = read_voltage(opened, opened[names[0]])
        if (detector := get_item(opened, _DETECTOR)) is not None:
            from udfdask.io import dectris  # few files describe one

            corrections = dectris.frame_corrections(detector, chosen.shape[-sig:])
            is_recording = dataset is None or chosen.parts
            if nav_shape is None and is_recording and len(chosen.shape) == sig + 1:
                nav = dectris.scan_shape(detector, chosen.shape[0], file=str(file))
    flat = len(chosen.shape) == sig + 1 and order == 1 and chosen.shape[0] > 0
    grids = bands_of_parts(sources, nav, sync_offset) if flat and nav is not None else None
    array = _lazy(sources, sig, chunks, order, grids)
    how: dict[str, Any] = {"reader": reader, "title": file.stem, "unit": unit, "voltage": voltage}
    made = opened_array(array, sig, axes=axes[::order], **how)
    made = replace(made, corrections=corrections)
    return made if nav is None or nav is nav_shape else with_nav_shape(made, nav, chunks=chunks)


def is_hdf5(file: Path) -> bool:
    """Return whether a file is of HDF5, perhaps after a block of other data, as of MATLAB."""
    try:
        return file.is_file() and bool(_h5py().is_hdf5(file))
    except ImportError:  # the reader that is used then says it better
        return False


def hyperspy_format(file: Path) -> str | None:
    """Return the name of an HDF5 file's format if only RosettaSciIO knows what is in it."""
    by_suffix = {".hspy": "HSPY", ".app5": "Topspin"}.get(file.suffix.lower())
    if by_suffix or not is_hdf5(file):
        return by_suffix
    with _opened(file) as opened:
        if text(opened.attrs.get("file_format")) == "HyperSpy":
            return "HSPY"
        version = opened.get("Version")
        is_velox = getattr(version, "size", None) == 1 and any(
            f'"{name}"' in (text(version[()]) or "") for name in ("Velox", "DevelopersKit")
        )
        if "4DSTEM_simulation" in opened or is_velox:
            return "EMD"  # of Prismatic or Velox
        # names that are not UTF-8 are bytes
        if any(f"{name}/SVIData" in opened for name in map(str, opened)):
            return "Delmic"
    return None


def _lazy(
    sources: Sequence[StoredArray],
    sig_dims: int,
    chunks: Any,
    order: int,
    grids: Sequence[Chunks] | None,
) -> da.Array:
    """Return the array of a dataset or of its parts; `order` is -1 for the last dimension first.

    `grids` are the chunks of the parts if they are known, which the caller cuts into `chunks`.
    """
    if grids is not None:
        pairs = zip(sources, grids, strict=True)
        whole: da.Array = da.concatenate([lazy_array(*pair, prefix="from-hdf5") for pair in pairs])
        return whole
    arrays = []
    for source in sources:
        stored = source.stored and source.stored[::order]
        shown = StoredArray(shape=source.shape[::order], dtype=source.dtype, stored=stored)
        grid = choose_chunks(shown, sig_dims, None if sources[1:] else chunks)
        array = lazy_array(source, grid[::order], prefix="from-hdf5")
        arrays.append(array if order == 1 else array.transpose())
    joined: da.Array = da.concatenate(arrays) if arrays[1:] else arrays[0]
    if arrays[1:] and chunks is not None:
        joined = joined.rechunk(choose_chunks(joined, sig_dims, chunks))
    return joined


def take_over(array: da.Array, identity: FileIdentity) -> StoredArray | None:
    """Close the HDF5 file of HyperSpy's lazy array and return its dataset; None for others."""
    node = array.dask.get(f"original-{array.name}")
    dataset = getattr(node, "value", node)
    # if h5py has not been imported, the array is not from HDF5
    if "h5py" not in sys.modules or not isinstance(dataset, sys.modules["h5py"].Dataset):
        return None
    source = _source(dataset, identity)
    dataset.file.close()
    return source


def _source(dataset: Any, identity: FileIdentity) -> StoredArray:
    """Return the source with which tasks read an open dataset, from the file behind links."""
    file = Path(dataset.file.filename)
    if not file.is_absolute():  # found in the folder of the process, which may be another one later
        existing_file_of(str(file), Path(identity.path))
    if not file.samefile(identity.path):
        identity = FileIdentity.of(file.absolute())
    others = other_files(dataset)
    _check_filters(dataset)
    if not others:  # a symbolic link, such as that to the latest scan, may soon lead elsewhere
        identity = replace(identity, path=os.path.realpath(identity.path))
    if not others and dataset.file.mode == "r+":
        # this process also writes to the file, and not all values are in it yet
        dataset.flush()
        dataset.file.flush()
        identity = FileIdentity.of(identity.path)
    described: dict[str, Any] = {"shape": dataset.shape, "dtype": dataset.dtype, "file": identity}
    if not others and _is_plain(dataset) and not dataset.chunks and dataset.size:
        offset = dataset.id.get_offset()
        if offset is not None:
            strides = c_strides(dataset.shape, dataset.dtype.itemsize)
            return MappedArray(offset=offset, strides=strides, **described)
    return HDF5Dataset(
        others=others, dataset=dataset.name.strip("/"), stored=dataset.chunks, **described
    )
