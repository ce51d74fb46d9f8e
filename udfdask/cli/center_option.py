"""Read the center after ``--center``, and give it to the UDFs that take one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import click

from udfdask.cli.udf_option import TypedUDF
from udfdask.geometry.axes import Axis, Calibration
from udfdask.geometry.units import CENTER_WORDS, read_quantity
from udfdask.plan.calibrate import with_pixels
from udfdask.udfs import CoMUDF
from udfdask.udfs.shared.find_center import CenterMethod

_SEARCHES: dict[str, CenterMethod] = {"find": "symmetry", "com": "com"}
"""Words in place of a center, and the methods of `find_center`."""

_EXAMPLES = (
    "find, com, zero, middle, or Y,X in pixels or in the unit of the axes, such as 63.5,61 or "
    "0mrad,0mrad"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Center:
    """A common center of all frames."""

    y: str
    """Its y coordinate as typed after ``cy=``: a number of pixels, or a number with a unit."""
    x: str
    """Its x coordinate, as typed after ``cx=``."""

    @property
    def is_in_pixels(self) -> bool:
        """Whether both coordinates are numbers of pixels."""
        return _is_pixels(self.y) and _is_pixels(self.x)

    def in_words(self, axes: Sequence[Axis], sig: Sequence[int]) -> str:
        """Return the center as it was typed, and in pixels.

        `axes` are those of a frame, and `sig` is its shape.
        """
        if self.is_in_pixels:
            return f"y {self.y}, x {self.x} px"
        center = [float(t) if _is_pixels(t) else t for t in (self.y, self.x)]
        udf = with_pixels(CoMUDF(center=center), Calibration(axes=tuple(axes)), sig, len(axes))
        typed = self.y if self.y in CENTER_WORDS else f"y {self.y}, x {self.x}"
        return f"{typed} = y {udf.params.cy:.4g}, x {udf.params.cx:.4g} px"


@dataclass(frozen=True, slots=True, kw_only=True)
class CenterSearch:
    """A center that is found in the data before the run."""

    word: str
    """What was typed."""

    @property
    def method(self) -> CenterMethod:
        """The method of `find_center`."""
        return _SEARCHES[self.word]


def to_center(text: str) -> Center | CenterSearch:
    """Convert ``find``, ``com``, ``zero``, ``middle``, ``63.5,61`` or ``0.1mrad,-0.2mrad``."""
    word = text.strip().lower()
    if word in _SEARCHES:
        return CenterSearch(word=word)
    if word in CENTER_WORDS:
        return Center(y=word, x=word)
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 2 or not all(map(_is_length, parts)):
        raise click.BadParameter(f"{text!r} is not a center: write {_EXAMPLES}")
    return Center(y=parts[0], x=parts[1])


def _is_pixels(text: str) -> bool:
    """Return whether a text is a finite number."""
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _is_length(text: str) -> bool:
    """Return whether a text is a number of pixels, or a number with a unit."""
    try:
        read_quantity(text)
    except ValueError:
        return _is_pixels(text)
    return True


def takers(typed: Mapping[str, TypedUDF]) -> dict[str, TypedUDF]:
    """Return the UDFs that take a center and were typed without one; raise if there are none."""
    found = {name: udf for name, udf in typed.items() if _takes_center(udf)}
    if found:
        return found
    own = [name for name, udf in typed.items() if udf.center_names]
    none = [name for name in typed if name not in own]
    texts = [f"{', '.join(own)} {_have(own)} a center already"] if own else []
    texts += [f"{', '.join(none)} {_have(none)} none"] if none else []
    raise click.UsageError(
        "--center is for UDFs with a center, such as com, disk, ring and radialprofile, but "
        f"{' and '.join(texts)}: leave out --center"
    )


def _have(names: list[str]) -> str:
    return "has" if len(names) == 1 else "have"


def _takes_center(typed: TypedUDF) -> bool:
    """Return whether a UDF takes a center and has none; raise if it has one coordinate."""
    names = typed.center_names
    given = [name for name in names if name in typed.settings]
    if given and len(given) < len(names):
        (missing,) = set(names) - set(given)
        raise click.UsageError(
            f"{typed.text!r} has {given[0]} without {missing}: write both, or leave out both so "
            "that --center gives them"
        )
    return bool(names) and not given and "centers" not in typed.settings


def with_center(typed: TypedUDF, center: Center) -> TypedUDF:
    """Return a UDF as if the center had been typed with its parameters."""
    names = typed.center_names
    values = [center.y, center.x]
    if not (center.is_in_pixels or set(names) <= set(getattr(typed.entry.udf, "calibrated", {}))):
        raise click.UsageError(
            f"{typed.text!r} takes its center in pixels, because its class does not name "
            f"{' and '.join(names)} in calibrated: write --center in pixels"
        )
    if names == ("center",):
        pair = ",".join(text if _is_pixels(text) else repr(text) for text in values)
        values = [f"({pair})"]
    return replace(typed, settings={**typed.settings, **dict(zip(names, values, strict=True))})
