"""Compute normalized variances of rings: fluctuation electron microscopy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from udfdask.base.types import AnyArray
from udfdask.geometry.axes import Axis
from udfdask.udf.buffers import BufferSpec, Views
from udfdask.udfs.shared.built_in import SUMS
from udfdask.udfs.shared.rings import RadialUDF

_VARIANCES = ("variance_of_means", "mean_of_variances", "variance_of_pixels")

_SUMS = ("spread", "within", "ratios", "bright")
"""Sums over frames: of squared deviations of means, of variances in a frame, of these divided by
the squared mean, and the number of frames for which that is possible."""


class RadialVarianceUDF(RadialUDF):
    """Compute variances in rings over a scan, V(k), for fluctuation electron microscopy.

    Parameters
    ----------
    cy, cx, r, ri, n_bins, centers, stretch, stretch_angle, center : optional
        As for `RadialProfileUDF`: by default, rings about one pixel wide cover the whole frame.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        As for `RadialProfileUDF`.

    See Also
    --------
    fit_ellipse : Finds the ellipse of the rings: otherwise their intensity varies along them.

    Notes
    -----
    With the weighted means <I> over the pixels of a ring in a frame, with the weights of
    `RadialProfileUDF`, and the means < > over frames, results of kind single and shape (n_bins,)
    are, all float64 [1]_:

    - `mean`: ``<<I>>``, in the unit of the data;
    - `variance_of_means`: ``<<I>^2> / <<I>>^2 - 1``, of the annular mean;
    - `mean_of_variances`: ``< <I^2> / <I>^2 - 1 >``, of each frame, then averaged;
    - `variance_of_pixels`: ``<<I^2>> / <<I>>^2 - 1``, of all pixels of all frames;

    and `frames`, int64, the number of frames that have pixels of the ring, and finite ones. All
    frames count equally. Frames without intensity in a ring are left out of `mean_of_variances`.

    Noise is a part of all variances: if the data are electrons, it adds about ``1 / mean`` to the
    last two, and that divided by the number of pixels of the ring to the first. Means and variances
    are merged pairwise, and their errors do not grow with the number of frames.

    References
    ----------
    .. [1] T. L. Daulton, K. S. Bondi and K. F. Kelton, "Nanobeam diffraction fluctuation electron
       microscopy technique for structural characterization of disordered materials",
       Ultramicroscopy 110, 1279 (2010), doi:10.1016/j.ultramic.2010.05.010.

    Examples
    --------
    >>> import dask.array as da, numpy as np, udfdask as ud
    >>> from udfdask.analyses import RadialVarianceUDF
    >>> frames = np.ones((2, 16, 16)) * np.array([1, 3])[:, np.newaxis, np.newaxis]
    >>> result = ud.run_udf(da.from_array(frames), RadialVarianceUDF(r=6, n_bins=2)).compute()
    >>> print(result["mean"], result["variance_of_means"], result["mean_of_variances"])
    [2. 2.] [0.25 0.25] [0. 0.]
    """

    keeps_units = ("mean",)
    default_plots = ("mean", *_VARIANCES)
    whole_frames = True
    promises = replace(
        SUMS, adds_signal_parts=False, streams_tiles=False, merge_only_reads_src=True
    )

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        declare = partial(self.buffer, "single", (self._checked_rings(),))
        private = dict.fromkeys(_SUMS, declare("float64", use="private"))
        variances = dict.fromkeys(_VARIANCES, declare("float64", use="result_only"))
        return {"mean": declare("float64"), **variances, "frames": declare("int64"), **private}

    def get_result_axes(self) -> Mapping[str, tuple[Axis, ...]]:
        return dict.fromkeys((*_VARIANCES, "mean", "frames"), (self._radius_axis(),))

    def get_result_units(self) -> Mapping[str, str | None]:
        return {**super().get_result_units(), **dict.fromkeys((*_VARIANCES, "frames"), "")}

    def process_tile(self, tile: Any) -> None:
        if not tile.size:
            return
        mean, square = self._ring_means(tile), self._ring_means(np.square(tile, dtype=np.float64))
        with np.errstate(all="ignore"):  # frames with a ring that is not finite are left out
            variance = np.maximum(square - mean**2, 0)
            valid = np.isfinite(variance)
            mean, variance = np.where(valid, mean, 0), np.where(valid, variance, 0)
            frames, bright = valid.sum(axis=0), mean != 0
            average = mean.sum(axis=0) / np.maximum(frames, 1)
            ratios = np.where(bright, variance / mean**2, 0)
        found, deviation = self.results, np.where(valid, mean - average, 0)
        self._add_means(found, frames, average, (deviation**2).sum(axis=0))
        for name, sums in zip(_SUMS[1:], (variance, ratios, bright), strict=True):
            getattr(found, name)[:] += sums.sum(axis=0)

    def _ring_means(self, tile: AnyArray) -> AnyArray:
        """Return the mean of each ring, shape (frames, rings); NaN without a pixel."""
        sums = np.zeros((len(tile), self.results.mean.size))
        covered = np.zeros_like(sums) if self._has_own_centers else None
        self._add_ring_sums(tile, sums, covered)
        totals = self.task_data.members.totals if covered is None else covered
        with np.errstate(invalid="ignore"):
            means: AnyArray = sums / totals
        return means

    @staticmethod
    def _add_means(dest: Any, frames: AnyArray, mean: AnyArray, spread: AnyArray) -> None:
        """Add more frames, with their mean and the sum of squared deviations from it."""
        total = dest.frames + frames
        share = frames / np.maximum(total, 1)
        deviation = mean - dest.mean
        dest.spread += spread + deviation**2 * share * dest.frames
        dest.mean += deviation * share
        dest.frames[:] = total

    def merge(self, dest: Views, src: Views) -> None:
        self._add_means(dest, src.frames, src.mean, src.spread)
        for name in _SUMS[1:]:
            getattr(dest, name)[:] += getattr(src, name)

    def get_results(self) -> Mapping[str, Any]:
        found = self.results
        with np.errstate(all="ignore"):  # a ring without a frame, or without intensity
            squared = found.mean**2 * found.frames
            return {
                "mean": np.where(found.frames, found.mean, np.nan),
                "variance_of_means": found.spread / squared,
                "mean_of_variances": found.ratios / found.bright,
                "variance_of_pixels": (found.spread + found.within) / squared,
            }
