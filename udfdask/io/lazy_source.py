"""Make lazy arrays of files; each task opens the file itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
from dask.array.core import normalize_chunks
from dask.base import tokenize

from udfdask.base.config import chunk_bytes
from udfdask.errors import ArgumentValueError

Chunks = tuple[tuple[int, ...], ...]
Values = np.ndarray[Any, Any]

# Automatic blocks have at least 16 MiB, because each task takes dask about 0.2 ms, and at least 64
# frames, because it returns results of the size of a frame. dask's `array.chunk-size` is the limit.
LEAST_BYTES, LEAST_FRAMES = 16 << 20, 64

# Numbers of blocks above which blocks are larger. With fewer blocks of a mapped file, some threads
# would have less to do than others. Decoded blocks of 16 MiB stay in the cache until they are
# processed: two threads sum them in half the time that they need in blocks of 128 MiB.
MANY_MAPPED, MANY_DECODED = 16, 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredArray:
    """An array in a file or remote object: small, picklable, and opened by each task.

    `shape` is (*nav, *sig). `stored` is the shape of the chunks that are stored encoded; None if
    values are stored as they are.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    stored: tuple[int, ...] | None = None

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def __getitem__(self, index: Any) -> Any:
        """Return the part at `index`, read from the file or object."""
        raise NotImplementedError


def lazy_array(source: StoredArray, chunks: Chunks, *, prefix: str, meta: Any = None) -> da.Array:
    """Return the lazy array of a file, whose name changes with it; `meta` is for sparse blocks."""
    array: da.Array = da.from_array(
        source,
        chunks=chunks,
        name=f"{prefix}-{tokenize(source, chunks)}",
        # A source has a few bytes, so each task can hold it. As a task of its own, it would keep
        # dask from fusing loading with processing.
        inline_array=True,
        fancy=False,
        asarray=meta is None,
        # dask fuses indexing into its own getter; sparse blocks can only be read completely
        getitem=None if meta is None else _read,
        meta=np.empty((0,) * source.ndim, source.dtype) if meta is None else meta,
    )
    return array


def _read(source: StoredArray, index: tuple[slice, ...]) -> Any:
    return source[index]


def choose_chunks(
    array: StoredArray | da.Array, sig_dims: int, chunks: Any = None, *, nbytes: int | None = None
) -> Chunks:
    """Return the chunks in which to read an array: those of the user, or suitable ones.

    Automatic chunks consist of whole stored chunks and whole frames if both are possible, otherwise
    of whole stored chunks. In a file without chunks, they consist of frames that are next to each
    other, up to `nbytes` (by default dask's ``array.chunk-size``).
    """
    shape, dtype = array.shape, array.dtype
    stored: tuple[int, ...] | None = getattr(array, "stored", None)
    if chunks is not None and chunks != "auto":
        return explicit_chunks(shape, dtype, chunks, stored)
    if 0 in shape:
        return explicit_chunks(shape, dtype, -1)
    nav, item, most = len(shape) - sig_dims, dtype.itemsize, chunk_bytes()
    frame, frames = math.prod(shape[nav:]) * item, math.prod(shape[:nav])
    many = MANY_MAPPED if stored is None else MANY_DECODED
    room = min(most, max(LEAST_BYTES, LEAST_FRAMES * frame, frames * frame // many))
    if nbytes is not None:
        room = nbytes
    if stored is not None:  # a stored chunk can be larger than the array
        stored = tuple(map(min, stored, shape))
    unit = *(stored or (1,) * nav)[:nav], *shape[nav:]
    if stored is not None and math.prod(unit) * item > most:
        unit, room = stored, most
    return explicit_chunks(shape, dtype, _joined(shape, unit, room // item), stored)


def explicit_chunks(shape: tuple[int, ...], dtype: Any, chunks: Any, stored: Any = None) -> Chunks:
    """Return the user's chunks as explicit sizes; raise if they do not fit the shape."""
    try:
        explicit: Chunks = normalize_chunks(chunks, shape, dtype=dtype, previous_chunks=stored)
    except (TypeError, ValueError, NotImplementedError) as error:
        raise ArgumentValueError(
            f"chunks={chunks!r} do not fit the shape {shape}: {error}. Pass a size for each "
            'dimension, -1 for all of it, or "auto"'
        ) from error
    return explicit


def _joined(shape: tuple[int, ...], unit: tuple[int, ...], room: int) -> tuple[int, ...]:
    """Return sizes of chunks of up to `room` values: whole units, joined along the last axes."""
    room //= math.prod(unit)
    sizes = list(unit)
    for axis in reversed(range(len(unit))):
        count = math.ceil(shape[axis] / unit[axis])
        parts = math.ceil(count / max(1, room))
        # Equal sizes: 256 rows with room for 100 become 86, 86, 84 rather than 100, 100, 56.
        sizes[axis] = min(shape[axis], math.ceil(count / parts) * unit[axis])
        room = room // count if parts == 1 else 1
    return tuple(sizes)
