"""Find diffraction disks: correlate frames with a template around expected positions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from operator import index
from typing import Any, ClassVar

import numpy as np

from udfdask.backends.table import to_host
from udfdask.base.types import AnyArray, is_lazy
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.axes import Axis
from udfdask.geometry.shapes import Shape
from udfdask.geometry.slices import Slice
from udfdask.geometry.units import Quantity, as_quantity
from udfdask.kernels.cpu.dense_products import product
from udfdask.kernels.cuda.dense_products import add_window_products
from udfdask.masks import MaskContainer
from udfdask.masks.template_stacks import shifted_templates
from udfdask.udf.aux_data import AuxData
from udfdask.udf.buffers import BufferSpec
from udfdask.udf.promises import Promises
from udfdask.udfs.shared.built_in import DENSE_TILES, check_flag
from udfdask.udfs.shared.templates import TemplateUDF, read_array


class CorrelationUDF(TemplateUDF):
    """Find diffraction disks near given positions, by template matching.

    Around each position, the frame is correlated with a template, at shifts of up to `steps`
    pixels along both axes::

        map[dy, dx] = sum over (i, j) of frame[y + dy + i, x + dx + j] * template[i, j]

    where (i, j) is relative to the center of the template. The disk is at the maximum of the map.

    Parameters
    ----------
    peaks : array-like of numbers, shape (n_peaks, 2)
        Expected positions (y, x), in pixels, rounded; or a pair of such an array and the unit of
        the axes, such as ``(peaks, "mrad")``.
    template : DiskTemplate or array-like of real numbers, shape (height, width)
        Image of a disk. The center of an array is the pixel ``height // 2, width // 2``.
    steps : int
        Search distance from the expected position, in pixels, at least 2; or with the unit of the
        axes, such as ``"2 mrad"``, rounded up to whole pixels. If it is larger than the template,
        the time grows with its fourth power.
    zero_shift : array-like of numbers, shape (2,), or AuxData, optional
        Shift (y, x) of the whole frame, in pixels, rounded, which is added to `peaks`; or in the
        unit of the axes; or ``UDF.aux_data(shifts, kind="nav", extra_shape=(2,))`` for each frame.
    log_scale : bool
        Correlate ``log(frame - min(frame) + 1)``, so that weak and strong disks have similar
        weights. If False, frames with chunked signals do not have to be assembled.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If a parameter has a wrong type, shape or value; in `run_udf`, if frames are not 2-D or not
        real, or smaller than the template.

    See Also
    --------
    udfdask.masks.DiskTemplate : Disks, with and without a negative ring.
    udfdask.analyses.FindDisksUDF : Finds disks without a list of positions, more exactly.

    Notes
    -----
    Buffers, all of kind nav, positions in pixels (y, x):

    - `centers`, extra shape (n_peaks, 2), int32: maximum of the map, the first one in C order.
    - `refineds`, extra shape (n_peaks, 2), float32: centroid of the 5 x 5 pixels of the map around
      the maximum, minus their smallest value. Near the edge of the map there are fewer pixels.
    - `peak_values`, extra shape (n_peaks,), float32: height of the maximum.
    - `peak_elevations`, extra shape (n_peaks,), float32: ``max(0, min((height - map) / d))`` over
      all pixels of the map at a distance ``d >= 1.5`` from `refineds`: low if no maximum is clear.

    Without noise, disks of radius 3 to 8 are found within 0.25 pixels along each axis; one of which
    the border cuts half is too far inside by one pixel. Maxima on the edge of the map indicate that
    a disk has moved farther than `steps`. Pixels outside the frame count as 0. If a pixel that the
    map needs, or `zero_shift`, is not finite, `centers` is the expected position and the other
    results are NaN. Each process holds a matrix of
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

    calibrated: ClassVar[Mapping[str, str]] = {
        "peaks": "positions",
        "template": "lengths",
        "steps": "steps",
        "zero_shift": "shift",
    }
    promises = Promises(declares_once=True)
    _kernels = DENSE_TILES

    def __init__(
        self,
        peaks: Any,
        template: Any,
        *,
        steps: int,
        zero_shift: Any = None,
        log_scale: bool = True,
    ) -> None:
        super().__init__(
            peaks=_checked_peaks(peaks),
            template=template,
            steps=_checked_steps(steps),
            zero_shift=_checked_shift(zero_shift),
            log_scale=check_flag("log_scale", log_scale),
        )
        # the logarithm needs the minimum of the whole frame
        vars(self)["whole_frames"] = self.params.log_scale

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        self._frame_shape()
        n, side = len(self.params.peaks), 2 * self.params.steps + 1
        nav, kind = partial(self.buffer, "nav"), self.meta.input_dtype
        return {
            "maps": nav((n, side, side), kind, where="device", use="private"),
            "centers": nav((n, 2), "int32"),
            "refineds": nav((n, 2), "float32"),
            "peak_values": nav((n,), "float32"),
            "peak_elevations": nav((n,), "float32"),
        }

    def get_result_axes(self) -> Mapping[str, tuple[Axis, ...]]:
        peak, component = Axis(name="peak"), Axis(name="component", labels=("y", "x"))
        vectors = dict.fromkeys(("centers", "refineds"), (peak, component))
        return {**vectors, **dict.fromkeys(("peak_values", "peak_elevations"), (peak,))}

    def get_shared_task_data(self) -> Mapping[str, Any]:
        """Return the template at all positions of a window, as a matrix (shifts, pixels)."""
        dtype = self.meta.input_dtype
        stack = partial(shifted_templates, self._template.astype(dtype), self.params.steps)
        # A dense matrix for all peaks, which is multiplied with windows of the frames. A sparse
        # mask of the frame for each peak and shift would take about 1.5 times as long (20 peaks,
        # 81 shifts), and would not allow for frames that move.
        window = Slice((0, 0), Shape(self._window(), sig_dims=2))
        templates = MaskContainer(stack).get_for_sig_slice(window, transpose=False)
        return {"templates": self.meta._backend.dense.share(templates)}

    def process_tile(self, tile: Any) -> None:
        shifts, _ = self._shifts()
        center, window = np.array(self._template.shape) // 2, self._window()
        corners = self._corners(shifts) - center - self.meta.sig_slice.origin
        overlaps = (corners > [-n for n in window]) & (corners < tile.shape[1:])
        which = np.flatnonzero(overlaps.all(axis=2).any(axis=0))
        if not len(which) or not len(tile):
            return
        with np.errstate(invalid="ignore"):  # pixels can be infinite
            if self.params.log_scale:  # of whole frames
                tile = tile - tile.min(axis=(1, 2), keepdims=True)
                tile += 1
                tile = self.xp.log(tile, out=tile)
            products = self._correlate(tile, corners[:, which])
            maps = self.results.maps
            maps[:, which] += products.reshape((len(tile), len(which), *maps.shape[2:]))

    def _correlate(self, tile: Any, corners: AnyArray) -> Any:
        """Return the products of the windows at some corners with all templates."""
        templates, window = self.task_data.templates, self._window()
        if self.meta._backend.on_device:
            shape = (len(tile), corners.shape[1], len(templates))
            products = self.xp.zeros(shape, dtype=self.results.maps.dtype)
            add_window_products(tile, corners, window, templates.T, products)
            return products
        from udfdask.kernels.cpu.change_frames import copy_shifted
        from udfdask.kernels.numba_internals.rows import rows_in_memory

        n, k = len(tile), corners.shape[1]
        first = np.broadcast_to(corners, (n, k, 2)).reshape((-1, 2))
        windows = np.empty((n * k, *window), dtype=tile.dtype)
        source = *rows_in_memory(tile), *tile.shape[1:], k
        copy_shifted(source, first, np.zeros(1, tile.dtype), windows)
        return product(windows.reshape((n * k, math.prod(window))), templates.T)

    def postprocess(self) -> None:
        from udfdask.kernels.cpu.phase_correlation import find_maxima

        results, maps = self.results, to_host(self.results.maps)
        shifts, known = self._shifts()
        if not known.all():
            maps[~known if len(known) > 1 else ...] = np.nan
        outputs = results.centers, results.refineds, results.peak_values, results.peak_elevations
        find_maxima(maps, self._corners(shifts), *outputs)

    def _shifts(self) -> tuple[AnyArray, AnyArray]:
        """Return rounded shifts, (frames, 2) or (1, 2) if all are equal, and which are finite."""
        given = (0, 0) if self.params.zero_shift is None else self.params.zero_shift
        shifts = np.asarray(given, dtype=np.float64).reshape((-1, 2))
        known = np.asarray(np.isfinite(shifts).all(axis=1))
        return np.rint(np.where(known[:, np.newaxis], shifts, 0)).astype(np.int64), known

    def _corners(self, shifts: AnyArray) -> AnyArray:
        return np.asarray(self.params.peaks + shifts[:, np.newaxis] - self.params.steps)

    def _window(self) -> tuple[int, int]:
        height, width = self._template.shape
        return height + 2 * self.params.steps, width + 2 * self.params.steps


