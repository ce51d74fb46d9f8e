"""Sum the pixels in a virtual detector: a simple shape, or a mask."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from udfdask.arrays.geometry.shapes import Shape
from udfdask.arrays.geometry.units import Quantity, as_quantity
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.kernels.cuda.sums import add_within
from udfdask.kernels.overflow import add_exactly
from udfdask.masks.disks import circular, ring
from udfdask.masks.rectangles import rectangular, window
from udfdask.masks.stacks.dense_product import product_dtype
from udfdask.masks.stacks.given_masks import check_is_mask, detector_pixels, is_held_elsewhere
from udfdask.once_per_process import OncePerProcess
from udfdask.types import AnyArray
from udfdask.udf import UDF
from udfdask.udf.buffers import BufferSpec
from udfdask.udf.promises import Promises
from udfdask.udfs.shared.kernel_backends import tile_backends

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
OTHER_SHAPES = {"disc": "disk", "circle": "disk", "annulus": "ring", "rectangle": "rect"}
"""Other words for these shapes."""


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
        Center of a disk or ring, in pixels; by default half the size of a frame, rounded down.
    r : float, optional
        Radius of a disk, in pixels: ``d <= r``.
    ri, ro : float, optional
        Inner and outer radius of a ring, in pixels: ``ri < d <= ro``.
    x, y : float, optional
        First pixel of a rectangle, or the pixel of a point; fractions are rounded down.
    width, height : float, optional
        Size of a rectangle, in pixels, at least 1; fractions are rounded down.
    start, stop : float, optional
        Channels of a window: ``start <= i < stop``.
    **unknown : object
        Nothing else is taken: the error names the parameters of the shape.

    Raises
    ------
    ArgumentTypeError
        If a parameter of the shape is missing, or a parameter does not belong to the shape.
    ArgumentValueError
        If the shape is unknown; in `run_udf`, if a value is invalid, no pixel of the frame is in
        the detector, or a mask has not the shape of a frame or has weights.

    See Also
    --------
    ApplyMasksUDF : Applies any number of masks, also with weights.

    Notes
    -----
    All numbers may be given in the unit of the signal axes, such as ``ri="10 mrad"``.

    Buffer `intensity`, kind nav, shape `nav`, in the unit of the data. Integers are added up in
    int64 or uint64, as `array.sum()` does; float16 in float32. Pixels outside the detector can be
    NaN. A sum of integers that does not fit 64 bits stops the run with a `SumOverflowError`.

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
        "x": "x",
        "y": "y",
        "width": "width",
        "height": "height",
        "start": "x",
        "stop": "x",
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
        }
        given = {
            name: as_quantity(name, value) for name, value in numbers.items() if value is not None
        }
        _check_names(shape, given)
        super().__init__(shape=shape, **given)

    def get_preferred_input_dtype(self) -> Any:
        """Use the native dtype."""
        return self.USE_NATIVE_DTYPE

    def get_backends(self) -> Any:
        """Accept NumPy, CuPy and sparse tiles."""
        return tile_backends(self, VirtualDetectorUDF)

    def get_result_buffers(self) -> Mapping[str, BufferSpec]:
        """Declare the sums; raise if no pixel is in the detector."""
        shape, numbers = self._detector()
        sig = self.meta.dataset_shape.sig
        if not detector_mask(shape, sig, **numbers).any():
            raise ArgumentValueError(
                f"no pixel of a frame of shape {tuple(sig)} lies in the detector "
                f"{_text(shape, numbers)}"
            )
        dtype = product_dtype(self.meta.input_dtype, np.dtype(bool))
        return {"intensity": self.buffer(kind="nav", dtype=dtype, where="device")}

    def get_detector_masks(self) -> Mapping[str, AnyArray]:
        """Return the pixels of the detector."""
        shape, numbers = self._detector()
        name = shape if isinstance(shape, str) else "mask"
        return {name: detector_mask(shape, self.meta.dataset_shape.sig, **numbers)}

    def get_shared_task_data(self) -> Mapping[str, Any]:
        """Compute the mask, and a cache for the pixels in each tile."""
        shape, numbers = self._detector()
        mask = partial(detector_mask, shape, self.meta.dataset_shape.sig, **numbers)
        if self.meta._backend.on_device:
            return {"inside": self.meta._backend.dense.share(mask())}
        return {"inside": mask(), "groups": OncePerProcess(2048)}

    def process_tile(self, tile: Any) -> None:
        """Sum the pixels of a tile in the detector."""
        if self.meta._backend.is_sparse:
            self._add_entries(tile)
        elif self.meta._backend.on_device:
            inside = self.task_data.inside[self.meta.sig_slice.get()]
            add_within(tile, inside, self.results.intensity)
        else:
            self._add_pixels(tile)

    def _add_entries(self, tile: Any) -> None:
        """Sum the stored pixels of a sparse tile in the detector."""
        from udfdask.kernels.cpu.sparse_entries import entries_of
        from udfdask.kernels.cpu.sparse_sums import add_entries_inside

        inside = self.task_data.inside[self.meta.sig_slice.get()]
        flat = np.ascontiguousarray(inside).view(np.uint8).reshape(-1)
        add_entries_inside(entries_of(tile), flat, self.results.intensity)

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
            f"have the shape {tuple(sig)}: pass sig_dims={axes}, or use {fitting}"
        )
    if shape == "window":
        return window(numbers["start"], numbers["stop"], sig[0])
    ny, nx = sig
    if shape in _CENTERED:
        cx, cy = numbers.get("cx", nx // 2), numbers.get("cy", ny // 2)
        if shape == "disk":
            return circular(cx, cy, nx, ny, numbers["r"])
        return ring(cx, cy, nx, ny, numbers["ro"], numbers["ri"])
    width, height = numbers.get("width", 1), numbers.get("height", 1)
    if not (width >= 1 and height >= 1):
        raise ArgumentValueError(
            f"a rect must be at least 1 pixel wide and high, not width={width!r}, height={height!r}"
        )
    x, y, width, height = (np.floor(n) for n in (numbers["x"], numbers["y"], width, height))
    return rectangular(x, y, width - 1, height - 1, nx, ny)


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
    optional = ("cx", "cy") if shape in _CENTERED else ()
    missing = [name for name in needed if name not in given]
    unexpected = [name for name in given if name not in (*needed, *optional)]
    if missing or unexpected:
        wrong = [f"{', '.join(unexpected)} was given"] if unexpected else []
        wrong += [f"{', '.join(missing)} is missing"] if missing else []
        takes = f"a {shape} takes {', '.join(needed)}" + " and optionally cx, cy" * bool(optional)
        raise ArgumentTypeError(f"{takes}, but {' and '.join(wrong)}")
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, (int, float, np.number, Quantity)):
            raise ArgumentTypeError(
                f"{name} of a {shape} must be a number of pixels, not {value!r} of type "
                f"{type(value).__name__}"
            )


def _unknown_numbers(shape: Any, unknown: Mapping[str, Any]) -> ArgumentTypeError:
    """Return the error about numbers that no detector has."""
    takes = ", ".join(numbers_of(shape)) if isinstance(shape, str) and shape in _NEEDED else ""
    what = f"a {shape} takes {takes}" if takes else "a virtual detector takes other numbers"
    return ArgumentTypeError(f"{what}, but {', '.join(unknown)} was given")


def plain_shape(shape: str) -> str:
    """Return the shape for another word, such as disc or Disk; other texts in lower case."""
    plain = shape.strip().lower()
    return OTHER_SHAPES.get(plain, plain)


def numbers_of(shape: str) -> tuple[str, ...]:
    """Return the names of the numbers that a shape takes."""
    return (*_NEEDED[shape], *(("cx", "cy") if shape in _CENTERED else ()))


def _did_you_mean(shape: str) -> str:
    """Return a question with the shape whose name is similar, if there is one."""
    from difflib import get_close_matches  # only for messages

    near = get_close_matches(plain_shape(shape), (*_NEEDED, *OTHER_SHAPES), n=1)
    return f"; did you mean {plain_shape(near[0])!r}?" if near else ""


def _check_mask(mask: Any, given: Mapping[str, Any], known: str) -> None:
    """Raise unless this can be a mask, which has no numbers."""
    if isinstance(mask, (Mapping, list, tuple)) and len(mask):
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
