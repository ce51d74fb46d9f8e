"""Say which pixels detectors cover, and warn about detectors that are nearly surely a mistake."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from udfdask.explanation.notes import Note
from udfdask.geometry.axes import Axis, pixel_size, shared_unit
from udfdask.plan.declarations import new_instance

if TYPE_CHECKING:
    from udfdask.masks.coverage import Coverage
    from udfdask.plan.plan import Plan
    from udfdask.udf import UDF

_FEW = 4
"""`explain` has a note about detectors of at most this number of pixels."""


def detector_warnings(plan: Plan) -> Iterator[str]:
    """Yield warnings about disks and rings that cover the whole frame, or a part of a pixel."""
    shape = plan.recipe.shape
    for udf, name, lengths in zip(plan.recipe.udfs, plan.names, plan.bare_lengths, strict=True):
        if not udf.has_detectors:
            continue
        for one in new_instance(udf.cls, udf.kwargs)._coverages(shape.sig):
            if not _is_mistake(one, lengths):
                continue
            outer = list(one.radii)[-1]
            text = f"{name}: {_with_radii(one)} covers {_pixels(one)} of a frame"
            if lengths:
                text += f". {_in_unit(lengths, plan.calibration.axes[len(shape.nav) :])}"
            if one.covered == one.total:
                text += (
                    f". The result is that of {one.same_as}: if all pixels are meant, use it, or "
                    f"an infinite {outer}"
                )
            yield text


def _is_mistake(one: Coverage, bare: Mapping[str, float]) -> bool:
    """Return whether a disk or ring covers the whole frame, or a radius is a part of a pixel.

    An infinite radius is meant, and so is such a radius where axes have no unit. A frame of one
    pixel, such as a cutout of the first steps, has no smaller detector.
    """
    if not one.same_as or one.covered is None or one.total == 1:
        return False
    outer, radius = list(one.radii.items())[-1]
    return (one.covered == one.total and radius < math.inf) or (outer in bare and radius < 1)


def detector_lines(plan: Plan) -> tuple[list[str], list[Note]]:
    """Return a text for each detector of a run, and notes about those without a warning."""
    lines: list[str] = []
    notes: list[Note] = []
    sig = plan.calibration.axes[len(plan.recipe.shape.nav) :]
    rows = zip(plan.recipe.udfs, plan.names, plan.bare_lengths, strict=True)
    for number, (udf, name, lengths) in enumerate(rows):
        if not udf.has_detectors and not udf.has_center:
            continue
        who = f"{name}: " if len(plan.names) > 1 else ""
        asked = new_instance(udf.cls, udf.kwargs)
        coverages = asked._coverages(plan.recipe.shape.sig)
        lines += [f"{who}{_in_words(one, sig)}" for one in coverages]
        if any(_is_mistake(one, lengths) for one in coverages):
            continue
        texts = [_middle_note(asked, plan.recipe.shape.sig)]
        texts += [text for one in coverages for text in _notes(one)]
        texts += [_in_unit(lengths, sig)] if lengths else []
        notes += [Note(f"{who}{text}", number, is_about_values=True) for text in texts if text]
    return lines, notes


def _notes(one: Coverage) -> Iterator[str]:
    """Yield what is good to know about the pixels of a detector."""
    if one.radii and one.covered is not None and one.covered <= _FEW:
        yield f"the {one.shape} covers only {_pixels(one)}"
    if one.is_cut:
        yield f"the {one.shape} reaches beyond the edge of the frame, where there are no pixels"


def _place(center: Sequence[float]) -> str:
    """Return a place in a frame in words, such as "y 32, x 40.5 px"."""
    y, x = center
    return f"y {y:.4g}, x {x:.4g} px"


def _in_words(one: Coverage, sig: Sequence[Axis]) -> str:
    """Return a detector in words: "disk, r = 4 px, center y 8, x 8 px, covers 49 of 256 pixels"."""
    size, unit = pixel_size(sig, is_stretched=one.stretch != 1)
    radii = [
        f"{name} = {r:g} px" + ("" if unit == "px" or not r else f" = {r * size:g} {unit}")
        if r < math.inf
        else f"{name} = inf"
        for name, r in one.radii.items()
    ]
    if one.stretch != 1:
        radii.append(f"stretch = {one.stretch:g}")
    where = "each frame has its own center"
    if one.covered is not None:
        where = f"covers {_pixels(one, len(sig))}"
    if one.center is not None:
        where = f"center {_place(one.center)}, {where}"
    return ", ".join([one.shape, *radii, where])


def _with_radii(one: Coverage) -> str:
    """Return a disk or ring with its radii in pixels."""
    return f"the {one.shape} with {' and '.join(f'{k} = {r:g} px' for k, r in one.radii.items())}"


def _pixels(one: Coverage, n_sig: int = 2) -> str:
    """Return how many pixels of a frame a detector covers."""
    steps = "pixels" if n_sig > 1 else "channels"
    if one.covered == one.total:
        return f"all {one.total:,} {steps}"
    return f"{one.covered:,} of {one.total:,} {steps}"


def _in_unit(lengths: Mapping[str, float], sig: Sequence[Axis]) -> str:
    """Return how to give lengths in the unit of the axes that have no unit."""
    unit, steps = shared_unit(sig), "pixels" if len(sig) > 1 else "channels"
    write = ", ".join(f"{name}='{value:g} {unit}'" for name, value in lengths.items())
    if len(lengths) == 1:
        ((name, value),) = lengths.items()
        return f"{name}={value:g} is in {steps}: for {value:g} {unit}, write {write}"
    numbers = " and ".join(f"{name}={value:g}" for name, value in lengths.items())
    return f"{numbers} are in {steps}: for {unit}, write {write}"


def _middle_note(udf: UDF, sig: Sequence[int]) -> str:
    """Return a note on a center in the middle that nobody has asked for; empty if it is not so.

    The parameters of `udf` are in pixels.
    """
    names, place = udf._center_names(), [n // 2 for n in sig]
    missing = [name for name in names if udf._kwargs.get(name) is None]
    if not missing or len(sig) != 2:
        return ""
    what = f"the center is the middle of the frame, y {place[0]}, x {place[1]} px"
    if len(missing) < len(names):
        what = f"{missing[0]} is the middle of the frame, {place[names.index(missing[0])]} px"
    return (
        f"{what}: it was not given, and the axes are not 0 inside of the frame. If the beam is "
        "elsewhere, give center=find_center(pattern); center='middle' leaves out this note"
    )
