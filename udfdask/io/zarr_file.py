"""Zarr stores in a folder: an array, or an array in a group."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from udfdask.axes import Axis
from udfdask.errors import ArgumentValueError, FileFormatError
from udfdask.io.choice import Candidate, choose_dataset, unknown_dataset
from udfdask.io.chunk_files import ChunkFiles, touched_keys
from udfdask.io.identity import FileIdentity
from udfdask.io.opened import OpenedFile, axis_from_coordinate, choose_sig_dims, name_axes
from udfdask.io.source import choose_chunks, lazy_array
from udfdask.optional import missing_package
from udfdask.stores import METADATA


@dataclass(frozen=True, slots=True, kw_only=True)
class ZarrArray:
    """An array in a zarr store that is opened once in each process that slices it."""

    file: FileIdentity
    """The array's metadata file as it was when it was opened."""
    chunk_files: ChunkFiles
    """When the files of stored chunks were last looked at."""
    shape: tuple[int, ...]
    """Shape of the whole array."""
    dtype: np.dtype[Any]
    """Type of the values."""

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def __getitem__(self, index: Any) -> np.ndarray[Any, Any]:
        """Return the part at `index`, read from the store."""
        folder = Path(self.file.path).parent
        with self.file.reading(f"{folder}, part {index},"):
            opened = _open_once(self.file)
            part: np.ndarray[Any, Any] = opened[index]
            self.chunk_files.check(folder, touched_keys(opened, index))
        return part


@lru_cache(maxsize=32)
def _open_once(metadata: FileIdentity) -> Any:
    """Take an array's metadata file; return the array opened for reading."""
    import zarr

    opened = zarr.open_array(str(Path(metadata.path).parent), mode="r")
    os.close(metadata.open())  # what changes in between must not be kept
    return opened


def open_zarr(
    folder: Path, *, dataset: str | int | None, sig_dims: int | None, chunks: Any
) -> OpenedFile:
    """Take a zarr store and the array's path in it, or None; return it opened."""
    try:
        import zarr
    except ImportError as error:
        raise missing_package("zarr", purpose=f"reading {folder.name}") from error
    if (folder / "zarr.json").is_file() and int(zarr.__version__.partition(".")[0]) < 3:
        raise FileFormatError(
            f"{folder.name} is in zarr format 3, which zarr {zarr.__version__} cannot read: "
            'pip install "zarr>=3", or write it with zarr_format=2'
        )
    try:
        opened = zarr.open(str(folder), mode="r")
    except (ValueError, OSError, KeyError) as error:
        raise FileFormatError(f"{folder.name} cannot be read as zarr: {error}") from error
    if isinstance(opened, zarr.Array):
        if dataset is not None:
            raise ArgumentValueError(
                f"there is no dataset {dataset!r} in {folder.name}: {folder.name} is itself an "
                "array, so leave dataset out"
            )
        group, name, found = None, "", opened
    else:
        group = opened
        name, found = _member(opened, dataset, file=folder.name)
    inside = folder / name
    identity = FileIdentity.of(
        next(inside / part for part in METADATA if (inside / part).is_file())
    )
    source = ZarrArray(
        file=identity,
        chunk_files=ChunkFiles.of(found, inside),
        shape=found.shape,
        dtype=found.dtype,
    )
    sig = choose_sig_dims(sig_dims, source.ndim)
    stored = getattr(found, "shards", None) or found.chunks
    wanted = choose_chunks(source.shape, source.dtype, sig, chunks, stored=stored)
    return OpenedFile(
        array=lazy_array(source, wanted, prefix="from-zarr"),
        sig_dims=sig,
        reader=f"zarr, array {name}" if name else "zarr",
        title=folder.stem,
        axes=name_axes(_axes(found, group, name), sig),
    )


def _candidate(name: str, array: Any) -> Candidate:
    """Take an array's path in its store and the array; return it as a candidate."""
    return Candidate(name=name, shape=array.shape, dtype=array.dtype)


def _member(group: Any, dataset: str | int | None, *, file: str) -> tuple[str, Any]:
    """Take a zarr group and the path asked for, or None; return an array's path and the array."""
    import zarr

    arrays = {name: member for name, member in _members(group) if isinstance(member, zarr.Array)}
    candidates = [_candidate(name, array) for name, array in arrays.items()]
    if dataset is None:
        name = choose_dataset(candidates, file=file).name
    else:
        name = str(dataset).strip("/")
    if name not in arrays:
        raise unknown_dataset(str(dataset), candidates, file=file)
    return name, arrays[name]


def _members(group: Any) -> list[tuple[str, Any]]:
    """Take a zarr group; return all groups and arrays below it by their paths."""
    if hasattr(group, "members"):
        return list(group.members(max_depth=None))
    found: list[tuple[str, Any]] = []
    # of zarr 2; what it calls ends the walk by returning something
    group.visititems(lambda name, member: found.append((name, member)))
    return found


def _axes(array: Any, group: Any, name: str) -> list[Axis | None]:
    """Take an array, the group it is in or None, and its path; return what is known of its axes.

    The names are those that xarray writes; the positions are those of the coordinate variable of
    the same name beside the array.
    """
    import zarr

    names = getattr(getattr(array, "metadata", None), "dimension_names", None)
    names = names or array.attrs.get("_ARRAY_DIMENSIONS") or (None,) * array.ndim
    folder = name.rpartition("/")[0]
    axes: list[Axis | None] = []
    for dim in names:
        beside = None if group is None or not dim else group.get(f"{folder}/{dim}".strip("/"))
        if isinstance(beside, zarr.Array) and beside.ndim == 1:
            unit = beside.attrs.get("units")
            axes.append(
                axis_from_coordinate(dim, beside[:], unit if isinstance(unit, str) else None)
            )
        else:
            axes.append(Axis(name=dim) if dim else None)
    return axes
