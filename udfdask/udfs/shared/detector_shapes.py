"""The shapes of a virtual detector: the numbers that each takes, and its pixels in a frame."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.axes import Axis
from udfdask.geometry.shapes import Shape
from udfdask.geometry.units import Quantity
from udfdask.masks import checks
from udfdask.masks.coverage import Ring
from udfdask.masks.disks import no_channel, rectangular, window
from udfdask.masks.stacks.given_masks import check_is_mask, detector_pixels, is_held_elsewhere
from udfdask.types import AnyArray

DetectorShape = Literal["disk", "ring", "rect", "point", "window"]
"""Shapes of a virtual detector."""

NEEDED = {
    "disk": ("r",),
    "ring": ("ri", "ro"),
    "rect": ("x", "y", "width", "height"),
    "point": ("x", "y"),
    "window": ("start", "stop"),
}
"""The numbers of each shape."""

CENTERED = ("disk", "ring")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Rectangle:
    """A rectangle in a frame, in pixels; fractions are rounded down."""

    x: float
    y: float
    width: float = 1
    height: float = 1

    def mask(self, sig: Sequence[int]) -> AnyArray:
        """Return a mask of its pixels in frames of shape `sig`."""
        width, height = self.width, self.height
        if not (width >= 1 and height >= 1):
            raise ArgumentValueError(
                f"a rect must be at least 1 pixel wide and high, not {width!r} and {height!r}"
            )
        x, y, width, height = (np.floor(n) for n in (self.x, self.y, width, height))
        return rectangular(x, y, width - 1, height - 1, sig[1], sig[0])

    def is_cut(self, sig: Sequence[int]) -> bool:
        """Return whether some of its pixels lie beyond the edge."""
        ends = ((self.y, self.height, sig[0]), (self.x, self.width, sig[1]))
        return any(
            math.floor(first) < 0 or math.floor(first) + math.floor(size) > n
            for first, size, n in ends
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A window of a spectrum: the channels ``start <= i < stop``."""

    start: float
    stop: float

    def mask(self, sig: Sequence[int]) -> AnyArray:
        """Return a mask of its channels in spectra of shape `sig`."""
        return window(self.start, self.stop, sig[0])

    def is_cut(self, sig: Sequence[int]) -> bool:
        """Return whether some of its channels lie beyond the ends."""
        return self.start <= -1 or self.stop > sig[0]

    def check_axis(self, axis: Axis, n: int) -> None:
        """Raise if no channel is in the window, and name the range of the axis in its unit."""
        channels, (start, stop) = np.arange(n), (self.start, self.stop)
        if not axis.is_calibrated or axis.values is not None:
            return
        if not ((channels >= start) & (channels < stop)).any():
            first, last = axis.positions(n)[[0, -1]]
            raise no_channel(
                start,
                stop,
                n,
                f"; for numbers in {axis.unit}, write start='{start:g} {axis.unit}' (the axis "
                f"{axis.name!r} goes from {first:g} to {last:g} {axis.unit})",
            )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GivenPixels:
    """A mask that a user has passed."""

    pixels: Any

    def mask(self, sig: Shape) -> AnyArray:
        """Return it as a boolean array; raise if it does not fit frames of shape `sig`."""
        if len(sig) > 2:
            raise ArgumentValueError(
                f"a virtual detector has one or two axes, not {tuple(sig)}: use ApplyMasksUDF(mask)"
            )
        return detector_pixels(self.pixels, sig)

    def is_cut(self, sig: Sequence[int]) -> bool:
        """Return False."""
        return False


def other_detector(shape: Any, numbers: Mapping[str, Any]) -> Rectangle | Window | GivenPixels:
    """Return a detector that is neither a disk nor a ring."""
    if not isinstance(shape, str):
        return GivenPixels(pixels=shape)
    own = {name: numbers[name] for name in NEEDED[shape]}
    return Window(**own) if shape == "window" else Rectangle(**own)


def checked_ring(ring: Ring) -> Ring:
    """Return a ring; raise, with the names of a virtual detector, unless its radii are ordered."""
    if ring.inner is not None:
        checks.radii(ring.outer, ring.inner, names=("ro", "ri"), finite=False)
    return ring


