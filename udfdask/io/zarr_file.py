"""Open arrays of zarr stores in a folder."""

from __future__ import annotations

import contextlib
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

from udfdask.errors import ArgumentValueError, FileFormatError, missing_package
from udfdask.geometry.axes import Axis, axis_of_values
from udfdask.io.choose_dataset import choose_dataset, choose_result, unknown_dataset
from udfdask.io.damaged_files import check_values, reading
from udfdask.io.file_identity import FileIdentity
from udfdask.io.lazy_source import FileArray
from udfdask.io.opened_file import OpenedFile, open_source
from udfdask.io.result_marks import marked_results
from udfdask.io.stored_chunks import LibraryNeeded
from udfdask.io.zarr_chunk_files import ChunkFiles, chunk_key, stored_shape, touched_chunks
from udfdask.io.zarr_chunks import ZarrChunks
from udfdask.io.zarr_metadata import ArrayMetadata, ome_axes, ome_path
from udfdask.writing.stores import METADATA, is_zarr

_CHUNK = re.compile(r"c|(c[./])?\d+([./]\d+)*")
"""Names of files and folders of chunks: ``c``, ``0`` or ``0.0.0``."""

_MOST_SEARCHED = 1000
"""Maximum number of stored chunks to read one by one to find a damaged one, in about a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ZarrArray(FileArray):
    """An array in a zarr store that each process opens once; `file` is its metadata file."""

    chunk_files: ChunkFiles
    """State of the files of stored chunks when the array was opened."""

    def __getitem__(self, index: Any) -> np.ndarray[Any, Any]:
        """Return the part at `index`, read from the store."""
        folder = Path(self.file.path).parent
        with self.file.unchanged():
            with reading(folder, "zarr"):
                opened, chunks = _open_once(self.file)
            touched = touched_chunks(opened, index)
            part = self._from_chunks(opened, chunks, index)
            if part is None:
                part = self._from_library(opened, index, touched)
            self.chunk_files.check(folder, touched)
        return part

    def _from_chunks(
        self, opened: Any, chunks: ZarrChunks | None, index: Any
    ) -> np.ndarray[Any, Any] | None:
        """Return the part at `index`, read without zarr; None if zarr has to read it."""
        if chunks is None:
            return None
        folder = Path(self.file.path).parent
        try:
            part = chunks.read(index, lambda place: folder / chunk_key(opened, place))
        except LibraryNeeded:
            return None
        return part.astype(self.dtype, copy=False)

    def _from_library(
        self, opened: Any, index: Any, touched: Mapping[str, tuple[int, ...]]
    ) -> np.ndarray[Any, Any]:
        """Return the part at `index`, read by zarr."""
        folder = Path(self.file.path).parent
        try:
            with reading(folder, "zarr", part=f"at {index}"):
                part: np.ndarray[Any, Any] = opened[index]
        except FileFormatError:
            self.chunk_files.check(folder, touched)  # a change is a better explanation
            _name_damaged_chunk(opened, folder, touched)
            raise
        return part


def _name_damaged_chunk(opened: Any, folder: Path, touched: Mapping[str, tuple[int, ...]]) -> None:
    """Read chunks one by one; raise an error with the path of the damaged one."""
    shape = stored_shape(opened)
    for key, place in itertools.islice(touched.items(), _MOST_SEARCHED):
        part = tuple(slice(n * c, (n + 1) * c) for n, c in zip(place, shape, strict=True))
        with reading(folder / key, "a chunk of a zarr array"):
            opened[part]


@lru_cache(maxsize=32)
def _open_once(metadata: FileIdentity) -> tuple[Any, ZarrChunks | None]:
    """Return the array of a metadata file, opened for reading, and how to read its chunks."""
    folder = Path(metadata.path).parent
    opened = _open_array(folder)
    chunks = ZarrChunks.of(opened, _metadata(folder))
    os.close(metadata.open())  # raises if the file has changed: do not keep the array then
    return opened, chunks


def _open_array(folder: Path) -> Any:
    """Return the zarr array in a folder, opened for reading."""
    import zarr

    if int(zarr.__version__.partition(".")[0]) < 3:
        return zarr.open_array(str(folder), mode="r")
    from udfdask.io.check_zarr_chunks import open_checked

    return open_checked(str(folder), _metadata(folder))


def open_zarr(
    folder: Path, *, dataset: str | int | None, sig_dims: int | None, chunks: Any
) -> OpenedFile:
    """Open an array of a zarr store, by default the one that contains the frames."""
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
        name = ""
    else:
        name = _choose(folder, dataset, sig_dims)
    inside = folder / name
    identity = FileIdentity.of(_metadata_file(inside))
    # Only metadata that are read after the identity was taken belong to it.
    metadata = _read_metadata(inside, name)
    source = ZarrArray(
        file=identity,
        chunk_files=ChunkFiles.of(_open_array(inside), inside),
        shape=metadata.shape,
        dtype=metadata.dtype,
        stored=metadata.stored,
    )
    check_values(inside, source.shape, source.dtype)
    return open_source(
        source,
        sig_dims=sig_dims,
        chunks=chunks,
        stored=metadata.stored,
        prefix="from-zarr",
        reader=f"zarr, array {name}" if name else "zarr",
        title=folder.stem,
        axes=_ome_axes(inside, metadata) or _axes(inside, metadata),
        unit=metadata.unit,
    )


def _read_metadata(folder: Path, name: str) -> ArrayMetadata:
    """Return the metadata of the array in a folder; `name` is its path in the store."""
    file = _metadata_file(folder)
    with reading(file, "metadata of a zarr array"):
        return ArrayMetadata.of(_open_array(folder), name, where=str(file))


def _choose(group: Path, dataset: str | int | None, sig_dims: int | None) -> str:
    """Return the path of the user's array in a group, or of a suitable one."""
    asked = None if dataset is None else str(dataset).strip("/")
    folders = dict(_arrays(group, name="", strict=asked is None))
    attributes = _attributes(group)
    if asked is None and ome_path(attributes) in folders:
        return str(ome_path(attributes))
    if asked in folders:
        return asked
    candidates = [_read_metadata(folder, name) for name, folder in folders.items()]
    if asked is None:
        results = marked_results(attributes)
        if results is not None:
            return choose_result(results, candidates, sig_dims=sig_dims, file=str(group)).name
        return choose_dataset(candidates, file=str(group)).name
    dict(_arrays(group, name="", strict=True))  # raises if the array has lost its metadata
    raise unknown_dataset(asked, candidates, file=group.name)


