"""Zarr stores in a folder: an array, or an array in a group."""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from udfdask.arrays.geometry.axes import Axis
from udfdask.errors import ArgumentValueError, FileFormatError, missing_package
from udfdask.io.choose_dataset import Candidate, choose_dataset, unknown_dataset
from udfdask.io.damaged_files import check_values, reading
from udfdask.io.file_identity import FileIdentity
from udfdask.io.lazy_source import choose_chunks, lazy_array
from udfdask.io.opened_file import OpenedFile, axis_from_coordinate, choose_sig_dims, name_axes
from udfdask.io.zarr_chunk_files import ChunkFiles, touched_chunks
from udfdask.writing.stores import METADATA, is_zarr

_CHUNK = re.compile(r"c|(c[./])?\d+([./]\d+)*")
"""Name of what holds chunks: ``c``, ``0`` or ``0.0.0``."""

_SEARCHED = 1000
"""Stored chunks that are read one by one to find the damaged one: about a second."""


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
        with self.file.unchanged():
            with reading(folder, "zarr"):
                opened = _open_once(self.file)
            touched = touched_chunks(opened, index)
            try:
                with reading(folder, "zarr", part=f"at {index}"):
                    part: np.ndarray[Any, Any] = opened[index]
            except FileFormatError:
                self.chunk_files.check(folder, touched)  # a changed chunk says why
                _name_damaged_chunk(opened, folder, touched)
                raise
            self.chunk_files.check(folder, touched)
        return part


def _name_damaged_chunk(opened: Any, folder: Path, touched: Mapping[str, tuple[int, ...]]) -> None:
    """Take an opened array and chunks of it, one of which cannot be read; raise with its path."""
    grid = getattr(opened, "shards", None) or opened.chunks
    for key, place in itertools.islice(touched.items(), _SEARCHED):
        within = tuple(slice(n * c, (n + 1) * c) for n, c in zip(place, grid, strict=True))
        with reading(folder / key, "a chunk of a zarr array"):
            opened[within]


@lru_cache(maxsize=32)
def _open_once(metadata: FileIdentity) -> Any:
    """Take an array's metadata file; return the array opened for reading."""
    opened = _open_array(Path(metadata.path).parent)
    os.close(metadata.open())  # what changes in between must not be kept
    return opened


