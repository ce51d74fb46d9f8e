"""Read entries of sparse chunks, and add them up."""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from udfdask.backends.backend import locked
from udfdask.backends.sparse_rows import coo_starts
from udfdask.backends.sparse_types import COO, GCXS, SCIPY_CSR, SCIPY_CSR_ARRAY, is_rows
from udfdask.backends.table import backend_of, to_backend
from udfdask.base.aligned import CACHE_LINE
from udfdask.base.types import AnyArray
from udfdask.kernels.cpu.exact_sums import scatter_exactly
from udfdask.kernels.numba_internals.compile import inner_kernel, kernel
from udfdask.kernels.numba_internals.reading import PREFETCH_DISTANCE, prefetch
from udfdask.kernels.overflow import add_exactly, compiled_dtype, is_long, require, require_near


def in_order(starts: AnyArray, pixels: AnyArray, width: int) -> bool:
    """Return whether the pixels of each row increase and are less than `width`.

    Row i is ``pixels[starts[i] : starts[i + 1]]``, with `starts` in int64. `pixels` has a 32-bit or
    64-bit integer dtype. All pixels are read, so raw CSR blocks are only checked once per process.
    """
    # negative pixels become huge: one comparison finds both kinds of bad ones
    unsigned = pixels.view(f"u{pixels.itemsize}")
    return bool(_increase(starts, unsigned, unsigned.dtype.type(width - 1)))


@kernel
def _increase(starts: AnyArray, pixels: AnyArray, last: int) -> bool:
    """Return whether the pixels of each row increase and do not exceed `last`."""
    for i in range(len(starts) - 1):
        row = pixels[starts[i] : starts[i + 1]]
        if len(row) and row[len(row) - 1] > last:
            return False
        before, after = row[: len(row) - 1], row[1:]
        falls = False
        for k in range(len(after)):  # without an early exit, several pixels are compared at once
            falls |= before[k] >= after[k]
        if falls:
            return False
    return True


class Entries(NamedTuple):
    """The entries of sparse frames: frame f has those from ``starts[f]`` to ``starts[f + 1]``.

    `starts` are int64, `pixels` in the flattened part of the signal uint32 or uint64, and `values`
    have a dtype that compiled code supports. All are read-only: numba would compile again for
    writable arrays, which are another type.
    """

    starts: AnyArray
    pixels: AnyArray
    values: AnyArray

    @property
    def frames(self) -> int:
        """Number of frames."""
        return len(self.starts) - 1

    def cut(self, most: int) -> list[Entries]:
        """Return the entries in groups of at most `most` frames."""
        if self.frames <= most:
            return [self]
        bounds = [*range(0, self.frames, most), self.frames]
        return [self._rows(first, stop) for first, stop in itertools.pairwise(bounds)]

    def _rows(self, first: int, stop: int) -> Entries:
        starts = self.starts[first : stop + 1]
        part = slice(int(starts[0]), int(starts[-1]))
        return Entries(locked(starts - starts[0]), self.pixels[part], self.values[part])


def entries_of(tile: Any) -> Entries:
    """Return the entries of a sparse tile on the host, shape (frames, *part) or (frames, pixels).

    `sparse.GCXS` and SciPy's CSR are not copied. For `sparse.COO`, pixels are computed from the
    coordinates. Other formats are converted first.
    """
    if backend_of(tile) == COO:
        sizes, pixels = np.array(tile.shape[1:], np.uint64), math.prod(tile.shape[1:])
        flat = np.empty(tile.coords.shape[1], np.uint32 if pixels <= 2**32 else np.uint64)
        _flatten(locked(tile.coords[1:]), sizes, flat)
        return Entries(locked(coo_starts(tile)), locked(flat), _values(tile))
    rows = _as_rows(tile)
    indices = rows.indices
    if indices.dtype.kind not in "iu" or indices.itemsize not in (4, 8):
        indices = indices.astype(np.int64)
    # unsigned: kernels need not check for negative indices
    unsigned = locked(indices.view(f"u{indices.itemsize}"))
    return Entries(_starts(rows), unsigned, _values(rows))


def values_of(tile: Any) -> tuple[AnyArray, AnyArray]:
    """Return only the starts and values of `entries_of`, which is faster."""
    if backend_of(tile) == COO:
        return locked(coo_starts(tile)), _values(tile)
    rows = _as_rows(tile)
    return _starts(rows), _values(rows)


def _as_rows(tile: Any) -> Any:
    """Return a tile as a sparse.GCXS array compressed over frames, or as a CSR matrix."""
    backend = backend_of(tile)
    if backend in (SCIPY_CSR, SCIPY_CSR_ARRAY) or (backend == GCXS and is_rows(tile)):
        return tile
    return to_backend(tile, SCIPY_CSR_ARRAY, tuple(tile.shape))


def _starts(rows: Any) -> AnyArray:
    return locked(rows.indptr.astype(np.int64, copy=False))


def _values(tile: Any) -> AnyArray:
    """Return the stored values of a tile, in a dtype that kernels support."""
    values: AnyArray = tile.data
    if values.dtype == np.bool_:
        return locked(values.view(np.uint8))
    return locked(values.astype(compiled_dtype(values.dtype), copy=False))


