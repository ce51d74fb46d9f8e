"""Make lazy arrays of files; each task opens the file itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.array.core import normalize_chunks
from dask.base import tokenize
from dask.utils import parse_bytes

from udfdask.errors import ArgumentValueError
from udfdask.io.file_identity import FileIdentity

Chunks = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileArray:
    """An array in a file: small, picklable, and opened by each task that slices it."""

    file: FileIdentity
    """The file, or a store's metadata file, when it was opened; tasks raise if it has changed."""
    shape: tuple[int, ...]
    """Shape of the array, (*nav, *sig)."""
    dtype: np.dtype[Any]
    """Type of the values that tasks get."""

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def __getitem__(self, index: Any) -> Any:
        """Return the part at `index`, read from the file."""
        raise NotImplementedError


def lazy_array(source: FileArray, chunks: Chunks, *, prefix: str, meta: Any = None) -> da.Array:
    """Return the lazy array of a file, with a name that changes when the file changes.

    `meta` is an empty block if blocks are not NumPy arrays; such blocks are passed on unchanged.
    """
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


def _read(source: FileArray, index: tuple[slice, ...]) -> Any:
    """Return one complete block."""
    return source[index]


def choose_chunks(
    array: FileArray | da.Array,
    sig_dims: int,
    chunks: Any = None,
    *,
    stored: tuple[int, ...] | None = None,
    nbytes: int | None = None,
) -> Chunks:
    """Return the chunks in which to read an array: those of the user, or suitable ones.

    `stored` is the shape of the chunks in the file. Automatic chunks consist of whole stored
    chunks; in a file without chunks, of whole frames that are next to each other, up to `nbytes`
    (by default dask's ``array.chunk-size``).
    """
    shape, dtype = array.shape, array.dtype
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
    if stored is None:
        room = chunk_bytes() if nbytes is None else nbytes
        return _normalize(_contiguous_chunks(shape, dtype, sig_dims, room), shape, dtype, None)
    # a stored chunk can be larger than the array
    stored = tuple(min(chunk, size) for chunk, size in zip(stored, shape, strict=True))
    if math.prod(stored) * dtype.itemsize >= chunk_bytes():
        return _normalize(stored, shape, dtype, stored)
    return _normalize("auto", shape, dtype, stored)


def _normalize(
    chunks: Any, shape: tuple[int, ...], dtype: np.dtype[Any], stored: tuple[int, ...] | None
) -> Chunks:
    """Return chunks in any form that dask accepts as explicit sizes."""
    explicit: Chunks = normalize_chunks(chunks, shape, dtype=dtype, previous_chunks=stored)
    return explicit


def chunk_bytes() -> int:
    """Return the size of an automatic chunk in bytes."""
    size: int = parse_bytes(dask.config.get("array.chunk-size"))
    return size


def _contiguous_chunks(
    shape: tuple[int, ...], dtype: np.dtype[Any], sig_dims: int, nbytes: int
) -> tuple[int, ...]:
    """Return the sizes of chunks of at most `nbytes`, each of them contiguous in the file."""
    nav = len(shape) - sig_dims
    room = nbytes // max(1, math.prod(shape[nav:]) * dtype.itemsize)
    sizes = list(shape)
    for axis in reversed(range(nav)):
        parts = math.ceil(shape[axis] / max(1, room))
        # Equal sizes: 256 rows with room for 100 become 86, 86, 84 rather than 100, 100, 56.
        sizes[axis] = math.ceil(shape[axis] / parts)
        room = room // shape[axis] if parts == 1 else 1
    return tuple(sizes)
