"""Fourier transforms of stacks of frames."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from udfdask.types import AnyArray


def half_spectra(frames: AnyArray, columns: int) -> AnyArray:
    """Return the first columns of `rfft2` of frames of shape (n, y, x), shape (n, y, columns)."""
    fft = _transforms()
    spectra: AnyArray = fft.fft(fft.rfft(frames, axis=2)[..., :columns], axis=1)
    return spectra


def frequencies(shape: tuple[int, int]) -> tuple[AnyArray, AnyArray]:
    """Return the frequencies of `rfft2` of a frame in bins, (y, 1) and (1, x // 2 + 1)."""
    y, x = shape
    return np.fft.fftfreq(y, 1 / y)[:, np.newaxis], np.fft.rfftfreq(x, 1 / x)[np.newaxis]


@cache
def _transforms() -> Any:
    """Return scipy.fft, which is several times faster than numpy.fft, if there is scipy."""
    try:
        import scipy.fft
    except ImportError:
        return np.fft
    return scipy.fft
