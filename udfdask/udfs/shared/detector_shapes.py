"""The shapes of a virtual detector: the numbers that each takes, and its pixels in a frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from udfdask.base.types import AnyArray
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.geometry.shapes import Shape
from udfdask.geometry.units import Quantity, as_coordinate, as_quantity
from udfdask.masks.disks import rectangular, window
from udfdask.masks.given_masks import check_is_mask, detector_pixels, is_held_elsewhere
from udfdask.masks.polar import check_stretch
from udfdask.udfs.shared.geometry_parameters import as_centers, read_center, read_radii

DetectorShape = Literal["disk", "ring", "rect", "point", "window"]
"""Shapes of a virtual detector."""

NEEDED = {
    "disk": ("r",),
    "ring": ("ri", "ro"),
    "rect": ("x", "y", "width", "height"),
    "point": ("x", "y"),
    "window": ("start", "stop"),
}
"""The numbers that each shape needs."""

CENTERED = ("disk", "ring")
_OPTIONAL = ("cx", "cy", "center", "centers", "stretch", "stretch_angle")
_TAKES = {one: (*names, *(_OPTIONAL if one in CENTERED else ())) for one, names in NEEDED.items()}
"""All numbers of each shape, also those that it does not need."""

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


def plain_shape(shape: str) -> str:
    """Return the shape for another word, such as `disc` or Disk; other texts in lower case."""
    plain = shape.strip().lower()
    return OTHER_SHAPES.get(plain, plain)


def read_detector(
    shape: Any, given: Mapping[str, Any], unknown: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the numbers of a shape, checked; raise if one is missing or does not belong to it."""
    takes = _TAKES.get(shape, ()) if isinstance(shape, str) else ()
    if unknown:
        what = f"a {shape} takes {', '.join(takes)}" if takes else "a detector takes other numbers"
        meant = [one for name in unknown for one in _MEANT.get(name, ()) if one in takes]
        hint = f"; did you mean {', '.join(meant)}?" if meant else ""
        raise ArgumentTypeError(f"{what}, but {', '.join(unknown)} was given{hint}")
    if not isinstance(shape, str):
        _check_mask(shape, given)
        return {}
    if not takes:
        from difflib import get_close_matches  # only for messages

        near = get_close_matches(plain_shape(shape), (*NEEDED, *OTHER_SHAPES), n=1)
        hint = f"; did you mean {plain_shape(near[0])!r}?" if near else ""
        raise ArgumentValueError(
            f"a virtual detector is one of {', '.join(NEEDED)}, not {shape!r}{hint}"
        )
    needed = NEEDED[shape]
    missing = [name for name in needed if name not in given]
    unexpected = [name for name in given if name not in takes]
    if missing or unexpected:
        wrong = [f"{', '.join(unexpected)} was given"] if unexpected else []
        wrong += [f"{', '.join(missing)} is missing"] if missing else []
        also = f" and optionally {', '.join(_OPTIONAL)}" if shape in CENTERED else ""
        meant = [one for one in NEEDED if set(NEEDED[one]) <= set(given) <= set(_TAKES[one])]
        hint = f"; {' or '.join(map(repr, meant))} is the shape that takes them" if meant else ""
        raise ArgumentTypeError(
            f"a {shape} takes {', '.join(needed)}{also}, but {' and '.join(wrong)}{hint}"
        )
    return _read_numbers(shape, dict(given))


def _read_numbers(shape: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return the numbers of a shape, those with a unit as quantities, and its centers."""
    center, centers = given.pop("center", None), given.pop("centers", None)
    numbers: dict[str, Any] = {}
    for name, value in given.items():
        read = (as_coordinate if name in ("cx", "cy") else as_quantity)(name, value)
        is_number = isinstance(read, int | float | np.number | Quantity | str)
        if isinstance(read, bool) or not is_number:
            raise ArgumentTypeError(
                f"{name} of a {shape} must be a number of pixels, not {value!r} of type "
                f"{type(value).__name__}"
            )
        numbers[name] = read
    cy, cx = numbers.get("cy"), numbers.get("cx")
    if centers is not None:
        numbers["centers"] = as_centers(centers, center=center, cy=cy, cx=cx)
    elif center is not None:
        numbers["cy"], numbers["cx"] = read_center(center, cy, cx)
    check_stretch(numbers.get("stretch", 1.0), numbers.get("stretch_angle", 0.0))
    if shape == "ring":
        read_radii(ro=numbers["ro"], ri=numbers["ri"], finite=False)
    return numbers


def _check_mask(mask: Any, given: Mapping[str, Any]) -> None:
    """Raise unless this can be a mask, which has no numbers."""
    if isinstance(mask, (dict, list, tuple)) and len(mask):
        raise ArgumentTypeError(
            f"a virtual detector is one shape or mask, not a {type(mask).__name__} of them: for "
            'several, use ApplyMasksUDF({"BF": mask, ...}), or run_udf with '
            '{"BF": VirtualDetectorUDF(...), ...} in place of a UDF'
        )
    if not is_held_elsewhere(mask):
        check_is_mask("the mask of a virtual detector", mask)
    if given:
        raise ArgumentTypeError(
            f"a virtual detector that is a mask takes no numbers, but {', '.join(given)} was given"
        )


def check_axes(shape: Any, sig: Shape) -> None:
    """Raise if frames have not as many axes as a shape."""
    if not isinstance(shape, str):
        if len(sig) > 2:
            raise ArgumentValueError(
                f"a virtual detector has one or two axes, not {tuple(sig)}: use ApplyMasksUDF(mask)"
            )
        return
    axes = 1 if shape == "window" else 2
    if len(sig) != axes:
        fitting = {1: "a window", 2: "a disk, ring, rect or point"}.get(len(sig), "ApplyMasksUDF")
        raise ArgumentValueError(
            f"a {shape} needs a signal with {axes} {'axis' if axes == 1 else 'axes'}, but frames "
            f"have the shape {tuple(sig)}: pass sig_dims={axes}, or use {fitting} (a signal: "
            f"signal.transpose(signal_axes={axes}))"
        )


def pixels_of(shape: Any, numbers: Mapping[str, Any], sig: Shape) -> tuple[AnyArray, bool]:
    """Return the mask of a detector without a center, and whether the edge of frames cuts it."""
    if not isinstance(shape, str):
        return detector_pixels(shape, sig), False
    if shape == "window":
        start, stop = numbers["start"], numbers["stop"]
        return window(start, stop, sig[0]), bool(start <= -1 or stop > sig[0])
    width, height = (numbers.get(name, 1) for name in ("width", "height"))
    if not (width >= 1 and height >= 1):
        raise ArgumentValueError(
            f"a rect must be at least 1 pixel wide and high, not {width!r} and {height!r}"
        )
    x, y, width, height = (np.floor(n) for n in (numbers["x"], numbers["y"], width, height))
    mask = rectangular(x, y, width - 1, height - 1, sig[1], sig[0])
    return mask, bool(np.count_nonzero(mask) < width * height)
