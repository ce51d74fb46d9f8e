"""Correct and shift frames in the plainest way, one pixel or one frame after another."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from dask.base import compute

from udfdask.base.types import AnyArray
from udfdask.corrections import CorrectionSet


def correct_frames(frames: AnyArray, corrections: CorrectionSet) -> AnyArray:
    """Return corrected frames, shape (frames, *sig), in their dtype."""
    for plane, change in ((corrections.dark, np.subtract), (corrections.gain, np.multiply)):
        if plane is not None:
            (values,) = compute(plane, scheduler="sync")
            frames = change(frames, values.astype(frames.dtype))
    bad = corrections.excluded_pixels
    if bad is None:
        return frames
    if bad.dtype != bool:
        places, bad = bad, np.zeros(frames.shape[1:], dtype=bool)
        bad[tuple(places.reshape((bad.ndim, -1)))] = True
    patched = frames.copy()
    for pixel in np.argwhere(bad):
        around = tuple(slice(max(0, i - 1), i + 2) for i in pixel)
        good = frames[(slice(None), *around)][:, ~bad[around]]
        if good.shape[1]:
            patched[(slice(None), *pixel)] = good.mean(axis=1)
    return patched


def shift_frames(frames: AnyArray, shifts: AnyArray, *, subpixel: bool, fill: Any) -> AnyArray:
    """Return shifted copies of frames, shape (frames, *sig), in the dtype of the frames.

    `shifts` are those that are removed, shape (frames, sig dims), in pixels.
    """
    out = np.empty_like(frames)
    for frame, shift, target in zip(frames, np.asarray(shifts, float), out, strict=True):
        target[...] = _shifted(frame, shift, subpixel, fill)
    return out


def _shifted(frame: AnyArray, shift: AnyArray, subpixel: bool, fill: Any) -> AnyArray:
    """Return one frame after its shift is removed."""
    if np.isnan(shift).any() or (np.abs(shift) > np.array(frame.shape) + 1).any():
        return np.full_like(frame, fill)
    if not subpixel:
        return _moved(frame, np.round(shift).astype(int), fill)
    whole = np.floor(shift)
    total = np.zeros_like(frame)
    for step in itertools.product((0, 1), repeat=frame.ndim):
        weight = np.prod(np.where(step, shift - whole, 1 - (shift - whole)))
        if weight:  # a neighbor without a weight can be NaN
            total = total + _moved(frame, whole.astype(int) + step, fill) * weight
    return total


def _moved(frame: AnyArray, shift: AnyArray, fill: Any) -> AnyArray:
    """Return one frame after a shift by whole pixels is removed."""
    targets, sources = [], []
    for by, n in zip(shift, frame.shape, strict=True):
        targets.append(slice(max(0, -by), max(0, min(n, n - by))))
        sources.append(slice(max(0, by), max(0, min(n, n + by))))
    moved = np.full_like(frame, fill)
    moved[tuple(targets)] = frame[tuple(sources)]
    return moved
