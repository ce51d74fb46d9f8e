"""Add the images of tilted beams while frames come in, with aberrations that are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from udfdask.analyses.aberrations import Aberrations, read_lens
from udfdask.analyses.bright_field import Beams, TiltedImagesUDF
from udfdask.analyses.shifted_sum import ShiftedSum
from udfdask.errors import ArgumentValueError
from udfdask.udf.buffers import BufferSpec
from udfdask.udf.promises import Promises

FARTHEST = 10
"""Largest size of the sum of moved images, in sizes of the scan."""


class TiltCorrectedUDF(TiltedImagesUDF):
    """Add the images of all tilted beams without the shifts of known aberrations.

    Each frame is added to the result when it comes: snapshots show the image during the scan, and
    memory does not depend on the number of beams.

    Parameters
    ----------
    semiangle : float
        As for `ParallaxUDF`.
    defocus, astigmatism, astigmatism_angle, scan_rotation, flip_y
        As the results of `ParallaxUDF`: lengths in nm, or such as "0.1 um", angles in degrees.
    upsampling, cy, cx, center : optional
        As for `ParallaxUDF`.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If a parameter is wrong; in `run_udf`, if the scan is not 2-D or a line, axes have no units,
        the voltage is not known, pixels are not square, the bright field is larger than the
        frames, or images are moved by many times the size of the scan.

    See Also
    --------
    ParallaxUDF : Measures the aberrations.

    Notes
    -----
    Result buffers `image` and `phase` as those of `ParallaxUDF` with ``bin=1``. Pixels outside of
    the bright field can be NaN. Leave out frames with NaN in it by a region of interest.

    Examples
    --------
    >>> import udfdask as ud
    >>> from udfdask.analyses import TiltCorrectedUDF
    >>> from udfdask.demo import PhaseObject
    >>> thin = PhaseObject(nav_shape=(8, 8), defocus=20)
    >>> udf = TiltCorrectedUDF("20 mrad", defocus=20, upsampling=2)
    >>> ud.run_udf(thin, udf, voltage=thin.voltage)["image"].shape
    (16, 16)
    """

    promises = Promises(adds_signal_parts=True, declares_once=True, merge_only_reads_src=True)

    def __init__(
        self,
        semiangle: Any,
        *,
        defocus: Any,
        astigmatism: Any = 0.0,
        astigmatism_angle: float = 0.0,
        scan_rotation: float = 0.0,
        flip_y: bool = False,
        upsampling: int = 1,
        cy: Any = None,
        cx: Any = None,
        center: Any = None,
    ) -> None:
        place = {"cy": cy, "cx": cx, "center": center, "upsampling": upsampling}
        turn = scan_rotation, flip_y, astigmatism_angle
        lens = read_lens(*turn, defocus=defocus, astigmatism=astigmatism)
        super().__init__(semiangle=semiangle, **place, **lens)

    def _optics(self) -> tuple[Beams, Aberrations, ShiftedSum]:
        """Return the beams, their lens, and where they are added."""
        p, beams = self.params, self._beams()
        turn = p.scan_rotation, p.flip_y
        lens = Aberrations(p.defocus, p.astigmatism, p.astigmatism_angle, *turn)
        return beams, lens, self._shifted_sum(beams.angles @ lens.shift_matrix().T, beams)

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        _, _, shifted = self._optics()
        times = max(n / m for n, m in zip(shifted.shape, shifted.nav_shape, strict=True))
        if times > FARTHEST * self.params.upsampling:
            raise ArgumentValueError(
                f"defocus={self.params.defocus:g} nm moves images more than {FARTHEST} times the "
                "size of the scan: correct the lengths, or the step of the scan in axes="
            )
        return {
            "total": self.buffer("single", shifted.shape, "float64", use="private"),
            "sums": self.buffer("single", shifted.corners.shape, "float64", use="private"),
            **super().get_result_buffers(),
        }

    def get_shared_task_data(self) -> Mapping[str, Any]:
        _, _, shifted = self._optics()
        return {**super().get_shared_task_data(), "shifted": shifted}

    def process_tile(self, tile: Any) -> None:
        total, where, some = self.results.total, self.meta.coordinates, self._bright_pixels()
        self.results.sums[some[1]] += self.task_data.shifted.add(total, where, tile, some)

    def merge(self, dest: Any, src: Any) -> None:
        dest.total[:] += src.total
        dest.sums[:] += src.sums

    def get_results(self) -> Mapping[str, Any]:
        beams, lens, shifted = self._optics()
        known = self.meta.get_valid_nav_mask(full_nav=True).reshape(shifted.nav_shape)
        means = self.results.sums / max(known.sum(), 1)
        return self._images(shifted.relative(self.results.total, known, means), beams, lens)
