"""Check the stored chunks of a zarr store before zarr decompresses them."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import zarr
from zarr.abc.store import RangeByteRequest, Store
from zarr.storage import LocalStore

from udfdask.errors import FileFormatError
from udfdask.io.chunk_headers import decompressed_size
from udfdask.writing.stores import METADATA

ALLOWED, SPARE = 16, 1 << 16
"""Maximum size of a decompressed chunk: a factor of the size of its shape, because filters can
change the type of the values, plus some bytes."""

_INDEX_ENTRY = struct.Struct("<QQ")
_EMPTY = 2**64 - 1
"""Offset of an inner chunk that is not in the shard."""


class CheckedReads(Store):
    """Base class of stores; a chunk is refused if its header states a size far beyond its shape."""

    _compressor = ""
    _most_bytes = math.inf
    _inner_chunks = 0

    def expect(self, array: Any, metadata: dict[str, Any]) -> None:
        """Check all later reads against the metadata of an array in the store."""
        codecs = metadata.get("codecs") or []
        if codecs and codecs[0].get("name") == "sharding_indexed":
            self._inner_chunks = _inner_chunks(array, codecs[0]["configuration"])
            codecs = codecs[0]["configuration"]["codecs"]
        last = [codec for codec in codecs if codec.get("name") != "crc32c"][-1:]
        compressor = metadata.get("compressor") or (last[0] if last else {})
        self._compressor = compressor.get("id") or compressor.get("name") or ""
        self._most_bytes = math.prod(array.chunks) * array.dtype.itemsize * ALLOWED + SPARE

    async def get(self, key: str, prototype: Any = None, byte_range: Any = None) -> Any:
        """Return the bytes of a file; None if there is no such file."""
        data = await super().get(key, prototype, byte_range)  # type: ignore[safe-super]  # a mixin
        name = key.rpartition("/")[2]
        if data is None or name in METADATA or name.startswith(".z"):
            return data
        if byte_range is None or isinstance(byte_range, RangeByteRequest):
            stored = memoryview(data.as_numpy_array())  # type: ignore[arg-type]  # it is a buffer
            is_shard = byte_range is None and self._inner_chunks > 0
            for chunk in _chunks_of_shard(stored, self._inner_chunks) if is_shard else (stored,):
                self._check_size(key, chunk)
        return data

    def _check_size(self, key: str, stored: memoryview) -> None:
        """Raise if the header of a chunk states a size far beyond its shape."""
        size = decompressed_size(self._compressor, stored)
        if size is not None and size > self._most_bytes:
            raise FileFormatError(
                f"{self._shown(key)} has {len(stored)} bytes and states a decompressed size "
                f"of {size} bytes, far more than the shape of its chunk needs: it is damaged. "
                "Restore it from a copy"
            )

    def _shown(self, key: str) -> str:
        """Return the name of a file for messages."""
        return key


class CheckedStore(CheckedReads, LocalStore):
    """A folder with chunks that are checked."""

    def __init__(self, root: Path | str, *, read_only: bool = True) -> None:
        super().__init__(root, read_only=read_only)

    async def get(self, key: str, prototype: Any = None, byte_range: Any = None) -> Any:
        """Return the bytes of a file; None if there is no such file."""
        if isinstance(byte_range, RangeByteRequest):
            self._check_range(key, byte_range)
        data = await super().get(key, prototype, byte_range)
        name = key.rpartition("/")[2]
        if data is None and name not in METADATA and not name.startswith(".z"):
            self._check_missing(key)
        return data

    def _check_missing(self, key: str) -> None:
        """Raise if a chunk exists but cannot be read; zarr would treat it as never written."""
        file = Path(self.root) / key
        try:
            file.lstat()
        except FileNotFoundError:
            return
        except NotADirectoryError:
            pass
        raise FileFormatError(
            f"{file} should be a chunk of the array in {self.root}, but it is not a readable file: "
            "restore the store from a copy"
        )

    def _check_range(self, key: str, part: Any) -> None:
        """Raise if a shard's index points beyond its end."""
        file = Path(self.root) / key
        size = file.stat().st_size
        if not 0 <= part.start <= part.end <= size:
            raise FileFormatError(
                f"according to the index of {file}, a chunk is at bytes {part.start} to "
                f"{part.end}, but the file has {size} bytes: restore it from a copy"
            )

    def _shown(self, key: str) -> str:
        """Return the path of a file."""
        return str(Path(self.root) / key)


def open_checked(folder: str, metadata: dict[str, Any]) -> Any:
    """Return the array in a folder, opened for reading; `metadata` is its metadata file."""
    store = CheckedStore(folder)
    array = zarr.open_array(store, mode="r", zarr_format=metadata["zarr_format"])
    store.expect(array, metadata)
    return array


def _inner_chunks(array: Any, sharding: dict[str, Any]) -> int:
    """Return the number of chunks in a shard; 0 if the index does not have zarr's usual form."""
    usual = [codec.get("name") for codec in sharding.get("index_codecs", [])] == ["bytes", "crc32c"]
    if not usual or sharding.get("index_location", "end") != "end":
        return 0
    return math.prod(n // inner for n, inner in zip(array.shards, array.chunks, strict=True))


def _chunks_of_shard(shard: memoryview, count: int) -> Iterator[memoryview]:
    """Yield the chunks in a complete shard with an index of `count` entries."""
    start = len(shard) - 4 - count * _INDEX_ENTRY.size
    if start < 0:  # the shard is too short: zarr will raise
        return
    for offset, size in _INDEX_ENTRY.iter_unpack(shard[start:-4]):
        if offset != _EMPTY:
            yield shard[offset : offset + size]
