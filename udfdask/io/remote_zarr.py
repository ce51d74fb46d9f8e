"""Open arrays of zarr stores on servers, and of references to parts of other files."""

from __future__ import annotations

import json
import os
import time
import uuid
from dataclasses import dataclass
from typing import Any

import numpy as np

from udfdask.errors import ArgumentValueError, FileFormatError, missing_package, outdated_package
from udfdask.geometry.axes import Axis, axis_of_values
from udfdask.io.choose_dataset import choose_dataset, unknown_dataset
from udfdask.io.damaged_files import check_values
from udfdask.io.lazy_source import StoredArray
from udfdask.io.opened_file import OpenedFile, open_source
from udfdask.io.remote_errors import reaching
from udfdask.io.remote_file import warn_unversioned
from udfdask.io.remote_location import Location, local_path, look_up
from udfdask.io.remote_objects import ChunkObjects
from udfdask.io.zarr_chunk_files import touched_chunks
from udfdask.io.zarr_metadata import ArrayMetadata, ome_axes, ome_path
from udfdask.names import UnnamedError
from udfdask.once_per_process import OncePerProcess
from udfdask.writing.stores import METADATA

_opened = OncePerProcess(32)
"""Arrays that tasks have opened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteZarr(StoredArray):
    """An array in a zarr store on a server that each process opens once."""

    location: Location
    """The store."""
    name: str
    """Path of the array in the store; empty if the store is an array."""
    opened: float
    """Time of opening, in seconds since 1970."""
    objects: str
    """Name of the states of all objects that contain chunks; random if there are too many."""
    is_named: bool
    """Whether `objects` changes with the contents of the objects, and only then."""

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        """Return the part on which names of arrays depend: not on options, such as passwords."""
        return (self.location.url, self.name, self.objects, self.shape, str(self.dtype))

    def lasting_identity(self) -> tuple[Any, ...]:
        """Return the part that names the data of a run that may be resumed days later."""
        if not self.is_named:
            raise UnnamedError(f"the versions of {self.location.shown}")
        return self.__dask_tokenize__()

    def __getitem__(self, index: Any) -> np.ndarray[Any, Any]:
        """Return the part at `index`, read from the store."""
        found = self._here()
        keys = touched_chunks(found.array, index)
        try:
            with reaching(found.shown, part=f"the part at {index}"):
                return np.asarray(found.array[index])
        finally:  # a change is a better explanation of an error
            found.objects.check(keys, opened=self.opened)

    def local_files(self) -> set[str]:
        """Return the paths of files of this machine that are read, such as those of references."""
        places = [self.location.url.rpartition("::")[2], self.location.options.get("fo")]
        paths = {local_path(place) for place in places if isinstance(place, str)}
        return {path for path in paths if "://" not in path} | self._here().objects.local_files()

    def _here(self) -> _Found:
        """Return the array, which each process opens once; raise if it has changed."""

        def open_again() -> _Found:
            store = _Store(self.location)
            found = store.find(self.name)
            if self.is_named and found.objects.token != self.objects:
                raise FileFormatError(
                    f"{found.shown} has changed since it was opened: chunks or metadata were "
                    "written or deleted. Open it again, and repeat all computations with it"
                )
            return found

        found: _Found = _opened.get(self._key, open_again)
        return found

    @property
    def _key(self) -> tuple[Any, ...]:
        """The key of the array in the cache of this process."""
        return (self.location, self.name, self.objects, os.getpid())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """An array that is open in this process."""

    array: Any
    """The array of zarr."""
    objects: ChunkObjects
    """The objects that contain its chunks."""
    metadata: ArrayMetadata
    """Its description."""
    shown: str
    """Its URL, for messages."""


class _Store:
    """A zarr store on a server."""

    def __init__(self, location: Location) -> None:
        self._location = location
        self.fs, self._path = location.file_system()

    def node(self, name: str) -> tuple[str, dict[str, Any]] | None:
        """Return the name and content of the metadata file of an array or group.

        None if there is no such node.
        """
        refused = None
        for file in METADATA:
            shown = f"{self._shown(name)}/{file}"
            try:
                content = self._read(name, file)
            except FileNotFoundError:
                continue
            except FileFormatError as error:  # a server can deny that there is no such object
                refused = refused or error
                continue
            return file, _checked(content, file, shown)
        if refused is not None:
            raise refused
        return None

    def find(self, name: str) -> _Found:
        """Return an array with the states of its objects; raise if there is no such array."""
        from udfdask.io.remote_zarr_store import RemoteStore

        shown = self._shown(name)
        node = self.node(name)
        if node is None or not _is_array(*node):
            raise FileFormatError(f"{shown} is not a zarr array any more: open the store again")
        file, metadata = node
        store = RemoteStore(self.fs, self._path)
        array = self._open(store, name, metadata["zarr_format"])
        store.expect(array, metadata)
        objects = ChunkObjects(self.fs, self._joined(name), array, file, shown=shown)
        objects.take_states()
        if self.node(name) != node:  # only metadata with the state that was asked for count
            raise FileFormatError(f"{shown} is being written at this moment: open it later")
        described = ArrayMetadata.of(array, name, where=f"{shown}/{file}")
        return _Found(array=array, objects=objects, metadata=described, shown=shown)

    def choose(self, dataset: str | int | None) -> str:
        """Return the path of the user's array in the store, or of a suitable one."""
        root = self.node("")
        shown = self._location.shown
        if root is None:
            raise FileFormatError(f"{shown} is not a zarr store: check the URL")
        if _is_array(*root):
            if dataset is not None:
                raise ArgumentValueError(
                    f"there is no dataset {dataset!r} in {shown}: it is itself an array, so leave "
                    "dataset out"
                )
            return ""
        asked = None if dataset is None else str(dataset).strip("/")
        if asked:
            node = self.node(asked)
            if node is not None and _is_array(*node):
                return asked
        first = ome_path(self._attributes("", root[0])) if asked is None else None
        if first is not None and self.node(first) is not None:
            return first
        candidates = self._candidates(root[1]["zarr_format"])
        if asked is not None:
            raise unknown_dataset(asked, candidates, file=shown)
        if not candidates:
            raise FileFormatError(
                f"{shown} is a zarr group, but no array was found in it. Most HTTP servers cannot "
                "list a folder: pass dataset=, or consolidate the metadata "
                "(zarr.consolidate_metadata)"
            )
        return choose_dataset(candidates, file=shown).name

    def axes(self, found: _Found) -> list[Axis | None]:
        """Return the axes of an array; None where nothing is known about an axis.

        Positions are the values of an array in the same group that has the name of the dimension.
        """
        metadata = found.metadata
        root = self.node("") if metadata.name else None
        ome = ome_axes(self._attributes("", root[0]), metadata.name) if root else None
        if ome is not None and len(ome) == len(metadata.shape):
            return ome
        return [
            self._axis(metadata.name, dim, size) if dim else None
            for dim, size in zip(metadata.dims, metadata.shape, strict=True)
        ]

    def _attributes(self, group: str, file: str) -> Any:
        """Return the attributes of a group with the metadata file `file`; None if it has none."""
        try:
            if file == "zarr.json":
                return json.loads(self._read(group, file)).get("attributes")
            return json.loads(self._read(group, ".zattrs"))
        except (FileNotFoundError, FileFormatError, ValueError):
            return None

    def _axis(self, name: str, dim: str, size: int) -> Axis:
        """Return the axis of a dimension of the array called `name`."""
        dim = dim.rpartition("/")[2]  # kerchunk writes the whole path
        inside = f"{name.rpartition('/')[0]}/{dim}".strip("/")
        node = self.node(inside) if name and inside != name else None
        if node is None or not _is_array(*node):
            return Axis(name=dim)
        from udfdask.io.remote_zarr_store import RemoteStore

        array = self._open(RemoteStore(self.fs, self._path), inside, node[1]["zarr_format"])
        described = ArrayMetadata.of(array, inside, where=self._shown(inside))
        if described.shape != (size,) or described.dtype.kind not in "iuf":
            return Axis(name=dim)
        with reaching(self._shown(inside)):
            values = np.asarray(array[:])
        return axis_of_values(dim, values, described.unit)

    def _candidates(self, zarr_format: Any) -> list[ArrayMetadata]:
        """Return the arrays in a group."""
        import zarr

        from udfdask.io.remote_zarr_store import RemoteStore

        store = RemoteStore(self.fs, self._path)
        with reaching(self._location.shown):
            group = zarr.open_group(store, mode="r", zarr_format=zarr_format)
            members = group.members(max_depth=None)
            return [
                ArrayMetadata.of(member, name, where=self._shown(name))
                for name, member in members
                if isinstance(member, zarr.Array)
            ]

    def _open(self, store: Any, name: str, zarr_format: Any) -> Any:
        """Return an array, opened for reading."""
        import zarr

        with reaching(self._shown(name)):
            return zarr.open_array(store, path=name, mode="r", zarr_format=zarr_format)

    def _read(self, name: str, file: str) -> bytes:
        """Return the content of a file."""
        from fsspec.asyn import sync

        with reaching(f"{self._shown(name)}/{file}"):
            path = "/".join(part for part in (self._joined(name), file) if part)
            look_up(self.fs, path)
            content: bytes = sync(self.fs.loop, self.fs._cat_file, path)
        return content

    def _joined(self, name: str) -> str:
        """Return the path of an array or group in the file system."""
        return "/".join(part for part in (self._path, name) if part)

    def _shown(self, name: str) -> str:
        """Return the URL of an array or group, for messages."""
        root = self._location.shown
        return f"{root.rstrip('/')}/{name}" if name else root


