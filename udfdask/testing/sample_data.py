"""Provide small arrays and ways to chunk them; they never change, so a check can be repeated."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from udfdask.testing.eager_run import Chunks
from udfdask.types import AnyArray

NAV = (4, 6)
SIGS = {1: (16,), 2: (6, 8), 3: (3, 4, 5)}
DTYPES = ("int16", "float32", "uint16", ">u2", "int32", "uint8", "float64", ">f4")
"""Dtypes of the default arrays. All laws are checked on the first, a few laws on all."""


def default_arrays(sig_dims: int) -> tuple[AnyArray, ...]:
    """Return small arrays of several dtypes and a scan of 4 by 6 positions.

    They contain whole numbers, because their sums are exact in any precision: positive ones,
    zeros, and negative ones if the dtype has them.
    """
    sig = SIGS.get(sig_dims, (2,) * sig_dims)
    rng = np.random.default_rng(20)
    signed = rng.integers(-30, 60, size=(*NAV, *sig))
    signed[rng.random(signed.shape) < 0.2] = 0
    return tuple(
        (abs(signed) if np.dtype(dtype).kind == "u" else signed).astype(dtype) for dtype in DTYPES
    )


def other_dtypes(data: AnyArray) -> tuple[AnyArray, ...]:
    """Return an array, and its byte-swapped copy if the dtype has a byte order."""
    if data.dtype.itemsize == 1:
        return (data,)
    return data, data.astype(data.dtype.newbyteorder("S"))


def scan_chunkings(nav: tuple[int, ...]) -> Iterator[Chunks]:
    """Yield ways to chunk a scan: halves, ragged chunks and single frames, in one axis or all."""
    uncut = tuple((n,) for n in nav)
    for axis, n in enumerate(nav):
        for cut in dict.fromkeys(((1, n - 1), (n - 1, 1), (n - n // 2, n // 2), (1,) * n)):
            if n > 1:
                yield (*uncut[:axis], cut, *uncut[axis + 1 :])
    if sum(n > 1 for n in nav) > 1:
        yield tuple((n - n // 2, n // 2) if n > 1 else (n,) for n in nav)
        yield tuple((1, n - 1) if n > 1 else (n,) for n in nav)


def ragged_sig_chunks(sig: tuple[int, ...]) -> Chunks:
    """Return ragged signal chunks, two along each axis of more than one pixel."""
    return tuple((n // 3 or 1, n - (n // 3 or 1)) if n > 1 else (n,) for n in sig)


def regions(nav: tuple[int, ...]) -> list[tuple[str, AnyArray]]:
    """Return regions of interest, each with a name for messages."""
    size = math.prod(nav)
    number = np.arange(size).reshape(nav)
    named = [
        ("every third frame", number % 3 == 1),
        ("a single frame", number == size // 2 + 1),
        ("no frame of the first chunk", number >= (size + 1) // 2),
        ("no frame", np.zeros(nav, dtype=bool)),
    ]
    return [(name, roi) for name, roi in named if nav and (roi.any() or name == "no frame")]
