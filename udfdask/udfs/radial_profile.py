"""Compute the mean intensity of each frame in concentric rings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from udfdask.geometry.axes import Axis
from udfdask.kernels.cuda.sums import add_ring_products
from udfdask.udf.buffers import BufferSpec
from udfdask.udfs.shared.built_in import DENSE_TILES, SUMS
from udfdask.udfs.shared.rings import RadialUDF


class RadialProfileUDF(RadialUDF):
    """Compute the radial profile of each frame: the mean over concentric rings.

    Parameters
    ----------
    cy, cx : float, optional
        Center of the rings, in pixels; by default where both axes are 0, if that is inside of the
        frame, or else ``shape // 2``.
    r : float, optional
        Outer radius of the last ring, in pixels; by default, the rings around (cy, cx) cover the
        whole frame, and no ring is outside the frame.
    ri : float
        Inner radius of the first ring, in pixels.
    n_bins : int, optional
        Number of rings of equal width; by default ``round(r - ri)``, about one pixel wide.
    centers : array, shape (*nav, 2), or AuxData of kind nav with extra_shape (2,), optional
        Center (y, x) of each frame, in pixels, in place of a common one, such as `raw_com` of
        `CoMUDF`. Frames on a device are then copied to the host.
    stretch : float
        Ratio of the half axes of elliptical rings, at least 1; a radius is their geometric mean.
    stretch_angle : float
        Direction of the long half axis, in degrees from +x toward +y, which points down.
    center : {"zero", "middle"} or tuple of float, optional
        The center (y, x) in place of `cy` and `cx`, such as ``find_center(pattern)``: "zero" is 0
        of the axes, "middle" is ``shape // 2``.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If a parameter is wrong; in `run_udf`, if frames are not 2-D or not real, all rings or the
        center are outside the frame, or `centers` does not fit the scan.

    Notes
    -----
    Lengths and the center may be given in the unit of the signal axes, such as ``r="8 mrad"``.

    Buffer `intensity`, kind nav, shape (*nav, n_bins), float64: ``sum w I / sum w`` over the pixels
    of the frame, with the weights `w` of `udfdask.masks.radial_bins`, whose edges are soft over one
    pixel. It is NaN if a ring has no pixel inside the frame, and for a frame whose center is not
    finite. Pixels outside all rings are not read and can be NaN.

    Examples
    --------
    >>> import dask.array as da, numpy as np, udfdask as ud
    >>> from udfdask.udfs import RadialProfileUDF
    >>> y, x = np.mgrid[-8:8, -8:8]
    >>> frames = np.broadcast_to(y**2 + x**2, (2, 3, 16, 16))
    >>> profile = ud.run_udf(da.from_array(frames, chunks=(1, 3, 16, 16)), RadialProfileUDF(r=4))
    >>> print(profile["intensity"][0, 0].compute().round(1))
    [ 0.8  2.9  6.8 12.7]
    """

    keeps_units = ("intensity",)
    elementwise_results = True
    promises = SUMS
    _kernels = DENSE_TILES

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        shape = (self._checked_rings(),)
        if self._has_own_centers:
            return self._declare_means("nav", shape, "float64")
        return {"intensity": self.buffer("nav", shape, "float64", where="device")}

    def get_result_axes(self) -> Mapping[str, tuple[Axis, ...]]:
        return {"intensity": (self._radius_axis(),)}

    def get_shared_task_data(self) -> Mapping[str, Any]:
        data = super().get_shared_task_data()
        # on the device if the sums are there, because postprocess divides by the totals
        return {**data, "totals": self.xp.asarray(data["members"].totals)} if data else data

    def process_tile(self, tile: Any) -> None:
        if not tile.size:
            return
        if self.meta._backend.on_device:
            rings = self._rings_on_device(tile, lambda inside: inside.weight[:, np.newaxis])
            flat = tile.reshape(tile.shape[0], -1)
            add_ring_products(flat, rings, self.results.intensity[..., np.newaxis])
            return
        own = self._has_own_centers
        sums = self.results.sums if own else self.results.intensity
        self._add_ring_sums(tile, sums, self.results.covered if own else None)

    def postprocess(self) -> None:
        """Divide by the total weight of each ring; this also works for a part of the signal."""
        if not self._has_own_centers:
            with np.errstate(invalid="ignore", divide="ignore"):
                self.results.intensity /= self.task_data.totals

    def get_results(self) -> Mapping[str, Any]:
        """Divide by the weight of each ring around the frame's own center."""
        return self._means() if self._has_own_centers else {}
