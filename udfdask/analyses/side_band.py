"""Single side band ptychography: the phase of a thin object from the interference of its waves."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from scipy import fft

from udfdask.analyses.aberrations import read_lens
from udfdask.analyses.bright_field import BrightFieldUDF
from udfdask.analyses.trotters import LEAST_AREA, Aperture, Trotters, add
from udfdask.base.once_per_process import OncePerProcess
from udfdask.base.types import AnyArray
from udfdask.errors import ArgumentValueError
from udfdask.geometry.roi import Region
from udfdask.masks import checks
from udfdask.results.result import Result
from udfdask.run.run_with_parameters import run_with_parameters, takes_parameters_of
from udfdask.udf.buffers import BufferSpec
from udfdask.udf.promises import Promises
from udfdask.udfs.shared.com_corrections import correction_matrix


class SideBandUDF(BrightFieldUDF):
    """Compute the transmission of a thin object by single side band ptychography.

    Parameters
    ----------
    semiangle : float or str
        Convergence semiangle: the radius of the bright field, in pixels, or such as "20 mrad".
    cy, cx, scan_rotation, flip_y
        As for `CoMUDF`.
    defocus, astigmatism, astigmatism_angle
        As for `TiltCorrectedUDF`: the lengths in nm, or such as "0.1 um".
    spherical : float or str
        Spherical aberration Cs, in nm or such as "1.2 mm".
    bin : int
        Number of pixels along y and x that are added up to one before, which takes less time.
    center
        As for `CoMUDF`.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        As for `TiltCorrectedUDF`; in `run_udf`, if no frequency of the scan has a side band.

    See Also
    --------
    single_side_band : Runs this UDF.

    Notes
    -----
    Frames are transformed over the scan. At a frequency q, the bright field has two side bands: the
    pixels in which the wave that the object scatters by q, or by -q, interferes with the beam that
    is not scattered [1]_. A least-squares fit of both side bands, whose phase is that of the
    aberrations, gives the Fourier coefficients of the object at q and -q: their difference is the
    phase, their sum the amplitude. In focus, pixels in one side band alone give the phase. All is
    linear: each chunk adds to the sums, also with few frames, and partial results have one number
    for each position and each pixel of the bright field [2]_.

    Result buffers of kind nav:

    - `object`, complex64: the transmission, with a mean of 1
    - `phase`, float32: its angle, in radians; maxima are atoms
    - `amplitude`, float32: its absolute value

    They hold spatial frequencies below ``2 * semiangle / wavelength``; frequencies whose side bands
    have an area of less than one pixel are left out. For weak objects, the phase of all others is
    transferred by 1: strong phases appear smaller, and with errors of the second order. Scans are
    taken as periodic: details are wrong in a border as wide as the probe, which is
    ``1.22 * wavelength / semiangle + abs(defocus) * semiangle``, and waves longer than about half
    of the scan are less exact everywhere. Crop this border, or mirror the scan and the detector
    (user guide, Phases). Positions outside of the region of interest, and in snapshots those that
    are not merged yet, count as frames that are the mean of all others, and are NaN in the results.
    A frame with NaN in the bright field makes all results NaN: leave it out by such a region.

    Chunks of whole lines of the scan are processed fastest: a chunk costs about as much as a line.
    Trotters are calculated in blocks when they are needed, and never stored. A task needs memory
    for the bright field of its chunk and a few blocks.

    References
    ----------
    .. [1] T. J. Pennycook et al., "Efficient phase contrast imaging in STEM using a pixelated
       detector. Part 1", Ultramicroscopy 151, 160 (2015).
    .. [2] A. Strauch et al., "Live processing of momentum-resolved STEM data for first moment
       imaging and ptychography", Microscopy and Microanalysis 27, 1078 (2021).

    Examples
    --------
    >>> import numpy as np, udfdask as ud
    >>> from udfdask.analyses import SideBandUDF
    >>> from udfdask.demo import PhaseObject
    >>> thin = PhaseObject(nav_shape=(40, 40), sig_shape=(36, 36), pixel=1.5, defocus=10)
    >>> udf = SideBandUDF(semiangle="20 mrad", defocus=10)
    >>> phase = ud.run_udf(thin, udf, voltage="300 kV")["phase"].compute()
    >>> bool(np.corrcoef(phase.ravel(), thin.phase.ravel())[0, 1] > 0.8)
    True
    """

    default_plots = ("phase",)
    promises = Promises(adds_signal_parts=True, declares_once=True, merge_only_reads_src=True)
    _can_be_cut = True

    def __init__(
        self,
        semiangle: Any,
        cy: float | None = None,
        cx: float | None = None,
        scan_rotation: float = 0.0,
        flip_y: bool = False,
        defocus: Any = 0.0,
        astigmatism: Any = 0.0,
        astigmatism_angle: float = 0.0,
        spherical: Any = 0.0,
        bin: int = 1,  # noqa: A002  # what microscopists call it
        center: Any = None,
    ) -> None:
        lengths = {"defocus": defocus, "astigmatism": astigmatism, "spherical": spherical}
        own = read_lens(scan_rotation, flip_y, astigmatism_angle, **lengths)
        own["bin"] = checks.integer("bin", bin, least=1)
        super().__init__(semiangle=semiangle, cy=cy, cx=cx, center=center, **own)

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        trotters = self._trotters()
        nav, radius = trotters.nav, trotters.aperture.radius
        image = partial(self.buffer, "nav", use="result_only")
        total = partial(self.buffer, "single", use="private")
        shifts = [math.hypot(*vector) for vector in trotters.vectors]
        most = max(shift * n / 2 for shift, n in zip(shifts, nav, strict=True))
        # a narrow side band has an area of about 2 * radius * shift
        if min(shifts) >= 2 * radius or 2 * radius * most < LEAST_AREA:
            raise ArgumentValueError(
                f"no spatial frequency of the scan of shape {nav} has side bands: its period moves "
                f"the bright field, of radius {radius:g}, by {min(shifts):.3g} to {most:.3g} "
                f"pixels with bin={self.params.bin}. Correct it, the step in axes=, the semiangle "
                "or the voltage"
            )
        return {
            "object": image(dtype="complex64"),
            **dict.fromkeys(("phase", "amplitude"), image(dtype="float32")),
            "spectrum": total(nav, "complex128"),
            "bright": total(trotters.pixels().shape, "float64"),
        }

    def get_result_units(self) -> Mapping[str, str | None]:
        return {"phase": "rad"}

    def _trotters(self) -> Trotters:
        p, beams, shape = self.params, self._beams(), self.meta.dataset_shape
        waves, nav, sig = beams.wavelength, tuple(shape.nav), tuple(n // p.bin for n in shape.sig)
        # the size of a pixel as a spatial frequency
        pixel = p.bin * math.sqrt(abs(math.prod(beams.pitch))) / waves
        # from vectors on the scan to pixels, whose axes can run backwards
        turn = np.sign(beams.pitch)[:, np.newaxis] * correction_matrix(p.scan_rotation, p.flip_y).T
        angle = math.radians(p.astigmatism_angle)
        y, x = turn @ (math.sin(angle), math.cos(angle))
        square = math.pi * waves * pixel**2
        stretch = square * p.astigmatism, math.atan2(y, x)
        spherical = square * p.spherical * (waves * pixel) ** 2 / 2
        aperture = Aperture(p.semiangle / p.bin, square * p.defocus, stretch, spherical)
        vectors = turn / pixel / np.multiply(nav, beams.steps)
        center = (beams.center - (p.bin - 1) / 2) / p.bin
        return Trotters(aperture, (*center.tolist(),), sig, nav, (*map(tuple, vectors.T.tolist()),))

    def get_shared_task_data(self) -> Mapping[str, Any]:
        """Return the trotters, the number of each bright pixel, or bin, and a cache for tiles."""
        trotters = self._trotters()
        bright = trotters.pixels()
        number = np.full(np.add(trotters.sig, 1), -1)  # pixels at the end can be in no bin
        number[np.divmod(bright, trotters.sig[1])] = np.arange(len(bright))
        bins = np.ix_(*(np.arange(n) // self.params.bin for n in self.meta.dataset_shape.sig))
        return {"trotters": trotters, "number": number[bins], "cut": OncePerProcess(2048)}

    def get_task_data(self) -> Mapping[str, Any]:
        """Return an array for the bright field of the chunk, and where the chunk is in the scan."""
        y, x = self.meta.coordinates.T
        lines = np.unique(y)
        first = x.min(initial=self.meta.dataset_shape.nav[1])
        width = x.max(initial=first - 1) - first + 1
        shape = (len(self.task_data.trotters.pixels()), len(lines), width)
        return {"bright": np.zeros(shape, np.float32), "lines": lines, "first": first}

    def process_tile(self, tile: AnyArray) -> None:
        data, (pixels, bins) = self.task_data, self._bright_field(tile)
        values = pixels.astype(np.float32)
        starts = np.flatnonzero(np.diff(bins, prepend=-1))
        if len(starts) < len(bins):
            values = np.add.reduceat(values, starts, axis=1)
        y, x = self.meta.coordinates.T
        place = bins[starts, np.newaxis], np.searchsorted(data.lines, y), x - data.first
        data.bright[place] += values.T

    def postprocess(self) -> None:
        data, (ny, nx) = self.task_data, self.meta.dataset_shape.nav
        along_y = _waves(ny, ny, data.lines)
        shift = _waves(nx, nx // 2 + 1, np.array([data.first]))
        trotters = data.trotters
        self.results.bright += data.bright.sum(axis=(1, 2), dtype=np.float64)
        for part, places in trotters.blocks(np.float32):
            bright = data.bright[part]
            if bright.any():  # a task can have a part of the signal
                # frequencies along x, pixels, lines
                lines = np.moveaxis(fft.rfft(bright, nx, axis=2), 2, 0) * shift[:, :, np.newaxis]
                for column, rows in trotters.columns():
                    bands = trotters.side_bands(rows, column, places)
                    phases = along_y[rows]
                    products = (_product(band, lines[column]) * phases for band in bands)
                    add(self.results.spectrum, rows, column, *(p.sum(axis=1) for p in products))

    def merge(self, dest: Any, src: Any) -> None:
        dest.spectrum += src.spectrum
        dest.bright += src.bright

    def get_results(self) -> Mapping[str, Any]:
        trotters, spectrum = self._trotters(), self.results.spectrum
        mask = self.meta.get_valid_nav_mask(full_nav=True).reshape(spectrum.shape)
        if mask.any() and not mask.all():  # otherwise, the edges of what is missing would show
            mean = self.results.bright / np.count_nonzero(mask)
            spectrum = spectrum + trotters.spectrum_of(mean) * fft.fft2(~mask)
        waves = trotters.solve(spectrum)
        # the frequency 0 has the intensity of the beam, summed over all positions
        beam = waves[0, 0].real / mask.size
        transmission = np.where(mask, fft.ifft2(waves / beam if beam else waves), np.nan)
        values = transmission, np.angle(transmission), np.abs(transmission)
        names = "object", "phase", "amplitude"
        return {name: self.with_mask(v, mask) for name, v in zip(names, values, strict=True)}


def _waves(n: int, most: int, positions: AnyArray) -> AnyArray:
    """Return ``exp(-2j pi f x / n)`` for f below `most`, shape (most, positions), complex64."""
    turns = np.multiply.outer(np.arange(most), positions) % n / n
    waves: AnyArray = np.exp(-2j * np.pi * turns)
    return waves.astype(np.complex64)


def _product(weights: AnyArray, values: AnyArray) -> AnyArray:
    """Return ``weights @ values`` for complex values, shape (n, k) and (k, m)."""
    values, is_real = np.ascontiguousarray(values), weights.dtype.kind == "f"
    products: AnyArray = weights @ (values.view(weights.dtype) if is_real else values)
    return products.view(values.dtype)


@takes_parameters_of(SideBandUDF)
def single_side_band(
    data: Any, semiangle: Any, *, roi: Region | None = None, **options: Any
) -> Result[da.Array]:
    """Compute the phase and amplitude of a thin object by single side band ptychography.

    Parameters
    ----------
    data : dask.array.Array or opened file, shape (ny, nx, sig_y, sig_x)
        Frames over a 2-D scan; an array needs `axes`.
    semiangle, roi, **options
        Parameters of `SideBandUDF`, and options of `udfdask.run_udf`, such as `axes` and `voltage`,
        which is needed.

    Returns
    -------
    Result
        The lazy result of `SideBandUDF`: `object`, `phase` in radians, and `amplitude`.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        As for `SideBandUDF`.

    Notes
    -----
    The scan is taken as periodic. Details are wrong in a border as wide as the probe,
    ``1.22 * wavelength / semiangle + abs(defocus) * semiangle``: crop it. Long waves are wrong
    further inside; the user guide (Phases) says how to mirror the scan against that.

    Examples
    --------
    >>> from udfdask.analyses import single_side_band
    >>> from udfdask.demo import PhaseObject
    >>> thin = PhaseObject(nav_shape=(24, 24))
    >>> result = single_side_band(thin, "20 mrad", voltage="300 kV")
    >>> result["phase"]
    dask.array<sidebandudf-phase-nav, shape=(24, 24), dtype=float32, ...>
    """
    options |= {"semiangle": semiangle, "roi": roi}
    return run_with_parameters(single_side_band, SideBandUDF, data, **options)
