"""Open arrays of zarr stores, in a folder or on a server."""

from __future__ import annotations

import itertools
import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from dask.base import tokenize

from udfdask.base.once_per_process import OncePerProcess
from udfdask.base.targets import METADATA, is_zarr
from udfdask.errors import ArgumentValueError, FileFormatError, missing_package
from udfdask.geometry.axes import Axis, axis_of_values
from udfdask.io.choose_dataset import Candidate, choose_dataset, unknown_dataset
from udfdask.io.file_identity import FileIdentity, check_values, reading, unchanged
from udfdask.io.lazy_source import StoredArray, Values
from udfdask.io.opened_file import OpenedFile, open_source
from udfdask.io.remote import Location, local_path, reaching
from udfdask.io.stored_chunks import LibraryNeeded, ZarrChunks

_opened = OncePerProcess(32)  # arrays that tasks have opened

MOST_LISTED = 4096  # files up to which opening an array looks at each: 0.1 s on a local disk


@dataclass(frozen=True, slots=True, kw_only=True)
class ZarrArray(StoredArray):
    """An array in a zarr store; `state` is a token of all chunks, random if they are too many."""

    file: FileIdentity
    state: str

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        """Return the part on which names of arrays depend."""
        return (self.file, self.state)

    def lasting_identity(self) -> tuple[Any, ...]:
        """Return what names the store days later; a cache compares the sizes and times itself."""
        return (str(Path(self.file.path).parent),)

    def __getitem__(self, index: Any) -> Values:
        """Return the part at `index`, read from the store."""
        with unchanged([self.file]):
            array, chunks = _opened.get((self.file, os.getpid()), self._open)
            if chunks is not None:
                with suppress(LibraryNeeded):
                    return np.asarray(chunks.read(index), self.dtype)
            with reading(Path(self.file.path).parent, "zarr", part=f"at {index}"):
                part: Values = array[index]
        return part

    def _open(self) -> tuple[Any, ZarrChunks | None]:
        folder = Path(self.file.path).parent
        with reading(folder, "zarr"):
            array = _open_node(str(folder))
            return array, ZarrChunks.of(array, folder)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteZarr(StoredArray):
    """An array with a path in a zarr store on a server; each process opens it once.

    `nonce` is random: no request tells cheaply whether the chunks are what they were.
    """

    location: Location
    name: str
    nonce: str

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        """Return the part on which names of arrays depend: not on options, such as passwords."""
        return (self.location.url, self.name, self.nonce)

    def lasting_identity(self) -> None:
        """Return None: no name says days later whether all chunks are what they were."""

    def __getitem__(self, index: Any) -> Values:
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
        for reference in itertools.islice(parts, MOST_LISTED):
            places += reference[:1] if isinstance(reference, list) else []
        paths = {local_path(place) for place in places if isinstance(place, str)}
        # not resolved: links stay links
        return {os.path.abspath(path) for path in paths if "://" not in path}  # noqa: PTH100

    def _open(self) -> Any:
        root = _open_node(_store(self.location))
        return root[self.name] if self.name else root


def open_zarr(folder: Path, *, dataset: str | int | None, **how: Any) -> OpenedFile:
    """Open an array of a zarr store in a folder, by default the one that contains the frames."""
    if not is_zarr(folder):
        raise FileFormatError(
            f"{folder} is a folder but not a zarr store: pass a file, or the folder with "
            "zarr.json, .zgroup or .zarray"
        )
    with reading(folder, "zarr"):
        root = _open_node(str(folder))
        name = _choose(root, dataset, shown=str(folder))
    inside = folder / name
    # Only metadata that are read after the identity was taken belong to it.
    identity = FileIdentity.of(next(inside / m for m in METADATA if (inside / m).is_file()))
    states = sorted(itertools.islice(_states(inside), MOST_LISTED + 1))
    with reading(inside, "zarr"):
        array = _open_node(str(inside))
        in_group = bool(name) or not is_zarr(folder.parent)
        group = root if in_group else _open_node(str(folder.parent))
        axes = _axes_of(group, name if in_group else folder.name, array)
    state = tokenize(states) if len(states) <= MOST_LISTED else uuid.uuid4().hex
    make = partial(ZarrArray, file=identity, state=state)
    how |= {"axes": axes, "title": folder.stem}
    return _opened_array(make, array, str(inside), "zarr", name, **how)


