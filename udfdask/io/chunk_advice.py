"""Which chunks suit UDFs: whole frames, neither too few nor too many of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import dask
import dask.array as da
from dask.array.core import normalize_chunks
from dask.utils import format_bytes, parse_bytes

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.plan.check_input import check_sig_dims

Chunks = tuple[tuple[int, ...], ...]

SMALL, LARGE = 1 / 8, 2
"""Chunks are left alone between these parts of the size that is wanted: 16 to 256 MiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkAdvice:
    """What to rechunk an array to, and why; printed, it says so in words.

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
    """Whether these are other chunks than those the array has."""
    reason: str
    """Why, in words."""

    def __str__(self) -> str:
        return self.reason


def suggest_chunks(array: da.Array, sig_dims: int = 2) -> ChunkAdvice:
    """Suggest what to rechunk an array to before UDFs run over it.

    Good chunks hold whole frames, which most UDFs need, and about 128 MiB of them (dask's
    ``array.chunk-size``): a task should last much longer than the scheduler needs to start it, and
    several have to fit into memory at once. Chunks of 16 to 256 MiB with whole frames are left as
    they are. Others are made of whole old chunks, or old ones are cut evenly, so that rechunking
    moves as little as possible.

    Parameters
    ----------
    array : dask.array.Array, shape (*nav, *sig)
        The data.
    sig_dims : int
        Number of signal axes.

    Returns
    -------
    ChunkAdvice
        With the chunks and the reason.

    Raises
    ------
    ArgumentTypeError
        If this is no dask array, or `sig_dims` is no whole number.
    ArgumentValueError
        If the array has not so many axes, or chunks of unknown size.

    Examples
    --------
    >>> import dask.array as da
    >>> from udfdask.io import suggest_chunks
    >>> x = da.zeros((256, 256, 128, 128), chunks=(8, 8, 64, 64), dtype="uint16")
    >>> print(suggest_chunks(x, sig_dims=2))
    4096 chunks of up to 512.00 kiB. Frames of 32.00 kiB are cut into 4 pieces, and UDFs that need
    whole frames have to put them together. Better: 16 chunks of up to 128.00 MiB,
    array.rechunk((16, 256, 128, 128)). If the array comes from a file, open it with these chunks.
    """
    _check(array, sig_dims)
    wanted = parse_bytes(dask.config.get("array.chunk-size"))
    nav = array.ndim - sig_dims
    sizes = [*array.chunksize[:nav], *array.shape[nav:]]
    item = array.dtype.itemsize
    if math.prod(sizes) * item > LARGE * wanted:
        _cut(sizes, nav, wanted // item)
    elif math.prod(sizes) * item < SMALL * wanted:
        _grow(sizes, array.shape[:nav], wanted // item)
    faults = _faults(array, nav, wanted)
    if not faults or tuple(sizes) == array.chunksize:
        return ChunkAdvice(
            chunks=array.chunks, is_change=False, reason=f"{_described(array.chunks, item)} Good."
        )
    chunks: Chunks = normalize_chunks(tuple(sizes), array.shape, dtype=array.dtype)
    better = _described(chunks, item).removesuffix(".")
    return ChunkAdvice(
        chunks=chunks,
        is_change=True,
        reason=(
            f"{_described(array.chunks, item)} {' '.join(faults)} Better: {better}, "
            f"array.rechunk({tuple(sizes)}). If the array comes from a file, open it with these "
            "chunks."
        ),
    )


def _check(array: Any, sig_dims: Any) -> None:
    """Raise if there is nothing to suggest for these arguments."""
    if not isinstance(array, da.Array):
        raise ArgumentTypeError(
            f"expected a dask array, got a {type(array).__name__}: for a file, look at "
            "open_file(path).array"
        )
    check_sig_dims(sig_dims, array.ndim)
    if any(math.isnan(n) for n in array.shape):
        raise ArgumentValueError(
            f"the array has unknown chunk sizes, shape {array.shape}: call "
            "array.compute_chunk_sizes() first"
        )


def _cut(sizes: list[int], nav: int, room: int) -> None:
    """Cut navigation sizes evenly, the first axis first, until no more than `room` values fit."""
    for axis in range(nav):
        pieces = math.ceil(math.prod(sizes) / room)
        sizes[axis] = max(1, math.ceil(sizes[axis] / pieces))


def _grow(sizes: list[int], shape: tuple[int, ...], room: int) -> None:
    """Put whole chunks together, along the last navigation axis first, while `room` allows it."""
    for axis in reversed(range(len(shape))):
        factor = room // max(1, math.prod(sizes))
        sizes[axis] = min(shape[axis], sizes[axis] * max(1, factor))


def _faults(array: da.Array, nav: int, wanted: int) -> list[str]:
    """Return what is wrong with the chunks of an array, a sentence each."""
    found = []
    pieces = math.prod(len(sizes) for sizes in array.chunks[nav:])
    largest = math.prod(array.chunksize) * array.dtype.itemsize
    frame = math.prod(array.shape[nav:]) * array.dtype.itemsize
    if pieces > 1:
        found.append(
            f"Frames of {format_bytes(frame)} are cut into {pieces} pieces, and UDFs that need "
            "whole frames have to put them together."
        )
    elif largest < SMALL * wanted:
        found.append("That many small tasks cost more to schedule than they compute.")
    elif largest > LARGE * wanted:
        found.append("Each worker thread holds one or two of them in memory.")
    return found


def _described(chunks: Chunks, item: int) -> str:
    """Return how many chunks there are and how large the largest is, as a sentence."""
    count = math.prod(len(sizes) for sizes in chunks)
    largest = math.prod(max(sizes, default=0) for sizes in chunks) * item
    return f"{count} chunk{'s' * (count != 1)} of up to {format_bytes(largest)}."
