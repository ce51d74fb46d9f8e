"""From something that can be sliced to a lazy array whose tasks open the file themselves."""

from __future__ import annotations

import math
from typing import Any, Protocol

import dask
import dask.array as da
import numpy as np
from dask.array.core import normalize_chunks
from dask.base import tokenize
from dask.utils import parse_bytes

from udfdask.errors import ArgumentValueError
from udfdask.io.file_identity import FileIdentity

Chunks = tuple[tuple[int, ...], ...]


class Source(Protocol):
    """A file's array: small, picklable, and opened by each task that slices it."""

    @property
    def file(self) -> FileIdentity:
        """The file, or a store's metadata, as it was when it was opened."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the whole array."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of its values."""

    def __getitem__(self, index: Any) -> Any: ...


def lazy_array(source: Source, chunks: Chunks, *, prefix: str, meta: Any = None) -> da.Array:
    """Take a source and its chunks; return its lazy array, whose name changes with the file.

    `meta` is an empty block of blocks that are no NumPy arrays; they are handed on as they are.
    """
    array: da.Array = da.from_array(
        source,
        chunks=chunks,
        name=f"{prefix}-{tokenize(source, chunks)}",
        # A few bytes in each task; a key of its own would keep loading and processing apart.
        inline_array=True,
        fancy=False,
        asarray=meta is None,
        # dask fuses indexing with reading where it knows the function that reads
        getitem=None if meta is None else _read,
        meta=np.empty((0,) * len(source.shape), source.dtype) if meta is None else meta,
    )
    return array


def _read(source: Source, index: tuple[slice, ...]) -> Any:
    """Return one block, never a part of it."""
    return source[index]


def choose_chunks(
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    sig_dims: int,
    chunks: Any = None,
    *,
    stored: tuple[int, ...] | None = None,
    nbytes: int | None = None,
) -> Chunks:
    """Take a shape, what the user asked for and what is stored; return the chunks to read in.

    Without a wish, whole frames that lie next to each other in the file, up to `nbytes`, by default
    dask's ``array.chunk-size``; of data stored in chunks, whole stored chunks.
    """
    if chunks is not None and chunks != "auto":
        try:
            return _normalize(chunks, shape, dtype, stored)
        except (TypeError, ValueError, NotImplementedError) as error:
            raise ArgumentValueError(
                f"chunks={chunks!r} do not fit the shape {shape}: {error}. Pass a size for each "
                'dimension, -1 for all of it, or "auto"'
            ) from error
    if 0 in shape:
        return _normalize(-1, shape, dtype, None)
    if stored is not None:  # a chunk may be larger than the array
        stored = tuple(min(chunk, size) for chunk, size in zip(stored, shape, strict=True))
    if stored is None:
        room = chunk_bytes() if nbytes is None else nbytes
        return _normalize(_contiguous_chunks(shape, dtype, sig_dims, room), shape, dtype, None)
    if math.prod(stored) * dtype.itemsize >= chunk_bytes():
        return _normalize(stored, shape, dtype, stored)
    return _normalize("auto", shape, dtype, stored)


def _normalize(
    chunks: Any, shape: tuple[int, ...], dtype: np.dtype[Any], stored: tuple[int, ...] | None
) -> Chunks:
    """Take chunks in any form dask knows; return them as explicit sizes."""
    explicit: Chunks = normalize_chunks(chunks, shape, dtype=dtype, previous_chunks=stored)
    return explicit


def chunk_bytes() -> int:
    """Return the size of an automatic chunk, bytes."""
    size: int = parse_bytes(dask.config.get("array.chunk-size"))
    return size


def _contiguous_chunks(
    shape: tuple[int, ...], dtype: np.dtype[Any], sig_dims: int, nbytes: int
) -> tuple[int, ...]:
    """Take an array's shape; return sizes of chunks, each a piece of at most so many bytes."""
    nav = len(shape) - sig_dims
    room = nbytes // max(1, math.prod(shape[nav:]) * dtype.itemsize)
    sizes = list(shape)
    for axis in reversed(range(nav)):
        pieces = math.ceil(shape[axis] / max(1, room))
        # Even pieces: 256 rows with room for 100 become 86, 86, 84 rather than 100, 100, 56.
        sizes[axis] = math.ceil(shape[axis] / pieces)
        room = room // shape[axis] if pieces == 1 else 1
    return tuple(sizes)
