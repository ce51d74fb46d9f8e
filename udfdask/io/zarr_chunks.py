"""Decode the stored chunks of local zarr arrays directly into the block.

Only layouts that are known for certain are read here, because zarr passes each chunk through an
event loop and copies it. zarr itself reads everything else: other layouts, missing chunks, chunks
that cannot be decoded here, and indices with steps.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np

from udfdask.io.chunk_decoders import DamagedChunk, Decode, numcodec
from udfdask.io.stored_chunks import LibraryNeeded, StoredBytes, Values, read_part

Place = tuple[int, ...]

_INDEX_CODECS = [
    {"name": "bytes", "configuration": {"endian": "little"}},
    {"name": "crc32c"},
]
"""The usual codecs of the index at the end of a shard."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ZarrChunks:
    """How to read the stored chunks of an array."""

    folder: Path
    """Folder of the array."""
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
    prefix: str
    """First part of the name of each file, such as ``c/``."""
    separator: str
    """Character between the numbers in the name of a file."""

    @classmethod
    def of(cls, metadata_file: Path) -> ZarrChunks | None:
        """Return the reader of an array; None if zarr itself has to read it."""
        metadata = json.loads(metadata_file.read_bytes())
        read_layout = _version_3 if metadata_file.name == "zarr.json" else _version_2
        try:
            layout = read_layout(metadata)
        except (LookupError, TypeError, ValueError, AttributeError):  # written in another way
            return None
        if layout is None or layout["dtype"].kind not in "iufc":
            return None
        compressor = layout.pop("compressor")
        decode = None if compressor is None else numcodec(compressor)
        if compressor is not None and decode is None:
            return None
        shape = tuple(metadata["shape"])
        return cls(folder=metadata_file.parent, shape=shape, decode=decode, **layout)

    def read(self, index: Any) -> Values:
        """Return the part at `index`; raise `LibraryNeeded` if zarr has to read it."""
        stored = StoredBytes(self.decode)
        shards: dict[Place, _Shard] = {}

        def read_stored(place: Place, out: Values) -> None:
            if self.in_shard is None:
                with FileIO(self._path(place)) as stream:
                    stored.read(stream, os.fstat(stream.fileno()).st_size, out)
                return
            file, inside = self._in_shard(place)
            if file not in shards:
                shard = _Shard(self._path(file), self.in_shard)
                shards[file] = open_files.enter_context(shard)
            shards[file].read_chunk(inside, stored, out)

        def read_chunk(place: Place, out: Values) -> None:
            try:
                read_stored(place, out)
            except (LibraryNeeded, DamagedChunk, OSError, OverflowError, ImportError) as error:
                file = place if self.in_shard is None else self._in_shard(place)[0]
                raise LibraryNeeded(str(error), file=self._path(file)) from error

        with ExitStack() as open_files:
            return read_part(
                index,
                shape=self.shape,
                dtype=self.dtype,
                stored=self.stored,
                read_chunk=read_chunk,
            )

    def _path(self, place: Place) -> Path:
        """Return the path of the file at a position in the grid of files."""
        return self.folder / f"{self.prefix}{self.separator.join(map(str, place))}"

    def _in_shard(self, place: Place) -> tuple[Place, Place]:
        """Return the position of a shard, and that of a chunk in it."""
        assert self.in_shard is not None
        pairs = [divmod(n, count) for n, count in zip(place, self.in_shard, strict=True)]
        return tuple(file for file, _ in pairs), tuple(inside for _, inside in pairs)


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
                raise OSError("the index is damaged")  # noqa: TRY301
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


def _version_2(metadata: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the layout in metadata of zarr format 2; None if zarr has to read the chunks."""
    separator = metadata.get("dimension_separator", ".")
    if metadata["filters"] or metadata["order"] != "C" or separator not in (".", "/"):
        return None
    return {
        "dtype": np.dtype(metadata["dtype"]),
        "stored": tuple(metadata["chunks"]),
        "in_shard": None,
        "compressor": metadata["compressor"],
        "prefix": "",
        "separator": separator,
    }


def _version_3(metadata: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the layout in metadata of zarr format 3; None if zarr has to read the chunks."""
    grid, keys, codecs = (metadata[k] for k in ("chunk_grid", "chunk_key_encoding", "codecs"))
    prefix = {"default": "c", "v2": ""}.get(keys["name"])
    usual = "/" if prefix else "."
    separator = keys.get("configuration", {}).get("separator", usual)
    if metadata.get("storage_transformers") or grid["name"] != "regular" or prefix is None:
        return None
    stored, in_shard = tuple(grid["configuration"]["chunk_shape"]), None
    if [codec["name"] for codec in codecs] == ["sharding_indexed"]:
        sharding = codecs[0]["configuration"]
        if (
            sharding["index_codecs"] != _INDEX_CODECS
            or sharding.get("index_location", "end") != "end"
        ):
            return None
        shard, stored, codecs = stored, tuple(sharding["chunk_shape"]), sharding["codecs"]
        in_shard = tuple(size // step for size, step in zip(shard, stored, strict=True))
    names = [codec["name"] for codec in codecs]
    if names[0] != "bytes" or len(names) > 2 or separator not in (".", "/"):
        return None
    dtype = np.dtype(metadata["data_type"])
    if dtype.itemsize > 1:
        dtype = dtype.newbyteorder(
            {"little": "<", "big": ">"}[codecs[0]["configuration"]["endian"]]
        )
    return {
        "dtype": dtype,
        "stored": stored,
        "in_shard": in_shard,
        "compressor": {"id": names[1]} if names[1:] else None,
        "prefix": prefix and f"{prefix}{separator}",
        "separator": separator,
    }
