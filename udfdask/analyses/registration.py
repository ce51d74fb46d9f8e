"""Register the images that beams of different tilt make of the same object."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import fft

from udfdask.analyses.bright_field import Beams
from udfdask.base.types import AnyArray

WAVES = 400
"""Number of waves of the object, the strongest ones, from which shifts are measured."""

PADDING = 4
"""Points on which the spectrum over the detector is known, for each point that it has."""

STEP = 0.35
"""Distance between the first guesses, in periods of a typical wave at the edge of the aperture."""

APERTURES = (0.5, 0.7, 0.85, 1.0, 1.0)
"""Parts of the aperture from which a guess is refined, one after the other."""

LEAST = 0.1
"""How certain a shift must be, as a part of the most certain one: others are NaN."""

BATCH = 32
"""Images that are transformed together."""


@dataclass(frozen=True, slots=True)
class TiltedImages:
    """The images of an object that beams of different tilt make."""

    values: AnyArray
    """Images, shape (positions, beams)."""
    known: AnyArray
    """Which positions of the scan they have, bool, shape (ny, nx)."""
    beams: Beams
    """What is known about the microscope."""
    angles: AnyArray
    """Angles (y, x) of the beams in radians, shape (beams, 2)."""
    cells: AnyArray
    """Places (y, x) of the beams on a grid, int, from 0, shape (beams, 2)."""
    pitch: AnyArray
    """Distance between neighboring cells in radians, (y, x)."""

    @property
    def radii(self) -> AnyArray:
        """Angle of each beam as a part of the largest one."""
        radii = np.hypot(*self.angles.T)
        return np.asarray(radii / radii.max())

    def spectra(self, shifts: AnyArray) -> Iterator[tuple[slice, AnyArray]]:
        """Yield Fourier transforms of images in windows that move with shifts in nm.

        A window that stays where it is would draw all shifts to 0.
        """
        moved = shifts / self.beams.steps
        windows = []
        for n, move in zip(self.known.shape, moved.T, strict=True):
            length = max(n - 2 * np.abs(move).max(), n / 2)
            place = (np.arange(n) - (n - 1) / 2 - move[:, None]) / length
            windows.append(np.cos(np.pi * np.clip(place, -0.5, 0.5)) ** 2)
        means = self.values.mean(axis=0, dtype=np.float64).astype(np.float32)
        whole = np.zeros((BATCH, *self.known.shape), np.float32)
        for start in range(0, len(moved), BATCH):
            part = slice(start, min(start + BATCH, len(moved)))
            some = self.values[:, part] - means[part]
            batch = whole[: some.shape[1]]
            batch[:, self.known] = some.T
            window = windows[0][part, :, None] * windows[1][part, None]
            yield part, fft.rfft2(batch * window.astype(np.float32))

    def strongest(self) -> tuple[AnyArray, AnyArray]:
        """Return rows and columns of the strongest waves in the spectra."""
        power: AnyArray = np.zeros(1)
        for _, spectra in self.spectra(np.zeros_like(self.angles)):
            power = power + (spectra.real**2 + spectra.imag**2).sum(axis=0)
        q = np.hypot(*self._frequencies())
        # the window spreads the mean over neighbors; each wave is there once
        power[(q <= 2 / self.extent) | (q >= self.beams.largest)] = 0
        power[len(power) // 2 + 1 :, 0] = 0
        row, column = np.unravel_index(np.argsort(power, axis=None)[: -WAVES - 1 : -1], q.shape)
        keep = power[row, column] > 0
        return row[keep], column[keep]

    def waves(self, where: tuple[AnyArray, AnyArray], shifts: AnyArray) -> TiltedWaves:
        """Return some waves of the object, from images with these shifts, in nm."""
        values = np.empty((len(where[0]), len(shifts)), np.complex64)
        for part, spectra in self.spectra(shifts):
            values[:, part] = spectra[:, *where].T
        qy, qx = self._frequencies()
        frequencies = np.stack([qy[where[0], 0], qx[where[1]]], axis=1)
        values[self.radii + np.hypot(*frequencies.T)[:, None] / self.beams.largest > 1] = 0
        return TiltedWaves(values, frequencies, self.angles)

    def _frequencies(self) -> tuple[AnyArray, AnyArray]:
        """Return the frequencies (y, x) of the spectra in 1/nm, negative if a step is."""
        (ny, nx), (dy, dx) = self.known.shape, self.beams.steps
        return fft.fftfreq(ny, dy)[:, None], np.arange(nx // 2 + 1) / (nx * dx)

    @property
    def extent(self) -> float:
        """Size of the scan along its shorter side in nm."""
        return float(np.min(np.abs(self.beams.steps) * self.known.shape))


@dataclass(frozen=True, slots=True)
class TiltedWaves:
    """The strongest waves of the object, as each beam sees them.

    With an object that is thin and weak, a beam of the angle a, a vector, sees a wave of the
    frequency q with a phase that changes by ``-2 pi q @ M @ a``, where M is the matrix of the
    shifts, if both diffracted beams pass the aperture.
    """

    spectra: AnyArray
    """Coefficients, shape (waves, beams); 0 if a diffracted beam may miss the aperture."""
    frequencies: AnyArray
    """Frequencies q (y, x) of the waves in 1/nm, shape (waves, 2)."""
    angles: AnyArray
    """Angles (y, x) of the beams in radians, shape (beams, 2)."""

    def agreement(self, matrix: AnyArray, used: AnyArray) -> tuple[AnyArray, AnyArray]:
        """Return how each used beam agrees with the others if it is shifted along the frequency.

        It is the first derivative and the second one, with the opposite sign, (waves, beams).
        """
        shift = self.frequencies @ matrix @ self.angles[used].T
        aligned = self.spectra[:, used] * np.exp(2j * np.pi * shift)
        count = np.maximum((aligned != 0).sum(axis=1, keepdims=True) - 1, 1)
        others = (aligned.sum(axis=1, keepdims=True) - aligned) / count
        product = 2 * np.pi * aligned * others.conj()
        return -product.imag, 2 * np.pi * product.real


def register(images: TiltedImages) -> tuple[AnyArray, AnyArray]:
    """Return the matrix of the shifts in nm per radian, and the shift of each image in nm.

    Shifts are NaN for beams near the edge of the aperture, from which no wave is measured. All are
    NaN if the images have no waves.
    """
    nothing = np.full((2, 2), np.nan), np.full(images.angles.shape, np.nan)
    if not images.known.any():
        return nothing
    where = images.strongest()
    waves = images.waves(where, np.zeros_like(images.angles))
    if not waves.spectra.any():
        return nothing
    matrix = guess_matrix(images, waves)
    for part in APERTURES:
        matrix = matrix + refine_matrix(waves, matrix, images.radii <= part)
        if part == 1:
            waves = images.waves(where, images.angles @ matrix.T)
    return matrix, measure_shifts(waves, matrix)


def guess_matrix(images: TiltedImages, waves: TiltedWaves) -> AnyArray:
    """Return the rotation, flip and scale with which most of the beams see the same waves.

    Each wave is also a wave over the detector, with its frequency times the matrix. This makes the
    guess unique for periodic objects, too, whose images can be registered in many ways.
    """
    size = tuple(fft.next_fast_len(PADDING * int(n)) for n in images.cells.max(axis=0) + 1)
    q, power = waves.frequencies, (np.abs(waves.spectra) ** 2).sum(axis=1)
    edge = np.hypot(*waves.angles.T).max()
    typical = np.sqrt((power * (q**2).sum(axis=1)).sum() / power.sum())
    step = STEP / (edge * typical)
    n = int(images.extent / (edge * step))  # up to a shift by the size of the scan
    cos, sin = step * np.mgrid[-n : n + 1, -n : n + 1].reshape(2, -1)
    guesses = np.stack([np.stack([cos, sin], 1), np.stack([-sin, cos], 1)], 1)
    guesses = np.concatenate([guesses, guesses * [-1, 1]])  # with y flipped
    score = np.zeros(len(guesses))
    for frequency, spectrum in zip(q, waves.spectra, strict=True):
        grid = np.zeros(size, np.complex64)
        grid[tuple(images.cells.T)] = spectrum
        over_detector = np.abs(fft.ifft2(grid)) ** 2
        found = (frequency @ guesses) * images.pitch  # in periods per cell
        place = np.rint(found * size).astype(int) % size
        score += np.where((np.abs(found) < 0.5).all(axis=1), over_detector[tuple(place.T)], 0)
    return np.asarray(guesses[score.argmax()])


def refine_matrix(waves: TiltedWaves, matrix: AnyArray, used: AnyArray) -> AnyArray:
    """Return the change of a matrix with which beams agree best with their mean: a Newton step."""
    slope, bend = waves.agreement(matrix, used)
    q, ones = waves.frequencies, np.ones((len(waves.angles), 1))
    terms = np.concatenate([waves.angles, ones], axis=1)[used]  # the center may be shifted
    pairs = (terms[:, :, None] * terms[:, None]).reshape(len(terms), 9)
    squares = (q[:, :, None] * q[:, None]).reshape(len(q), 4)
    normal = (squares.T @ bend @ pairs).reshape(2, 2, 3, 3).transpose(0, 2, 1, 3).reshape(6, 6)
    target = (q.T @ slope @ terms).reshape(6)
    return np.asarray(np.linalg.lstsq(normal, target)[0].reshape(2, 3)[:, :2])


def measure_shifts(waves: TiltedWaves, matrix: AnyArray) -> AnyArray:
    """Return the shift of each beam, shape (beams, 2), one Newton step from that of a matrix."""
    slope, bend = waves.agreement(matrix, np.ones(len(waves.angles), bool))
    q = waves.frequencies
    squares = (q[:, :, None] * q[:, None]).reshape(len(q), 4)
    normal, target = (bend.T @ squares).reshape(-1, 2, 2), slope.T @ q
    (yy, yx), (_, xx) = normal.transpose(1, 2, 0)
    size, y, x = yy * xx - yx * yx, *target.T
    # the smaller eigenvalue, nearly
    lowest = np.divide(size, yy + xx, out=np.zeros_like(size), where=(yy > 0) & (size > 0))
    known = lowest > LEAST * lowest.max(initial=np.finfo(float).tiny)
    with np.errstate(all="ignore"):
        steps = np.stack([xx * y - yx * x, yy * x - yx * y], axis=1) / size[:, None]
    return np.where(known[:, None], waves.angles @ matrix.T + steps, np.nan)
