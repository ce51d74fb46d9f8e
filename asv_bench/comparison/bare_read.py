"""Reads every byte of a data set and does nothing with it: nobody who sees the data is faster."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numba
import numpy as np


@numba.njit(nogil=True, cache=True)
def add_words(words: np.ndarray) -> int:
    """Return the sum of 64-bit words, modulo 2**64: one addition for eight bytes."""
    total = np.uint64(0)
    for word in words:
        total += word
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
