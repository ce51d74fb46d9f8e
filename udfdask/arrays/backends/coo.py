"""Cuts frames out of arrays of `sparse.COO`, whose own way is compiled for seconds in each process.

Coordinates in that format are in C order, so that those of a frame lie next to each other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.types import AnyArray


def coo_starts(frames: Any) -> AnyArray:
    """Return number of the first entry of each frame, and at last that of all entries, int64."""
    coords = frames.coords
    # looked for in the dtype of the coordinates, which would be converted for any other
    wanted = np.arange(frames.shape[0]).astype(coords.dtype)
    return np.append(np.searchsorted(coords[0], wanted), np.int64(coords.shape[1]))


def coo_rows(frames: Any, starts: AnyArray, first: int, stop: int) -> Any:
    """Return neighbouring frames, from `first` to `stop`; `starts` are those of `coo_starts`."""
    some = slice(int(starts[first]), int(starts[stop]))
    coords = frames.coords[:, some].copy()
    coords[0] -= coords.dtype.type(first)
    return _made(coords, frames.data[some], (stop - first, *frames.shape[1:]))


def coo_take(frames: Any, starts: AnyArray, places: AnyArray) -> Any:
    """Return frames by their places, which may be in any order."""
    counts = np.diff(starts)[places]
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    some = np.repeat(starts[places] - (ends - counts), counts) + np.arange(total)
    coords = frames.coords[:, some]
    coords[0] = np.repeat(np.arange(len(places)), counts)
    return _made(coords, frames.data[some], (len(places), *frames.shape[1:]))


def _made(coords: AnyArray, data: AnyArray, shape: tuple[int, ...]) -> Any:
    """Return an array of these very coordinates, sorted and none twice."""
    import sparse

    return sparse.COO(coords, data, shape=shape, has_duplicates=False, sorted=True)
