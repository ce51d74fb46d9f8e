"""Texts about a run: the pixels of its detectors, likely mistakes, and notes, often as meant."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dask.utils import format_bytes

from udfdask.explanation.costs import small_chunks_note
from udfdask.geometry.axes import Axis, pixel_size, shared_unit
from udfdask.plan.declarations import new_instance
from udfdask.plan.recipe import CORRECTIONS

if TYPE_CHECKING:
    from udfdask.masks.coverage import Coverage
    from udfdask.plan.plan import Plan
    from udfdask.udf import UDF

_FEW = 4
"""`explain` has a note about detectors of at most this number of pixels."""


@dataclass(frozen=True, slots=True)
class Note:
    """A note of `explain`, and the UDF that it is about."""

    text: str
    """One or more sentences; with several UDFs, the name of the UDF comes first."""
    udf: int | None
    """Number of the UDF in the run; None if the note is about a run of several."""
    is_about_values: bool = False
    """Whether it matters after the run too: computed results show such notes."""


def notes_of(plan: Plan) -> tuple[Note, ...]:
    """Return all notes about a run; a run of one UDF is that of the UDF."""
    number = 0 if len(plan.recipe.udfs) == 1 else None
    of_run = (Note(text, number) for text in _notes_of_run(plan))
    return (*detector_notes(plan), *_merge_notes(plan), *of_run)


def _merge_notes(plan: Plan) -> Iterator[Note]:
    """Yield why merges run one after another, and what ends that, for UDFs that users wrote."""
    for number, udf in enumerate(plan.recipe.udfs):
        is_chain = udf.merge.mode == "chain" and plan.recipe.grid.n_chunks > 1
        if not is_chain or udf.cls.__module__.startswith("udfdask.udfs."):
            continue
        nav = [name for name, spec in udf.allocated.items() if spec.kind == "nav"]
        several, them = ("s", "them") if len(nav) > 1 else ("", "it")
        text = (
            f"{udf.name}: merges run one after another, because merge might compute the nav "
            f"buffer{several} {', '.join(map(repr, nav))} from earlier chunks. If merge only "
            f"assigns {them} (dest.{nav[0]}[:] = src.{nav[0]}), set merge_assigns_nav = True in "
            "the class: then chunks are merged in a tree"
        )
        yield Note(text, number)


def _notes_of_run(plan: Plan) -> Iterator[str]:
    """Yield notes about what a run reads and sends."""
    recipe = plan.recipe
    if recipe.native.is_sparse:
        yield (
            "dask knows only the dense size of sparse chunks; the memory that they need is "
            "proportional to the number of stored values"
        )
    if not plan.advice and (note := small_chunks_note(recipe)):
        yield note.said(plan.door)
    names = {CORRECTIONS: "corrections", **{k: u.name for k, u in enumerate(recipe.udfs)}}
    slots = [(k, p[0] if isinstance(p, tuple) else p) for k, p in recipe.lazy_slots]
    if slots:
        lazy = ", ".join(f"{names[k]}.{p}" for k, p in dict.fromkeys(slots))
        yield f"{lazy} computed first, then passed to every task"
    if recipe.nbytes > (1 << 20):
        yield (
            f"parameters of {format_bytes(recipe.nbytes)} are a task of their own, which a "
            "distributed cluster sends to each worker once; the processes scheduler sends them "
            "with every task"
        )


def _detectors(plan: Plan) -> Iterator[tuple[int, UDF, list[Coverage]]]:
    """Yield number, instance and detectors of each UDF that has some, or a center."""
    for number, udf in enumerate(plan.recipe.udfs):
        if udf.has_detectors or udf.has_center:
            asked = new_instance(udf.cls, udf.kwargs)
            yield number, asked, list(asked._coverages(plan.recipe.shape.sig))


def _sig_axes(plan: Plan) -> tuple[Axis, ...]:
    return plan.calibration.axes[len(plan.recipe.shape.nav) :]


def detector_warnings(plan: Plan) -> Iterator[str]:
    """Yield warnings about disks and rings that cover the whole frame, or a part of a pixel."""
    for number, _, coverages in _detectors(plan):
        lengths = plan.bare_lengths[number]
        for one in coverages:
            if not _is_mistake(one, lengths):
                continue
            radii = " and ".join(f"{name} = {r:g} px" for name, r in one.radii.items())
            covered = f"covers {_pixels(one)} of a frame"
            texts = [f"{plan.names[number]}: the {one.shape} with {radii} {covered}"]
            if lengths:
                texts.append(_in_unit(lengths, _sig_axes(plan)))
            if one.covered == one.total:
                texts.append(
                    f"The result is that of {one.same_as}: if all pixels are meant, use it, or an "
                    f"infinite {list(one.radii)[-1]}"
                )
            yield ". ".join(texts)


def _is_mistake(one: Coverage, bare: Mapping[str, float]) -> bool:
    """Return whether a disk or ring covers the whole frame, or a radius is a part of a pixel.

    An infinite radius is meant, and so is such a radius where axes have no unit. A frame of one
    pixel, such as a cutout of the first steps, has no smaller detector.
    """
    if not one.same_as or one.covered is None or one.total == 1:
        return False
    outer, radius = list(one.radii.items())[-1]
    return (one.covered == one.total and radius < math.inf) or (outer in bare and radius < 1)


def detector_lines(plan: Plan) -> list[str]:
    """Return a text for each detector of a run."""
    sig = _sig_axes(plan)
    return [
        f"{_who(plan, number)}{_in_words(one, sig)}"
        for number, _, coverages in _detectors(plan)
        for one in coverages
    ]


def detector_notes(plan: Plan) -> Iterator[Note]:
    """Yield notes about the detectors of UDFs without a warning."""
    sig, shape = _sig_axes(plan), plan.recipe.shape.sig
    for number, asked, coverages in _detectors(plan):
        lengths = plan.bare_lengths[number]
        if any(_is_mistake(one, lengths) for one in coverages):
            continue
        texts = [_middle_note(asked, shape)]
        for one in coverages:
            if one.radii and one.covered is not None and one.covered <= _FEW:
                texts.append(f"the {one.shape} covers only {_pixels(one)}")
            if one.is_cut:
                texts.append(
                    f"the {one.shape} reaches beyond the edge of the frame, where there are no "
                    "pixels"
                )
        texts += [_in_unit(lengths, sig)] if lengths else []
        for text in filter(None, texts):
            yield Note(f"{_who(plan, number)}{text}", number, is_about_values=True)


def _who(plan: Plan, number: int) -> str:
    return f"{plan.names[number]}: " if len(plan.names) > 1 else ""


def _in_words(one: Coverage, sig: Sequence[Axis]) -> str:
    """Return a detector in words: "disk, r = 4 px, center y 8, x 8 px, covers 49 of 256 pixels"."""
    size, unit = pixel_size(sig, is_stretched=one.stretch != 1)
    words = [one.shape]
    for name, r in one.radii.items():
        in_unit = "" if unit == "px" or not r else f" = {r * size:g} {unit}"
        words.append(f"{name} = {r:g} px{in_unit}" if r < math.inf else f"{name} = inf")
    if one.stretch != 1:
        words.append(f"stretch = {one.stretch:g}")
    if one.center is not None:
        words.append("center y {:.4g}, x {:.4g} px".format(*one.center))
    own = "each frame has its own center"
    words.append(own if one.covered is None else f"covers {_pixels(one, len(sig))}")
    return ", ".join(words)


def _pixels(one: Coverage, n_sig: int = 2) -> str:
    """Return how many pixels of a frame a detector covers."""
    steps = "pixels" if n_sig > 1 else "channels"
    if one.covered == one.total:
        return f"all {one.total:,} {steps}"
    return f"{one.covered:,} of {one.total:,} {steps}"


def _in_unit(lengths: Mapping[str, float], sig: Sequence[Axis]) -> str:
    """Return how to give lengths in the unit of the axes that have no unit."""
    unit, steps = shared_unit(sig), "pixels" if len(sig) > 1 else "channels"
    numbers = " and ".join(f"{name}={value:g}" for name, value in lengths.items())
    write = ", ".join(f"{name}='{value:g} {unit}'" for name, value in lengths.items())
    if len(lengths) == 1:
        return (
            f"{numbers} is in {steps}: for {next(iter(lengths.values())):g} {unit}, write {write}"
        )
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
