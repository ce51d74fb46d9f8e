"""Read stored chunks of zarr arrays without zarr's event loop, and decode them into the block."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np

from udfdask.io.chunk_decoders import Decode, numcodec
from udfdask.io.stored_chunks import LibraryNeeded, Values, read_part

Place = tuple[int, ...]

_INDEX_CODECS = ["bytes", "crc32c"]
"""The usual codecs of the index at the end of a shard."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ZarrChunks:
    """How to read the stored chunks of an array."""

    shape: tuple[int, ...]
    """Shape of the array."""
    dtype: np.dtype[Any]
    """Type of the values in the store, with its byte order."""
    stored: tuple[int, ...]
    """Shape of a chunk; in a store with shards, of a chunk in a shard."""
    decode: Decode | None
    """The decoder; None if chunks are stored as they are."""
    in_shard: tuple[int, ...] | None
    """Number of chunks in a shard along each axis; None if each file is one chunk."""

    @classmethod
    def of(cls, array: Any, metadata: Mapping[str, Any]) -> ZarrChunks | None:
        """Return the reader of an open array; None if zarr itself has to read it.

        `metadata` is the content of its metadata file.
        """
        dtype = np.dtype(array.dtype)
        shards = getattr(array, "shards", None)
        found = _version_2(metadata) if metadata["zarr_format"] == 2 else _version_3(metadata)
        if found is None or dtype.kind not in "iufc":
            return None
        order, compressor = found
        decode = None if compressor is None else numcodec(compressor)
        if (compressor is None) != (decode is None):
            return None
        return cls(
            shape=array.shape,
            dtype=dtype.newbyteorder(order) if order else dtype,
            stored=array.chunks,
            decode=decode,
            in_shard=shards
            and tuple(size // step for size, step in zip(shards, array.chunks, strict=True)),
        )

    def read(self, index: Any, path_of: Callable[[Place], Path]) -> Values:
        """Return the part at `index`; `path_of` returns the path of a chunk or shard.

        Raise `LibraryNeeded` if zarr has to read it.
        """
        shards: dict[Place, _Shard] = {}

        def read_chunk(place: Place, out: Values) -> None:
            try:
                if self.in_shard is None:
                    stored = path_of(place).read_bytes()
                else:
                    file = tuple(n // count for n, count in zip(place, self.in_shard, strict=True))
                    if file not in shards:
                        shards[file] = _Shard.open(path_of(file), self.in_shard)
                    inside = tuple(n % c for n, c in zip(place, self.in_shard, strict=True))
                    stored = shards[file].read(inside)
                if self.decode is not None:
                    self.decode(stored, out)
                    return
                out.data[:] = stored  # raises if the sizes differ
            except (LibraryNeeded, MemoryError):
                raise
            except Exception as error:  # a missing file; decoders have no common class of errors
                raise LibraryNeeded(f"chunk {place} cannot be read: {error}") from error

        try:
            return read_part(
                index,
                shape=self.shape,
                dtype=self.dtype,
                stored=self.stored,
                read_chunk=read_chunk,
            )
        finally:
            for shard in shards.values():
                shard.stream.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shard:
    """An open file with several chunks, and the index at its end."""

    stream: FileIO
    nbytes: int
    """Size of the file."""
    index: np.ndarray[Any, Any]
    """Position and size of each chunk in bytes, shape (*in_shard, 2)."""

    @classmethod
    def open(cls, path: Path, in_shard: tuple[int, ...]) -> _Shard:
        """Open a shard; raise if its index does not have the checksum that is stored after it."""
        import google_crc32c  # zarr's own package for it

        count = math.prod(in_shard)
        with ExitStack() as stack:
            stream = stack.enter_context(FileIO(path))
            stream.seek(-16 * count - 4, os.SEEK_END)
            stored, checksum = stream.read(16 * count), stream.read()
            if google_crc32c.value(stored) == int.from_bytes(checksum, "little"):
                stack.pop_all()  # keep the file open
                index = np.frombuffer(stored, "<u8").reshape(*in_shard, 2)
                return cls(stream=stream, nbytes=stream.tell(), index=index)
        raise LibraryNeeded(f"the index of {path} is damaged")

    def read(self, place: Place) -> bytes:
        """Return the stored bytes of a chunk."""
        start, size = self.index[place].tolist()
        if start + size > self.nbytes:  # a missing chunk has the largest possible numbers
            raise LibraryNeeded(f"chunk {place} is missing")
        self.stream.seek(start)
        return self.stream.read(size)


Found = tuple[str, Mapping[str, Any] | None]
"""Byte order of the values ("" for single bytes), and numcodecs' description of the compressor."""


def _version_2(metadata: Mapping[str, Any]) -> Found | None:
    """Return what the metadata of zarr format 2 say; None if zarr has to read the chunks."""
    if metadata.get("filters") or metadata.get("order") != "C":
        return None
    return str(metadata["dtype"])[:1].replace("|", ""), metadata.get("compressor")


def _version_3(metadata: Mapping[str, Any]) -> Found | None:
    """Return what the metadata of zarr format 3 say; None if zarr has to read the chunks."""
    codecs = metadata.get("codecs", [])
    if metadata.get("storage_transformers"):
        return None
    if [codec["name"] for codec in codecs] == ["sharding_indexed"]:
        sharding = codecs[0]["configuration"]
        names = [codec["name"] for codec in sharding.get("index_codecs", [])]
        if names != _INDEX_CODECS or sharding.get("index_location", "end") != "end":
            return None
        codecs = sharding["codecs"]
    names = [codec["name"] for codec in codecs]
    if names[:1] != ["bytes"] or len(names) > 2 or "sharding_indexed" in names:
        return None
    endian = codecs[0].get("configuration", {}).get("endian", "")
    return {"little": "<", "big": ">"}.get(endian, ""), {"id": names[1]} if names[1:] else None
