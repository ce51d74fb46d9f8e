"""Find the good neighbors from which an excluded pixel is patched."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from udfdask.types import AnyArray


def good_neighbors(excluded: AnyArray, shape: Sequence[int]) -> tuple[AnyArray, AnyArray]:
    """Return the good neighbors of excluded pixels in a frame, and the number for each pixel.

    `excluded` are coordinates, int, (sig dims, k). The neighbors are flat indices, int, shape
    (k, 3**n - 1), for each pixel in C order. The entries after the last neighbor contain the pixel
    itself. The numbers of neighbors have the shape (k,).
    """
    n = len(shape)
    around = [step for step in itertools.product((-1, 0, 1), repeat=n) if any(step)]
    own = np.zeros(excluded.shape[1], dtype=np.int64)
    table = np.empty((excluded.shape[1], len(around)), dtype=np.int64)
    if not own.size:
        return table, own
    own[:] = np.ravel_multi_index(tuple(excluded), tuple(shape))
    bad = np.zeros(tuple(shape), dtype=bool)
    bad[tuple(excluded)] = True
    sizes = np.reshape(shape, (-1, 1))
    counts = np.zeros_like(own)
    table[:] = own[:, np.newaxis]
    for step in around:
        places = excluded + np.reshape(step, (-1, 1))
        good = ((places >= 0) & (places < sizes)).all(axis=0)
        good[good] = ~bad[tuple(places[:, good])]
        flat = np.ravel_multi_index(tuple(places[:, good]), tuple(shape))
        table[good, counts[good]] = flat
        counts[good] += 1
    return table, counts


def straddles(excluded: AnyArray, shape: Sequence[int], edges: Sequence[Sequence[int]]) -> bool:
    """Return whether an excluded pixel has a good neighbor in another part of the frame.

    `edges` contains the first pixel of each part along each axis, in order. A task that reads one
    signal chunk cannot read pixels of another one, so the plan then uses tasks for whole chunks.
    """
    table, counts = good_neighbors(excluded, shape)
    if not table.size:
        return False
    used = np.arange(table.shape[1]) < counts[:, np.newaxis]
    places = np.unravel_index(table, tuple(shape))
    for own, neighbors, starts in zip(excluded, places, edges, strict=True):
        part = np.searchsorted(starts, own, side="right")[:, np.newaxis]
        if (used & (np.searchsorted(starts, neighbors, side="right") != part)).any():
            return True
    return False
