"""Parallax: measure aberrations from images of tilted beams, and add these images."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import dask.array as da
import numpy as np
from scipy import sparse

from udfdask.analyses.aberrations import Aberrations
from udfdask.analyses.bright_field import Beams, TiltedImagesUDF
from udfdask.analyses.registration import TiltedImages, register
from udfdask.base.types import AnyArray
from udfdask.errors import ArgumentValueError, MemoryLimitError
from udfdask.geometry.axes import Axis
from udfdask.geometry.roi import Region
from udfdask.masks import checks
from udfdask.results.result import Result
from udfdask.run.run_with_parameters import run_with_parameters, takes_parameters_of
from udfdask.udf.buffers import BufferSpec
from udfdask.udf.promises import Promises

LEAST_SCAN = 8
"""Smallest number of scan positions along an axis from which shifts are measured."""

LEAST_BEAMS = 16
"""Smallest number of bins from which shifts are measured."""


class ParallaxUDF(TiltedImagesUDF):
    """Measure defocus, astigmatism and scan rotation, and add the images of all tilted beams.

    Each pixel of the bright field has an image of the object, as a microscope with a tilted beam
    would have. Aberrations shift these images. They are registered, a lens is fitted to the shifts,
    and the images are added without them.

    Parameters
    ----------
    semiangle : float
        Convergence semiangle, the radius of the bright field, such as "20 mrad", or in pixels.
    bin : int
        Side of the squares of pixels whose images are added before they are registered. Memory is
        ``4 * positions * bins`` bytes. Within a bin, images must be shifted by less than the
        details that count.
    upsampling : int
        Pixels of the results for each scan position, along both axes.
    near_rotation : float
        The shifts have two explanations, with scan rotations that differ by 180 degrees and with
        opposite signs of the defocus: the one nearer to this angle in degrees is taken.
    cy, cx, center : optional
        Center of the bright field, as for `CoMUDF`.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        As for `TiltCorrectedUDF`; in `run_udf`, if the scan has less than 8 positions along an
        axis, or bins are too large.

    See Also
    --------
    parallax : Runs it.
    TiltCorrectedUDF : Adds the images if the aberrations are known, without memory for the bins.

    Notes
    -----
    Result buffers of kind single, float64 unless noted:

    - `image`, shape ``upsampling * nav``, float32: the sum of the shifted images, relative to that
      without an object
    - `phase`, likewise, in radians: waves of ``image - 1``, of the frequencies q, are multiplied by
      ``T / (T**2 + 0.5**2)``. Their contrast, for a weak phase, is T: the part of the aperture that
      overlaps with itself if it is shifted by q, times ``-2 * sin(pi * wavelength * q @ C @ q)``.
      Slow waves have nearly none, and are missing.
    - `defocus`, in nm: positive below focus, where the beam crosses over behind the object. It is
      ``C1,0`` with the opposite sign, as ``dF`` of py4DSTEM.
    - `astigmatism`, in nm, and `astigmatism_angle`, in degrees from +x toward +y on the scan: C has
      the eigenvalues ``defocus + astigmatism``, at this angle, and ``defocus - astigmatism``
    - `scan_rotation`, in degrees, and `flip_y`, bool: R and F of `CoMUDF`. The image of a beam with
      the angle a on the detector is shifted by ``C @ R @ F @ a``.
    - `angles`, in mrad, and `shifts`, in nm, both of shape (bins, 2): the mean angle (y, x) of each
      bin, and how far its image is shifted. Shifts near the edge of the bright field are NaN.
    - `residual`: root mean square distance in nm of the shifts from those that were fitted

    Waves of the object are used by those beams for which both diffracted beams pass the aperture:
    others have shifts with an error. A first guess comes from how the phases of the strongest waves
    change over the detector. It is unique for crystals, too. Then the differences between each
    image and the sum of all others, shifted by the guess, are made smallest [1]_, [2]_.

    Images are NaN where less than 1 % of the largest number of beams is added. Frames with NaN in
    the bright field are left out.

    References
    ----------
    .. [1] Y. Yu et al., "Dose-efficient cryo-electron microscopy for thick samples using
       tilt-corrected scanning transmission electron microscopy", Nature Methods 22, 2138 (2025).
    .. [2] G. Varnavides et al., "Iterative phase retrieval algorithms for scanning transmission
       electron microscopy", arXiv:2309.05250 (2023).

    Examples
    --------
    >>> import udfdask as ud
    >>> from udfdask.analyses import ParallaxUDF
    >>> from udfdask.demo import PhaseObject
    >>> thin = PhaseObject(nav_shape=(16, 16), defocus=20)
    >>> udf = ParallaxUDF("20 mrad", bin=4)
    >>> found = ud.run_udf(thin, udf, voltage=thin.voltage).compute()
    >>> bool(18 < found["defocus"] < 22)
    True
    """

    promises = Promises(adds_signal_parts=True, declares_once=True)
    _least_scan = LEAST_SCAN

    def __init__(
        self,
        semiangle: Any,
        *,
        bin: int = 1,  # noqa: A002  # what microscopists call it
        upsampling: int = 1,
        near_rotation: float = 0.0,
        cy: Any = None,
        cx: Any = None,
        center: Any = None,
    ) -> None:
        checks.integer("bin", bin, least=1)
        checks.number("near_rotation", near_rotation, of="a number of degrees")
        own: dict[str, Any] = {"bin": bin, "near_rotation": near_rotation, "upsampling": upsampling}
        super().__init__(semiangle=semiangle, cy=cy, cx=cx, center=center, **own)

    def _cells(self, beams: Beams) -> tuple[AnyArray, AnyArray]:
        """Return the places (y, x) of the bins on a grid, and the bin of each pixel."""
        cells = np.floor((beams.pixels - beams.center) / self.params.bin + 0.5).astype(int)
        cells, index = np.unique(cells - cells.min(axis=0), axis=0, return_inverse=True)
        return cells, index.ravel()

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        n = len(self._cells(self._beams())[0])
        if n < LEAST_BEAMS:
            raise ArgumentValueError(
                f"the bright field has {n} bins with bin={self.params.bin}, but at least "
                f"{LEAST_BEAMS} are needed: make bin smaller"
            )
        one = self.buffer("single", (), "float64", use="result_only")
        vectors = self.buffer("single", (n, 2), "float64", use="result_only")
        numbers = ("defocus", "astigmatism", "astigmatism_angle", "scan_rotation", "residual")
        return {
            "bins": self.buffer("nav", (n,), "float32", use="private"),
            **super().get_result_buffers(),
            **dict.fromkeys(numbers, one),
            "flip_y": self.buffer("single", (), "bool", use="result_only"),
            **dict.fromkeys(("angles", "shifts"), vectors),
        }

    def get_result_axes(self) -> Mapping[str, tuple[Axis, ...]]:
        vectors = Axis(name="beam"), Axis(name="component", labels=("y", "x"))
        return {**super().get_result_axes(), "angles": vectors, "shifts": vectors}

    def get_result_units(self) -> Mapping[str, str | None]:
        lengths = dict.fromkeys(("defocus", "astigmatism", "shifts", "residual"), "nm")
        angles = {"astigmatism_angle": "deg", "scan_rotation": "deg", "angles": "mrad"}
        return {**super().get_result_units(), **lengths, **angles, "flip_y": ""}

    def get_shared_task_data(self) -> Mapping[str, Any]:
        _, bins = self._cells(self._beams())
        entries = np.ones(len(bins), np.float32), bins, np.arange(len(bins) + 1)
        return {**super().get_shared_task_data(), "members": sparse.csr_array(entries)}

    def process_tile(self, tile: Any) -> None:
        bright, beams = self._bright_field(tile)
        self.results.bins += bright @ self.task_data.members[beams]

    def get_results(self) -> Mapping[str, Any]:
        beams = self._beams()
        cells, index = self._cells(beams)
        by_bin = [np.bincount(index, axis) / np.bincount(index) for axis in beams.angles.T]
        angles = np.stack(by_bin, axis=1)
        rows, where = self.results.bins, self.meta.coordinates
        valid = self.meta.get_valid_nav_mask() & np.isfinite(rows.sum(axis=1))
        if not valid.all():  # the rows can be most of the memory
            rows, where = rows[valid], where[valid]
        known = np.zeros(tuple(self.meta.dataset_shape.nav), bool)
        known[tuple(where.T)] = True
        pitch = self.params.bin * beams.pitch
        images = TiltedImages(rows, known, beams, angles, cells, pitch)
        matrix, shifts = register(images)
        lens = Aberrations(np.nan, np.nan, np.nan, np.nan)
        image = np.full(np.multiply(self.params.upsampling, known.shape), np.nan)
        if not np.isnan(matrix).any():  # it is in the first snapshots, or without an object
            lens = Aberrations.from_matrix(matrix, self.params.near_rotation)
            shifted = self._shifted_sum(angles @ matrix.T, beams)
            total = np.zeros(shifted.shape)
            sums = shifted.add(total, where, rows)
            image = shifted.relative(total, known, sums / len(rows))
        square = ((shifts - angles @ matrix.T) ** 2).sum(axis=1)
        return {
            **self._images(image, beams, lens),
            **asdict(lens),
            "angles": 1e3 * angles,
            "shifts": shifts,
            "residual": np.nan if np.isnan(square).all() else math.sqrt(np.nanmean(square)),
        }


@takes_parameters_of(ParallaxUDF)
def parallax(
    data: Any, semiangle: Any, *, roi: Region | None = None, **options: Any
) -> Result[da.Array]:
    """Measure aberrations from the bright field, and add the images of all tilted beams.

    Parameters
    ----------
    data : dask.array.Array or OpenedFile, shape (ny, nx, *sig)
        A 4D-STEM recording.
    semiangle, roi, **options
        Parameters of `ParallaxUDF`, such as `bin`, and options of `udfdask.run_udf`, such as
        `axes`, `voltage` and `max_memory`.

    Returns
    -------
    Result
        Lazy results: `phase`, `image`, `defocus`, ..., as of `ParallaxUDF`.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        As of `ParallaxUDF` and `run_udf`.
    MemoryLimitError
        If the images of all bins need more than `max_memory`: a larger `bin` needs less.

    Examples
    --------
    >>> from udfdask.analyses import parallax
    >>> from udfdask.demo import PhaseObject
    >>> thin = PhaseObject(nav_shape=(16, 16), defocus=20, scan_rotation=30)
    >>> found = parallax(thin, "20 mrad", bin=4, voltage=thin.voltage).compute()
    >>> bool(abs(found["scan_rotation"] - 30) < 2)
    True
    """
    options |= {"semiangle": semiangle, "roi": roi}
    try:
        return run_with_parameters(parallax, ParallaxUDF, data, **options)
    except MemoryLimitError as error:
        bins = 2 * options.get("bin", 1)
        error.add_note(f"Or pass bin={bins}: the images of the bins then need a quarter")
        raise
