"""A simulated recording of a phase object, whose phase is known everywhere."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
from dask.array.core import normalize_chunks

from udfdask.geometry.axes import Axis
from udfdask.geometry.electrons import volts, wavelength

Array = np.ndarray[Any, Any]

# The object: plane waves of a hexagonal lattice and slow waves. Wavelengths are in nm.
_LATTICE = 0.4
_ATOMS = 0.25  # radians, amplitude of each of the three waves of the lattice
_SLOW = ((3.1, 25.0, 0.3), (4.7, 115.0, 0.25), (1.7, 70.0, 0.15))  # wavelength, degrees, radians


@dataclass(frozen=True, kw_only=True)
class PhaseObject:
    """A simulated 4D-STEM recording of a thin object, which changes only the phase of the beam.

    `udfdask.run_udf` and the analyses take it as they take an opened file: it knows its axes.

    Notes
    -----
    The wave behind the object is ``probe * exp(1j * phase)``; a frame is the square of the absolute
    value of its Fourier transform. The phase is a sum of six plane waves: any part of a scan of any
    size is calculated on its own.

    Examples
    --------
    >>> from udfdask.demo import PhaseObject
    >>> thin = PhaseObject(nav_shape=(8, 6), defocus=10)
    >>> thin.array.shape, thin.phase.shape, thin.axes[2].unit
    ((8, 6, 64, 64), (8, 6), 'mrad')
    >>> float(thin.array[0, 0].sum().compute().round(5))
    1.0
    """

    nav_shape: tuple[int, int] = (64, 64)
    """Scan positions (y, x)."""
    sig_shape: tuple[int, int] = (64, 64)
    """Detector pixels (y, x); frames are square, of an even size."""
    step: float = 0.05
    """Distance between scan positions, in nm."""
    pixel: float = 1.0
    """Size of a detector pixel, in mrad."""
    semiangle: float = 20.0
    """Convergence semiangle, in mrad."""
    voltage: Any = "300 kV"
    """Acceleration voltage."""
    defocus: float = 0.0
    """Defocus in nm, positive below focus: the beam crosses over behind the object."""
    dose: float | None = None
    """Electrons per position; without it, frames have no noise and a sum of 1."""
    scan_rotation: float = 0.0
    """Rotation, in degrees, that turns vectors on the detector into those on the scan; as a
    parameter of `CoMUDF`."""
    flip_y: bool = False
    """Whether y is flipped before the rotation."""
    chunks: Any = "auto"
    """Chunks of the four dimensions, in any form that dask takes."""
    seed: int = 0
    """Seed of the noise."""

    sig_dims = 2
    """Number of signal axes."""
    unit = None
    """The unit of the values: they are electrons, or parts of one."""

    @property
    def axes(self) -> tuple[Axis, ...]:
        """One axis for each dimension: nm on the scan, mrad from the optical axis on the frame."""
        frame = (
            Axis(name=name, unit="mrad", scale=self.pixel, offset=-(n // 2) * self.pixel)
            for name, n in zip(("ky", "kx"), self.sig_shape, strict=True)
        )
        return (*(Axis(name=name, unit="nm", scale=self.step) for name in "yx"), *frame)

    @property
    def array(self) -> da.Array:
        """The frames, lazy, of shape (*nav_shape, *sig_shape): float32, or uint16 with a dose."""
        dtype = np.dtype("float32" if self.dose is None else "uint16")
        shape = (*self.nav_shape, *self.sig_shape)
        chunks = normalize_chunks(self.chunks, shape, dtype=dtype)
        kind = {"dtype": dtype, "meta": np.empty((0,) * 4, dtype)}
        frames: da.Array = da.map_blocks(_make_block, about=self, chunks=chunks, **kind)
        return frames

    @property
    def phase(self) -> Array:
        """The phase of the object at the scan positions, in radians, shape `nav_shape`."""
        return self._phase_of([1.0] * len(self._waves()))

    @property
    def blurred_phase(self) -> Array:
        """The phase, convolved with the intensity of the probe: what differential methods see."""
        intensity = np.abs(self._probe()) ** 2
        places = self._places()
        seen = [
            abs(np.sum(intensity * np.exp(2j * np.pi * (fy * places[:, None] + fx * places))))
            for fy, fx, _ in self._waves(turned=True)
        ]
        return self._phase_of(seen)

    @property
    def _wavelength(self) -> float:
        """Wavelength in nm."""
        return wavelength(volts(self.voltage))

    def _waves(self, *, turned: bool = False) -> list[tuple[float, float, float]]:
        """Return spatial frequencies (y, x) in 1/nm and amplitudes; `turned` as the detector is."""
        lattice = [(_LATTICE * math.sqrt(3) / 2, angle, _ATOMS) for angle in (0, 60, 120)]
        waves = []
        for length, angle, amplitude in (*lattice, *_SLOW):
            fy, fx = math.sin(math.radians(angle)) / length, math.cos(math.radians(angle)) / length
            if turned:
                fy, fx = np.array([fy, fx]) @ self._turn()
            waves.append((fy, fx, amplitude))
        return waves

    def _turn(self) -> Array:
        cos, sin = (f(math.radians(self.scan_rotation)) for f in (math.cos, math.sin))
        return np.array([[cos, sin], [-sin, cos]]) @ np.diag([-1 if self.flip_y else 1, 1])

    def _phase_of(self, factors: Sequence[float]) -> Array:
        y, x = (self.step * axis for axis in np.ogrid[tuple(map(slice, self.nav_shape))])
        phase = np.zeros(self.nav_shape)
        for (fy, fx, amplitude), factor in zip(self._waves(), factors, strict=True):
            phase += factor * amplitude * np.cos(2 * np.pi * (fy * y + fx * x))
        return phase

    def _places(self) -> Array:
        """Return the coordinates of the pixels of the probe, in nm, in the order of `fft`."""
        n = self.sig_shape[0]
        return np.fft.fftfreq(n, self.pixel * 1e-3 / self._wavelength)

    def _probe(self) -> Array:
        angles = np.fft.fftfreq(self.sig_shape[0], 1 / self.sig_shape[0]) * self.pixel  # mrad
        radius = np.hypot(angles[:, None], angles)
        aperture = np.clip((self.semiangle - radius) / self.pixel + 0.5, 0, 1)
        bend = -np.pi * self.defocus * (radius * 1e-3) ** 2 / self._wavelength
        probe = np.fft.ifft2(aperture * np.exp(-1j * bend))
        return probe / np.linalg.norm(probe)

    def frames(self, y: Array, x: Array) -> Array:
        """Return frames without noise at scan positions.

        Parameters
        ----------
        y, x : numpy.ndarray, shape (n,)
            Scan positions, which can be fractions.

        Returns
        -------
        numpy.ndarray, shape (n, *sig_shape), float64
            Frames with a sum of 1.

        Examples
        --------
        >>> import numpy as np
        >>> from udfdask.demo import PhaseObject
        >>> PhaseObject().frames(np.array([0.5, 3.0]), np.array([2.0, 1.0])).shape
        (2, 64, 64)
        """
        places, turned = self._places(), self._waves(turned=True)
        phase = np.zeros((len(y), *self.sig_shape))
        for (fy, fx, amplitude), (ty, tx, _) in zip(self._waves(), turned, strict=True):
            start = 2 * np.pi * self.step * (fy * y + fx * x)
            along_y = np.exp(1j * (start[:, None] + 2 * np.pi * ty * places))
            phase += amplitude * (along_y[:, :, None] * np.exp(2j * np.pi * tx * places)).real
        waves = np.fft.fft2(self._probe() * np.exp(1j * phase), norm="ortho")
        return np.fft.fftshift(np.abs(waves) ** 2, axes=(1, 2))


def _make_block(*, about: PhaseObject, block_info: Mapping[Any, Any]) -> Array:
    where = [slice(*span) for span in block_info[None]["array-location"]]
    y, x = (axis.ravel() for axis in np.mgrid[where[0], where[1]])
    out = np.empty((len(y), *about.sig_shape), block_info[None]["dtype"])
    places = np.ravel_multi_index((y, x), about.nav_shape)
    for row, place in enumerate(places):
        (frame,) = about.frames(y[row : row + 1], x[row : row + 1])
        if about.dose is not None:  # the same noise, whatever the chunks
            rng = np.random.default_rng([about.seed, int(place)])
            frame = np.minimum(rng.poisson(about.dose * frame), np.iinfo(out.dtype).max)
        out[row] = frame
    shape = (where[0].stop - where[0].start, where[1].stop - where[1].start, *about.sig_shape)
    return out.reshape(shape)[:, :, where[2], where[3]]
