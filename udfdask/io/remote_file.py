"""Read byte ranges of remote files, and notice if a file changes."""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from udfdask.errors import FileFormatError, UDFWarning
from udfdask.io.lazy_source import StoredArray
from udfdask.io.remote_errors import reaching
from udfdask.io.remote_location import Location
from udfdask.io.remote_states import State, states_of
from udfdask.io.strided_layout import Layout, Values
from udfdask.names import UnnamedError

_GAP = 1 << 16
"""Mean number of bytes between two parts up to which one request reads the bytes between them too.
fsspec has the same limit for references to parts of files."""


def warn_unversioned(shown: str) -> None:
    """Warn that a server does not tell whether data have changed."""
    warnings.warn(
        f"the server of {shown} tells neither an ETag nor a time: a change during a run is noticed "
        "only if the size changes, and a cache never finds results of the array again",
        UDFWarning,
        stacklevel=2,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteFile:
    """A remote file as it was when it was opened."""

    location: Location
    """Where it is."""
    size: int
    """Size in bytes."""
    state: str
    """Size and version, in words."""
    nonce: str
    """A random text if the server tells no version, otherwise empty."""

    @classmethod
    def of(cls, location: Location) -> RemoteFile:
        """Return the present state of a file; raise if it does not exist or has no size."""
        state = _state(location)
        if state.size is None:
            raise FileFormatError(
                f"the server of {location.shown} does not tell the size of this file, so parts of "
                "it cannot be read: download the file, or put it on another server"
            )
        if not state.is_version:
            warn_unversioned(location.shown)
        nonce = "" if state.is_version else uuid.uuid4().hex
        return cls(location=location, size=state.size, state=state.text, nonce=nonce)

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        """Return the part on which names of arrays depend: not on options, such as passwords."""
        return (self.location.url, self.state, self.nonce)

    def lasting_identity(self) -> tuple[Any, ...]:
        """Return the part that names the data of a run that may be resumed days later."""
        if self.nonce:
            raise UnnamedError(f"the version of {self.location.shown}")
        return (self.location.url, self.state)

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Raise a FileFormatError if the file changes in this context.

        Another version can only be read between two different states, so one small request after
        reading is enough. If the file has changed, this error replaces that of the reader.
        """
        try:
            yield
        finally:
            self._check()

    def read(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return byte ranges, asked for at once: first bytes and numbers of bytes."""
        from fsspec.asyn import sync

        fs, path = self.location.file_system()
        starts, sizes = [first for first, _ in ranges], [count for _, count in ranges]
        ends = [first + count for first, count in ranges]
        with reaching(self.location.shown, part=f"bytes {min(starts)} to {max(ends)}"):
            parts: list[bytes] = sync(
                fs.loop, fs._cat_ranges, [path] * len(ranges), starts, ends, on_error="raise"
            )
        for part, size in zip(parts, sizes, strict=True):
            if len(part) != size:
                raise FileFormatError(
                    f"the server of {self.location.shown} has sent {len(part)} bytes in place of "
                    f"the {size} that were asked for: {_NO_RANGES}"
                )
        return parts

    def begin(self, count: int) -> bytes:
        """Return the first bytes of the file; raise if the server cannot send parts of it."""
        from fsspec.asyn import sync

        fs, path = self.location.file_system()
        cache = getattr(fs, "sync_fs", fs)
        if "http" in cache.protocol:
            # A server without ranges would send the whole file. An open file notices this from the
            # header of the answer, unless it reads from the beginning.
            with reaching(self.location.shown):
                try:
                    with cache.open(path, "rb", block_size=1 << 10, cache_type="none") as stream:
                        stream.seek(min(1, self.size))
                        stream.read(1)
                except ValueError as error:
                    raise FileFormatError(
                        f"the server of {self.location.shown} does not send parts of files (HTTP "
                        f"ranges): {_NO_RANGES}"
                    ) from error
        with reaching(self.location.shown):
            begin: bytes = sync(fs.loop, fs._cat_file, path, start=0, end=min(count, self.size))
        return begin

    def _check(self) -> None:
        """Raise if the file has changed."""
        try:
            now = _state(self.location)
        except FileNotFoundError as error:
            raise FileFormatError(
                f"{self.location.shown} existed when it was opened ({self.state}), but {error}"
            ) from error
        if now.text != self.state:
            raise changed(self.location.shown, self.state, now.text)


_NO_RANGES = (
    "download the file, or put it on a server that supports range requests (most do: S3, nginx, "
    "Apache)"
)


def changed(shown: str, before: str, now: str) -> FileFormatError:
    """Return the error for an object that has changed since it was opened."""
    return FileFormatError(
        f"{shown} has changed since it was opened: expected {before}, found {now}. Open it again, "
        "and repeat all computations with it"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RangedArray(StoredArray):
    """An array in a remote file; each task reads its own byte ranges."""

    file: RemoteFile
    """The file when it was opened."""
    offset: int
    """Position of the first value, in bytes from the beginning of the file."""
    strides: tuple[int, ...]
    """Bytes between neighboring values, for each dimension."""

    def __getitem__(self, index: Any) -> Values:
        """Return the part at `index`, read-only."""
        layout = Layout(
            offset=self.offset, shape=self.shape, strides=self.strides, dtype=self.dtype
        )
        part, shape = layout.part(index)
        pieces = list(part.pieces(_is_one_read))
        if not pieces:
            return np.empty(shape, self.dtype)
        with self.file.unchanged():
            memories = self.file.read([(piece.first, piece.span) for _, piece in pieces])
        values = part.join(
            (place, piece, memory) for (place, piece), memory in zip(pieces, memories, strict=True)
        )
        values.flags.writeable = False
        return values.reshape(shape)


def _is_one_read(part: Layout) -> bool:
    """Return whether one request for the whole span of a part is better than several."""
    return part.span - part.nbytes <= _GAP * (part.runs - 1)


def _state(location: Location) -> State:
    """Return the present state of a file."""
    fs, path = location.file_system()
    with reaching(location.shown):
        states = states_of(fs, [path])
        if path not in states:
            raise FileNotFoundError(path)
    return states[path]
