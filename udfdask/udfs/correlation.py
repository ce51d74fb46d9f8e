"""Finds diffraction discs: correlates frames with a template around expected positions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from udfdask.arrays.backends.convert import to_host
from udfdask.arrays.geometry.axes import Axis
from udfdask.arrays.geometry.shapes import Shape
from udfdask.arrays.geometry.slices import Slice
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.kernels.cuda.windows import add_window_products
from udfdask.masks import DiskTemplate, MaskContainer
from udfdask.masks.templates import shifted_templates
from udfdask.types import AnyArray
from udfdask.udf import UDF
from udfdask.udf.buffers import BufferSpec
from udfdask.udf.promises import Promises
from udfdask.udfs.shared.correlation_arguments import (
    checked_peaks,
    checked_shift,
    checked_steps,
    checked_template,
)
from udfdask.udfs.shared.kernel_backends import dense_backends


class CorrelationUDF(UDF):
    """Find diffraction discs near given positions, by template matching.

    Around each position the frame is correlated with a template, at shifts of up to `steps` pixels
    along both axes::

        map[dy, dx] = sum over (i, j) of frame[y + dy + i, x + dx + j] * template[i, j]

    with (i, j) counted from the centre of the template. The disc is where the map is highest.

    Parameters
    ----------
    peaks : array-like of numbers, shape (n_peaks, 2)
        Expected positions (y, x), in pixels, rounded; they may lie outside of the frame.
    template : DiskTemplate or array-like of real numbers, shape (height, width)
        What to look for. The centre of an array is the pixel ``height // 2, width // 2``.
    steps : int
        How far from the expected position to look, in pixels, at least 2. Time grows with its
        fourth power where it is larger than the template.
    zero_shift : array-like of numbers, shape (2,), or AuxData, optional
        Movement (y, x) of the whole frame, in pixels, rounded, which is added to `peaks`; for
        descan errors ``UDF.aux_data(shifts, kind="nav", extra_shape=(2,))``, with one for each
        frame.
    log_scale : bool
        Correlate with ``log(frame - min(frame) + 1)``, with the minimum of the whole frame, as
        weak discs then count like strong ones. Without, frames need not be put together where
        the signal is chunked.

    Raises
    ------
    ArgumentTypeError
        If a parameter has a wrong type; in `run_udf`, if the data are complex.
    ArgumentValueError
        If `peaks`, `template` or `zero_shift` has a wrong shape or values that are not finite, or
        `steps` is less than 2; in `run_udf`, if the signal has not two axes, or the template is
        larger than a frame.

    See Also
    --------
    udfdask.masks.DiskTemplate : Discs, with and without a negative ring.

    Notes
    -----
    Buffers, all of kind nav, positions in pixels (y, x):

    - `centers`, extra shape (n_peaks, 2), int32: where the map is highest, the first place in C
      order if there are several.
    - `refineds`, extra shape (n_peaks, 2), float32: centroid of the 5 x 5 pixels of the map around
      it, less their minimum; of fewer pixels if it is less than two from the edge of the map.
    - `peak_values`, extra shape (n_peaks,), float32: height of the map there.
    - `peak_elevations`, extra shape (n_peaks,), float32: ``max(0, min((height - map) / d))`` over
      all places of the map at a distance ``d >= 1.5`` from `refineds`: the slope of the steepest
      cone over the map with its tip there. It is small where there is no clear maximum.

    The centroid pulls `refineds` towards whole pixels. Without noise, discs of radius 3 to 8 that
    lie inside the frame are found within 0.25 pixels along each axis, 0.1 pixels root mean square;
    the error is largest halfway between two pixels. A disc that the border of the frame cuts is
    found too far inside, by a pixel where half of it is missing.

    What lies outside of the frame counts as 0. Where a pixel that is NaN or infinite, or a
    `zero_shift` that is, has a part in it, `centers` is the expected position and the rest NaN.

    Maxima on the edge of the map are a sign that a disc has moved further than `steps`.

    The template at all shifts is a matrix that a process makes once, of
    ``(2 * steps + 1)**2 * (height + 2 * steps) * (width + 2 * steps)`` numbers.

    Examples
    --------
    >>> import dask.array as da, udfdask as ud
    >>> from udfdask.masks import DiskTemplate, circular
    >>> from udfdask.udfs import CorrelationUDF
    >>> frame = circular(centerX=13.5, centerY=9, imageSizeX=24, imageSizeY=20, radius=4,
    ...                  antialiased=True)
    >>> x = da.from_array(frame[None].repeat(3, axis=0), chunks=(1, 20, 24))
    >>> udf = CorrelationUDF([(10, 12)], DiskTemplate(radius=4, radius_outer=6), steps=4)
    >>> res = ud.run_udf(x, udf).compute()
    >>> print(res["centers"][0, 0], res["refineds"][0, 0].round(2))
    [ 9 13] [ 9.  13.4]
    """

    promises = Promises(declares_once=True)

    def __init__(
        self,
        peaks: Any,
        template: Any,
        *,
        steps: int,
        zero_shift: Any = None,
        log_scale: bool = True,
    ) -> None:
        if not isinstance(log_scale, (bool, np.bool_)):
            raise ArgumentTypeError(f"log_scale must be True or False, not {log_scale!r}")
        super().__init__(
            peaks=checked_peaks(peaks),
            template=checked_template(template),
            steps=checked_steps(steps),
            zero_shift=checked_shift(zero_shift),
            log_scale=bool(log_scale),
        )
        given = self.params.template
        self._template = given.array() if isinstance(given, DiskTemplate) else given
        # the minimum of a part of a frame would depend on how frames are cut
        vars(self)["whole_frames"] = bool(log_scale)

    def get_backends(self) -> Any:
        """Return NumPy and CuPy."""
        return dense_backends(self, CorrelationUDF)

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        """Declare the maps and what is found in them."""
        self._check_data()
        n, side = len(self.params.peaks), 2 * self.params.steps + 1
        return {
            "maps": self.buffer(
                "nav",
                extra_shape=(n, side, side),
                dtype=self.meta.input_dtype,
                where="device",
                use="private",
            ),
            "centers": self.buffer("nav", extra_shape=(n, 2), dtype="int32"),
            "refineds": self.buffer("nav", extra_shape=(n, 2), dtype="float32"),
            "peak_values": self.buffer("nav", extra_shape=(n,), dtype="float32"),
            "peak_elevations": self.buffer("nav", extra_shape=(n,), dtype="float32"),
        }

    def get_result_axes(self) -> Mapping[str, tuple[Axis, ...]]:
        """Name the peaks and the components (y, x)."""
        peak, component = Axis(name="peak"), Axis(name="component", labels=("y", "x"))
        return {
            "centers": (peak, component),
            "refineds": (peak, component),
            "peak_values": (peak,),
            "peak_elevations": (peak,),
        }

    def get_shared_task_data(self) -> Mapping[str, Any]:
        """Return the template at all places of a window, as a matrix (shifts, pixels)."""
        dtype = self.meta.input_dtype
        stack = partial(shifted_templates, self._template.astype(dtype), self.params.steps)
        # Dense and the same for all peaks, to be multiplied with windows cut out of the frames.
        # A run with a sparse mask of the frame for each peak and shift takes about 1.5 times as
        # long (20 peaks, 81 shifts), and such masks cannot follow frames that move.
        window = Slice((0, 0), Shape(self._window(), sig_dims=2))
        templates = MaskContainer(stack).get_for_sig_slice(window, transpose=False)
        if self.meta._backend.on_device:
            templates = self.meta._backend.dense.share(templates)
        return {"templates": templates}

    def process_tile(self, tile: Any) -> None:
        """Add what lies in a tile to the maps."""
        shifts, _ = self._shifts()
        corners = self._corners(shifts) - self._template_centre() - self.meta.sig_slice.origin
        window = self._window()
        here = (corners > [-n for n in window]) & (corners < tile.shape[1:])
        which = np.flatnonzero(here.all(axis=2).any(axis=0))
        if not len(which):
            return
        with np.errstate(invalid="ignore"):  # of infinite pixels
            if self.params.log_scale:
                tile = _log_scaled(self.xp, tile)
            if self.meta._backend.on_device:
                self._correlate_on_device(tile, corners, which)
            else:
                self._correlate(tile, corners, which)

    def _correlate(self, tile: AnyArray, corners: AnyArray, which: AnyArray) -> None:
        """Add the products of the windows of some peaks with all templates."""
        from udfdask.kernels.cpu.windows import cut_windows

        maps, window = self.results.maps, self._window()
        windows = np.empty((len(tile), len(which), *window), dtype=tile.dtype)
        cut_windows(tile, np.ascontiguousarray(corners[:, which]), windows)
        found = windows.reshape((-1, windows[0, 0].size)) @ self.task_data.templates.T
        maps[:, which] += found.reshape((len(tile), len(which), *maps.shape[2:]))

    def _correlate_on_device(self, tile: Any, corners: AnyArray, which: AnyArray) -> None:
        """Do the same with CuPy arrays."""
        maps, templates = self.results.maps, self.task_data.templates
        found = self.xp.zeros((tile.shape[0], len(which), templates.shape[0]), dtype=maps.dtype)
        add_window_products(tile, corners[:, which], self._window(), templates.T, found)
        maps[:, which] += found.reshape((tile.shape[0], len(which), *maps.shape[2:]))

    def postprocess(self) -> None:
        """Find the maxima of the maps."""
        from udfdask.kernels.cpu.peaks import find_maxima

        results = self.results
        maps = to_host(results.maps)
        shifts, known = self._shifts()
        if not known.all():
            maps[~known if len(known) > 1 else ...] = np.nan
        find_maxima(
            maps,
            self._corners(shifts),
            results.centers,
            results.refineds,
            results.peak_values,
            results.peak_elevations,
        )

    def _shifts(self) -> tuple[AnyArray, AnyArray]:
        """Return whole shifts of the frames at hand, shape (n, 2), or (1, 2); which are known."""
        given = self.params.zero_shift
        shifts = np.asarray((0, 0) if given is None else given, dtype=np.float64).reshape((-1, 2))
        known: AnyArray = np.logical_and.reduce(np.isfinite(shifts), axis=1)
        return np.rint(np.where(known[:, np.newaxis], shifts, 0)).astype(np.int64), known

    def _corners(self, shifts: AnyArray) -> AnyArray:
        """Return where in the frame the first pixel of each map lies, shape (n, n_peaks, 2)."""
        corners: AnyArray = self.params.peaks + shifts[:, np.newaxis] - self.params.steps
        return corners

    def _template_centre(self) -> AnyArray:
        """Return the pixel of the template that is its centre."""
        return np.array(self._template.shape) // 2

    def _window(self) -> tuple[int, int]:
        """Return the shape of the window that the template is moved in."""
        height, width = self._template.shape
        return height + 2 * self.params.steps, width + 2 * self.params.steps

    def _check_data(self) -> None:
        """Raise if the data cannot be correlated with the template."""
        sig, dtype = self.meta.dataset_shape.sig, self.meta.input_dtype
        if len(sig) != 2:
            raise ArgumentValueError(
                f"CorrelationUDF looks for discs in frames with two axes, but the signal has the "
                f"shape {tuple(sig)}: pass sig_dims=2"
            )
        if dtype.kind != "f":
            raise ArgumentTypeError(
                f"CorrelationUDF needs real numbers, not data of dtype {dtype}: run it over their "
                "absolute values, da.abs(data)"
            )
        shape = self._template.shape
        if any(n > size for n, size in zip(shape, sig, strict=True)):
            raise ArgumentValueError(
                f"the template of shape {shape} is larger than a frame of shape {tuple(sig)}: make "
                "its radius smaller, or cut the array"
            )


def _log_scaled(xp: Any, frames: Any) -> Any:
    """Return `log(frame - min(frame) + 1)` of whole frames, shape (n, *sig), of an array module."""
    scaled = frames - frames.min(axis=(1, 2), keepdims=True)
    scaled += 1
    return xp.log(scaled, out=scaled)
