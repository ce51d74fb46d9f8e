"""What every library gets: masks, corrections, functions, and a UDF without a base class."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

Sig = tuple[int, ...]

MASK_COUNTS = (4, 16, 64, 500)
"""Numbers of dense masks that are compared."""


@functools.cache
def dense_masks(sig: Sig, n: int = 16) -> np.ndarray:
    """Return dense masks of random weights, shape (n, *sig), float32."""
    return np.random.default_rng(1).random((n, *sig), dtype="float32")


@functools.cache
def ring_masks(sig: Sig, n: int = 500) -> Any:
    """Return rings one pixel wide around different centers, sparse, shape (n, *sig), float32."""
    import sparse

    rng = np.random.default_rng(2)
    height, width = sig
    y, x = np.indices(sig)
    found, weights = [], []
    for number in range(n):
        cy, cx = rng.uniform(0.3, 0.7, 2) * sig
        radius = rng.uniform(1, 0.45 * min(height, width))
        distance = np.hypot(y - cy, x - cx)
        places = np.nonzero((distance > radius - 0.5) & (distance <= radius + 0.5))
        found.append(np.stack([np.full(len(places[0]), number), *places]))
        weights.append(np.full(len(places[0]), 1 / max(1, len(places[0])), dtype="float32"))
    return sparse.COO(np.concatenate(found, axis=1), np.concatenate(weights), shape=(n, *sig))


@functools.cache
def detector_mask(sig: Sig) -> np.ndarray:
    """Return the ring of a virtual detector, shape (1, *sig), float32."""
    y, x = np.indices(sig)
    distance = np.hypot(y - sig[0] // 2, x - sig[1] // 2)
    return ((distance > 0.2 * sig[0]) & (distance <= 0.4 * sig[0])).astype("float32")[np.newaxis]


def profile_bins(sig: Sig) -> int:
    """Return the number of rings of a radial profile that reaches the nearest edge of a frame."""
    return min(sig) // 2


@functools.cache
def profile_masks(sig: Sig) -> Any:
    """Return the rings of a radial profile, each with the sum 1, sparse, float32."""
    from udfdask.masks import radial_bins

    n, (height, width) = profile_bins(sig), sig
    return radial_bins(
        width // 2, height // 2, width, height, n, 0, n, normalize=True, use_sparse=True, dtype="f4"
    )


@functools.cache
def moment_masks(sig: Sig) -> np.ndarray:
    """Return 1, y and x of each pixel, shape (3, *sig), float32."""
    return np.stack([np.ones(sig), *np.indices(sig)]).astype("float32")


@functools.cache
def planes(sig: Sig) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a dark frame, a gain map and coordinates of broken pixels, shape (2, n)."""
    rng = np.random.default_rng(3)
    dark = rng.uniform(0, 2, sig).astype("float32")
    gain = rng.uniform(0.8, 1.2, sig).astype("float32")
    broken = np.unravel_index(rng.choice(np.prod(sig), min(24, sig[0]), replace=False), sig)
    return dark, gain, np.stack(broken)


def correct_naively(block: np.ndarray) -> np.ndarray:
    """Return corrected frames as one would write it in NumPy."""
    sig = block.shape[-2:]
    dark, gain, broken = planes(sig)
    corrected = (block.astype("float32") - dark) * gain
    good = np.ones(sig, dtype=bool)
    good[tuple(broken)] = False
    for y, x in broken.T:
        around = np.zeros(sig, dtype=bool)
        around[max(0, y - 1) : y + 2, max(0, x - 1) : x + 2] = True
        around &= good
        if around.any():
            corrected[..., y, x] = corrected[..., around].mean(axis=-1)
    return corrected


def power(frame: np.ndarray) -> np.float64:
    """Return the power of a frame beyond its mean, from an FFT."""
    spectrum = np.abs(np.fft.fft2(frame)) ** 2
    return np.float64(spectrum.sum() - spectrum[0, 0])


@functools.cache
def extremes_udf(base: type) -> type:
    """Return a UDF in NumPy alone on the base class of a library: the same source for all."""

    class ExtremesUDF(base):
        def get_preferred_input_dtype(self):
            return self.USE_NATIVE_DTYPE

        def get_result_buffers(self):
            dtype = self.meta.input_dtype
            return {
                "peak": self.buffer(kind="nav", dtype=dtype),
                "highest": self.buffer(kind="sig", dtype=dtype),
            }

        def process_tile(self, tile):
            self.results.peak[:] = np.maximum(self.results.peak, tile.max(axis=(1, 2)))
            self.results.highest[:] = np.maximum(self.results.highest, tile.max(axis=0))

        def merge(self, dest, src):
            dest.peak[:] = src.peak
            dest.highest[:] = np.maximum(dest.highest, src.highest)

    return ExtremesUDF
