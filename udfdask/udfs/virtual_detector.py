"""Sum the pixels in a virtual detector: a simple shape, or a mask."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.axes import Axis
from udfdask.geometry.shapes import Shape
from udfdask.geometry.units import Quantity, as_coordinate, as_quantity
from udfdask.kernels.cuda.sums import add_within
from udfdask.kernels.overflow import add_exactly
from udfdask.masks import checks
from udfdask.masks.coverage import Coverage, coverage_of_ring
from udfdask.masks.disks import circular, rectangular, ring, window
from udfdask.masks.polar import check_stretch
from udfdask.masks.stacks.dense_product import product_dtype
from udfdask.masks.stacks.given_masks import check_is_mask, detector_pixels, is_held_elsewhere
from udfdask.once_per_process import OncePerProcess
from udfdask.types import AnyArray
from udfdask.udf import UDF
from udfdask.udf.buffers import BufferSpec
from udfdask.udf.promises import Promises
from udfdask.udfs.shared.frame_geometry import (
    check_center_inside,
    check_radii_in_unit,
    frame_shape,
    read_center,
)
from udfdask.udfs.shared.kernel_backends import tile_backends
from udfdask.udfs.shared.own_centers import (
    add_own_sums,
    as_centers,
    check_centers,
    mean_center,
    own_centers,
)
from udfdask.udfs.shared.sum_dtype import as_added_up, signed_if_fits

DetectorShape = Literal["disk", "ring", "rect", "point", "window"]
"""Shapes of a virtual detector."""

_NEEDED = {
    "disk": ("r",),
    "ring": ("ri", "ro"),
    "rect": ("x", "y", "width", "height"),
    "point": ("x", "y"),
    "window": ("start", "stop"),
}
_CENTERED = ("disk", "ring")
_OPTIONAL = ("cx", "cy", "center", "centers", "stretch", "stretch_angle")
OTHER_SHAPES = {"disc": "disk", "circle": "disk", "annulus": "ring", "rectangle": "rect"}
"""Other words for these shapes."""

_MEANT = {
    "centerX": ("cx",),
    "centerY": ("cy",),
    "radius": ("r", "ro"),
    "inner": ("ri",),
    "outer": ("ro",),
    "rad_in": ("ri",),
    "rad_out": ("ro",),
    "radius_inner": ("ri",),
    "radius_outer": ("ro",),
}
"""Other words for numbers, and the numbers of some shape that they can mean."""


class VirtualDetectorUDF(UDF):
    """Sum the pixels of each frame in a disk, a ring, a rectangle or a window.

    Parameters
    ----------
    shape : {"disk", "ring", "rect", "point", "window"} or array of bool, shape `sig`
        Shape of the detector. A window is for spectra, which have one signal axis. A mask is True
        for the pixels of the detector, dense or sparse; the numbers 0 and 1 will do as well. The
        accessors of DataArrays and signals also take masks that are DataArrays, signals or ROIs of
        HyperSpy.
    cx, cy : float, optional
        Center of a disk or ring, in pixels, or a text with a unit such as "0 mrad"; by default
        where both axes are 0, if that is inside of the frame, or else ``shape // 2``.
    r : float, optional
        Radius of a disk, in pixels, or a text with a unit such as "10 mrad": ``d <= r``.
    ri, ro : float, optional
        Inner and outer radius of a ring, in pixels, or texts with a unit: ``ri < d <= ro``.
    x, y : float, optional
        First pixel of a rectangle, or the pixel of a point, or texts with a unit; fractions are
        rounded down.
    width, height : float, optional
        Size of a rectangle, in pixels, at least 1, or texts with a unit; fractions are rounded
        down.
    start, stop : float, optional
        Channels of a window: ``start <= i < stop``; or both in the unit of the axis, such as
        ``start="540 eV", stop="600 eV"``.
    centers : array, shape (*nav, 2), or AuxData of kind nav with extra_shape (2,), optional
        Center (y, x) of the disk or ring in each frame, in pixels, instead of `cy` and `cx`: NumPy
        or dask, such as `raw_com` of `CoMUDF`. Frames on a device are then copied to the host.
    stretch : float, optional
        Ratio of the long to the short half axis of an elliptical disk or ring, at least 1. A radius
        is the geometric mean of both half axes: these are ``r * sqrt(stretch)`` and ``r /
        sqrt(stretch)``, so that the detector keeps its area.
    stretch_angle : float, optional
        Direction of the long half axis, in degrees from +x toward +y, which points down.
    center : {"zero", "middle"} or tuple of float, optional
        The center (y, x) of a disk or ring in place of `cy` and `cx`, such as
        ``find_center(pattern)``: "zero" is 0 of the axes, "middle" is ``shape // 2``.
    **unknown : object
        Nothing else is taken: the error names the parameters of the shape.

    Raises
    ------
    ArgumentTypeError
        If a parameter of the shape is missing, does not belong to the shape, or has a wrong type.
    ArgumentValueError
        If the shape is unknown, `stretch` is below 1, or both `centers` and `cy` or `cx` are given;
        in `run_udf`, if a value is invalid, no pixel of the frame is in the detector, a center is
        outside the frame and the radius inf, `centers` does not fit the scan, or a mask has not the
        shape of a frame or has weights.

    See Also
    --------
    ApplyMasksUDF : Applies any number of masks, also with weights.

    Notes
    -----
    All numbers may be given in the unit of the signal axes, such as ``ri="10 mrad"``.

    Buffer `intensity`, kind nav, shape `nav`, in the unit of the data. Sums of integers are int64,
    or uint64 for unsigned integers whose sum could exceed 2**62; sums of float16 are float32.
    Pixels outside the detector can be NaN. A sum of integers that does not fit 64 bits stops the
    run with a `SumOverflowError`.

    With `centers`, sums of integers are float64, which is exact up to 2**53: the sum is NaN for a
    frame whose center is not finite, and 0 if no pixel of the frame is in the detector.

    Examples
    --------
    >>> import dask.array as da, numpy as np, udfdask as ud
    >>> from udfdask.udfs import VirtualDetectorUDF
    >>> x = da.ones((2, 3, 16, 16), dtype="uint16", chunks=(1, 3, 16, 16))
    >>> bright = VirtualDetectorUDF("disk", r=3)
    >>> dark = VirtualDetectorUDF("ring", cx=7.5, cy=7.5, ri=5, ro=7)
    >>> bright_field, dark_field = ud.compute(*ud.run_udf(x, [bright, dark]))
    >>> print(bright_field["intensity"][1, 2], dark_field["intensity"][1, 2])
    29 76
    >>> mask = np.zeros((16, 16), bool)
    >>> mask[2:4] = True
    >>> print(ud.run_udf(x, VirtualDetectorUDF(mask))["intensity"][0, 0].compute())
    32
    """

    keeps_units = ("intensity",)
    calibrated: ClassVar[Mapping[str, str]] = {
        "cx": "x",
        "cy": "y",
        "r": "length",
        "ri": "length",
        "ro": "length",
        "x": "left",
        "y": "top",
        "width": "width",
        "height": "height",
        "start": "start",
        "stop": "stop",
        "stretch": "stretch",
        "stretch_angle": "stretch_angle",
    }
    promises = Promises(
        adds_signal_parts=True,
        declares_once=True,
        starts_no_threads=True,
        streams_tiles=True,
        takes_any_byte_order=True,
    )
    _mask_parameter = "shape"

    def __init__(
        self,
        shape: DetectorShape | Any = "disk",
        *,
        cx: float | None = None,
        cy: float | None = None,
        r: float | None = None,
        ri: float | None = None,
        ro: float | None = None,
        x: float | None = None,
        y: float | None = None,
        width: float | None = None,
        height: float | None = None,
        start: float | None = None,
        stop: float | None = None,
        centers: Any = None,
        stretch: float | None = None,
        stretch_angle: float | None = None,
        center: Any = None,
        **unknown: Any,
    ) -> None:
        if unknown:
            raise _unknown_numbers(shape, unknown)
        numbers = {
            "cx": cx,
            "cy": cy,
            "r": r,
            "ri": ri,
            "ro": ro,
            "x": x,
            "y": y,
            "width": width,
            "height": height,
            "start": start,
            "stop": stop,
            "stretch": stretch,
            "stretch_angle": stretch_angle,
        }
        given = {
            name: (as_coordinate if name in ("cx", "cy") else as_quantity)(name, value)
            for name, value in numbers.items()
            if value is not None
        }
        arrays = {"center": center, "centers": centers}
        _check_names(shape, given | {name: v for name, v in arrays.items() if v is not None})
        if center is not None:
            cy, cx = read_center(center, cy, cx)
            given = {"cx": cx, "cy": cy, **given}  # the order is a part of the token
        if centers is not None:
            given["centers"] = as_centers(centers, cy=cy, cx=cx)
        check_stretch(given.get("stretch", 1.0), given.get("stretch_angle", 0.0))
        check_radii_in_unit(given.get("ro"), given.get("ri"), names=("ro", "ri"))
        super().__init__(shape=shape, **given)

    def _center_names(self) -> tuple[str, ...]:
        shape = self._kwargs["shape"]
        is_common = isinstance(shape, str) and shape in _CENTERED and not self._has_own_centers
        return ("cy", "cx") if is_common else ()

    def get_preferred_input_dtype(self) -> Any:
        """Use the native dtype."""
        return self.USE_NATIVE_DTYPE

    def get_backends(self) -> Any:
        """Accept NumPy and sparse tiles, and CuPy unless each frame has its own center."""
        return tile_backends(self, VirtualDetectorUDF, on_device=not self._has_own_centers)

    @property
    def _has_own_centers(self) -> bool:
        """Whether each frame has its own center."""
        return "centers" in self._kwargs

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        """Declare the sums; raise if no pixel is in the detector."""
        dtype = product_dtype(self.meta.input_dtype, np.dtype(bool))
        if self._has_own_centers:
            self._check_own_centers()
            # there is no integer for a frame without a center
            dtype = dtype if dtype.kind in "fc" else np.dtype(np.float64)
            return {"intensity": self.buffer(kind="nav", dtype=dtype)}
        shape, numbers = self._detector()
        sig = self.meta.dataset_shape.sig
        if len(sig) == 2 and math.inf in (numbers.get("r"), numbers.get("ro")):
            cy, cx = numbers.get("cy", sig[0] // 2), numbers.get("cx", sig[1] // 2)
            check_center_inside(self, (cy, cx))
        if "start" in numbers and len(sig) == 1:
            _check_window(self.meta.axes[-1], sig[0], numbers["start"], numbers["stop"])
        n = int(np.count_nonzero(detector_mask(shape, sig, **numbers)))
        if not n:
            raise ArgumentValueError(
                f"no pixel of a frame of shape {tuple(sig)} lies in the detector "
                f"{_text(shape, numbers)}"
            )
        dtype = signed_if_fits(dtype, self.meta.input_dtype, n)
        return {"intensity": self.buffer(kind="nav", dtype=dtype, where="device")}

    def _check_own_centers(self) -> None:
        """Raise if the radii are invalid, or no frame has a pixel in the detector."""
        shape, numbers = self._detector()
        # the mask around the middle of a frame checks the numbers
        detector_mask(shape, self.meta.dataset_shape.sig, **numbers)
        frame_shape(self, kinds="biufc")
        inner, outer = self._radii()
        reach = None if outer == math.inf else outer
        check_centers(self, reach, -1 if inner is None else inner, numbers.get("stretch", 1.0))

    def _radii(self) -> tuple[float | None, float]:
        """Return the inner and the outer radius; a disk has None as the inner one."""
        numbers = self._kwargs
        if numbers["shape"] == "disk":
            return None, numbers["r"]
        return numbers["ri"], numbers["ro"]

    def get_detector_masks(self) -> Mapping[str, AnyArray]:
        """Return the pixels of the detector; if centers vary, of that around their mean."""
        shape, numbers = self._detector()
        if self._has_own_centers:
            numbers["cy"], numbers["cx"] = mean_center(self)
        name = shape if isinstance(shape, str) else "mask"
        return {name: detector_mask(shape, self.meta.dataset_shape.sig, **numbers)}

    def _coverages(self, sig: Shape) -> Sequence[Coverage]:
        """Return how much of a frame the detector covers."""
        shape, numbers = self._detector()
        if not isinstance(shape, str) or shape not in _CENTERED:
            covered = int(np.count_nonzero(detector_mask(shape, sig, **numbers)))
            name = shape if isinstance(shape, str) else "mask"
            cut = _is_cut(name, sig, numbers)
            return (Coverage(shape=name, covered=covered, total=sig.size, is_cut=cut),)
        ny, nx = sig
        center = numbers.get("cy", ny // 2), numbers.get("cx", nx // 2)
        coverage = coverage_of_ring(
            shape,
            None if self._has_own_centers else center,
            (ny, nx),
            {name: numbers[name] for name in _NEEDED[shape]},
            stretch=numbers.get("stretch", 1.0),
            stretch_angle=numbers.get("stretch_angle", 0.0),
            same_as="SumSigUDF",
        )
        return (coverage,)

    def get_shared_task_data(self) -> Mapping[str, Any]:
        """Compute the mask, and a cache for the pixels in each tile."""
        if self._has_own_centers:
            return {}
        shape, numbers = self._detector()
        mask = partial(detector_mask, shape, self.meta.dataset_shape.sig, **numbers)
        if self.meta._backend.on_device:
            return {"inside": self.meta._backend.dense.share(mask())}
        return {"inside": mask(), "groups": OncePerProcess(2048)}

    def process_tile(self, tile: Any) -> None:
        """Sum the pixels of a tile in the detector."""
        if self._has_own_centers:
            add_own_sums(self, tile, own_centers(self), self._radii(), self.results.intensity)
        elif self.meta._backend.is_sparse:
            self._add_entries(tile)
        elif self.meta._backend.on_device:
            inside = self.task_data.inside[self.meta.sig_slice.get()]
            add_within(tile, inside, self.results.intensity)
        else:
            self._add_pixels(tile)

    def _add_entries(self, tile: Any) -> None:
        """Sum the stored pixels of a sparse tile in the detector."""
        from udfdask.kernels.cpu.sparse_sums import add_entries_inside, entries_of

        inside = self.task_data.inside[self.meta.sig_slice.get()]
        flat = np.ascontiguousarray(inside).view(np.uint8).reshape(-1)
        total = as_added_up(self.results.intensity, self.meta.input_dtype)
        add_entries_inside(entries_of(tile), flat, total)

    def _add_pixels(self, tile: Any) -> None:
        """Sum the pixels of a dense tile on the host."""
        from udfdask.kernels.cpu.detector_sums import detector_groups, sum_detector

        data, part = self.task_data, self.meta.sig_slice
        inside = data.inside[part.get()]
        if inside.ndim == 1:  # a spectrum is a frame with one row
            inside, tile = inside[np.newaxis], tile[:, np.newaxis]

        def groups(row_step: int) -> Any:
            key = part.origin, tuple(part.shape), row_step
            return data.groups.get(key, lambda: detector_groups(inside, row_step))

        sums = sum_detector(tile, inside, groups)
        add_exactly(self.results.intensity, sums.astype(self.results.intensity.dtype))

    def _detector(self) -> tuple[Any, dict[str, float]]:
        """Return the shape of the detector, or its mask, and its numbers."""
        numbers = dict(self._kwargs)
        numbers.pop("centers", None)
        return numbers.pop("shape"), numbers


def detector_mask(shape: Any, sig: Shape, **numbers: Any) -> AnyArray:
    """Return the mask of a detector for frames of shape `sig`, bool; `shape` may be a mask."""
    if not isinstance(shape, str):
        if len(sig) > 2:
            raise ArgumentValueError(
                f"a virtual detector is for frames of one or two axes, but frames have the shape "
                f"{tuple(sig)}: use ApplyMasksUDF(mask)"
            )
        return detector_pixels(shape, sig)
    axes = 1 if shape == "window" else 2
    if len(sig) != axes:
        fitting = {1: "a window", 2: "a disk, ring, rect or point"}.get(len(sig), "ApplyMasksUDF")
        raise ArgumentValueError(
            f"a {shape} needs a signal with {axes} {'axis' if axes == 1 else 'axes'}, but frames "
            f"have the shape {tuple(sig)}: pass sig_dims={axes}, or use {fitting} (a signal: "
            f"signal.transpose(signal_axes={axes}))"
        )
    if shape == "window":
        return window(numbers["start"], numbers["stop"], sig[0])
    ny, nx = sig
    if shape in _CENTERED:
        cx, cy = numbers.get("cx", nx // 2), numbers.get("cy", ny // 2)
        stretch = {k: numbers[k] for k in ("stretch", "stretch_angle") if k in numbers}
        if shape == "disk":
            return circular(cx, cy, nx, ny, numbers["r"], **stretch)
        ro, ri = checks.radii(numbers["ro"], numbers["ri"], names=("ro", "ri"), finite=False)
        return ring(cx, cy, nx, ny, ro, ri, **stretch)
    width, height = numbers.get("width", 1), numbers.get("height", 1)
    if not (width >= 1 and height >= 1):
        raise ArgumentValueError(
            f"a rect must be at least 1 pixel wide and high, not width={width!r}, height={height!r}"
        )
    x, y, width, height = (np.floor(n) for n in (numbers["x"], numbers["y"], width, height))
    return rectangular(x, y, width - 1, height - 1, nx, ny)


def _is_cut(shape: str, sig: Shape, numbers: Mapping[str, float]) -> bool:
    """Return whether pixels of a rectangle or channels of a window lie beyond the edge."""
    if shape == "window":
        return numbers["start"] <= -1 or numbers["stop"] > sig[0]
    if shape != "rect":
        return False
    first = [math.floor(numbers[name]) for name in ("y", "x")]
    sizes = [math.floor(numbers[name]) for name in ("height", "width")]
    stop = [k + size for k, size in zip(first, sizes, strict=True)]
    return min(first) < 0 or any(k > n for k, n in zip(stop, sig, strict=True))


def _check_window(axis: Axis, size: int, start: float, stop: float) -> None:
    """Raise if no channel is in a window; the error names the range of the axis in its unit."""
    try:
        window(start, stop, size)
    except ArgumentValueError as error:
        advice = " (Axis.to_pixels converts from units)"
        text = str(error)
        if not axis.is_calibrated or axis.values is not None or not text.endswith(advice):
            raise
        first, last = axis.positions(size)[[0, -1]]
        raise ArgumentValueError(
            f"{text.removesuffix(advice)}; for numbers in {axis.unit}, write "
            f"start='{start:g} {axis.unit}' (the axis {axis.name!r} goes from {first:g} to "
            f"{last:g} {axis.unit})"
        ) from None


def _check_names(shape: Any, given: Mapping[str, Any]) -> None:
    """Raise unless the shape exists and these are its numbers."""
    known = ", ".join(get_args(DetectorShape))
    if not isinstance(shape, str):
        _check_mask(shape, given, known)
        return
    if shape not in get_args(DetectorShape):
        raise ArgumentValueError(
            f"a virtual detector is one of {known}, not {shape!r}{_did_you_mean(shape)}"
        )
    needed = _NEEDED[shape]
    optional = _OPTIONAL if shape in _CENTERED else ()
    missing = [name for name in needed if name not in given]
    unexpected = [name for name in given if name not in (*needed, *optional)]
    if missing or unexpected:
        wrong = [f"{', '.join(unexpected)} was given"] if unexpected else []
        wrong += [f"{', '.join(missing)} is missing"] if missing else []
        takes = f"a {shape} takes {', '.join(needed)}"
        if optional:
            takes += f" and optionally {', '.join(optional)}"
        meant = [one for one in _NEEDED if set(_NEEDED[one]) <= set(given) <= {*numbers_of(one)}]
        hint = f"; {' or '.join(map(repr, meant))} is the shape that takes them" if meant else ""
        raise ArgumentTypeError(f"{takes}, but {' and '.join(wrong)}{hint}")
    for name, value in given.items():
        if name in ("center", "centers"):
            continue
        if isinstance(value, bool) or not isinstance(
            value, int | float | np.number | Quantity | str
        ):
            raise ArgumentTypeError(
                f"{name} of a {shape} must be a number of pixels, not {value!r} of type "
                f"{type(value).__name__}"
            )


def _unknown_numbers(shape: Any, unknown: Mapping[str, Any]) -> ArgumentTypeError:
    """Return the error about numbers that no detector has."""
    takes = ", ".join(numbers_of(shape)) if isinstance(shape, str) and shape in _NEEDED else ""
    what = f"a {shape} takes {takes}" if takes else "a virtual detector takes other numbers"
    known = numbers_of(shape) if takes else ()
    meant = [one for name in unknown for one in _MEANT.get(name, ()) if one in known]
    hint = f"; did you mean {', '.join(meant)}?" if meant else ""
    return ArgumentTypeError(f"{what}, but {', '.join(unknown)} was given{hint}")


def plain_shape(shape: str) -> str:
    """Return the shape for another word, such as `disc` or Disk; other texts in lower case."""
    plain = shape.strip().lower()
    return OTHER_SHAPES.get(plain, plain)


def numbers_of(shape: str) -> tuple[str, ...]:
    """Return the names of the numbers that a shape takes."""
    return (*_NEEDED[shape], *(_OPTIONAL if shape in _CENTERED else ()))


def _did_you_mean(shape: str) -> str:
    """Return a question with the shape whose name is similar, if there is one."""
    from difflib import get_close_matches  # only for messages

    near = get_close_matches(plain_shape(shape), (*_NEEDED, *OTHER_SHAPES), n=1)
    return f"; did you mean {plain_shape(near[0])!r}?" if near else ""


def _check_mask(mask: Any, given: Mapping[str, Any], known: str) -> None:
    """Raise unless this can be a mask, which has no numbers."""
    if isinstance(mask, (dict, list, tuple)) and len(mask):
        raise ArgumentTypeError(
            f"a virtual detector is one shape or mask, not a {type(mask).__name__} of them: for "
            'several, use ApplyMasksUDF({"BF": mask, ...}), or run_udf with '
            '{"BF": VirtualDetectorUDF(...), ...} in place of a UDF'
        )
    if not (hasattr(mask, "shape") or is_held_elsewhere(mask)):
        raise ArgumentTypeError(
            f"the shape of a virtual detector is one of {known}, or a boolean mask of the shape of "
            f"a frame, but its type is {type(mask).__name__}"
        )
    if not is_held_elsewhere(mask):
        check_is_mask("the mask of a virtual detector", mask)
    if given:
        raise ArgumentTypeError(
            f"a virtual detector that is a mask takes no numbers, but {', '.join(given)} was given"
        )


def _text(shape: Any, numbers: Mapping[str, Any]) -> str:
    """Return a detector in words."""
    if not isinstance(shape, str):
        return "mask: it is False everywhere"
    detector = ", ".join([shape, *(f"{name}={value}" for name, value in numbers.items())])
    return f"{detector}: numbers are in pixels, x to the right and y down"
