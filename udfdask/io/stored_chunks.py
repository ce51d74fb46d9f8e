"""Read a part of an array from stored chunks that are decoded without the library of the format.

HDF5 decodes one chunk at a time, and zarr copies each through an event loop. Here each task decodes
its own chunks, most of them directly into the block, with decoders that work in several threads. If
a chunk is missing or cannot be decoded here, the library reads the part.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np

from udfdask.io.lazy_source import Values

Decode = Callable[[memoryview, Values], None]
"""Decode stored bytes into all of a contiguous array of bytes; raise if they do not fit exactly."""

Place = tuple[int, ...]
ReadChunk = Callable[[Place, Values], None]
"""Read the stored chunk at a position of the grid into all of a contiguous array of bytes; raise
`LibraryNeeded` if that is not possible."""


class LibraryNeeded(Exception):
    """A part can only be read by the library of the format."""


class DamagedChunk(ValueError):
    """A chunk that nobody can decode: HDF5's zstd gives wrong values for it, bitshuffle crashes."""


# numbers that The HDF Group has given to filters of HDF5
DEFLATE, SHUFFLE, LZF, BLOSC, LZ4, BITSHUFFLE, ZSTD = 1, 2, 32000, 32001, 32004, 32008, 32015
_HDF5_FILTERS = {DEFLATE: "zlib", LZF: "lzf", LZ4: "lz4h5", BLOSC: "blosc", ZSTD: "zstd"}


def hdf5_decoder(filters: Sequence[tuple[int, tuple[int, ...]]]) -> Decode | None:
    """Return the decoder of HDF5's filters, numbers with parameters; None if only HDF5 can."""
    width = 0
    if len(filters) == 2 and filters[0][0] == SHUFFLE:
        width = filters[0][1][0]
        filters = filters[1:]
    if len(filters) != 1:
        return None
    number, parameters = filters[0]
    if number == BITSHUFFLE and len(parameters) >= 5:
        decode = _bitshuffle(parameters[2], {2: "lz4", 3: "zstd"}.get(parameters[4], ""))
    else:
        decode = decoder(_HDF5_FILTERS.get(number, ""))
    return _unshuffled(decode, width) if decode and width > 1 else decode


def decoder(name: str) -> Decode | None:
    """Return the decoder of a compressor, by its name in zarr; None if there is none."""
    if name not in ("blosc", "gzip", "lz4", "lz4h5", "lzf", "zlib", "zstd"):
        return None
    options = {"header": True} if name == "lz4" else {}
    function = "deflate_decode" if name == "zlib" else f"{name}_decode"
    try:
        import imagecodecs

        codec = getattr(imagecodecs, function)
    except (ImportError, AttributeError):
        return None

    def decode(stored: memoryview, out: Values) -> None:
        # the decoder of blosc does not look where its input ends
        if name == "blosc" and stored[12:16] != len(stored).to_bytes(4, "little"):
            raise ValueError("the chunk is cut short")
        try:
            size = codec(stored, out=out, **options).nbytes
        except RuntimeError as error:
            raise DamagedChunk(str(error)) from error
        _check(size, out)

    return decode


def _check(size: int | None, out: Values) -> None:
    if size != out.nbytes:
        raise ValueError(f"the decoded chunk has {size} bytes, expected {out.nbytes}")


def _unshuffled(decode: Decode, width: int) -> Decode:
    """Return a decoder for chunks with the first bytes of all values, then all second bytes."""

    def decode_and_unshuffle(stored: memoryview, out: Values) -> None:
        planes = np.empty((width, out.nbytes // width), np.uint8)
        decode(stored, planes.reshape(-1))
        values = out.reshape(-1, width)
        for byte, plane in enumerate(planes):  # one transposed copy takes six times as long
            values[:, byte] = plane

    return decode_and_unshuffle


@cache
def _bitshuffle_library() -> Any:
    """Return the library of bitshuffle that hdf5plugin contains; None if it is not there."""
    try:
        import hdf5plugin

        path = next(Path(hdf5plugin.PLUGIN_PATH).glob("libh5bshuf.*"))
        return ctypes.CDLL(str(path))
    except (ImportError, StopIteration, OSError):
        return None


def _bitshuffle(width: int, compressor: str) -> Decode | None:
    """Return the decoder of bitshuffle with a compressor, for values of a number of bytes."""
    function = getattr(_bitshuffle_library(), f"bshuf_decompress_{compressor}", None)
    if function is None or width < 1:
        return None
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_size_t] * 3]
    function.restype = ctypes.c_int64

    def decode(stored: memoryview, out: Values) -> None:
        # a header of 12 bytes, big-endian: the decoded size, and the size of a block
        _check(int.from_bytes(stored[:8], "big"), out)
        block = int.from_bytes(stored[8:12], "big") // width
        blocks = np.frombuffer(stored, np.uint8, offset=12)
        values = out.nbytes // width
        if not _blocks_add_up(stored, values, width, block) or blocks.nbytes != function(
            blocks.ctypes.data, out.ctypes.data, values, width, block
        ):
            raise DamagedChunk("bitshuffle cannot decode it")

    return decode


