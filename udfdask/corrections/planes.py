"""The planes of a correction, and the pixels that patch excluded ones.

Corrections do not change the tiles of a run. An excluded pixel near the border of a tile needs
neighbors outside the tile: these pixels are read one by one (`FrameSource.pixels`). LiberTEM grows
or shifts tiles instead, but this is impossible if a whole row of the detector is broken.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from udfdask.backends.backend import locked
from udfdask.base.types import AnyArray
from udfdask.geometry.slices import Slice
from udfdask.kernels.overflow import compiled_dtype

if TYPE_CHECKING:
    from udfdask.corrections.correction_set import CorrectionSet


def good_neighbors(excluded: AnyArray, shape: Sequence[int]) -> tuple[AnyArray, AnyArray]:
    """Return the good neighbors of excluded pixels in a frame, and the number for each pixel.

    `excluded` are coordinates, int, (sig dims, k). The neighbors are flat indices, int, shape
    (k, 3**n - 1), for each pixel in C order. The entries after the last neighbor contain the pixel
    itself. The numbers of neighbors have the shape (k,).
    """
    around = [step for step in itertools.product((-1, 0, 1), repeat=len(shape)) if any(step)]
    own = np.ravel_multi_index(tuple(excluded), tuple(shape)).astype(np.int64)
    bad = np.zeros(tuple(shape), dtype=bool)
    bad[tuple(excluded)] = True
    table, counts = np.repeat(own[:, np.newaxis], len(around), axis=1), np.zeros_like(own)
    for step in around:
        places = excluded + np.reshape(step, (-1, 1))
        good = ((places >= 0) & (places < np.reshape(shape, (-1, 1)))).all(axis=0)
        good[good] = ~bad[tuple(places[:, good])]
        table[good, counts[good]] = np.ravel_multi_index(tuple(places[:, good]), tuple(shape))
        counts[good] += 1
    return table, counts


def straddles(excluded: AnyArray, shape: Sequence[int], edges: Sequence[Sequence[int]]) -> bool:
    """Return whether an excluded pixel has a good neighbor in another part of the frame.

    `edges` contains the first pixel of each part along each axis, in order. A task that reads one
    signal chunk cannot read pixels of another one, so the plan then uses tasks for whole chunks.
    """
    table, counts = good_neighbors(excluded, shape)
    used = np.arange(table.shape[1]) < counts[:, np.newaxis]
    places = np.unravel_index(table, tuple(shape))
    for own, neighbors, starts in zip(excluded, places, edges, strict=True):
        part = np.searchsorted(starts, own, side="right")[:, np.newaxis]
        if (used & (np.searchsorted(starts, neighbors, side="right") != part)).any():
            return True
    return False


class PixelPlanes(NamedTuple):
    """Offset and factor of some pixels, flat; the offset is in the unit of the data."""

    dark: AnyArray
    gain: AnyArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class TilePlanes:
    """The arrays that correct one signal part of frames, for tiles that get the dtype `dtype`.

    `part_planes` are those of the part. `patched` are the pixels to patch, flat indices in the
    part, int64, shape (k,); each from the first `counts` of its `neighbors`, shape (k, 3**n - 1):
    flat indices in the part, or the size of the part plus an index in `beyond`. These are the
    coordinates in the frame of neighbors outside the part, shape (sig dims, m), which have the
    `beyond_planes`.
    """

    dtype: np.dtype[Any]
    part_planes: PixelPlanes
    patched: AnyArray
    neighbors: AnyArray
    counts: AnyArray
    beyond: AnyArray
    beyond_planes: PixelPlanes


_made: WeakKeyDictionary[CorrectionSet, dict[Hashable, Any]] = WeakKeyDictionary()
_lock = threading.Lock()


def tile_planes(
    corrections: CorrectionSet, part: Slice, dtype: np.dtype[Any], frame: Sequence[int]
) -> TilePlanes:
    """Return the arrays that correct a signal part of frames; they are made once for a set."""
    with _lock:
        known = _made.setdefault(corrections, {})
        if "patches" not in known:
            known["patches"] = _patches(corrections.excluded_pixels, frame)
    key = (part.origin, tuple(part.shape), dtype)
    if key not in known:
        known[key] = _make(corrections, part, dtype, tuple(frame), known["patches"])
    planes: TilePlanes = known[key]
    return planes


def _patches(excluded: AnyArray | None, frame: Sequence[int]) -> tuple[AnyArray, ...]:
    """Return the excluded pixels that have good neighbors, and `good_neighbors` of these."""
    if excluded is None:
        excluded = np.zeros((len(frame), 0), dtype=np.int64)
    table, counts = good_neighbors(excluded, frame)
    return excluded[:, counts > 0], table[counts > 0], counts[counts > 0]


def _make(
    corrections: CorrectionSet,
    part: Slice,
    dtype: np.dtype[Any],
    frame: tuple[int, ...],
    patches: tuple[AnyArray, ...],
) -> TilePlanes:
    shape, (places, table, counts) = tuple(part.shape), patches
    local, here = _in_part(places, part)
    seen, inside = _in_part(np.array(np.unravel_index(table[here], frame)), part)
    neighbors = np.empty(inside.shape, dtype=np.int64)
    neighbors[inside] = np.ravel_multi_index(tuple(seen[:, inside]), shape)
    outside, order = np.unique(table[here][~inside], return_inverse=True)
    neighbors[~inside] = part.shape.size + order
    beyond = np.array(np.unravel_index(outside, frame), dtype=np.int64)
    compiled = compiled_dtype(dtype)
    return TilePlanes(
        dtype=dtype,
        part_planes=_planes(corrections, part.get(), compiled, shape),
        patched=locked(np.ravel_multi_index(tuple(local[:, here]), shape)),
        neighbors=locked(neighbors),
        counts=locked(counts[here]),
        beyond=beyond,
        beyond_planes=_planes(corrections, tuple(beyond), compiled, beyond.shape[1:]),
    )


def _in_part(places: AnyArray, part: Slice) -> tuple[AnyArray, AnyArray]:
    """Return coordinates relative to a part, (sig dims, ...), and which of them are inside it."""
    sizes = (-1, *(1,) * (places.ndim - 1))
    local = places - np.reshape(part.origin, sizes)
    return local, ((local >= 0) & (local < np.reshape(tuple(part.shape), sizes))).all(axis=0)


def _planes(
    corrections: CorrectionSet, index: tuple[Any, ...], dtype: np.dtype[Any], shape: Sequence[int]
) -> PixelPlanes:
    cut = []
    for plane, neutral in ((corrections.dark, 0), (corrections.gain, 1)):
        values = np.full(shape, neutral, dtype) if plane is None else plane[index]
        cut.append(locked(np.ascontiguousarray(values, dtype=dtype).reshape(-1)))
    return PixelPlanes(*cut)
