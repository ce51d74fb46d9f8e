"""Find the remote objects that contain the chunks of a zarr array, and notice their changes."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterable, Iterator
from typing import Any

from dask.base import tokenize

from udfdask.errors import FileFormatError
from udfdask.io.remote_errors import reaching
from udfdask.io.remote_file import changed
from udfdask.io.remote_location import as_async, local_path
from udfdask.io.remote_states import State, listed_states, states_of
from udfdask.io.zarr_chunk_files import chunk_key, stored_shape

MOST_OBJECTS = 4096
"""Number of objects up to which each process asks for the state of each when it opens an array."""

FEW_OBJECTS = 8
"""Number of objects up to which each is asked for. A listing takes one request for 1000 objects."""

MOST_REFERENCES = 100_000
"""Number of chunks up to which references to parts of other files are compared."""


class ChunkObjects:
    """The objects of an open array: chunks, or the files that contain parts that are chunks.

    `folder` is the path of the array in a file system, and `metadata` the name of the file in it
    that describes the array.
    """

    def __init__(self, fs: Any, folder: str, array: Any, metadata: str, *, shown: str) -> None:
        self._fs, self._folder, self._array, self._shown = fs, folder, array, shown
        self._references = getattr(fs, "references", None)
        self._metadata = metadata
        self._states: dict[str, State] | None = None
        self._parts: str | None = None

    def take_states(self) -> None:
        """Ask for the state of each object; not if there are too many."""
        most = MOST_OBJECTS if self._references is None else MOST_REFERENCES
        if math.prod(self._grid) > most:
            return
        keys = list(self._keys())
        paths = self._paths(keys)
        if len(paths) > MOST_OBJECTS + 1:
            return
        if self._references is not None:
            parts = [(key, self._references.get(self._path(key))) for key in keys]
            self._parts = tokenize(repr(parts))
        with reaching(self._shown):
            self._states = self._ask(paths, is_listed=True)

    @property
    def token(self) -> str | None:
        """A name of all states that changes if an object changes; None if there is no such name."""
        states = self._states
        if states is None or not all(state.is_version for state in states.values()):
            return None
        return tokenize(self._parts, sorted((path, state.text) for path, state in states.items()))

    @property
    def unversioned(self) -> bool:
        """Whether the server does not tell the version of an object."""
        return any(not state.is_version for state in (self._states or {}).values())

    def check(self, keys: Iterable[str], *, opened: float) -> None:
        """Raise if an object that contains one of some chunks has changed.

        `opened` is the time when the array was opened, in seconds since 1970: with too many
        objects, later changes are noticed from their times.
        """
        paths = self._paths([self._metadata, *keys])
        with reaching(self._shown):
            now = self._ask(paths, is_listed=self._states is not None)
        for path in paths:
            state = now.get(path)
            if self._states is not None:
                before = self._states.get(path)
                texts = [each.text if each else "no such object" for each in (before, state)]
                if texts[0] != texts[1]:
                    raise changed(self._name(path), *texts)
            elif state is not None and (state.modified or 0) > opened:
                raise FileFormatError(
                    f"{self._name(path)} was written after the array was opened ({state.text}). "
                    "Open the array again, and repeat all computations with it"
                )

    def local_files(self) -> set[str]:
        """Return the absolute paths of files of this machine that references point to."""
        if self._references is None:
            return set()
        found = self._paths(itertools.islice(self._keys(), MOST_REFERENCES))
        paths = {path for path in map(local_path, found) if "://" not in path}
        return {os.path.abspath(path) for path in paths}  # noqa: PTH100  # links stay links

    @property
    def _grid(self) -> list[int]:
        """Number of stored chunks along each axis."""
        shapes = zip(self._array.shape, stored_shape(self._array), strict=True)
        return [-(-n // step) for n, step in shapes]

    def _keys(self) -> Iterator[str]:
        """Yield the names of the file with the metadata and of all chunks."""
        yield self._metadata
        for place in itertools.product(*map(range, self._grid)):
            yield chunk_key(self._array, place)

    def _path(self, key: str) -> str:
        """Return the path of a file of the array."""
        return f"{self._folder}/{key}" if self._folder else key

    def _paths(self, keys: Iterable[str]) -> list[str]:
        """Return the paths of the objects that contain some files of the array, each once."""
        if self._references is None:
            return [self._path(key) for key in keys]
        found: dict[str, None] = {}
        for key in keys:
            reference = self._references.get(self._path(key))
            if isinstance(reference, list | tuple) and isinstance(reference[0], str | None):
                found[reference[0] or self._fs.target] = None
        return list(found)

    def _ask(self, paths: list[str], *, is_listed: bool) -> dict[str, State]:
        """Return the present states of objects; `is_listed` says whether all may be listed."""
        if self._references is None:
            many = is_listed and len(paths) > FEW_OBJECTS
            listed = listed_states(self._fs, self._folder) if many else None
            if listed is None:
                return states_of(self._fs, paths)
            return {path: listed[path] for path in paths if path in listed}
        from fsspec.core import split_protocol

        states: dict[str, State] = {}
        for protocol in {split_protocol(path)[0] for path in paths}:
            if protocol not in self._fs.fss:
                raise FileFormatError(
                    f"{self._shown} refers to {protocol or 'local'} data, for which it has no file "
                    'system: pass storage_options={"fs": {"https": {...}, ...}}, with the options '
                    "of each protocol"
                )
            asked = [path for path in paths if split_protocol(path)[0] == protocol]
            fs = as_async(self._fs.fss[protocol])
            stripped = {fs._strip_protocol(path): path for path in asked}
            found = states_of(fs, stripped)
            states.update({stripped[path]: state for path, state in found.items()})
        return states

    def _name(self, path: str) -> str:
        """Return the name of an object for messages."""
        if self._references is not None:
            return path
        return f"{self._shown.rstrip('/')}{path.removeprefix(self._folder)}"