def _blocks_add_up(stored: memoryview, values: int, width: int, block: int) -> bool:
    """Return whether the sizes of bitshuffle's blocks add up: its library would read beyond."""
    if block < 8 or block % 8:
        return False
    at = 12
    for _ in range(-(-(values // 8 * 8) // block)):
        at += 4 + int.from_bytes(stored[at : at + 4], "big")
    return at + values % 8 * width == len(stored)  # the last values, less than 8, are as they are


class StoredBytes:
    """The stored bytes of one chunk after another: fresh memory for each takes 15 % longer."""

    def __init__(self, decode: Decode | None) -> None:
        self._decode = decode
        self._memory = bytearray()

    def read(self, stream: FileIO, size: int, out: Values) -> None:
        """Read the next `size` bytes of a file, and decode them into all of `out`."""
        if self._decode is None:
            if size != out.nbytes or stream.readinto(out.data) != size:
                raise LibraryNeeded(f"expected a chunk of {out.nbytes} bytes")
            return
        if len(self._memory) < size:
            self._memory = bytearray(size)
        stored = memoryview(self._memory)[:size]
        if stream.readinto(stored) != size:
            raise LibraryNeeded("the file is cut short")
        try:
            self._decode(stored, out)
        except (MemoryError, DamagedChunk):
            raise
        except Exception as error:  # decoders have no common base class of errors
            raise LibraryNeeded(f"a chunk cannot be decoded: {error}") from error


def read_part(
    index: Any, shape: Place, dtype: np.dtype[Any], stored: Place, read_chunk: ReadChunk
) -> Values:
    """Return the part at `index` of an array in chunks; raise `LibraryNeeded` if not possible."""
    # dask passes a slice or an integer for each axis
    numbered = [range(n)[part] for part, n in zip(index, shape, strict=True)]
    ranges = [range(each, each + 1) if isinstance(each, int) else each for each in numbered]
    if any(positions.step != 1 for positions in ranges):
        raise LibraryNeeded("the index has steps")
    box, scratch = np.empty([len(positions) for positions in ranges], dtype), None
    grid = [
        range(positions.start // step, (positions.stop - 1) // step + 1) if positions else ()
        for positions, step in zip(ranges, stored, strict=True)
    ]
    for place in itertools.product(*grid):
        # the chunk's first position along each axis, in the box
        begins = [n * step - at.start for n, step, at in zip(place, stored, ranges, strict=True)]
        target = box[
            tuple(slice(max(b, 0), b + step) for b, step in zip(begins, stored, strict=True))
        ]
        if target.shape == stored and target.flags.c_contiguous:
            read_chunk(place, _bytes(target))
            continue
        if scratch is None:
            scratch = np.empty(stored, dtype)
        read_chunk(place, _bytes(scratch))
        # an incomplete chunk at an edge is stored with its full shape
        skipped = [max(-begin, 0) for begin in begins]
        target[...] = scratch[
            tuple(slice(s, s + n) for s, n in zip(skipped, target.shape, strict=True))
        ]
    part: Values = box.reshape([len(each) for each in numbered if isinstance(each, range)])[()]
    return part


def _bytes(values: Values) -> Values:
    return values.reshape(-1).view(np.uint8)


# the usual codecs of the index at the end of a shard
_INDEX_CODECS = [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]


@dataclass(frozen=True, slots=True, kw_only=True)
class ZarrChunks:
    """How to read the stored chunks of a local zarr array.

    `dtype` is the type in the store, `stored` the shape of a chunk, and `in_shard` the number of
    chunks in a shard along each axis. `name_of` returns the name of the file at a position.
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