def check_axes(shape: Any, sig: Shape) -> None:
    """Raise if frames have not as many axes as a shape."""
    axes = 1 if isinstance(shape, str) and shape == "window" else 2
    if isinstance(shape, str) and len(sig) != axes:
        fitting = {1: "a window", 2: "a disk, ring, rect or point"}.get(len(sig), "ApplyMasksUDF")
        raise ArgumentValueError(
            f"a {shape} needs a signal with {axes} {'axis' if axes == 1 else 'axes'}, but frames "
            f"have the shape {tuple(sig)}: pass sig_dims={axes}, or use {fitting} (a signal: "
            f"signal.transpose(signal_axes={axes}))"
        )


def check_names(shape: Any, given: Mapping[str, Any]) -> None:
    """Raise unless the shape exists and these are its numbers."""
    known = ", ".join(get_args(DetectorShape))
    if not isinstance(shape, str):
        _check_mask(shape, given, known)
        return
    if shape not in NEEDED:
        raise ArgumentValueError(
            f"a virtual detector is one of {known}, not {shape!r}{_did_you_mean(shape)}"
        )
    takes = _numbers_of(shape)
    missing = [name for name in NEEDED[shape] if name not in given]
    unexpected = [name for name in given if name not in takes]
    if missing or unexpected:
        wrong = [f"{', '.join(unexpected)} was given"] if unexpected else []
        wrong += [f"{', '.join(missing)} is missing"] if missing else []
        optional = f" and optionally {', '.join(_OPTIONAL)}" if shape in CENTERED else ""
        meant = [one for one in NEEDED if set(NEEDED[one]) <= set(given) <= {*_numbers_of(one)}]
        hint = f"; {' or '.join(map(repr, meant))} is the shape that takes them" if meant else ""
        raise ArgumentTypeError(
            f"a {shape} takes {', '.join(NEEDED[shape])}{optional}, but {' and '.join(wrong)}{hint}"
        )
    for name, value in given.items():
        is_number = isinstance(value, int | float | np.number | Quantity | str)
        if name not in ("center", "centers") and (not is_number or isinstance(value, bool)):
            raise ArgumentTypeError(
                f"{name} of a {shape} must be a number of pixels, not {value!r} of type "
                f"{type(value).__name__}"
            )


_OTHER = "a virtual detector takes other numbers"


def unknown_numbers(shape: Any, unknown: Mapping[str, Any]) -> ArgumentTypeError:
    """Return the error about numbers that no detector has."""
    known = _numbers_of(shape) if isinstance(shape, str) and shape in NEEDED else ()
    what = f"a {shape} takes {', '.join(known)}" if known else _OTHER
    meant = [one for name in unknown for one in _MEANT.get(name, ()) if one in known]
    hint = f"; did you mean {', '.join(meant)}?" if meant else ""
    return ArgumentTypeError(f"{what}, but {', '.join(unknown)} was given{hint}")


def _numbers_of(shape: str) -> tuple[str, ...]:
    """Return the names of the numbers that a shape takes."""
    return (*NEEDED[shape], *(_OPTIONAL if shape in CENTERED else ()))


def plain_shape(shape: str) -> str:
    """Return the shape for another word, such as `disc` or Disk; other texts in lower case."""
    plain = shape.strip().lower()
    return OTHER_SHAPES.get(plain, plain)


def _did_you_mean(shape: str) -> str:
    """Return a question with the shape whose name is similar, if there is one."""
    from difflib import get_close_matches  # only for messages

    near = get_close_matches(plain_shape(shape), (*NEEDED, *OTHER_SHAPES), n=1)
    return f"; did you mean {plain_shape(near[0])!r}?" if near else ""


def _check_mask(mask: Any, given: Mapping[str, Any], known: str) -> None:
    """Raise unless this can be a mask, which has no numbers."""
    if isinstance(mask, (dict, list, tuple)) and len(mask):
        raise ArgumentTypeError(
            f"a virtual detector is one shape or mask, not a {type(mask).__name__} of them: for "
            'several, use ApplyMasksUDF({"BF": mask, ...}), or run_udf with '
            '{"BF": VirtualDetectorUDF(...), ...} in place of a UDF'
        )
    if not is_held_elsewhere(mask):
        if not hasattr(mask, "shape"):
            raise ArgumentTypeError(
                f"the shape of a virtual detector is one of {known}, or a boolean mask of the "
                f"shape of a frame, but its type is {type(mask).__name__}"
            )
        check_is_mask("the mask of a virtual detector", mask)
    if given:
        raise ArgumentTypeError(
            f"a virtual detector that is a mask takes no numbers, but {', '.join(given)} was given"
        )