_PAIRS = 'for one pair per frame pass UDF.aux_data(shifts, kind="nav", extra_shape=(2,))'


def _checked_peaks(given: Any) -> Any:
    """Return positions in whole pixels, shape (n, 2), or with their unit, or lazy."""
    has_unit = isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], str)
    given, *unit = given if has_unit else (given,)
    message = "peaks must have the shape (n_peaks, 2), with at least one peak, not {shape}"
    peaks = read_array("peaks", given, (None, 2), message)
    if unit and is_lazy(peaks):
        raise ArgumentTypeError("peaks with a unit must be numbers, not a dask array: compute them")
    if unit:
        return peaks, *unit
    return peaks if is_lazy(peaks) else np.rint(peaks).astype(np.int64)


def _checked_steps(given: Any) -> Any:
    """Return the search distance in pixels, or with its unit."""
    value = as_quantity("steps", given)
    if isinstance(value, Quantity):
        return value
    try:
        steps = index(given) if value is given else math.ceil(value)  # "2 px"
    except TypeError:
        what = "an integer number of pixels"
        raise ArgumentTypeError(f"steps must be {what}, not {given!r}") from None
    if steps < 2:
        raise ArgumentValueError(
            f"steps must be at least 2 pixels, not {steps}: the 5 x 5 pixels of a maximum must fit"
        )
    return steps


def _checked_shift(given: Any) -> Any:
    """Return a shift (y, x), also in a unit, aux data of shifts, a lazy shift, or None."""
    if given is None:
        return None
    if isinstance(given, AuxData):
        if given.kind == "sig" or given.extra_shape != (2,) or given.dtype.kind not in "biuf":
            raise ArgumentValueError(
                f"zero_shift must hold real numbers (y, x), not aux data of kind {given.kind!r}, "
                f"extra_shape {given.extra_shape} and dtype {given.dtype}: {_PAIRS}"
            )
        return given
    if isinstance(given, (tuple, list)) and len(given) == 2:
        pair = tuple(as_quantity(f"zero_shift[{k}]", value) for k, value in enumerate(given))
        if any(isinstance(value, Quantity) for value in pair):
            return pair
    message = "zero_shift must be one pair (y, x), not an array of shape {shape}: " + _PAIRS
    return read_array("zero_shift", given, (2,), message)
