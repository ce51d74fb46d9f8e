"""Read a part of an array from stored chunks that are decoded without the library of the format.

HDF5 decodes one chunk at a time, whatever the number of threads, and zarr passes each chunk through
an event loop and copies it. Here each task decodes its own chunks, most of them directly into the
block. If a chunk is missing or cannot be decoded here, the library reads the part: it knows fill
values and all filters, and its errors are better known.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from io import FileIO
from typing import Any

import numpy as np

from udfdask.io.chunk_decoders import DamagedChunk, Decode
from udfdask.io.memmap import Values, positions_of

ReadChunk = Callable[[tuple[int, ...], Values], None]
"""Read the stored chunk at a position of the grid into all of a contiguous array of bytes; raise
`LibraryNeeded` if that is not possible."""


class LibraryNeeded(Exception):
    """A part can only be read by the library of the format."""


class StoredBytes:
    """The stored bytes of one chunk after another, in the same memory.

    With fresh memory for each chunk of 0.6 MB, reading and decoding blosc takes 15 % longer.
    """

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
    index: Any,
    *,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    stored: tuple[int, ...],
    read_chunk: ReadChunk,
) -> Values:
    """Return the part at `index` of an array in stored chunks of the shape `stored`.

    Raise `LibraryNeeded` if a chunk cannot be read, or if the index has steps.
    """
    ranges, kept = positions_of(index, shape)
    if any(positions.step != 1 for positions in ranges):
        raise LibraryNeeded("the index has steps")
    box = np.empty([len(positions) for positions in ranges], dtype)
    if box.size:
        _fill(box, [positions.start for positions in ranges], stored, read_chunk)
    part: Values = box.reshape(kept)[()]
    return part


def _fill(box: Values, start: list[int], stored: tuple[int, ...], read_chunk: ReadChunk) -> None:
    """Fill an array with the values from the position `start` on."""
    scratch = None
    for place in itertools.product(
        *(
            range(first // step, (first + count - 1) // step + 1)
            for first, count, step in zip(start, box.shape, stored, strict=True)
        )
    ):
        # the chunk's first and last position along each axis, in the box
        begins = [n * step - at for n, step, at in zip(place, stored, start, strict=True)]
        target = box[
            tuple(slice(max(b, 0), b + step) for b, step in zip(begins, stored, strict=True))
        ]
        if target.shape == stored and target.flags.c_contiguous:
            read_chunk(place, _bytes(target))
            continue
        if scratch is None:
            scratch = np.empty(stored, box.dtype)
        read_chunk(place, _bytes(scratch))
        # an incomplete chunk at an edge is stored with its full shape
        skipped = [max(-begin, 0) for begin in begins]
        target[...] = scratch[
            tuple(slice(s, s + n) for s, n in zip(skipped, target.shape, strict=True))
        ]


def _bytes(values: Values) -> Values:
    """Return the memory of a contiguous array as bytes."""
    return values.reshape(-1).view(np.uint8)