def is_remote_zarr(location: Location) -> bool:
    """Return whether there is a zarr array or group at a location."""
    return _Store(location).node("") is not None


def open_remote_zarr(
    location: Location, *, dataset: str | int | None, sig_dims: int | None, chunks: Any
) -> OpenedFile:
    """Open an array of a zarr store, by default the one that contains the frames."""
    try:
        import zarr
    except ImportError as error:
        raise missing_package("zarr", purpose=f"reading {location.shown}") from error
    if int(zarr.__version__.partition(".")[0]) < 3:
        raise outdated_package(
            "zarr", zarr.__version__, needed="3", purpose=f"reading {location.shown}"
        )
    started = time.time()
    store = _Store(location)
    name = store.choose(dataset)
    found = store.find(name)
    if found.objects.unversioned:
        warn_unversioned(found.shown)
    metadata, token = found.metadata, found.objects.token
    source = RemoteZarr(
        location=location,
        name=name,
        opened=started,
        objects=token or uuid.uuid4().hex,
        is_named=token is not None,
        shape=metadata.shape,
        dtype=metadata.dtype,
        stored=metadata.stored,
    )
    _opened.get(source._key, lambda: found)  # tasks of this process need not open it again
    check_values(found.shown, source.shape, source.dtype)
    kind = "zarr" if getattr(store.fs, "references", None) is None else "zarr references"
    return open_source(
        source,
        sig_dims=sig_dims,
        chunks=chunks,
        stored=metadata.stored,
        prefix="from-zarr",
        reader=f"{kind}, array {name}" if name else kind,
        title=location.title,
        axes=store.axes(found),
        unit=metadata.unit,
    )


def _checked(content: bytes, file: str, shown: str) -> dict[str, Any]:
    """Return the contents of a metadata file; raise if they are damaged."""
    try:
        metadata = json.loads(content)
    except ValueError:
        metadata = None
    version = metadata.get("zarr_format") if isinstance(metadata, dict) else None
    expected = 3 if file == "zarr.json" else 2
    if version != expected:
        raise FileFormatError(
            f'{shown} must contain a JSON object with "zarr_format": {expected}, but contains '
            f"{version!r} there: restore it from a copy"
        )
    kind = metadata.get("node_type")
    if file == "zarr.json" and kind not in ("array", "group"):
        raise FileFormatError(
            f'{shown} must contain "node_type": "array" or "group", but contains {kind!r}: restore '
            "it from a copy"
        )
    checked: dict[str, Any] = metadata
    return checked


def _is_array(file: str, metadata: dict[str, Any]) -> bool:
    """Return whether a metadata file describes an array; otherwise it describes a group."""
    return file == ".zarray" or metadata.get("node_type") == "array"
