"""Measure the periodicity of each frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from udfdask.base.types import AnyArray
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.kernels.cpu.phase_correlation import frequencies, half_spectra
from udfdask.kernels.cuda.dense_products import write_moduli
from udfdask.masks import checks, circular
from udfdask.udf import UDF
from udfdask.udf.buffers import BufferSpec
from udfdask.udf.promises import Promises
from udfdask.udfs.shared.built_in import DENSE_TILES, BuiltInUDF
from udfdask.udfs.shared.geometry_parameters import check_position, read_length


class CrystallinityUDF(BuiltInUDF):
    """Sum a ring in the Fourier spectrum of each frame, to measure the periodicity.

    Parameters
    ----------
    rad_in, rad_out : float
        Inner and outer radius of the ring, in bins of the transform (periods per frame);
        `rad_out` can be inf.
    real_center : tuple of float, optional
        Center of a disk, (y, x), that is set to 0 before the transform: the zero-order peak. In
        pixels or the unit of the axes; or "zero" of the axes, or the "middle" of the frame.
    real_rad : float, optional
        Radius of the disk, in pixels; or with a unit, such as ``"2 mrad"``.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If a parameter is wrong or missing; in `run_udf`, if frames are not 2-D or not real, the
        ring contains no frequency, or the disk covers the frame.

    Notes
    -----
    Buffer `intensity`, kind nav, shape `nav`, float32, in the unit of the data::

        sum(abs(rfft2(frame * (1 - disk))))    over the bins at rad_in < k <= rad_out

    with ``k = hypot(ky, kx)``, where `ky` and `kx` are the frequencies of `numpy.fft.fftfreq` times
    the size of the frame. The sum covers the half plane that `numpy.fft.rfft2` returns; it is not
    doubled. The pixels of the disk, ``d <= real_rad``, can be NaN. If frames are not square, bins
    along y and x stand for different lengths.

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
    calibrated: ClassVar[Mapping[str, str]] = {"real_center": "position", "real_rad": "length"}
    promises = Promises(declares_once=True, starts_no_threads=True)
    _kernels = DENSE_TILES

    def __init__(
        self, rad_in: float, rad_out: float, real_center: Any = None, real_rad: float | None = None
    ) -> None:
        for name, value in (("rad_in", rad_in), ("rad_out", rad_out)):
            if isinstance(value, (str, tuple)):
                raise ArgumentTypeError(
                    f"{name} must be a number of bins of the Fourier transform, not {value!r}"
                )
        rad_out, rad_in = checks.radii(rad_out, rad_in, names=("rad_out", "rad_in"), finite=False)
        if (real_center is None) != (real_rad is None):
            raise ArgumentValueError(
                f"real_center and real_rad describe a disk, but real_center is {real_center!r} and "
                f"real_rad is {real_rad!r}: pass both, or neither"
            )
        if real_rad is not None:
            real_center = check_position("real_center", real_center)
            real_rad = read_length("real_rad", real_rad)
        super().__init__(rad_in=rad_in, rad_out=rad_out, real_center=real_center, real_rad=real_rad)

    get_preferred_input_dtype = UDF.get_preferred_input_dtype  # float32

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        p, sig = self.params, self._frame_shape()
        if not self._ring().any():
            raise ArgumentValueError(
                f"no frequency of frames of shape {sig} lies in the ring {p.rad_in} < k <= "
                f"{p.rad_out}: radii are in bins, at most half the size of the frame"
            )
        disk = self._disk()
        if disk is not None and disk.all():
            raise ArgumentValueError(
                f"the disk of real_rad={p.real_rad} at {p.real_center} covers frames of shape {sig}"
            )
        return {"intensity": self.buffer(kind="nav", dtype="float32", where="device")}

    def _disk(self) -> AnyArray | None:
        """Return the mask of the pixels that are set to 0, or None."""
        p, (height, width) = self.params, self.meta.dataset_shape.sig
        if p.real_center is None:
            return None
        y, x = p.real_center
        return circular(x, y, width, height, p.real_rad)

    def _ring(self) -> AnyArray:
        ky, kx = frequencies(self._frame_shape())
        squared, p = ky * ky + kx * kx, self.params
        return np.asarray((squared > p.rad_in**2) & (squared <= p.rad_out**2))

    def get_shared_task_data(self) -> Mapping[str, Any]:
        """Return the bins of the ring, and the mask of the pixels to keep, or None for all."""
        disk, share = self._disk(), self.meta._backend.dense.share
        ky, kx = np.nonzero(self._ring())
        keep = None if disk is None else share(~disk)
        return {"keep": keep, "ky": share(ky), "kx": share(kx), "columns": int(kx.max()) + 1}

    def process_tile(self, tile: Any) -> None:
        data = self.task_data
        if self.meta._backend.on_device:
            write_moduli(tile, data.keep, data.ky, data.kx, self.results.intensity)
            return
        frames = tile if data.keep is None else np.where(data.keep, tile, 0)
        spectra = half_spectra(frames, data.columns)
        moduli = np.abs(spectra[:, data.ky, data.kx])
        self.results.intensity[:] = moduli.sum(axis=1, dtype=np.float64)
