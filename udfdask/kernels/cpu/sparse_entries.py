"""The entries of sparse frames: one form for kernels, made from tiles of any sparse format."""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from udfdask.arrays.backends.convert import to_backend
from udfdask.arrays.backends.matrix_backends import SCIPY_CSR, SCIPY_CSR_ARRAY
from udfdask.arrays.backends.pydata_backends import COO, GCXS
from udfdask.arrays.backends.pydata_sparse import coo_starts, is_rows
from udfdask.arrays.backends.read_only import locked
from udfdask.arrays.backends.table import backend_of
from udfdask.kernels.cpu.compile import kernel
from udfdask.kernels.dtypes import compiled_dtype
from udfdask.types import AnyArray


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

    All arrays are read-only: numba would compile again for writable arrays, which are another type.
    """

    starts: AnyArray
    """Index of the first entry of each frame, then the number of entries, int64."""
    pixels: AnyArray
    """Pixel of each entry in the flattened part of the signal, uint32 or uint64."""
    values: AnyArray
    """Value of each entry, in a dtype that compiled code supports."""

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
        """Return the entries of some frames."""
        starts = self.starts[first : stop + 1]
        part = slice(int(starts[0]), int(starts[-1]))
        return Entries(locked(starts - starts[0]), self.pixels[part], self.values[part])


def entries_of(tile: Any) -> Entries:
    """Return the entries of a sparse tile on the host, shape (frames, *part) or (frames, pixels).

    `sparse.GCXS` and SciPy's CSR are not copied. For `sparse.COO`, pixels are computed from the
    coordinates. Other formats are converted first.
    """
    if backend_of(tile) == COO:
        return Entries(locked(coo_starts(tile)), _coo_pixels(tile), _values(tile))
    rows = _as_rows(tile)
    return Entries(_starts(rows), _unsigned(rows.indices), _values(rows))


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
    """Return the index of the first entry of each row."""
    return locked(rows.indptr.astype(np.int64, copy=False))


def _unsigned(indices: AnyArray) -> AnyArray:
    """Return pixels as unsigned integers: kernels need not check for negative indices."""
    if indices.dtype.kind not in "iu" or indices.itemsize not in (4, 8):
        indices = indices.astype(np.int64)
    return locked(indices.view(f"u{indices.itemsize}"))


def _values(tile: Any) -> AnyArray:
    """Return the stored values of a tile, in a dtype that kernels support."""
    values: AnyArray = tile.data
    if values.dtype == np.bool_:
        return locked(values.view(np.uint8))
    return locked(values.astype(compiled_dtype(values.dtype), copy=False))


def _coo_pixels(tile: Any) -> AnyArray:
    """Return the pixel of each entry of a sparse.COO array."""
    sizes = np.array(tile.shape[1:], np.uint64)
    pixels = math.prod(tile.shape[1:])
    flat = np.empty(tile.coords.shape[1], np.uint32 if pixels <= 2**32 else np.uint64)
    _flatten(locked(tile.coords[1:]), sizes, flat)
    return locked(flat)


@kernel
def _flatten(coordinates: AnyArray, sizes: AnyArray, flat: AnyArray) -> None:
    """Write the flat index of each pixel, in C order, for a part with these sizes."""
    for k in range(len(flat)):
        pixel = np.uint64(0)
        for axis in range(len(sizes)):
            pixel = pixel * sizes[axis] + np.uint64(coordinates[axis, k])
        flat[k] = pixel