def open_remote_zarr(location: Location, *, dataset: str | int | None, **how: Any) -> OpenedFile:
    """Open an array of a zarr store on a server, by default the one that contains the frames."""
    shown = location.shown
    with reaching(shown):
        root = _open_node(_store(location))
        # zarr cannot list the groups in references
        references = getattr(location.file_system()[0], "references", ())
        names = [key.rpartition("/") for key in getattr(references, "zmetadata", references)]
        listed = [name for name, _, file in names if name and file in (".zarray", "zarr.json")]
        name = _choose(root, dataset, shown=shown, listed=listed)
        array = root[name] if name else root
        axes = _axes_of(root, name, array)
    make = partial(RemoteZarr, location=location, name=name, nonce=uuid.uuid4().hex)
    kind = "zarr references" if location.url.startswith("reference:") else "zarr"
    how |= {"axes": axes, "title": location.path.stem}
    return _opened_array(make, array, shown, kind, name, **how)


def _opened_array(
    make: Callable[..., StoredArray], array: Any, where: str, kind: str, name: str, **how: Any
) -> OpenedFile:
    """Return the opened file of an array of numbers with a path in its store, perhaps empty."""
    check_values(where, array.shape, array.dtype)
    stored = array.shards or array.chunks
    source = make(shape=array.shape, dtype=np.dtype(array.dtype), stored=stored)
    reader, unit = f"{kind}, array {name}" if name else kind, array.attrs.get("units")
    return open_source(source, prefix="from-zarr", reader=reader, unit=unit, **how)


def _open_node(store: Any) -> Any:
    try:
        import zarr
    except ImportError as error:
        raise missing_package("zarr", purpose=f"reading {Path(str(store)).name}") from error
    # on a server, consolidated metadata are the only list of arrays; in a folder, they may be old
    options: dict[str, Any] = {"use_consolidated": False} if isinstance(store, str) else {}
    return zarr.open(store, mode="r", **options)


def _store(location: Location) -> Any:
    """Return the store of zarr, which calls the file system in its own event loop."""
    from zarr.storage import FsspecStore

    options = dict(location.options)
    if location.url.startswith("reference:"):  # a file system that calls others in the same loop
        options["remote_options"] = {"asynchronous": True, **options.get("remote_options", {})}
    return FsspecStore.from_url(location.url, storage_options=options, read_only=True)


def _choose(root: Any, dataset: str | int | None, *, shown: str, listed: Sequence[str] = ()) -> str:
    """Return the path of the user's array in a store; `listed` are those zarr cannot list."""
    if hasattr(root, "shape"):
        if dataset is None:
            return ""
        raise ArgumentValueError(f"{shown} is itself an array: leave out dataset={dataset!r}")
    asked = "" if dataset is None else str(dataset).strip("/")
    if dataset is None:
        with suppress(LookupError, TypeError, AttributeError):  # the image of OME-Zarr, not labels
            attributes = dict(root.attrs)
            asked = str(attributes.get("ome", attributes)["multiscales"][0]["datasets"][0]["path"])
    if asked and hasattr(root.get(asked), "shape"):
        return asked
    nodes = {path: root[path] for path in listed} or dict(root.members(max_depth=None))
    candidates = [
        Candidate(name=path.strip("/"), shape=node.shape, dtype=np.dtype(node.dtype))
        for path, node in sorted(nodes.items())
        if hasattr(node, "shape")
    ]
    if dataset is not None:
        raise unknown_dataset(dataset, candidates, file=shown)
    if not candidates and "://" in shown:
        raise FileFormatError(
            f"{shown} is a zarr group without known arrays. Most HTTP servers cannot list a "
            "folder: pass dataset=, or consolidate the metadata (zarr.consolidate_metadata)"
        )
    return choose_dataset(candidates, file=shown).name


def _states(folder: Path) -> Iterator[tuple[str, int, int]]:
    """Yield path, size and time of all files in the folder of an array, also behind links."""
    for place, _, files in os.walk(folder, followlinks=True):
        for name in files:
            path = os.path.join(place, name)  # noqa: PTH118  # many
            status = os.stat(path)  # noqa: PTH116
            yield path, status.st_size, status.st_mtime_ns


def _axes_of(root: Any, name: str, array: Any) -> list[Axis | None]:
    """Return the axes of an array: values are in arrays with their names, as xarray writes them."""
    group = root[name.rpartition("/")[0]] if "/" in name else root
    dims = getattr(array.metadata, "dimension_names", None)
    dims = dims or array.attrs.get("_ARRAY_DIMENSIONS") or [None] * array.ndim
    axes: list[Axis | None] = []
    for dim, size in zip(dims, array.shape, strict=True):
        label = str(dim or "").rpartition("/")[2]  # kerchunk writes a path
        found: Any = group.get(label) if name and label else None
        if getattr(found, "shape", None) == (size,) and found.dtype.kind in "iuf":
            axes.append(axis_of_values(label, found[:], found.attrs.get("units")))
        else:
            axes.append(Axis(name=label) if label else None)
    return axes
