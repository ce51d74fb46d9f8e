"""Decode the stored chunks of local zarr arrays directly into the block.

Only layouts that are known for certain are read here, because zarr passes each chunk through an
event loop and copies it. zarr itself reads everything else: other layouts, missing chunks, chunks
that cannot be decoded here, and indices with steps.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np

from udfdask.io.lazy_source import Values
from udfdask.io.stored_chunks import (
    DamagedChunk,
    Decode,
    LibraryNeeded,
    Place,
    StoredBytes,
    decoder,
    read_part,
)

# the usual codecs of the index at the end of a shard
_INDEX_CODECS = [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]


@dataclass(frozen=True, slots=True, kw_only=True)
class ZarrChunks:
    """How to read the stored chunks of an array in a folder.

    `dtype` is the type in the store, with its byte order, and `stored` the shape of a chunk.
    Without `decode`, chunks are stored as they are. `in_shard` is the number of chunks in a shard
    along each axis, and `name_of` returns the name of the file at a position in the grid of files.
    """

    folder: Path
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    stored: tuple[int, ...]
    decode: Decode | None
    in_shard: tuple[int, ...] | None
    name_of: Callable[[Place], str]

    @classmethod
    def of(cls, array: Any, folder: Path) -> ZarrChunks | None:
        """Return the reader of an open array; None if zarr itself has to read it."""
        dtype, metadata = np.dtype(array.dtype), array.metadata
        filters, compressors = array.filters, array.compressors
        if filters or len(compressors) > 1 or array.order != "C" or dtype.kind not in "iufc":
            return None
        if metadata.zarr_format == 3:
            serializer = array.serializer.to_dict()
            names = [codec.to_dict()["name"] for codec in compressors]
            if serializer["name"] != "bytes" or metadata.storage_transformers:
                return None
            endian = serializer.get("configuration", {}).get("endian", "little")
            dtype = dtype.newbyteorder({"little": "<", "big": ">"}[endian])
        else:
            names = [codec.codec_id for codec in compressors]
        decode = decoder(names[0]) if names else None
        if names and decode is None:
            return None
        in_shard = None
        if array.shards is not None:
            sharding = metadata.codecs[0].to_dict()["configuration"]
            ours = (list(sharding["index_codecs"]), str(sharding["index_location"]))
            if ours != (_INDEX_CODECS, "end"):
                return None
            in_shard = tuple(n // m for n, m in zip(array.shards, array.chunks, strict=True))
        how: dict[str, Any] = {"shape": array.shape, "dtype": dtype, "stored": array.chunks}
        how |= {"decode": decode, "in_shard": in_shard, "name_of": metadata.encode_chunk_key}
        return cls(folder=folder, **how)

    def read(self, index: Any) -> Values:
        """Return the part at `index`; raise `LibraryNeeded` if zarr has to read it."""
        stored = StoredBytes(self.decode)
        shards: dict[Place, tuple[FileIO, Values, int]] = {}

        def read_stored(place: Place, out: Values) -> None:
            if self.in_shard is None:
                with FileIO(self.folder / self.name_of(place)) as stream:
                    stored.read(stream, os.fstat(stream.fileno()).st_size, out)
                return
            pairs = [divmod(n, count) for n, count in zip(place, self.in_shard, strict=True)]
            file, inside = tuple(zip(*pairs, strict=True))
            if file not in shards:
                stream = open_files.enter_context(FileIO(self.folder / self.name_of(file)))
                shards[file] = stream, *_read_index(stream, self.in_shard)
            stream, index, nbytes = shards[file]
            start, size = index[inside].tolist()
            if start + size > nbytes:  # a missing chunk has the largest possible numbers
                raise LibraryNeeded(f"chunk {place} is missing")
            stream.seek(start)
            stored.read(stream, size, out)

        try:
            with ExitStack() as open_files:
                return read_part(index, self.shape, self.dtype, self.stored, read_stored)
        except (DamagedChunk, OSError, ImportError) as error:  # never written, or damaged
            raise LibraryNeeded(str(error)) from error


def _read_index(stream: FileIO, in_shard: Place) -> tuple[Values, int]:
    """Return the index at the end of a shard, and the size of the file."""
    import google_crc32c  # zarr's own package for the checksum of the index

    nbytes = 16 * math.prod(in_shard)
    stream.seek(-nbytes - 4, os.SEEK_END)
    index, checksum = stream.read(nbytes), stream.read()
    if google_crc32c.value(index) != int.from_bytes(checksum, "little"):
        raise LibraryNeeded("the index is damaged")
    return np.frombuffer(index, "<u8").reshape(*in_shard, 2), stream.tell()