def _open_array(folder: Path) -> Any:
    """Take an array's folder; return it opened for reading."""
    import zarr

    if int(zarr.__version__.partition(".")[0]) < 3:
        return zarr.open_array(str(folder), mode="r")
    from udfdask.io.check_zarr_chunks import open_checked

    return open_checked(str(folder), _metadata(folder))


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
            f"{folder} is in zarr format 3, which zarr {zarr.__version__} cannot read: "
            'pip install "zarr>=3", or write it with zarr_format=2'
        )
    if _is_array(folder):
        if dataset is not None:
            raise ArgumentValueError(
                f"there is no dataset {dataset!r} in {folder}: {folder.name} is itself an "
                "array, so leave dataset out"
            )
        name, found = "", _describe(folder, "")
    else:
        found = _member(folder, dataset)
        name = found.name
    inside = folder / name
    identity = FileIdentity.of(_metadata_file(inside))
    found = _describe(inside, name)  # once more: a change before that would go unnoticed
    source = ZarrArray(
        file=identity,
        chunk_files=ChunkFiles.of(_open_array(inside), inside),
        shape=found.shape,
        dtype=found.dtype,
    )
    check_values(inside, source.shape, source.dtype)
    sig = choose_sig_dims(sig_dims, source.ndim)
    wanted = choose_chunks(source.shape, source.dtype, sig, chunks, stored=found.stored)
    return OpenedFile(
        array=lazy_array(source, wanted, prefix="from-zarr"),
        sig_dims=sig,
        reader=f"zarr, array {name}" if name else "zarr",
        title=folder.stem,
        axes=name_axes(_axes(folder / name, found), sig),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Described:
    """What an array's metadata say."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    stored: tuple[int, ...]
    """Shape of what lies in one file: a shard or a chunk."""
    dims: tuple[str | None, ...]
    """Names of the dimensions, as xarray writes them."""
    unit: str | None
    """Unit of the values."""


def _describe(folder: Path, name: str) -> _Described:
    """Take an array's folder and its path in the store; return what its metadata say."""
    with reading(_metadata_file(folder), "metadata of a zarr array"):
        array = _open_array(folder)
        shape = tuple(int(size) for size in array.shape)
        dtype = np.dtype(array.dtype)
        stored = tuple(int(size) for size in getattr(array, "shards", None) or array.chunks)
        names = getattr(getattr(array, "metadata", None), "dimension_names", None)
        names = names or array.attrs.get("_ARRAY_DIMENSIONS") or [None] * len(shape)
        unit = array.attrs.get("units")
    _check_grid(_metadata_file(folder), shape, stored, names)
    return _Described(
        name=name,
        shape=shape,
        dtype=dtype,
        stored=stored,
        dims=tuple(names),
        unit=unit if isinstance(unit, str) else None,
    )


def _check_grid(metadata: Path, shape: tuple[int, ...], stored: tuple[int, ...], dims: Any) -> None:
    """Take what zarr lets pass of an array's metadata; raise if it does not fit together."""
    if len(stored) != len(shape) or min(shape, default=0) < 0 or min(stored, default=1) < 1:
        raise FileFormatError(
            f"{metadata} gives an array of shape {shape} in chunks of {stored}: one positive size "
            "of a chunk for each dimension was expected. Restore the file from a copy"
        )
    named = isinstance(dims, list | tuple) and all(isinstance(d, str | None) for d in dims)
    if not named or len(dims) != len(shape):
        raise FileFormatError(
            f"{metadata} calls the dimensions {dims!r}: one name for each of the {len(shape)} "
            f"dimensions of shape {shape} was expected. Restore the file from a copy, or mend it"
        )


def _member(folder: Path, dataset: str | int | None) -> _Described:
    """Take the folder of a group and the path asked for, or None; return what an array is like."""
    asked = None if dataset is None else str(dataset).strip("/")
    places = dict(_arrays(folder, name="", strict=asked is None))
    if asked in places:
        return _describe(places[asked], asked)
    found = {name: _describe(place, name) for name, place in places.items()}
    candidates = [Candidate(name=d.name, shape=d.shape, dtype=d.dtype) for d in found.values()]
    if asked is not None:
        dict(_arrays(folder, name="", strict=True))  # perhaps only its metadata are gone
        raise unknown_dataset(asked, candidates, file=folder.name)
    return found[choose_dataset(candidates, file=str(folder)).name]


def _arrays(group: Path, *, name: str, strict: bool) -> Iterator[tuple[str, Path]]:
    """Take a group's folder and its path in the store; return paths and folders of all arrays.

    Looked up on the disk: zarr passes over arrays without metadata, and believes a consolidated
    list. Where `strict`, chunks without metadata are an error: the array meant may be theirs.
    """
    here = group.resolve()
    with reading(group, "zarr"):
        places = sorted(path for path in group.iterdir() if path.is_dir())
    for place in places:
        if place.resolve() in (here, *here.parents):  # a link that leads back
            continue
        inside = f"{name}/{place.name}".strip("/")
        if not any((place / file).exists() for file in METADATA):
            if strict and any(_CHUNK.fullmatch(part.name) for part in place.iterdir()):
                raise FileFormatError(
                    f"{place} holds chunks, but none of {', '.join(METADATA[:2])}, which says "
                    "what they are: restore it from a copy, or pass dataset= to open another array"
                )
        elif _is_array(place):
            yield inside, place
        else:
            yield from _arrays(place, name=inside, strict=strict)


def _metadata_file(folder: Path) -> Path:
    """Take the folder of an array or group; return its metadata file."""
    for name in METADATA:
        if (folder / name).is_file():
            return folder / name
    raise FileFormatError(
        f"{folder} holds none of {', '.join(METADATA)} that is a file: restore it from a copy"
    )


def _metadata(folder: Path) -> dict[str, Any]:
    """Take the folder of an array or group; return what its metadata file says."""
    file = _metadata_file(folder)
    with reading(file, "metadata of zarr"):
        described = json.loads(file.read_bytes())
    version = described.get("zarr_format") if isinstance(described, dict) else None
    expected = 3 if file.name == "zarr.json" else 2
    if version != expected:
        raise FileFormatError(
            f'{file} must hold a JSON object with "zarr_format": {expected}, but has '
            f"{version!r} there: restore it from a copy"
        )
    checked: dict[str, Any] = described
    return checked


def _is_array(folder: Path) -> bool:
    """Whether the folder of an array or group is that of an array."""
    file, described = _metadata_file(folder), _metadata(folder)
    kind = described.get("node_type") if file.name == "zarr.json" else None
    if file.name == "zarr.json" and kind not in ("array", "group"):
        raise FileFormatError(
            f'{file} must say "node_type": "array" or "group", but says {kind!r}: restore it '
            "from a copy"
        )
    return kind == "array" or file.name == ".zarray"


def _axes(folder: Path, found: _Described) -> list[Axis | None]:
    """Take an array's folder and what it is like; return what is known of its axes.

    The positions are those of the coordinate variable of the same name beside the array.
    """
    with reading(folder.parent, "zarr"):
        beside = {place.name for place in folder.parent.iterdir()} if found.name else set()
    axes: list[Axis | None] = []
    for dim, size in zip(found.dims, found.shape, strict=True):
        if not dim:
            axes.append(None)
        elif dim in beside:
            axes.append(_coordinate(folder.parent / dim, dim, size))
        else:
            axes.append(Axis(name=dim))
    return axes


def _coordinate(folder: Path, dim: str, size: int) -> Axis:
    """Take the folder of what is called like a dimension, and its size; return its axis."""
    if not is_zarr(folder) or not _is_array(folder):
        return Axis(name=dim)
    described = _describe(folder, dim)
    if described.shape != (size,) or described.dtype.kind not in "iuf":
        return Axis(name=dim)
    with reading(folder, "zarr"):
        values = _open_array(folder)[:]
    return axis_from_coordinate(dim, values, described.unit)
