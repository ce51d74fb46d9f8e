"""Correlate frames with the image of a disk, by Fourier transforms."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import fft

from udfdask.base.types import AnyArray

POWERS = {"cross": 1.0, "hybrid": 0.5, "phase": 0.0}
"""Kinds of correlation: the power of the amplitudes of the waves."""

BLUR = 0.5
"""Standard deviation by which maps are blurred, in pixels. Without it, the shortest waves, which
pixels sample badly, give errors of 0.02 pixels (hybrid) and 0.04 pixels (phase) without noise."""

FLOOR = 1e-5
"""Waves with a smaller part of the largest amplitude are rounding errors of float32."""

STEPS = 2
"""Steps of Newton's method from the vertices of parabolas; the second one moves by some 1e-3 px."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskFilter:
    """The transform of a template, ready to be multiplied with those of frames of one shape."""

    shape: tuple[int, int]
    """Shape of the frames (y, x), with the pixels that are added beyond their borders."""
    power: float
    """Power of the amplitudes of the frames, from `POWERS`."""
    total: float
    """Sum of the disk of the template."""
    waves: AnyArray
    """Factors for `rfft2` of frames, complex64: the sum of all waves of a frame with one copy of
    the disk of the template is 1 at the place of the disk."""
    plain: AnyArray
    """The same for the power 1."""


def disk_center(template: AnyArray) -> tuple[float, float]:
    """Return the center of mass (y, x) of the positive part of a template, in pixels."""
    disk = np.maximum(template, 0.0)
    y, x = np.indices(disk.shape)
    return float((y * disk).sum() / disk.sum()), float((x * disk).sum() / disk.sum())


def disk_radius(template: AnyArray) -> float:
    """Return the radius of the flat disk with the same sum and sum of squares, in pixels."""
    disk = np.maximum(template, 0.0)
    return math.sqrt(float(disk.sum() ** 2 / np.square(disk).sum()) / math.pi)


def make_filter(
    template: AnyArray, center: tuple[float, float], shape: tuple[int, int], kind: str, edge: float
) -> DiskFilter:
    """Return the filter for frames of a shape and disks `edge` pixels or more from their borders.

    `center` is the center of the disk (y, x).
    """
    (height, width), power = shape, POWERS[kind]
    # templates that reach over a border would see the disks at the opposite one, which moves disks
    # at the border by 0.3 pixels
    reach = np.abs(np.subtract(np.argwhere(template), center)).max()
    beyond = math.ceil(reach) - round(edge)
    if beyond > 0:
        height, width = (fft.next_fast_len(n + beyond, real=True) for n in shape)
    ky, kx = fft.fftfreq(height)[:, np.newaxis], fft.rfftfreq(width)
    move = np.exp(2j * np.pi * (ky * center[0] + kx * center[1]))
    # the highest frequency of an even number of pixels has no phase; the mean tells nothing
    used = (np.abs(ky) < 0.5) & (kx < 0.5) & (np.hypot(ky, kx) > 0)
    blur = used * np.exp(-2 * (np.pi * BLUR) ** 2 * (ky**2 + kx**2))
    twice = np.where(kx > 0, 2, 1)  # half of the waves are not stored

    def spectrum(image: AnyArray) -> AnyArray:
        return np.asarray(fft.rfft2(image, s=(height, width)) * move * used)

    disk = np.maximum(template, 0.0)
    own, whole = spectrum(disk), spectrum(template)

    def waves(power: float) -> AnyArray:
        found = blur * _flattened(whole, power).conj()
        height = (found * _flattened(own, power) * twice).real.sum()
        return np.asarray(found / height, np.complex64)

    total = float(disk.sum())
    return DiskFilter(
        shape=(height, width), power=power, total=total, waves=waves(power), plain=waves(1.0)
    )


def _flattened(spectra: AnyArray, power: float) -> AnyArray:
    """Return waves whose amplitudes have a power, shape (..., y, x)."""
    if power == 1:
        return spectra
    size = np.abs(spectra)
    size = np.maximum(size, FLOOR * size.max(axis=(-2, -1), keepdims=True))
    # a frame of zeros has no waves
    return np.asarray(spectra * np.where(size > 0, size, 1) ** (power - 1))


def find_in_frames(
    frames: AnyArray, template: DiskFilter, limits: tuple[Any, ...], *, subpixel: bool
) -> tuple[AnyArray, AnyArray, AnyArray, AnyArray]:
    """Return positions, intensities, correlations and numbers of the disks of frames (n, y, x).

    They are those of `FindDisksUDF`. The frames are float32; `limits` are those of
    `find_local_maxima`.
    """
    from udfdask.kernels.cpu.map_maxima import climb, find_local_maxima, fold_waves

    shape, (height, width) = template.shape, frames.shape[1:]
    if shape != (height, width):  # the added pixels are zeros: as dark as the darkest one
        frames = frames - frames.min(axis=(1, 2), keepdims=True)
    spectra = fft.rfft2(frames, s=shape, workers=1)
    products = _flattened(spectra, template.power) * template.waves
    maps = fft.irfft2(products, s=shape, norm="forward", workers=1)
    inner = maps[:, :height, :width]
    positions, numbers = find_local_maxima(inner, *limits, subpixel=subpixel)
    columns = (shape[1] + 1) // 2  # without the highest frequency
    sums = np.empty((6, columns), np.float32)

    def heights(products: AnyArray, steps: int) -> AnyArray:
        found = np.full(positions.shape[:2], np.nan, np.float32)
        climb(shape, fold_waves(products[..., :columns]), steps, sums, positions, found)
        return found

    correlation = heights(products, STEPS if subpixel else 0)
    of_disk = correlation if template.power == 1 else heights(spectra * template.plain, 0)
    order = np.argsort(-correlation, axis=1, kind="stable")  # NaN is last
    return (
        np.take_along_axis(positions, order[..., np.newaxis], axis=1),
        np.take_along_axis(of_disk * np.float32(template.total), order, axis=1),
        np.take_along_axis(correlation, order, axis=1),
        numbers,
    )
