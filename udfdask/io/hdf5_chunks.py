"""Read stored chunks of HDF5 files without HDF5, which decodes one chunk at a time."""

from __future__ import annotations

from dataclasses import dataclass
from io import FileIO
from typing import Any

import numpy as np

from udfdask.io.chunk_decoders import Decode, hdf5_decoder
from udfdask.io.memmap import Values
from udfdask.io.stored_chunks import LibraryNeeded, ReadChunk, StoredBytes

MOST_STORED = 4_000_000
"""Maximum number of stored chunks: a process keeps 16 bytes for each, and needs about 1 us each to
list them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkTable:
    """The places of a dataset's chunks in the file, and how to decode them."""

    stored: tuple[int, ...]
    """Shape of a stored chunk."""
    offsets: np.ndarray[Any, Any]
    """Position of each chunk in the file, in bytes; the array has the shape of the chunk grid."""
    sizes: np.ndarray[Any, Any]
    """Number of bytes of each chunk in the file; 0 if HDF5 itself has to read the chunk."""
    decode: Decode | None
    """The decoder; None if chunks are stored as they are."""

    @classmethod
    def of(cls, dataset: Any) -> ChunkTable | None:
        """Return the table of an open dataset; None if HDF5 itself has to read it."""
        if not hasattr(dataset.id, "chunk_iter") or not _is_plain(dataset) or not dataset.chunks:
            return None
        if dataset.maxshape.count(None) == 1 and dataset.maxshape[0] is not None:
            return None  # HDF5 2.0 lists the chunks of an extensible array at wrong positions
        grid = [-(-n // step) for n, step in zip(dataset.shape, dataset.chunks, strict=True)]
        if not 0 < np.prod(grid, dtype=float) <= MOST_STORED:
            return None
        properties = dataset.id.get_create_plist()
        filters = [properties.get_filter(n) for n in range(properties.get_nfilters())]
        decode = hdf5_decoder([(number, values) for number, _, values, _ in filters])
        if filters and decode is None:
            return None
        offsets, sizes = np.zeros(grid, np.int64), np.zeros(grid, np.int64)

        def note(chunk: Any) -> None:
            # a bit is set for each filter that was not applied to this chunk
            if chunk.filter_mask == 0 and chunk.byte_offset is not None:
                place = tuple(
                    at // step for at, step in zip(chunk.chunk_offset, dataset.chunks, strict=True)
                )
                offsets[place], sizes[place] = chunk.byte_offset, chunk.size

        dataset.id.chunk_iter(note)
        return cls(stored=dataset.chunks, offsets=offsets, sizes=sizes, decode=decode)

    def reader(self, stream: FileIO) -> ReadChunk:
        """Return the function that reads chunks from an open file."""
        stored = StoredBytes(self.decode)

        def read_chunk(place: tuple[int, ...], out: Values) -> None:
            size = int(self.sizes[place])
            # HDF5 can store incomplete chunks at the edges without filters
            if size == 0 or (size == out.nbytes and self.decode is not None):
                raise LibraryNeeded(f"chunk {place} is missing, or stored in another way")
            stream.seek(int(self.offsets[place]))
            stored.read(stream, size, out)

        return read_chunk


def contiguous_offset(dataset: Any) -> int | None:
    """Return the position of an open dataset that is one part of its file; None for others."""
    if not _is_plain(dataset) or dataset.chunks or dataset.size == 0:
        return None
    offset: int | None = dataset.id.get_offset()
    return offset


def _is_plain(dataset: Any) -> bool:
    """Return whether the values of a dataset are in its file as NumPy has them in memory."""
    import h5py

    return (
        dataset.dtype.kind in "iufc"
        and dataset.id.get_type() == h5py.h5t.py_create(dataset.dtype)
        and not dataset.is_virtual
        and not dataset.external
        and dataset.file.userblock_size == 0
    )
