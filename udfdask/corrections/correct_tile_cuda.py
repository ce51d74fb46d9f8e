"""Correct a tile on a CUDA device, with the same arithmetic as `correct_tile`."""

from __future__ import annotations

import threading
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from udfdask.arrays.backends.backend import DenseBackend
from udfdask.arrays.backends.table import backend_of
from udfdask.corrections.planes import TilePlanes
from udfdask.kernels.dtypes import compiled_dtype

_uploaded: WeakKeyDictionary[TilePlanes, tuple[Any, dict[str, Any]]] = WeakKeyDictionary()
_lock = threading.Lock()


def correct_on_device(tile: Any, planes: TilePlanes, beyond: Any = None) -> Any:
    """Return a corrected copy of a tile, both arrays of shape (frames, *sig part) on a device.

    `beyond` contains the uncorrected values of the same frames at the pixels `planes.beyond`,
    shape (frames, m). It is required if m is not 0.
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
    module = backend.namespace()
    with _lock:
        known = _uploaded.get(planes)
        if known is None or known[0] is not module:
            arrays = {name: backend.share(array) for name, array in _arrays(planes).items()}
            known = _uploaded[planes] = (module, arrays)
    return known[1]


def _arrays(planes: TilePlanes) -> dict[str, Any]:
    """Return the arrays of a correction as NumPy arrays."""
    dtype = compiled_dtype(planes.dtype)
    pixels, neighbors = planes.part_planes.dark.size, planes.neighbors
    outside = neighbors >= pixels
    return {
        "dark": planes.part_planes.dark,
        "gain": planes.part_planes.gain,
        "dark_beyond": planes.beyond_planes.dark,
        "gain_beyond": planes.beyond_planes.gain,
        "patched": planes.patched,
        "inside": np.where(outside, 0, neighbors),
        "outside": np.where(outside, neighbors - pixels, 0),
        "is_outside": outside,
        "counts": planes.counts.astype(dtype),
        "is_used": np.arange(neighbors.shape[1]) < planes.counts[:, np.newaxis],
    }
