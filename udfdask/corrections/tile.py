"""Corrects a tile: plain arithmetic on arrays, without a notion of runs or chunks.

`correct_tile` is all that a faster kernel has to replace.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from udfdask.corrections.correction_set import CorrectionSet
from udfdask.corrections.neighbours import good_neighbours
from udfdask.slices import Slice
from udfdask.types import AnyArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TilePlanes:
    """What the correction of one signal part of frames takes, in one dtype."""

    dtype: np.dtype[Any]
    """Dtype of corrected tiles."""
    dark: AnyArray | None
    """Dark frame of the part, of that dtype, in the unit of the data; None for none."""
    gain: AnyArray | None
    """Gain map of the part, of that dtype; None for none."""
    patched: AnyArray
    """Pixels to patch, shape (k,), flat indices in the part; most neighbours first."""
    neighbours: AnyArray
    """What they are patched from, shape (k, 3**n - 1), flat indices in the part."""
    counts: AnyArray
    """How many of those count, shape (k,), at least 1, not increasing."""


def correct_tile(tile: AnyArray, planes: TilePlanes) -> AnyArray:
    """Return a corrected copy of a tile, C-ordered, of shape (frames, *sig part)."""
    out: AnyArray = tile.astype(planes.dtype, order="C", copy=True)
    if planes.dark is not None:
        out -= planes.dark
    if planes.gain is not None:
        out *= planes.gain
    if planes.patched.size:
        pixels = out.reshape((len(out), -1))
        total = np.zeros((len(out), planes.patched.size), dtype=planes.dtype)
        for k in range(int(planes.counts[0])):
            n = np.count_nonzero(planes.counts > k)
            total[:, :n] += pixels.take(planes.neighbours[:n, k], axis=1)
        pixels[:, planes.patched] = total / planes.counts.astype(planes.dtype)
    return out


_made: WeakKeyDictionary[CorrectionSet, dict[Hashable, TilePlanes]] = WeakKeyDictionary()
_lock = threading.Lock()


def tile_planes(corrections: CorrectionSet, part: Slice, dtype: np.dtype[Any]) -> TilePlanes:
    """Return what correcting a signal part takes; it is made once for a set.

    No excluded pixel may need a neighbour outside of the part.
    """
    with _lock:
        known = _made.setdefault(corrections, {})
    key = (part.origin, tuple(part.shape), dtype)
    if key not in known:
        known[key] = _make(corrections, part, dtype)
    return known[key]


def _make(corrections: CorrectionSet, part: Slice, dtype: np.dtype[Any]) -> TilePlanes:
    """Return what correcting a signal part takes."""
    origin, shape = np.reshape(part.origin, (-1, 1)), tuple(part.shape)
    excluded = corrections.excluded_pixels
    if excluded is None:
        excluded = np.zeros((len(shape), 0), dtype=np.int64)
    local = excluded - origin
    local = local[:, ((local >= 0) & (local < np.reshape(shape, (-1, 1)))).all(axis=0)]
    table, counts = good_neighbours(local, shape)
    order = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    patched = np.ravel_multi_index(tuple(local[:, order]), shape) if order.size else order
    window = part.get()
    return TilePlanes(
        dtype=dtype,
        dark=_cut(corrections.dark, window, dtype, patched),
        gain=_cut(corrections.gain, window, dtype, patched),
        patched=patched,
        neighbours=table[order],
        counts=counts[order],
    )


def _cut(
    plane: AnyArray | None, window: tuple[slice, ...], dtype: np.dtype[Any], patched: AnyArray
) -> AnyArray | None:
    """Return the part of a plane in a dtype, finite where pixels are patched anyway."""
    if plane is None:
        return None
    cut = np.ascontiguousarray(plane[window], dtype=dtype)
    wrong = patched[~np.isfinite(cut.reshape(-1)[patched])]
    if wrong.size:  # or arithmetic would warn
        cut = cut.copy()
        cut.reshape(-1)[wrong] = 0
    return cut
