"""Trotters: which pixels of a frame carry which spatial frequency of the object, and how."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from udfdask.base.once_per_process import OncePerProcess
from udfdask.base.types import AnyArray

LEAST_AREA = 1.0
"""Least area of a side band, in detector pixels, that gives a spatial frequency of the object."""

_BLOCK = 1 << 18
"""Most trotter values at a time, 1 MiB in float32: about ten arrays of this size exist."""


@dataclass(frozen=True, slots=True)
class Aperture:
    """The wave in the condenser aperture, on the detector.

    The wave at a distance (y, x) from the center, in pixels, is ``amplitude * exp(-1j * chi)``.
    """

    radius: float
    """Radius in pixels; edges are soft over one pixel."""
    defocus: float
    """``-chi / d**2`` in radians per square pixel, where d is the distance from the center."""
    astigmatism: tuple[float, float]
    """Amplitude, as `defocus`, and direction of the largest defocus, radians from +x to +y."""
    spherical: float
    """``chi / d**4`` in radians per pixel to the fourth power."""

    def amplitude(self, y: AnyArray, x: AnyArray) -> AnyArray:
        """Return the absolute value of the wave, from 0 to 1."""
        distance = np.square(y)
        distance += np.square(x)
        np.sqrt(distance, out=distance)
        np.subtract(self.radius + 0.5, distance, out=distance)
        return np.clip(distance, 0, 1, out=distance)

    def chi(self, y: AnyArray, x: AnyArray) -> AnyArray:
        """Return the phase of the aberrations, in radians."""
        yy, xx = np.square(y), np.square(x)
        square, (stretch, angle) = yy + xx, self.astigmatism
        bend: AnyArray = square * (self.spherical * square - self.defocus)
        if stretch:
            bend -= (stretch * math.cos(2 * angle)) * (xx - yy)
            bend -= (2 * stretch * math.sin(2 * angle)) * (x * y)
        return bend


@dataclass(frozen=True, slots=True)
class Trotters:
    """The trotters of all spatial frequencies of a scan, calculated when they are needed.

    A frequency q of the object scatters the wave A of the aperture to ``A(k - q)``, and -q to
    ``A(k + q)``. They interfere with ``A(k)``: the transform of the frames over the scan is ``a *
    u(q) + b * conj(u(-q))`` for a weak object u, with ``a = conj(A(k)) * A(k - q)`` and ``b = A(k)
    * conj(A(k + q))``. These are the side bands of q. Where both overlap with ``A(k)`` (triple
    overlap), a weak phase cancels in focus; with aberrations, it leaves a contrast there too.
    """

    aperture: Aperture
    center: tuple[float, ...]
    """Center of the aperture (y, x), in pixels."""
    sig: tuple[int, ...]
    """Shape of a frame."""
    nav: tuple[int, ...]
    """Shape of the scan."""
    vectors: tuple[tuple[float, ...], ...]
    """Shift (y, x) of the scattered wave, in pixels, for one period along y, and along x."""

    def pixels(self) -> AnyArray:
        """Return the flat numbers of the pixels of the bright field, sorted."""
        (cy, cx), (y, x) = self.center, np.indices(self.sig, np.float64)
        return np.asarray(np.flatnonzero(self.aperture.amplitude(y - cy, x - cx)))

    def blocks(self, real: Any) -> Iterator[tuple[slice, AnyArray]]:
        """Yield parts of the pixels, and their distances (2, pixels) from the center."""
        pixels, center = self.pixels(), np.reshape(self.center, (2, 1))
        length = max(16, _BLOCK // self.nav[0])
        for first in range(0, len(pixels), length):
            part = slice(first, first + length)
            places = np.stack(np.divmod(pixels[part], self.sig[1]))
            yield part, (places - center).astype(real)

    def columns(self) -> Iterator[tuple[int, AnyArray]]:
        """Yield the frequencies that have side bands: that along x, and all those along y.

        Frequencies are in periods per scan. Along x they are not negative: those of the opposite
        sign have the opposite side bands. Half the number of positions has no sign: it is left out.
        """
        most_y, most_x = ((n - 1) // 2 for n in self.nav)
        rows = np.arange(-most_y, most_y + 1)
        for column in range(most_x + 1):
            shifts = self._shifts(rows, column)
            near = np.hypot(*shifts) < 2 * self.aperture.radius + 1
            if near.any():
                yield column, rows[near]

    def _shifts(self, rows: AnyArray, column: int) -> AnyArray:
        """Return shifts of the scattered wave, in pixels, shape (2, rows)."""
        along_y, along_x = np.reshape(self.vectors, (2, 2, 1))
        return np.asarray(along_y * rows + along_x * column)

    def side_bands(
        self, rows: AnyArray, column: int, places: AnyArray
    ) -> tuple[AnyArray, AnyArray]:
        """Return the positive and the negative side bands of frequencies, shape (rows, pixels).

        They are ``conj(a)`` and ``conj(b)``, complex if there are aberrations, in the precision of
        `places`, the distances of pixels from the center. The frequency zero has no negative one.
        """
        lens, (y, x) = self.aperture, places
        dy, dx = self._shifts(rows, column).astype(y.dtype)[:, :, np.newaxis]
        amplitude = lens.amplitude(y, x)
        plus = lens.amplitude(y - dy, x - dx) * amplitude
        minus = lens.amplitude(y + dy, x + dx) * amplitude
        if column == 0:
            minus[rows == 0] = 0
        if not (lens.defocus or lens.astigmatism[0] or lens.spherical):
            return plus, minus
        chi = lens.chi(y, x)
        before, after = lens.chi(y - dy, x - dx), lens.chi(y + dy, x + dx)
        return plus * _phase_factor(chi - before), minus * _phase_factor(after - chi)

    def spectrum_of(self, bright: AnyArray) -> AnyArray:
        """Return the sums of a frame, its values at `pixels`, over all positive side bands."""
        sums = np.zeros(self.nav, np.complex128)
        for part, places in self.blocks(np.float32):
            for column, rows in self.columns():
                bands = self.side_bands(rows, column, places)
                add(sums, rows, column, *(band @ bright[part] for band in bands))
        return sums

    def solve(self, spectrum: AnyArray) -> AnyArray:
        """Return the frequencies of the object; 0 where the side bands are too small.

        `spectrum`, shape `nav`, has the sums of the positive side bands. They are the normal
        equations of a least-squares fit of u(q) and conj(u(-q)) to the pixels of both side bands.
        """
        area, shared = _AREAS.get(self, self._areas)
        opposite, other = _mirrored(area), _mirrored(spectrum).conj()
        middle, half = (area + opposite) / 2, (area - opposite) / 2
        # the smaller eigenvalue: in focus, the area of a side band without the triple overlap
        least = middle - np.hypot(half, abs(shared))
        solution = opposite * spectrum - shared * other
        found: AnyArray = np.zeros_like(spectrum)
        determinant = area * opposite - abs(shared) ** 2
        np.divide(solution, determinant, out=found, where=least >= LEAST_AREA)
        return found

    def _areas(self) -> tuple[AnyArray, AnyArray]:
        """Return the sums of ``abs(a)**2`` and of ``conj(a) * b`` over the side bands."""
        areas, shared = np.zeros(self.nav), np.zeros(self.nav, np.complex128)
        for _, places in self.blocks(np.float64):
            for column, rows in self.columns():
                plus, minus = self.side_bands(rows, column, places)
                add(areas, rows, column, _dot(plus, plus).real, _dot(minus, minus).real)
                both = _dot(plus, minus)  # the same at the opposite frequency
                add(shared, rows, column, both, both.conj())
        return areas, shared


def add(total: AnyArray, rows: AnyArray, column: int, plus: AnyArray, minus: AnyArray) -> None:
    """Add what side bands give to a spectrum: the negative ones to the opposite frequencies."""
    total[rows, column] += plus
    if column:  # otherwise `rows` has both signs
        total[-rows, -column] += minus.conj()


def _phase_factor(phase: AnyArray) -> AnyArray:
    """Return ``exp(-1j * phase)`` in the precision of the phase."""
    factor = np.empty(phase.shape, np.result_type(phase, np.complex64))
    np.cos(phase, out=factor.real)
    np.sin(-phase, out=factor.imag)
    return factor


def _dot(one: AnyArray, other: AnyArray) -> AnyArray:
    """Return the sum of ``one * conj(other)`` over each row."""
    return np.asarray(np.einsum("qk,qk->q", one, other.conj()))


def _mirrored(spectrum: AnyArray) -> AnyArray:
    """Return the values at the opposite frequencies."""
    return np.asarray(np.roll(spectrum[::-1, ::-1], 1, axis=(0, 1)))


_AREAS = OncePerProcess(8)
