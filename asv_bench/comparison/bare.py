"""Work without a library: read every byte of a data set, and multiply each tile of it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numba
import numpy as np
from threadpoolctl import threadpool_limits

from comparison.material import dense_masks

TILE_BYTES = 4 << 20
"""Bytes of a tile: those that udfdask takes by default (config `udfdask.tile-bytes`)."""


@numba.njit(nogil=True, cache=True)
def add_words(words: np.ndarray) -> int:
    """Return the sum of 64-bit words, modulo 2**64: one addition for eight bytes."""
    total = np.uint64(0)
    for i in range(len(words)):  # a loop over the words themselves is not vectorized
        total += words[i]
    return total


def read_npy(path: Path, threads: int) -> None:
    """Read an .npy file: map it, and let each thread add the 64-bit words of its share."""
    mapped = np.load(path, mmap_mode="r")
    words = np.memmap(path, "u8", "r", offset=mapped.offset, shape=(mapped.nbytes // 8,))
    edges = np.linspace(0, len(words), threads + 1).astype(int).tolist()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(add_words, [words[a:b] for a, b in itertools.pairwise(edges)]))


def read_zarr(store: Any, threads: int) -> None:
    """Read a zarr array: each thread takes the next chunk and has zarr decompress it."""
    import zarr

    array = zarr.open_array(store, mode="r")
    steps = array.chunks[0]
    with ThreadPoolExecutor(threads) as pool:
        starts = range(0, array.shape[0], steps)
        list(pool.map(lambda start: array[start : start + steps].shape, starts))


def products(path: Path, threads: int) -> dict[str, np.ndarray]:
    """Multiply with the dense masks: convert a tile into a buffer, one matrix product, the next."""
    mapped = np.load(path, mmap_mode="r")
    sig = mapped.shape[-2:]
    frames = mapped.reshape(-1, sig[0] * sig[1])
    masks = dense_masks(sig)
    depth = max(1, TILE_BYTES // frames[:1].nbytes)
    matrix = np.ascontiguousarray(masks.reshape(len(masks), -1).T)
    out = np.empty((len(frames), len(masks)), dtype="float32")

    def share(first: int, stop: int) -> None:
        buffer = np.empty((depth, frames.shape[1]), dtype="float32")
        for start in range(first, stop, depth):
            rows = slice(start, min(start + depth, stop))
            piece = buffer[: rows.stop - rows.start]
            np.copyto(piece, frames[rows], casting="unsafe")
            np.matmul(piece, matrix, out=out[rows])

    edges = np.linspace(0, len(frames), threads + 1).astype(int).tolist()
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(threads) as pool:
        list(pool.map(share, edges, edges[1:]))
    return {"masks": out.reshape(*mapped.shape[:2], -1)}


BARE: dict[str, Callable[[Path, int], dict[str, np.ndarray]]] = {"masks": products}
"""Work without a library, by the name that a case has for it; takes a file and threads."""
