"""Correct the frames of a tile, on the host or a device, or the sum of frames.

All corrections (dark, gain, patches) are one compiled function that reads the tile once. They are
linear and equal for all frames, so the sum of the corrected frames is the corrected sum, which
needs a single pass over the raw data, and rounds only once.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from udfdask.backends.backend import DenseBackend, locked
from udfdask.backends.table import backend_of
from udfdask.base.types import AnyArray
from udfdask.corrections.planes import PixelPlanes, TilePlanes
from udfdask.errors import ArgumentValueError, NotAvailableError, UDFError
from udfdask.kernels.overflow import compiled_dtype


def correct_tile(tile: AnyArray, planes: TilePlanes, beyond: AnyArray | None = None) -> AnyArray:
    """Return a corrected copy of a tile, C-ordered, of shape (frames, *sig part).

    `beyond` contains the uncorrected values of the same frames at the pixels `planes.beyond`,
    shape (frames, m). It is required if m is not 0.
    """
    dtype = compiled_dtype(planes.dtype)
    around = np.empty((len(tile), 0), dtype=dtype)
    if beyond is not None:
        around = _corrected(beyond, planes.beyond_planes, dtype, _NO_PATCHES, around)
    patches = (planes.patched, planes.neighbors, planes.counts)
    out = _corrected(tile, planes.part_planes, dtype, patches, around)
    return out.reshape(tile.shape).astype(planes.dtype, copy=False)


_NO_PATCHES = tuple(np.empty(shape, dtype=np.int64) for shape in (0, (0, 0), 0))


def _corrected(
    tile: AnyArray,
    planes: PixelPlanes,
    dtype: np.dtype[Any],
    patches: tuple[AnyArray, ...],
    around: AnyArray,
) -> AnyArray:
    """Return the corrected pixels of a tile in a dtype, shape (frames, pixels)."""
    from udfdask.kernels.cpu.change_frames import correct_frames  # loads numba

    out = np.empty((len(tile), planes.dark.size), dtype=dtype)
    if out.size:
        given = tile.astype(compiled_dtype(tile.dtype), copy=False)
        correct_frames(as_lines(given), *planes, patches, around, out)
    return out


def as_lines(tile: AnyArray) -> tuple[AnyArray, int, int, int]:
    """Return a tile as flat memory, the steps between frames and lines, and the length of a line.

    Steps and lengths are numbers of elements. Lines are contiguous; a contiguous frame is a single
    line. The flat memory is a read-only view of the memory of the tile, or a copy if the tile does
    not consist of contiguous lines.
    """
    frames, size, item = len(tile), tile[:1].size, tile.itemsize
    if tile.flags.c_contiguous:
        flat = tile.reshape(-1)
        flat.flags.writeable = False  # compiled code only exists for read-only arrays
        return flat, size, size, size
    for line in (size, tile.shape[-1]):
        try:
            lines = tile.reshape((frames, size // line, line), copy=False)
        except ValueError:
            continue
        # a stride along an axis with one element is arbitrary
        strides = [s if n > 1 else item for s, n in zip(lines.strides, lines.shape, strict=True)]
        if strides[2] == item and all(s >= 0 and s % item == 0 for s in strides):
            steps = [s // item for s in strides]
            span = 1 + sum(s * (n - 1) for s, n in zip(steps, lines.shape, strict=True))
            flat = np.lib.stride_tricks.as_strided(lines, (span,), (item,), writeable=False)
            return flat, steps[0], steps[1], line
    return as_lines(np.ascontiguousarray(tile))


_uploaded: WeakKeyDictionary[TilePlanes, tuple[Any, dict[str, Any]]] = WeakKeyDictionary()
_lock = threading.Lock()


def correct_on_device(tile: Any, planes: TilePlanes, beyond: Any = None) -> Any:
    """Return a corrected copy of a tile, both arrays of shape (frames, *sig part) on a device.

    `beyond` is that of `correct_tile`.
    """
    backend = backend_of(tile).dense
    xp, here = backend.namespace(), _on_device(planes, backend)
    dtype = compiled_dtype(planes.dtype)
    flat = tile.reshape((tile.shape[0], here["dark"].size)).astype(dtype, copy=False)
    out = flat - here["dark"]
    out *= here["gain"]
    if planes.patched.size:
        neighbors = out[:, here["inside"]]
        if beyond is not None:
            around = (beyond.astype(dtype) - here["dark_beyond"]) * here["gain_beyond"]
            neighbors = xp.where(here["is_outside"], around[:, here["outside"]], neighbors)
        # entries after the first `counts` are arbitrary and can be NaN
        neighbors = xp.where(here["is_used"], neighbors, dtype.type(0))
        out[:, here["patched"]] = neighbors.sum(axis=2, dtype=dtype) / here["counts"]
    return out.reshape(tile.shape).astype(planes.dtype, copy=False)


def _on_device(planes: TilePlanes, backend: DenseBackend) -> dict[str, Any]:
    """Return the arrays of a correction on the device; they are copied there once."""
    module, pixels, neighbors = backend.namespace(), planes.part_planes.dark.size, planes.neighbors
    with _lock:
        known = _uploaded.get(planes)
        if known is None or known[0] is not module:
            outside = neighbors >= pixels
            arrays = {
                **planes.part_planes._asdict(),
                **{f"{name}_beyond": one for name, one in planes.beyond_planes._asdict().items()},
                "patched": planes.patched,
                "inside": np.where(outside, 0, neighbors),
                "outside": np.where(outside, neighbors - pixels, 0),
                "is_outside": outside,
                "counts": planes.counts.astype(compiled_dtype(planes.dtype)),
                "is_used": np.arange(neighbors.shape[1]) < planes.counts[:, np.newaxis],
            }
            shared = {name: backend.share(array) for name, array in arrays.items()}
            known = _uploaded[planes] = (module, shared)
    return known[1]


_EXACT = {"b": np.int64, "i": np.int64, "u": np.uint64, "f": np.float64, "c": np.complex128}


def precise(dtype: np.dtype[Any]) -> np.dtype[Any] | None:
    """Return the dtype of corrected sums of data; None if each frame must be corrected instead.

    Sums must be exact, or at least twice as precise as the data.
    """
    if dtype.kind not in _EXACT or dtype.itemsize > (8 if dtype.kind == "c" else 4):
        return None
    return np.dtype(np.complex128 if dtype.kind == "c" else np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class UncorrectedTile:
    """Raw frames in memory, with the planes that correct their sum.

    A UDF that promises `only_sums_frames` gets it in place of a corrected tile. It has what the
    promise allows: `sum(axis=0)`, `shape`, `dtype` and a length. `frames` has the shape (frames,
    *sig part), `beyond` the pixels `planes.beyond` of the same frames.
    """

    frames: AnyArray
    planes: TilePlanes
    beyond: AnyArray | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the tile, (frames, *sig part)."""
        return tuple(self.frames.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the sum."""
        return self.planes.dtype

    def __len__(self) -> int:
        return len(self.frames)

    def sum(self, axis: int | None = None, dtype: Any = None, out: None = None) -> AnyArray:
        """Return the sum of the corrected frames, shape `sig part`; `axis` must be 0."""
        from udfdask.kernels.cpu.pixel_sums import add_frames  # loads numba

        if axis != 0 or out is not None:
            raise ArgumentValueError(_ONLY.format(f"sum(axis={axis}, out={out})"))
        exact = _EXACT[self.frames.dtype.kind]
        total = np.zeros((1, *self.frames.shape[1:]), dtype=exact)
        add_frames(self.frames, total[0])
        around, planes = self.beyond, self.planes
        if around is not None:
            around = around.sum(axis=0, keepdims=True, dtype=exact)
        part, beyond = (
            one._replace(dark=locked(one.dark * len(self.frames)))
            for one in (planes.part_planes, planes.beyond_planes)
        )
        planes = replace(planes, part_planes=part, beyond_planes=beyond)
        corrected: AnyArray = correct_tile(total, planes, around)[0]
        return corrected if dtype is None else corrected.astype(dtype)

    def __array__(self, *args: Any, **kwargs: Any) -> AnyArray:
        raise UDFError(_ONLY.format("an array"))

    def __getattr__(self, name: str) -> Any:
        raise NotAvailableError(_ONLY.format(name))


_ONLY = (
    "a UDF that promises only_sums_frames may use tile.sum(axis=0), tile.shape, tile.dtype and "
    "len(tile) in process_tile, but it asked for {}: leave the promise out"
)
