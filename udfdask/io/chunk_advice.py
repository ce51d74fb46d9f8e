"""Suggest good chunks for UDFs: whole frames, neither too few nor too many."""

from __future__ import annotations

import math
from dataclasses import dataclass

import dask.array as da
from dask.array.core import normalize_chunks
from dask.utils import format_bytes

from udfdask.config import chunk_bytes
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.good_chunks import LARGE, SMALL, good_chunks
from udfdask.io.lazy_source import Chunks


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkAdvice:
    """Suggested chunks of an array, and the reason for them, which `print` shows.

    Examples
    --------
    >>> import dask.array as da
    >>> from udfdask.io import suggest_chunks
    >>> x = da.zeros((256, 256, 128, 128), chunks=(8, 8, 64, 64), dtype="uint16")
    >>> advice = suggest_chunks(x, sig_dims=2)
    >>> x.rechunk(advice.chunks).chunksize
    (16, 256, 128, 128)
    """

    chunks: Chunks
    """Sizes of chunks along each dimension, as `rechunk` takes them."""
    is_change: bool
    """Whether the suggested chunks differ from those of the array."""
    reason: str
    """The reason, in words."""

    def __str__(self) -> str:
        return self.reason


def suggest_chunks(array: da.Array, sig_dims: int = 2) -> ChunkAdvice:
    """Suggest chunks of an array on which UDFs run well.

    Good chunks contain whole frames, which most UDFs need, and about 128 MiB of them (dask's
    ``array.chunk-size``): a task should take much longer than the scheduler needs to start it, and
    several blocks have to fit into memory. Chunks of 8 to 256 MiB with whole frames are not
    changed. Other chunks are merged, or divided into equal parts, so that rechunking moves as
    little data as possible.

    Parameters
    ----------
    array : dask.array.Array, shape (*nav, *sig)
        The data.
    sig_dims : int
        Number of signal axes.

    Returns
    -------
    ChunkAdvice
        The chunks and the reason.

    Raises
    ------
    ArgumentTypeError
        If `array` is not a dask array.
    ArgumentValueError
        If the array has fewer axes than `sig_dims`, or chunks of unknown size.

    Examples
    --------
    >>> import dask.array as da
    >>> from udfdask.io import suggest_chunks
    >>> x = da.zeros((256, 256, 128, 128), chunks=(8, 8, 64, 64), dtype="uint16")
    >>> print(suggest_chunks(x, sig_dims=2))
    4096 chunks of up to 512.00 kiB. Frames of 32.00 kiB are divided into 4 chunks, and UDFs that
    need whole frames have to join them. Better: 16 chunks of up to 128.00 MiB,
    array.rechunk((16, 256, 128, 128)). If the array comes from a file, open it with these chunks.
    """
    if not isinstance(array, da.Array):
        raise ArgumentTypeError(f"expected a dask array, got a {type(array).__name__}")
    if sig_dims not in range(1, array.ndim + 1):
        raise ArgumentValueError(f"sig_dims must be from 1 to {array.ndim}, got {sig_dims!r}")
    if any(math.isnan(n) for n in array.shape):
        raise ArgumentValueError("unknown chunk sizes: call array.compute_chunk_sizes() first")
    item = array.dtype.itemsize
    sizes = good_chunks(array.chunks, sig_dims, item)
    fault = _fault(array, array.ndim - sig_dims)
    now = _described(array.chunks, item)
    if not fault or sizes == array.chunksize:
        return ChunkAdvice(chunks=array.chunks, is_change=False, reason=f"{now}. Good.")
    chunks: Chunks = normalize_chunks(sizes, array.shape, dtype=array.dtype)
    return ChunkAdvice(
        chunks=chunks,
        is_change=True,
        reason=(
            f"{now}. {fault} Better: {_described(chunks, item)}, array.rechunk({sizes}). If the "
            "array comes from a file, open it with these chunks."
        ),
    )


def _fault(array: da.Array, nav: int) -> str:
    """Return what is wrong with the chunks of an array, as a sentence; empty if nothing is."""
    parts = math.prod(array.numblocks[nav:])
    largest, best = math.prod(array.chunksize) * array.dtype.itemsize, chunk_bytes()
    frame = math.prod(array.shape[nav:]) * array.dtype.itemsize
    if parts > 1:
        return (
            f"Frames of {format_bytes(frame)} are divided into {parts} chunks, and UDFs that need "
            "whole frames have to join them."
        )
    if largest < SMALL * best:
        return "To schedule so many small tasks takes longer than to compute them."
    return (
        "Each worker thread keeps one or two of them in memory." if largest > LARGE * best else ""
    )


def _described(chunks: Chunks, item: int) -> str:
    """Return the number of chunks and the size of the largest one, in words."""
    count = math.prod(len(sizes) for sizes in chunks)
    largest = math.prod(max(sizes, default=0) for sizes in chunks) * item
    return f"{count} chunk{'s' * (count != 1)} of up to {format_bytes(largest)}"
