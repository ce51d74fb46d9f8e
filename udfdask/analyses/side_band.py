"""Single side band ptychography: the phase of a thin object from the interference of its waves."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

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
    cy, cx : float, optional
        Center of the bright field, in pixels, as for `CoMUDF`.
    scan_rotation : float
        Angle in degrees that turns vectors on the detector into vectors on the scan, as for
        `CoMUDF`.
    flip_y : bool
        Flip the y axis of the detector before the rotation.
    defocus, astigmatism : float or str
        Defocus and twofold astigmatism, in nm or such as "0.1 um"; the signs are those of
        `ParallaxUDF`.
    astigmatism_angle : float
        Direction of the largest defocus on the scan, in degrees from +x toward +y.
    spherical : float or str
        Spherical aberration Cs, in nm or such as "1.2 mm".
    bin : int
        Number of pixels along y and x that are added up to one before, which takes less time.
    center : {"zero", "middle"} or tuple of float, optional
        The center (y, x) in place of `cy` and `cx`.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If a parameter is wrong; in `run_udf`, if the run has no voltage, axes have no unit, the
        scan is not 2-D with at least 2 positions along each axis, the bright field is larger than
        a frame, or no frequency of the scan has a side band.

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
    taken as periodic. Positions outside of the region of interest, and in snapshots those that
    are not merged yet, count as frames that are the mean of all others, and are NaN in the results.

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
        lens = read_lens(
            defocus=defocus,
            astigmatism=astigmatism,
            spherical=spherical,
            astigmatism_angle=astigmatism_angle,
            scan_rotation=scan_rotation,
            flip_y=flip_y,
        )
        own = {**lens, "bin": checks.integer("bin", bin, least=1)}
        super().__init__(semiangle=semiangle, cy=cy, cx=cx, center=center, **own)

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        trotters = self._trotters()
        nav, radius = trotters.nav, float(self.params.semiangle)
        shifts = [math.hypot(*vector) for vector in trotters.vectors]
        most = max(shift * n / 2 for shift, n in zip(shifts, nav, strict=True))
        # a narrow side band has an area of about 2 * radius * shift
        if min(shifts) >= 2 * radius or 2 * radius * most < LEAST_AREA:
            raise ArgumentValueError(
                f"no spatial frequency of the scan of shape {nav} has side bands: its period moves "
                f"the bright field, of semiangle {radius:g} px, by {min(shifts):.3g} to {most:.3g} "
                "px. Correct the step in axes=, the semiangle or the voltage"
            )
        results = {"object": "complex64", "phase": "float32", "amplitude": "float32"}
        buffers = {
            name: self.buffer("nav", dtype=dtype, use="result_only")
            for name, dtype in results.items()
        }
        for name, shape in (("spectrum", nav), ("bright", trotters.pixels().shape)):
            kind = "complex128" if name == "spectrum" else "float64"
            buffers[name] = self.buffer("single", shape, kind, use="private")
        return buffers

    def get_result_units(self) -> Mapping[str, str | None]:
        """Name the unit of the phase."""
        return {"phase": "rad"}

    def _trotters(self) -> Trotters:
        p, beams = self.params, self._beams()
        waves, (ny, nx) = beams.wavelength, self.meta.dataset_shape.nav
        height, width = self.meta.dataset_shape.sig
        # the size of a pixel as a spatial frequency
        pixel = p.bin * math.sqrt(abs(math.prod(beams.pitch))) / waves
        # the inverse of the matrix that turns vectors on the detector into vectors on the scan
        turn = correction_matrix(p.scan_rotation, p.flip_y).T
        angle = math.radians(p.astigmatism_angle)
        y, x = turn @ (math.sin(angle), math.cos(angle))
        square = math.pi * waves * pixel**2
        aperture = Aperture(
            radius=p.semiangle / p.bin,
            defocus=square * p.defocus,
            astigmatism=(square * p.astigmatism, math.atan2(y, x)),
            spherical=square * p.spherical * (waves * pixel) ** 2 / 2,
        )
        ty, tx = (turn / pixel / np.multiply((ny, nx), beams.steps)).T
        cy, cx = ((float(c) - (p.bin - 1) / 2) / p.bin for c in beams.center)
        return Trotters(
            aperture=aperture,
            center=(cy, cx),
            sig=(height // p.bin, width // p.bin),
            nav=(ny, nx),
            vectors=((float(ty[0]), float(ty[1])), (float(tx[0]), float(tx[1]))),
        )

    def get_shared_task_data(self) -> Mapping[str, Any]:
        """Return the trotters, the number of each bright pixel, or bin, and a cache for tiles."""
        trotters, (height, width) = self._trotters(), self.meta.dataset_shape.sig
        bright, n = trotters.pixels(), self.params.bin
        number = np.full(trotters.sig, -1)
        number.flat[bright] = np.arange(len(bright))
        whole = np.full((height, width), -1)
        binned = number.repeat(n, axis=0).repeat(n, axis=1)
        whole[: len(binned), : binned.shape[1]] = binned
        return {"trotters": trotters, "number": whole, "cut": OncePerProcess(2048)}

    def get_task_data(self) -> Mapping[str, Any]:
        """Return an array for the bright field of the chunk, and where the chunk is in the scan."""
        y, x = self.meta.coordinates.T
        lines = np.unique(y)
        first = x.min(initial=self.meta.dataset_shape.nav[1])
        width = x.max(initial=first - 1) - first + 1
        shape = (len(self.task_data.trotters.pixels()), len(lines), width)
        return {"bright": np.zeros(shape, np.float32), "lines": lines, "first": first}

    def process_tile(self, tile: AnyArray) -> None:
        data, part = self.task_data, self.meta.sig_slice

        def cut() -> tuple[AnyArray, AnyArray, AnyArray]:
            numbers = data.number[part.get()].ravel()
            pixels = np.argsort(numbers, kind="stable")
            pixels = pixels[np.searchsorted(numbers[pixels], 0) :]
            return pixels, *np.unique(numbers[pixels], return_index=True)

        pixels, numbers, starts = data.cut.get(part, cut)
        if not len(pixels):
            return
        values = tile.reshape(len(tile), -1)[:, pixels].astype(np.float32)
        if len(starts) < len(pixels):
            values = np.add.reduceat(values, starts, axis=1)
        y, x = self.meta.coordinates.T
        data.bright[numbers[:, None], np.searchsorted(data.lines, y), x - data.first] += values.T

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
                    add(
                        self.results.spectrum,
                        rows,
                        column,
                        *(np.sum(_product(b, lines[column]) * phases, axis=1) for b in bands),
                    )

    def merge(self, dest: Any, src: Any) -> None:
        """Add the spectra, and the bright fields."""
        dest.spectrum += src.spectrum
        dest.bright += src.bright

    def get_results(self) -> Mapping[str, Any]:
        """Find the frequencies of the object, and transform them back."""
        trotters, spectrum = self._trotters(), self.results.spectrum
        valid = self.meta.get_valid_nav_mask(full_nav=True)
        mask = valid.reshape(spectrum.shape)
        if mask.any() and not mask.all():  # otherwise, the edges of what is missing would show
            mean = self.results.bright / np.count_nonzero(mask)
            spectrum = spectrum + trotters.spectrum_of(mean) * fft.fft2(~mask)
        waves = trotters.solve(spectrum)
        # the frequency 0 has the intensity of the beam, summed over all positions
        beam = waves[0, 0].real / mask.size
        transmission = np.where(mask, fft.ifft2(waves / beam if beam else waves), np.nan)
        results = {
            "object": transmission,
            "phase": np.angle(transmission),
            "amplitude": np.abs(transmission),
        }
        return {name: self.with_mask(values, mask) for name, values in results.items()}


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
def single_side_band(data: Any, *, roi: Region | None = None, **options: Any) -> Result:
    """Compute the phase and amplitude of a thin object by single side band ptychography.

    Parameters
    ----------
    data : dask.array.Array or opened file, shape (ny, nx, sig_y, sig_x)
        Frames over a 2-D scan; an array needs `axes`.
    roi
        Scan positions to use, as in `udfdask.run_udf`.
    **options
        Parameters of `SideBandUDF`: `semiangle`, which is needed, and others; and options of
        `udfdask.run_udf`, such as `voltage`, which is needed, and `axes`.

    Returns
    -------
    Result
        The lazy result of `SideBandUDF`: `object`, `phase` in radians, and `amplitude`.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        As for `SideBandUDF`.

    Examples
    --------
    >>> from udfdask.analyses import single_side_band
    >>> from udfdask.demo import PhaseObject
    >>> thin = PhaseObject(nav_shape=(24, 24))
    >>> result = single_side_band(thin, semiangle="20 mrad", voltage="300 kV")
    >>> result["phase"]
    dask.array<sidebandudf-phase-nav, shape=(24, 24), dtype=float32, ...>
    """
    return run_with_parameters(single_side_band, SideBandUDF, data, roi=roi, **options)
