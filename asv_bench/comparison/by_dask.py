"""The work, written as plain dask expressions, without a library."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np

from comparison.material import (
    MASK_COUNTS,
    correct_naively,
    dense_masks,
    detector_mask,
    moment_masks,
    planes,
    power,
    profile_masks,
    ring_masks,
)

Lazy = dict[str, Any]


def total(x: da.Array) -> Lazy:
    return {"sum": x.sum(axis=(0, 1))}


def of_frames(x: da.Array) -> Lazy:
    return {"sumsig": x.sum(axis=(2, 3))}


def spread(x: da.Array) -> Lazy:
    return {"var": x.var(axis=(0, 1))}


def centers(x: da.Array) -> Lazy:
    moments = _products(x, moment_masks(x.shape[-2:]))
    return {"raw_com": moments[..., 1:] / moments[..., :1]}


def dense(x: da.Array, n: int = 16) -> Lazy:
    return {"masks": _products(x, dense_masks(x.shape[-2:], n))}


def _products(x: da.Array, masks: np.ndarray) -> da.Array:
    dtype = np.result_type(x.dtype, masks.dtype)  # as the other libraries do
    return da.tensordot(x.astype(dtype), masks, axes=((2, 3), (1, 2)))


def rings(x: da.Array) -> Lazy:
    return {"rings": _sparse_products(x, ring_masks)}


def profile(x: da.Array) -> Lazy:
    return {"profile": _sparse_products(x, profile_masks)}


def detector(x: da.Array) -> Lazy:
    ring = detector_mask(x.shape[-2:])[0] > 0
    dtype = np.zeros(1, x.dtype).sum().dtype
    made = x.map_blocks(lambda b: b[..., ring].sum(axis=-1), dtype=dtype, drop_axis=(2, 3))
    return {"detector": made}


def logsum(x: da.Array) -> Lazy:
    x = x.astype("uint8") if x.dtype == bool else x  # NumPy does not subtract booleans
    low = x.min(axis=(2, 3), keepdims=True)
    return {"logsum": da.log(x - low + 1.0).sum(axis=(0, 1))}


def _sparse_products(x: da.Array, make_masks: Callable[[Any], Any]) -> da.Array:
    masks = _matrix(make_masks, x.shape[-2:])

    def apply(block: np.ndarray) -> np.ndarray:
        frames = block.reshape(-1, masks.shape[1]).astype("float32")
        return (masks @ frames.T).T.reshape(*block.shape[:2], -1)

    chunks = (*x.chunks[:2], masks.shape[0])
    return x.map_blocks(apply, dtype="float32", drop_axis=(2, 3), new_axis=2, chunks=chunks)


@functools.cache
def _matrix(make_masks: Callable[[Any], Any], sig: tuple[int, ...]) -> Any:
    return make_masks(sig).reshape((-1, int(np.prod(sig)))).tocsr()


def corrected(x: da.Array) -> Lazy:
    dark, gain, _ = planes(x.shape[-2:])
    return total((x - dark) * gain)


def patched(x: da.Array) -> Lazy:
    return total(x.map_blocks(correct_naively, dtype="float32", meta=np.empty((0,) * 4, "float32")))


def extremes(x: da.Array) -> Lazy:
    return {"peak": x.max(axis=(2, 3)), "highest": x.max(axis=(0, 1))}


def spectra(x: da.Array) -> Lazy:
    def loop(block: np.ndarray) -> np.ndarray:
        out = np.empty(block.shape[:2])
        for place in np.ndindex(*out.shape):
            out[place] = power(block[place].astype("float32"))
        return out

    return {"power": x.map_blocks(loop, dtype="float64", drop_axis=(2, 3))}


FIVE = (total, of_frames, spread, centers, dense)
FOUR = FIVE[:4]

WORK: dict[str, list[Callable[[da.Array], Lazy]]] = {
    "sum": [total],
    "sumsig": [of_frames],
    "stddev": [spread],
    "com": [centers],
    "masks": [dense],
    "rings": [rings],
    "profile": [profile],
    "detector": [detector],
    "logsum": [logsum],
    **{f"masks-{n}": [functools.partial(dense, n=n)] for n in MASK_COUNTS},
    "four": [lambda x: {name: a for one in FOUR for name, a in one(x).items()}],
    "four-apart": list(FOUR),
    "five": [lambda x: {name: a for one in FIVE for name, a in one(x).items()}],
    "five-apart": list(FIVE),
    "corrected": [corrected],
    "patched": [patched],
    "extremes": [extremes],
    "spectra": [spectra],
}
"""For each kind of work, the functions that are called one after another."""
