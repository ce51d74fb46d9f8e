"""Chunks of a zarr store as they lie on the disk: looked at before they are inflated."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import zarr
from zarr.abc.store import RangeByteRequest
from zarr.storage import LocalStore

from udfdask.errors import FileFormatError
from udfdask.writing.stores import METADATA

ALLOWED, SPARE = 16, 1 << 16
"""How far a chunk may inflate beyond its shape, times and bytes: filters may widen the values."""

_ZSTD_MAGIC = 0xFD2FB528
_INDEX_ENTRY = struct.Struct("<QQ")
_EMPTY = 2**64 - 1
"""Offset of an inner chunk that a shard does not hold."""


class CheckedStore(LocalStore):
    """A folder whose chunks are refused if they say that they inflate far beyond their shape."""

    def __init__(self, root: Path | str, *, read_only: bool = True) -> None:
        super().__init__(root, read_only=read_only)
        self._compressor = ""
        self._room = math.inf
        self._inner_chunks = 0

    def expect(self, array: Any, metadata: dict[str, Any]) -> None:
        """Take an array of the store and its metadata; from now on check what is read."""
        codecs = metadata.get("codecs") or []
        if codecs and codecs[0].get("name") == "sharding_indexed":
            self._inner_chunks = _inner_chunks(array, codecs[0]["configuration"])
            codecs = codecs[0]["configuration"]["codecs"]
        last = [codec for codec in codecs if codec.get("name") != "crc32c"][-1:]
        packed = metadata.get("compressor") or (last[0] if last else {})
        self._compressor = packed.get("id") or packed.get("name") or ""
        self._room = math.prod(array.chunks) * array.dtype.itemsize * ALLOWED + SPARE

    async def get(self, key: str, prototype: Any = None, byte_range: Any = None) -> Any:
        """Return the bytes of a file, None if there is none."""
        name = key.rpartition("/")[2]
        if isinstance(byte_range, RangeByteRequest):
            self._check_range(key, byte_range)
        data = await super().get(key, prototype, byte_range)
        if name in METADATA or name.startswith(".z"):
            return data
        if data is None:
            self._check_missing(key)
        elif byte_range is None or isinstance(byte_range, RangeByteRequest):
            stored = memoryview(data.as_numpy_array())  # type: ignore[arg-type]  # it is a buffer
            whole_shard = byte_range is None and self._inner_chunks > 0
            for piece in _inner(stored, self._inner_chunks) if whole_shard else (stored,):
                self._check_size(key, piece)
        return data

    def _check_missing(self, key: str) -> None:
        """Raise if a chunk is there but cannot be read: zarr takes it for one never written."""
        file = Path(self.root) / key
        try:
            file.lstat()
        except FileNotFoundError:
            return
        except NotADirectoryError:
            pass
        raise FileFormatError(
            f"{file} should be a chunk of the array in {self.root}, but is no file that can be "
            "read: restore the store from a copy"
        )

    def _check_range(self, key: str, wanted: Any) -> None:
        """Raise if a shard's index points beyond its end."""
        file = Path(self.root) / key
        size = file.stat().st_size
        if not 0 <= wanted.start <= wanted.end <= size:
            raise FileFormatError(
                f"the index of {file} says that a chunk lies at bytes {wanted.start} to "
                f"{wanted.end}, but the file has {size}: restore it from a copy"
            )

    def _check_size(self, key: str, stored: memoryview) -> None:
        """Raise if a chunk says that it inflates far beyond its shape."""
        size = inflated_size(self._compressor, stored)
        if size is not None and size > self._room:
            raise FileFormatError(
                f"{Path(self.root) / key} would inflate from {len(stored)} to {size} bytes, far "
                f"beyond the shape of its chunk: it is damaged. Restore it from a copy"
            )


def open_checked(folder: str, metadata: dict[str, Any]) -> Any:
    """Take an array's folder and what its metadata file says; return it opened for reading."""
    store = CheckedStore(folder)
    array = zarr.open_array(store, mode="r", zarr_format=metadata["zarr_format"])
    store.expect(array, metadata)
    return array


def inflated_size(compressor: str, stored: memoryview) -> int | None:
    """Take a compressor's name and a chunk of it; return the size it gives itself, None if none.

    What gzip says is the size modulo 4 GiB of the last part; zlib, bz2 and lzma say nothing.
    """
    try:
        if compressor == "blosc":
            return int(struct.unpack_from("<I", stored, 4)[0])
        if compressor == "lz4":
            return int(struct.unpack_from("<I", stored)[0])
        if compressor == "gzip":
            return int(struct.unpack_from("<I", stored, len(stored) - 4)[0])
        return _zstd_size(stored) if compressor == "zstd" else None
    except (struct.error, IndexError):  # too short for a header: the decoder says so
        return None


def _zstd_size(stored: memoryview) -> int | None:
    """Take a frame of zstd (RFC 8878, 3.1.1.1); return its content size if its header has one."""
    magic, descriptor = struct.unpack_from("<IB", stored)
    single = descriptor >> 5 & 1
    width = (single, 2, 4, 8)[descriptor >> 6]
    if magic != _ZSTD_MAGIC or width == 0:
        return None
    start = 5 + (not single) + (0, 1, 2, 4)[descriptor & 3]
    field = stored[start : start + width]
    return int.from_bytes(field, "little") + (256 if width == 2 else 0)


def _inner_chunks(array: Any, sharding: dict[str, Any]) -> int:
    """Take a sharded array; return the chunks in a shard, 0 if its index is not zarr's usual."""
    usual = [codec.get("name") for codec in sharding.get("index_codecs", [])] == ["bytes", "crc32c"]
    if not usual or sharding.get("index_location", "end") != "end":
        return 0
    return math.prod(n // inner for n, inner in zip(array.shards, array.chunks, strict=True))


def _inner(shard: memoryview, count: int) -> Iterator[memoryview]:
    """Take a whole shard and how many chunks it may hold; return those it does."""
    start = len(shard) - 4 - count * _INDEX_ENTRY.size
    if start < 0:  # truncated: zarr says so
        return
    for offset, size in _INDEX_ENTRY.iter_unpack(shard[start:-4]):
        if offset != _EMPTY:
            yield shard[offset : offset + size]
