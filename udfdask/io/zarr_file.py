"""Open arrays of zarr stores, in a folder or on a server."""

from __future__ import annotations

import itertools
import os
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from dask.base import tokenize

from udfdask.errors import (
    ArgumentValueError,
    FileFormatError,
    missing_package,
    outdated_package,
)
from udfdask.io.choose_dataset import Candidate, choose_dataset, unknown_dataset
from udfdask.io.damaged_files import check_values, reading
from udfdask.io.file_identity import FileIdentity
from udfdask.io.lazy_source import FileArray, StoredArray
from udfdask.io.opened_file import OpenedFile, open_source
from udfdask.io.remote_location import Location, reaching
from udfdask.io.stored_chunks import LibraryNeeded
from udfdask.io.zarr_axes import ome_path, zarr_axes
from udfdask.io.zarr_chunks import ZarrChunks
from udfdask.once_per_process import OncePerProcess
from udfdask.writing.stores import METADATA, is_zarr

_opened = OncePerProcess(32)
"""Arrays that tasks have opened."""

MOST_LISTED = 4096
"""Number of files up to which opening an array looks at each: 0.1 s on a local disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ZarrArray(FileArray):
    """An array in a zarr store that each process opens once; `file` is its metadata file."""

    state: str
    """Token of the sizes and times of all chunks; random if there are too many."""

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        """Return the part on which names of arrays depend."""
        return (self.file, self.state)

    def lasting_identity(self) -> tuple[Any, ...]:
        """Return what names the store days later; a cache compares the sizes and times itself."""
        return (str(Path(self.file.path).parent),)

    def __getitem__(self, index: Any) -> np.ndarray[Any, Any]:
        """Return the part at `index`, read from the store."""
        with self.file.unchanged():
            array, chunks = _opened.get((self.file, os.getpid()), self._open)
            if chunks is not None:
                try:
                    return np.asarray(chunks.read(index), self.dtype)
                except LibraryNeeded:
                    pass
            with reading(Path(self.file.path).parent, "zarr", part=f"at {index}"):
                part: np.ndarray[Any, Any] = array[index]
        return part

    def _open(self) -> tuple[Any, ZarrChunks | None]:
        """Return the array of zarr, and how to read its chunks without zarr."""
        file = Path(self.file.path)
        with reading(file, "zarr"):
            array = _open_node(str(file.parent))
            return array, ZarrChunks.of(array, file.parent)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteZarr(StoredArray):
    """An array in a zarr store on a server that each process opens once."""

    location: Location
    """The store."""
    name: str
    """Path of the array in the store; empty if the store is an array."""
    nonce: str
    """A random text: no request tells cheaply whether the chunks are what they were."""

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        """Return the part on which names of arrays depend: not on options, such as passwords."""
        return (self.location.url, self.name, self.nonce)

    def lasting_identity(self) -> None:
        """Return None: no name says days later whether all chunks are what they were."""

    def __getitem__(self, index: Any) -> np.ndarray[Any, Any]:
        """Return the part at `index`, read from the store."""
        key = (self.location, self.name, self.nonce, os.getpid())
        with reaching(self.location.shown, part=f"the part at {index}"):
            array = _opened.get(key, self._open)
            if (array.shape, array.dtype) != (self.shape, self.dtype):
                raise FileFormatError(
                    f"{self.location.shown} has changed since it was opened: open it again, and "
                    "repeat all computations with it"
                )
            return np.asarray(array[index])

    def _open(self) -> Any:
        """Return the array of zarr."""
        root = _open_node(self.location.zarr_store())
        return root[self.name] if self.name else root


def open_zarr(
    folder: Path, *, dataset: str | int | None, sig_dims: int | None, chunks: Any
) -> OpenedFile:
    """Open an array of a zarr store in a folder, by default the one that contains the frames."""
    _check_zarr(folder.name)
    with reading(folder, "zarr"):
        root = _open_node(str(folder))
        name = _choose(root, dataset, shown=str(folder))
    inside = folder / name
    file = next(inside / each for each in METADATA if (inside / each).is_file())
    # Only metadata that are read after the identity was taken belong to it.
    identity = FileIdentity.of(file)
    states = sorted(itertools.islice(_states(inside), MOST_LISTED + 1))
    with reading(inside, "zarr"):
        array = _open_node(str(inside))
        if not name and is_zarr(folder.parent):
            axes = zarr_axes(_open_node(str(folder.parent)), folder.name, array)
        else:
            axes = zarr_axes(root if name else None, name, array)
    source = ZarrArray(
        file=identity,
        state=tokenize(states) if len(states) <= MOST_LISTED else uuid.uuid4().hex,
        **_described(array),
    )
    return _open_array(
        source,
        array,
        axes,
        "zarr",
        name,
        str(inside),
        folder.stem,
        sig_dims=sig_dims,
        chunks=chunks,
    )


def open_remote_zarr(
    location: Location, *, dataset: str | int | None, sig_dims: int | None, chunks: Any
) -> OpenedFile:
    """Open an array of a zarr store on a server, by default the one that contains the frames."""
    shown = location.shown
    _check_zarr(shown)
    with reaching(shown):
        root = _open_node(location.zarr_store())
        references = getattr(location.file_system()[0], "references", ())
        names = [key.rpartition("/") for key in getattr(references, "zmetadata", references)]
        listed = [name for name, _, file in names if name and file in (".zarray", "zarr.json")]
        name = _choose(root, dataset, shown=shown, listed=listed)
        array = root[name] if name else root
        axes = zarr_axes(root if name else None, name, array)
    source = RemoteZarr(location=location, name=name, nonce=uuid.uuid4().hex, **_described(array))
    kind = "zarr references" if location.url.startswith("reference:") else "zarr"
    return _open_array(
        source, array, axes, kind, name, shown, location.title, sig_dims=sig_dims, chunks=chunks
    )


def _described(array: Any) -> dict[str, Any]:
    """Return shape, dtype and stored chunks, or shards, of an array."""
    stored = getattr(array, "shards", None) or array.chunks
    return {"shape": array.shape, "dtype": np.dtype(array.dtype), "stored": stored}


def _open_array(
    source: StoredArray,
    array: Any,
    axes: Sequence[Any],
    kind: str,
    name: str,
    where: str,
    title: str,
    **how: Any,
) -> OpenedFile:
    """Return the opened file of an array; `name` is its path in the store."""
    check_values(where, source.shape, source.dtype)
    return open_source(
        source,
        prefix="from-zarr",
        reader=f"{kind}, array {name}" if name else kind,
        title=title,
        axes=axes,
        unit=array.attrs.get("units"),
        **how,
    )


def _check_zarr(name: str) -> None:
    """Raise if zarr is not installed, or too old."""
    purpose = f"reading {name}"
    try:
        import zarr
    except ImportError as error:
        raise missing_package("zarr", purpose=purpose) from error
    if zarr.__version__.startswith("2."):
        raise outdated_package("zarr", zarr.__version__, needed="3", purpose=purpose)


def _open_node(store: Any) -> Any:
    """Return the zarr array or group in a store, opened for reading."""
    import zarr

    # on a server, consolidated metadata are the only list of arrays; in a folder, they may be old
    options: dict[str, Any] = {"use_consolidated": False} if isinstance(store, str) else {}
    return zarr.open(store, mode="r", **options)


def _choose(root: Any, dataset: str | int | None, *, shown: str, listed: Sequence[str] = ()) -> str:
    """Return the path of the user's array in a store, or of a suitable one.

    `listed` are the names of nodes if zarr cannot list them.
    """
    if hasattr(root, "shape"):
        if dataset is not None:
            raise ArgumentValueError(
                f"there is no dataset {dataset!r} in {shown}: it is itself an array, so leave "
                "dataset out"
            )
        return ""
    asked = ome_path(dict(root.attrs)) if dataset is None else str(dataset).strip("/")
    if asked and hasattr(root.get(asked), "shape"):
        return asked
    # zarr cannot list the groups in references
    nodes = [(path, root[path]) for path in listed] or root.members(max_depth=None)
    candidates = [
        Candidate(name=path.strip("/"), shape=node.shape, dtype=np.dtype(node.dtype))
        for path, node in sorted(nodes, key=itemgetter(0))
        if hasattr(node, "shape")
    ]
    if dataset is not None:
        raise unknown_dataset(dataset, candidates, file=shown)
    if not candidates and "://" in shown:
        raise FileFormatError(
            f"{shown} is a zarr group, but no array was found in it. Most HTTP servers cannot "
            "list a folder: pass dataset=, or consolidate the metadata (zarr.consolidate_metadata)"
        )
    return choose_dataset(candidates, file=shown).name


def _states(folder: Path) -> Iterator[tuple[str, int, int]]:
    """Yield path, size and time of all files in the folder of an array."""
    for place, _, files in os.walk(folder, followlinks=True):
        for name in files:
            path = os.path.join(place, name)  # noqa: PTH118  # many
            status = os.stat(path)  # noqa: PTH116
            yield path, status.st_size, status.st_mtime_ns
