"""Fourier transforms of stacks of frames."""

from __future__ import annotations

import numpy as np

from udfdask.types import AnyArray


def half_spectra(frames: AnyArray, columns: int) -> AnyArray:
    """Return the first columns of `rfft2` of frames of shape (n, y, x), shape (n, y, columns)."""
    # scipy.fft is several times as fast as numpy.fft; imported here, `import udfdask` stays fast
    from scipy.fft import fft, rfft

    spectra: AnyArray = fft(rfft(frames, axis=2)[..., :columns], axis=1)
    return spectra


def frequencies(shape: tuple[int, int]) -> tuple[AnyArray, AnyArray]:
    """Return the frequencies of `rfft2` of a frame, in bins, shapes (y, 1) and (1, x // 2 + 1)."""
    y, x = shape
    return np.fft.fftfreq(y, 1 / y)[:, np.newaxis], np.fft.rfftfreq(x, 1 / x)[np.newaxis]