@kernel
def _flatten(coordinates: AnyArray, sizes: AnyArray, flat: AnyArray) -> None:
    """Write the flat index of each pixel, in C order, for a part with these sizes."""
    for k in range(len(flat)):
        pixel = np.uint64(0)
        for axis in range(len(sizes)):
            pixel = pixel * sizes[axis] + np.uint64(coordinates[axis, k])
        flat[k] = pixel


NARROW: dict[str, tuple[type[np.integer[Any]], ...]] = {
    "u": (np.uint8, np.uint16, np.uint32),
    "i": (np.int8, np.int16, np.int32),
}
"""Narrow dtypes for intermediate sums of integers, by kind."""

Steps = list[tuple[type[Any], int]]
"""Dtypes of intermediate sums, narrow before wide, each with the number of frames that fit."""

FULL = 0.5
"""Smallest number of entries per pixel for an intermediate sum, an addition for each pixel."""


def add_entries(entries: Entries, total: AnyArray) -> None:
    """Add all frames to `total`, shape `part`, contiguous.

    `total` is uint64, int64, float64 or complex128, according to the kind of the data. No pixel may
    be stored twice in a frame, because narrow sums of integers could overflow.
    """
    flat = total.reshape(-1)
    # detector events are small integers: sums in 8 bits take an eighth of the memory of 64 bits,
    # and are more likely to stay in a cache
    steps = _steps(entries, len(flat))
    if entries.values.dtype != flat.dtype or not is_long(flat.dtype):
        _add(entries, steps, flat)
    elif steps:  # the values are small: only the addition to `flat` can overflow
        more = np.zeros_like(flat)
        _add(entries, steps, more)
        add_exactly(flat, more)
    else:
        require(scatter_exactly(entries.pixels, entries.values, flat), flat.dtype)


def _add(entries: Entries, steps: Steps, flat: AnyArray) -> None:
    """Add all frames, with intermediate sums if there are steps."""
    if not steps:
        _scatter(entries.pixels, entries.values, flat)
        return
    (dtype, frames), *wider = steps
    narrow = np.zeros(len(flat), dtype)
    if not wider:
        _scatter_in_groups(tuple(entries), frames, narrow, flat)
        return
    dtype, most = wider[0]
    for group in entries.cut(most):
        sums = np.zeros(len(flat), dtype)
        _scatter_in_groups(tuple(group), frames, narrow, sums)
        flat += sums


def _steps(entries: Entries, pixels: int) -> Steps:
    """Return the dtypes of intermediate sums, narrow before wide, and how many frames fit each."""
    count, values = len(entries.values), entries.values
    if not count or count < FULL * pixels or values.dtype.kind not in NARROW:
        return []
    largest = max(1, int(values.max()), -int(values.min()) if values.dtype.kind == "i" else 0)
    steps: Steps = []
    for dtype in NARROW[values.dtype.kind]:
        frames = min(entries.frames, np.iinfo(dtype).max // largest)
        if frames * count >= FULL * pixels * entries.frames:
            steps.append((dtype, frames))
            if frames == entries.frames:
                break
    return steps


def add_entries_inside(entries: Entries, inside: AnyArray, total: AnyArray) -> None:
    """Add the pixels of each frame where `inside`, flat, uint8, is 1 to `total`, shape (frames,).

    Values outside are not read.
    """
    if entries.values.dtype == total.dtype and is_long(total.dtype):
        more, near = np.zeros_like(total), np.zeros(len(total))
        for sums in (more, near):
            _gather(*entries, inside, sums)
        require_near(more, near)
        add_exactly(total, more)
    elif len(entries.values):
        _gather(*entries, inside, total)


@inner_kernel
def _prefetch_ahead(flat: AnyArray, first: int) -> None:
    """Prefetch `CACHE_LINE` values, `PREFETCH_DISTANCE` bytes ahead of index `first`."""
    for k in range(first, first + CACHE_LINE, CACHE_LINE // flat.itemsize):
        prefetch(flat, k + PREFETCH_DISTANCE // flat.itemsize)


@kernel
def _scatter(pixels: AnyArray, values: AnyArray, total: AnyArray) -> None:
    # indices and not slices: slices in the loop would take as long as the sums
    end = len(values) // CACHE_LINE * CACHE_LINE
    for first in range(0, end, CACHE_LINE):
        _prefetch_ahead(pixels, first)
        _prefetch_ahead(values, first)
        for k in range(first, first + CACHE_LINE):
            total[pixels[k]] += values[k]
    for k in range(end, len(values)):
        total[pixels[k]] += values[k]


@kernel
def _scatter_in_groups(entries: Any, most: int, sums: AnyArray, total: AnyArray) -> None:
    """Add `most` frames at a time to `sums`, which must be 0 at first, and these to `total`."""
    starts, pixels, values = entries
    frames = len(starts) - 1
    for first in range(0, frames, most):
        group = slice(starts[first], starts[min(first + most, frames)])
        _scatter(pixels[group], values[group], sums)
        for p in range(len(sums)):
            total[p] += sums[p]
        sums[:] = 0


@kernel
def _gather(starts: Any, pixels: Any, values: Any, inside: Any, total: Any) -> None:
    """Add the values of each frame at the pixels inside."""
    for f in range(len(total)):
        own_pixels, own = pixels[starts[f] : starts[f + 1]], values[starts[f] : starts[f + 1]]
        frame_sum = total[f]
        for k in range(len(own)):
            if inside[own_pixels[k]]:
                frame_sum += own[k]
        total[f] = frame_sum