def _attributes(group: Path) -> Any:
    """Return the attributes of a group; None if they cannot be read."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        if (group / "zarr.json").is_file():
            return json.loads((group / "zarr.json").read_bytes()).get("attributes")
        return json.loads((group / ".zattrs").read_bytes())
    return None


def _arrays(group: Path, *, name: str, strict: bool) -> Iterator[tuple[str, Path]]:
    """Yield the paths in the store and the folders of all arrays in a group.

    The search reads the folders, because zarr ignores arrays without metadata and trusts
    consolidated metadata. With `strict`, chunks without metadata are an error, because they may be
    the array that the user means.
    """
    resolved = group.resolve()
    with reading(group, "zarr"):
        folders = sorted(path for path in group.iterdir() if path.is_dir())
    for folder in folders:
        if folder.resolve() in (resolved, *resolved.parents):  # a link to a folder above
            continue
        inside = f"{name}/{folder.name}".strip("/")
        if not any((folder / file).exists() for file in METADATA):
            if strict and any(_CHUNK.fullmatch(entry.name) for entry in folder.iterdir()):
                raise FileFormatError(
                    f"{folder} contains chunks, but none of {', '.join(METADATA[:2])}, which "
                    "describe them: restore it from a copy, or pass dataset= to open another array"
                )
        elif _is_array(folder):
            yield inside, folder
        else:
            yield from _arrays(folder, name=inside, strict=strict)


def _metadata_file(folder: Path) -> Path:
    """Return the metadata file of an array or group."""
    for name in METADATA:
        if (folder / name).is_file():
            return folder / name
    raise FileFormatError(
        f"{folder} contains none of the files {', '.join(METADATA)}: restore it from a copy"
    )


def _metadata(folder: Path) -> dict[str, Any]:
    """Return the contents of the metadata file of an array or group."""
    file = _metadata_file(folder)
    with reading(file, "metadata of zarr"):
        metadata = json.loads(file.read_bytes())
    version = metadata.get("zarr_format") if isinstance(metadata, dict) else None
    expected = 3 if file.name == "zarr.json" else 2
    if version != expected:
        raise FileFormatError(
            f'{file} must contain a JSON object with "zarr_format": {expected}, but contains '
            f"{version!r} there: restore it from a copy"
        )
    checked: dict[str, Any] = metadata
    return checked


def _is_array(folder: Path) -> bool:
    """Return whether a folder contains an array; otherwise it contains a group."""
    file, metadata = _metadata_file(folder), _metadata(folder)
    kind = metadata.get("node_type") if file.name == "zarr.json" else None
    if file.name == "zarr.json" and kind not in ("array", "group"):
        raise FileFormatError(
            f'{file} must contain "node_type": "array" or "group", but contains {kind!r}: restore '
            "it from a copy"
        )
    return kind == "array" or file.name == ".zarray"


def _ome_axes(folder: Path, metadata: ArrayMetadata) -> list[Axis | None] | None:
    """Return the axes that a group above the array in a folder describes, as OME-Zarr does."""
    for group in folder.parents[: metadata.name.count("/") + 1]:
        axes = ome_axes(_attributes(group), folder.relative_to(group).as_posix())
        if axes is not None and len(axes) == len(metadata.shape):
            return axes
    return None


def _axes(folder: Path, metadata: ArrayMetadata) -> list[Axis | None]:
    """Return the axes of the array in a folder; None where nothing is known about an axis.

    Positions are the values of an array in the same group that has the name of the dimension.
    """
    with reading(folder.parent, "zarr"):
        siblings = {entry.name for entry in folder.parent.iterdir()} if metadata.name else set()
    return [
        (_coordinate(folder.parent / dim, dim, size) if dim in siblings else Axis(name=dim))
        if dim
        else None
        for dim, size in zip(metadata.dims, metadata.shape, strict=True)
    ]


def _coordinate(folder: Path, dim: str, size: int) -> Axis:
    """Return the axis that the array in a folder describes, if it is a coordinate."""
    if not is_zarr(folder) or not _is_array(folder):
        return Axis(name=dim)
    metadata = _read_metadata(folder, dim)
    if metadata.shape != (size,) or metadata.dtype.kind not in "iuf":
        return Axis(name=dim)
    with reading(folder, "zarr"):
        values = _open_array(folder)[:]
    return axis_of_values(dim, values, metadata.unit)
