"""How much of each frame is periodic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from udfdask.errors import ArgumentValueError
from udfdask.kernels.cpu.fft import frequencies, half_spectra
from udfdask.kernels.cuda.fft import write_moduli
from udfdask.masks import checks, circular
from udfdask.types import AnyArray
from udfdask.udf import UDF
from udfdask.udf.buffers import BufferSpec
from udfdask.udf.promises import Promises
from udfdask.udfs.shared.frame_geometry import centre_given, check_frames, ring_radii
from udfdask.udfs.shared.kernel_backends import dense_backends


class CrystallinityUDF(UDF):
    """Sum over a ring in the Fourier spectrum of each frame: how periodic it is.

    Parameters
    ----------
    rad_in, rad_out : float
        Inner and outer radius of the ring, in bins of the transform, that is periods per frame;
        `rad_out` may be inf.
    real_center : tuple of float, optional
        Centre of a disc, (y, x), in pixels, that is set to 0 before: the zero-order peak.
    real_rad : float, optional
        Radius of the disc, in pixels.

    Raises
    ------
    ArgumentTypeError
        If a radius or a coordinate is no number; in `run_udf`, if the data are not real numbers.
    ArgumentValueError
        If a radius is negative or NaN, `rad_in` is not smaller than `rad_out`, or only one of
        `real_center` and `real_rad` is given; in `run_udf`, if frames have not two axes, no
        frequency lies in the ring, or the disc covers the frame.

    Notes
    -----
    Buffer `intensity`, kind nav, shape `nav`, float32, in the unit of the data::

        sum(abs(rfft2(frame * (1 - disc))))    over the bins at rad_in < k <= rad_out

    with ``k = hypot(ky, kx)`` and `ky`, `kx` the frequencies of `numpy.fft.fftfreq` times the size
    of the frame. The sum is one over the half plane that `numpy.fft.rfft2` gives; it is not
    doubled. The pixels of the disc are those at ``d <= real_rad``; they may be NaN. For frames that
    are not square, a bin stands for different lengths along y and x.

    Examples
    --------
    >>> import dask.array as da, numpy as np, udfdask as ud
    >>> from udfdask.udfs import CrystallinityUDF
    >>> y, x = np.indices((16, 16))
    >>> frames = np.stack([np.ones((16, 16)), np.cos(2 * np.pi * 5 * y / 16)])
    >>> lazy = ud.run_udf(da.from_array(frames), CrystallinityUDF(rad_in=4, rad_out=6))
    >>> lazy["intensity"].compute().round(3)
    array([  0., 256.], dtype=float32)
    """

    whole_frames = True
    promises = Promises(declares_once=True, starts_no_threads=True)

    def __init__(
        self, rad_in: float, rad_out: float, real_center: Any = None, real_rad: float | None = None
    ) -> None:
        rad_in, rad_out = ring_radii(rad_in, rad_out)
        if (real_center is None) != (real_rad is None):
            raise ArgumentValueError(
                "real_center and real_rad make a disc together, but real_center is "
                f"{real_center!r} and real_rad is {real_rad!r}: give both, or neither"
            )
        if real_rad is not None:
            real_center = centre_given("real_center", real_center)
            real_rad = checks.radius("real_rad", real_rad)
        super().__init__(rad_in=rad_in, rad_out=rad_out, real_center=real_center, real_rad=real_rad)

    def get_backends(self) -> Any:
        """Return NumPy and CuPy."""
        return dense_backends(self, CrystallinityUDF)

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        """Declare the sums."""
        check_frames("CrystallinityUDF", self.meta, "biuf")
        if not self._ring().any():
            p, sig = self.params, tuple(self.meta.dataset_shape.sig)
            raise ArgumentValueError(
                f"no frequency of frames of shape {sig} lies in the ring {p.rad_in} < k <= "
                f"{p.rad_out}: radii are in bins of the Fourier transform, at most half the size "
                "of the frame along an axis"
            )
        disc = self._disc()
        if disc is not None and disc.all():
            raise ArgumentValueError(
                f"the disc of real_rad={self.params.real_rad} pixels around real_center="
                f"{self.params.real_center} covers frames of shape "
                f"{tuple(self.meta.dataset_shape.sig)}: nothing is left of them; make it smaller"
            )
        return {"intensity": self.buffer(kind="nav", dtype="float32", where="device")}

    def _disc(self) -> AnyArray | None:
        """Return which pixels of a frame are set to 0, if any."""
        p, (height, width) = self.params, self.meta.dataset_shape.sig
        if p.real_center is None:
            return None
        y, x = p.real_center
        return circular(x, y, width, height, p.real_rad)

    def _ring(self) -> AnyArray:
        """Return which bins of a half plane count."""
        y, x = self.meta.dataset_shape.sig
        ky, kx = frequencies((y, x))
        squared = ky * ky + kx * kx
        ring: AnyArray = (squared > self.params.rad_in**2) & (squared <= self.params.rad_out**2)
        return ring

    def get_shared_task_data(self) -> Mapping[str, Any]:
        """Return the bins that count, and the pixels that are kept, if not all are."""
        disc = self._disc()
        keep = None if disc is None else ~disc
        ky, kx = np.nonzero(self._ring())
        if self.meta._backend.on_device:
            share = self.meta._backend.dense.share
            there = None if keep is None else share(keep)
            return {"keep": there, "ky": share(ky), "kx": share(kx)}
        return {"keep": keep, "ky": ky, "kx": kx, "columns": int(kx.max()) + 1}

    def process_tile(self, tile: Any) -> None:
        """Transform whole frames."""
        known = self.task_data
        if self.meta._backend.on_device:
            write_moduli(tile, known.keep, known.ky, known.kx, self.results.intensity)
            return
        frames = tile if known.keep is None else np.where(known.keep, tile, 0)
        spectra = half_spectra(frames, known.columns)
        moduli = np.abs(spectra[:, known.ky, known.kx])
        self.results.intensity[:] = moduli.sum(axis=1, dtype=np.float64)
