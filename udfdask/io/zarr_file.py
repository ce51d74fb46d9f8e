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
from udfdask.io.remote_location import Location, local_path, reaching, versions_in
from udfdask.io.stored_chunks import LibraryNeeded
from udfdask.io.zarr_axes import ome_path, zarr_axes
from udfdask.io.zarr_chunks import ZarrChunks
from udfdask.once_per_process import OncePerProcess
from udfdask.writing.stores import METADATA, is_zarr

_opened = OncePerProcess(32)
"""Arrays that tasks have opened."""

MOST_LISTED = 4096
"""Number of files up to which opening an array looks at each: 0.1 s on a local disk."""

_MOST_REFERENCES = 100_000
"""Number of references to parts of files in which files of this machine are looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ZarrArray(FileArray):
    """An array in a zarr store that each process opens once; `file` is its metadata file."""

    state: str
    """Token of the sizes and times of all chunks; random if there are too many."""

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        """Return the part on which names of arrays depend."""
        return (self.file, self.state)

    def lasting_identity(self) -> tuple[Any, ...]:
        """Return the part that names the data of a run that may be resumed days later."""
        folder = Path(self.file.path).parent
        return (str(folder), tokenize(sorted(_states(folder))))

    def __getitem__(self, index: Any) -> np.ndarray[Any, Any]:
        """Return the part at `index`, read from the store."""
        folder = Path(self.file.path).parent
        damaged = None
        with self.file.unchanged():
            array, chunks = _opened.get((self.file, os.getpid()), self._open)
            try:
                if chunks is not None:
                    read: np.ndarray[Any, Any] = chunks.read(index)
                    return read.astype(self.dtype, copy=False)
            except LibraryNeeded as needed:
                damaged = needed.file
            with reading(damaged or folder, "zarr", part=f"at {index}"):
                part: np.ndarray[Any, Any] = array[index]
        return part

    def _open(self) -> tuple[Any, ZarrChunks | None]:
        """Return the array of zarr, and how to read its chunks without zarr."""
        file = Path(self.file.path)
        with reading(file, "zarr"):
            opened = _open_node(str(file.parent)), ZarrChunks.of(file)
        os.close(self.file.open())  # raises if the file has changed: do not keep the array then
        return opened


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

    def lasting_identity(self) -> tuple[Any, ...] | None:
        """Return what names the data days later; None if the versions of the files are unknown."""
        fs, path = self.location.file_system()
        protocols = {fs.protocol} if isinstance(fs.protocol, str) else set(fs.protocol)
        if protocols & {"http", "https", "reference"}:  # these cannot list a folder
            return None
        with reaching(self.location.shown):
            fs.invalidate_cache()  # no listing that was made before a change
            found = fs.find(f"{path}/{self.name}".rstrip("/"), detail=True)
        states = [(file, versions_in(info)) for file, info in sorted(found.items())]
        if not all(versions for _, versions in states):
            return None
        return (self.location.url, self.name, tokenize(states))

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

    def local_files(self) -> set[str]:
        """Return the paths of files of this machine that are read, such as those of references."""
        fs, _ = self.location.file_system()
        places = [self.location.url.rpartition("::")[2], self.location.options.get("fo")]
        references = getattr(fs, "references", None)
        parts = references.values() if isinstance(references, dict) else ()
        for reference in itertools.islice(parts, _MOST_REFERENCES):
            places += reference[:1] if isinstance(reference, list) else []
        paths = {local_path(place) for place in places if isinstance(place, str)}
        # not resolved: links stay links
        return {os.path.abspath(path) for path in paths if "://" not in path}  # noqa: PTH100

    def _open(self) -> Any:
        """Return the array of zarr."""
        root = _open_node(self.location.zarr_store())
        return root[self.name] if self.name else root


def open_zarr(
    folder: Path, *, dataset: str | int | None, sig_dims: int | None, chunks: Any
) -> OpenedFile:
    """Open an array of a zarr store in a folder, by default the one that contains the frames."""
    major, version = _zarr_version(folder.name)
    if (folder / "zarr.json").is_file() and major < 3:
        raise FileFormatError(
            f"{folder} is in zarr format 3, which zarr {version} cannot read: "
            'pip install "zarr>=3", or write it with zarr_format=2'
        )
    with reading(folder, "zarr"):
        root = _open_node(str(folder))
        name = _choose(root, dataset, sig_dims=sig_dims, shown=str(folder))
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
        shape=array.shape,
        dtype=np.dtype(array.dtype),
        stored=_stored_shape(array),
    )
    check_values(inside, source.shape, source.dtype)
    return open_source(
        source,
        sig_dims=sig_dims,
        chunks=chunks,
        stored=source.stored,
        prefix="from-zarr",
        reader=f"zarr, array {name}" if name else "zarr",
        title=folder.stem,
        axes=axes,
        unit=array.attrs.get("units"),
    )


def open_remote_zarr(
    location: Location, *, dataset: str | int | None, sig_dims: int | None, chunks: Any
) -> OpenedFile:
    """Open an array of a zarr store on a server, by default the one that contains the frames."""
    shown = location.shown
    major, version = _zarr_version(shown)
    if major < 3:
        raise outdated_package("zarr", version, needed="3", purpose=f"reading {shown}")
    with reaching(shown):
        root = _open_node(location.zarr_store())
        # zarr cannot list the groups in references
        references = getattr(location.file_system()[0], "references", ())
        names = [key.rpartition("/") for key in getattr(references, "zmetadata", references)]
        listed = [name for name, _, file in names if name and file in (".zarray", "zarr.json")]
        name = _choose(root, dataset, sig_dims=sig_dims, shown=shown, listed=listed)
        array = root[name] if name else root
        axes = zarr_axes(root if name else None, name, array)
    source = RemoteZarr(
        location=location,
        name=name,
        nonce=uuid.uuid4().hex,
        shape=array.shape,
        dtype=np.dtype(array.dtype),
        stored=_stored_shape(array),
    )
    check_values(shown, source.shape, source.dtype)
    kind = "zarr references" if location.url.startswith("reference:") else "zarr"
    return open_source(
        source,
        sig_dims=sig_dims,
        chunks=chunks,
        stored=source.stored,
        prefix="from-zarr",
        reader=f"{kind}, array {name}" if name else kind,
        title=location.title,
        axes=axes,
        unit=array.attrs.get("units"),
    )


def _zarr_version(name: str) -> tuple[int, str]:
    """Return the major version of zarr, and all of it; raise if zarr is not installed."""
    try:
        import zarr
    except ImportError as error:
        raise missing_package("zarr", purpose=f"reading {name}") from error
    return int(zarr.__version__.partition(".")[0]), zarr.__version__


def _open_node(store: Any) -> Any:
    """Return the zarr array or group in a store, opened for reading."""
    import zarr

    # on a server, consolidated metadata are the only list of arrays; in a folder, they may be old
    is_folder = isinstance(store, str) and int(zarr.__version__.partition(".")[0]) >= 3
    options: dict[str, Any] = {"use_consolidated": False} if is_folder else {}
    return zarr.open(store, mode="r", **options)


def _choose(
    root: Any,
    dataset: str | int | None,
    *,
    sig_dims: int | None,
    shown: str,
    listed: Sequence[str] = (),
) -> str:
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
    candidates = [
        Candidate(name=name.strip("/"), shape=array.shape, dtype=np.dtype(array.dtype))
        for name, array in sorted(_arrays(root, listed), key=itemgetter(0))
    ]
    if dataset is not None:
        raise unknown_dataset(dataset, candidates, file=shown)
    if not candidates and "://" in shown:
        raise FileFormatError(
            f"{shown} is a zarr group, but no array was found in it. Most HTTP servers cannot "
            "list a folder: pass dataset=, or consolidate the metadata (zarr.consolidate_metadata)"
        )
    return choose_dataset(candidates, file=shown).name


def _arrays(group: Any, listed: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Yield the names and arrays in a group and its groups."""
    found: list[tuple[str, Any]] = []
    if listed:
        found += [(name, group[name]) for name in listed]
    elif hasattr(group, "members"):
        found += group.members(max_depth=None)
    else:  # zarr 2
        group.visititems(lambda name, node: found.append((name, node)))
    yield from ((name, node) for name, node in found if hasattr(node, "shape"))


def _stored_shape(array: Any) -> tuple[int, ...]:
    """Return the shape of the part of a zarr array that one file contains: a shard or a chunk."""
    shape: tuple[int, ...] = getattr(array, "shards", None) or array.chunks
    return shape


def _states(folder: Path) -> Iterator[tuple[str, int, int]]:
    """Yield path, size and time of all files in the folder of an array."""
    for place, _, files in os.walk(folder, followlinks=True):
        for name in files:
            path = os.path.join(place, name)  # noqa: PTH118  # many
            status = os.stat(path)  # noqa: PTH116
            yield path, status.st_size, status.st_mtime_ns
