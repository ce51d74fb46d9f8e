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

from udfdask.io.chunk_decoders import DamagedChunk, Decode, numcodec
from udfdask.io.stored_chunks import LibraryNeeded, StoredBytes, Values, read_part

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
        stored = StoredBytes(self.decode)
        shards: dict[Place, _Shard] = {}

        def read_chunk(place: Place, out: Values) -> None:
            if self.in_shard is None:
                with FileIO(path_of(place)) as stream:
                    stored.read(stream, os.fstat(stream.fileno()).st_size, out)
                return
            file = tuple(n // count for n, count in zip(place, self.in_shard, strict=True))
            if file not in shards:
                shards[file] = open_files.enter_context(_Shard(path_of(file), self.in_shard))
            inside = tuple(n % count for n, count in zip(place, self.in_shard, strict=True))
            shards[file].read_chunk(inside, stored, out)

        with ExitStack() as open_files:
            try:
                return read_part(
                    index,
                    shape=self.shape,
                    dtype=self.dtype,
                    stored=self.stored,
                    read_chunk=read_chunk,
                )
            # zarr names the chunk, or reads fill values for it
            except (OSError, OverflowError, ImportError, DamagedChunk) as error:
                raise LibraryNeeded(str(error)) from error


class _Shard(FileIO):
    """An open file with several chunks, and an index at its end."""

    def __init__(self, path: Path, in_shard: tuple[int, ...]) -> None:
        import google_crc32c  # zarr's own package for the checksum of the index

        super().__init__(path)
        try:
            nbytes = 16 * math.prod(in_shard)
            self.seek(-nbytes - 4, os.SEEK_END)
            index, checksum = self.read(nbytes), self.read()
            if google_crc32c.value(index) != int.from_bytes(checksum, "little"):
                raise OSError(f"the index of {path} is damaged")  # noqa: TRY301
        except BaseException:
            self.close()
            raise
        self._index = np.frombuffer(index, "<u8").reshape(*in_shard, 2)
        self._nbytes = self.tell()

    def read_chunk(self, place: Place, stored: StoredBytes, out: Values) -> None:
        """Read the chunk at a position in the shard."""
        start, size = self._index[place].tolist()
        if start + size > self._nbytes:  # a missing chunk has the largest possible numbers
            raise LibraryNeeded(f"chunk {place} is missing")
        self.seek(start)
        stored.read(self, size, out)


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
