"""The shapes of a virtual detector: the numbers that each takes, and its pixels in a frame."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, get_args

import numpy as np

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.axes import Axis
from udfdask.geometry.shapes import Shape
from udfdask.geometry.units import Quantity
from udfdask.masks.disks import no_channel, rectangular, window
from udfdask.masks.given_masks import check_is_mask, detector_pixels, is_held_elsewhere
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


def pixels_of(shape: Any, numbers: Mapping[str, Any], sig: Shape) -> AnyArray:
    """Return the mask of a detector that is neither a disk nor a ring, in frames of a shape."""
    if not isinstance(shape, str):
        if len(sig) > 2:
            raise ArgumentValueError(
                f"a virtual detector has one or two axes, not {tuple(sig)}: use ApplyMasksUDF(mask)"
            )
        return detector_pixels(shape, sig)
    if shape == "window":
        return window(numbers["start"], numbers["stop"], sig[0])
    width, height = (numbers.get(name, 1) for name in ("width", "height"))
    if not (width >= 1 and height >= 1):
        raise ArgumentValueError(
            f"a rect must be at least 1 pixel wide and high, not {width!r} and {height!r}"
        )
    x, y, width, height = (np.floor(n) for n in (numbers["x"], numbers["y"], width, height))
    return rectangular(x, y, width - 1, height - 1, sig[1], sig[0])


def is_cut(shape: Any, numbers: Mapping[str, Any], sig: Shape) -> bool:
    """Return whether some of its pixels lie beyond the edge of frames."""
    if not isinstance(shape, str):
        return False
    if shape == "window":
        return bool(numbers["start"] <= -1 or numbers["stop"] > sig[0])
    ends = (("y", "height", sig[0]), ("x", "width", sig[1]))
    firsts = [math.floor(numbers[first]) for first, _, _ in ends]
    return any(
        first < 0 or first + math.floor(numbers.get(size, 1)) > n
        for first, (_, size, n) in zip(firsts, ends, strict=True)
    )


def check_channels(start: float, stop: float, axis: Axis, n: int) -> None:
    """Raise if no channel is in a window, and name the range of the axis in its unit."""
    channels = np.arange(n)
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


def check_names(shape: Any, given: Mapping[str, Any], unknown: Mapping[str, Any]) -> None:
    """Raise unless the shape exists, and has the given numbers and no `unknown` ones."""
    known = ", ".join(get_args(DetectorShape))
    is_shape = isinstance(shape, str) and shape in NEEDED
    takes = _takes(shape) if is_shape else ()
    if unknown:
        meant = [one for name in unknown for one in _MEANT.get(name, ()) if one in takes]
        raise ArgumentTypeError(
            (
                f"a {shape} takes {', '.join(takes)}"
                if takes
                else "a virtual detector takes other numbers"
            )
            + f", but {', '.join(unknown)} was given"
            + (f"; did you mean {', '.join(meant)}?" if meant else "")
        )
    if not isinstance(shape, str):
        _check_mask(shape, given, known)
        return
    if not is_shape:
        from difflib import get_close_matches  # only for messages

        near = get_close_matches(plain_shape(shape), (*NEEDED, *OTHER_SHAPES), n=1)
        hint = f"; did you mean {plain_shape(near[0])!r}?" if near else ""
        raise ArgumentValueError(f"a virtual detector is one of {known}, not {shape!r}{hint}")
    missing = [name for name in NEEDED[shape] if name not in given]
    unexpected = [name for name in given if name not in takes]
    if missing or unexpected:
        wrong = [f"{', '.join(unexpected)} was given"] if unexpected else []
        wrong += [f"{', '.join(missing)} is missing"] if missing else []
        optional = f" and optionally {', '.join(_OPTIONAL)}" if shape in CENTERED else ""
        meant = [one for one in NEEDED if set(NEEDED[one]) <= set(given) <= {*_takes(one)}]
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


def _takes(shape: str) -> tuple[str, ...]:
    """Return the names of the numbers that a shape takes."""
    return (*NEEDED[shape], *(_OPTIONAL if shape in CENTERED else ()))


def plain_shape(shape: str) -> str:
    """Return the shape for another word, such as `disc` or Disk; other texts in lower case."""
    plain = shape.strip().lower()
    return OTHER_SHAPES.get(plain, plain)


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
