"""Texts about a run: the pixels of its detectors, likely mistakes, and notes, often as meant."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from dask.utils import format_bytes

from udfdask.explanation.costs import NOTED_BLOCKS, many_blocks
from udfdask.geometry.axes import Axis, pixel_size, shared_unit
from udfdask.plan.parameters import new_instance
from udfdask.plan.recipe import CORRECTIONS
from udfdask.udf.written_methods import is_of_user

if TYPE_CHECKING:
    from udfdask.masks.coverage import Coverage
    from udfdask.plan.plan import Plan
    from udfdask.udf import UDF


def notes_of_run(plan: Plan) -> Iterator[str]:
    """Yield all notes about a run, those about its detectors first."""
    yield from (text for _, text in plan.notes)
    yield from _merge_notes(plan)
    if not plan.advice:
        yield from (one.said(plan.door) for one in many_blocks(plan.recipe, NOTED_BLOCKS))
    names = {CORRECTIONS: "corrections", **{k: u.name for k, u in enumerate(plan.recipe.udfs)}}
    if lazy := [f"{names[k]}.{name}" for k, name, _ in plan.recipe.lazy_slots]:
        yield f"{', '.join(dict.fromkeys(lazy))} computed first, then passed to every task"
    if (size := plan.recipe.nbytes) > (1 << 20):
        yield (
            f"parameters of {format_bytes(size)} are a task of their own, which a distributed "
            "cluster sends to each worker once; the processes scheduler sends them with every task"
        )


def _merge_notes(plan: Plan) -> Iterator[str]:
    """Yield why merges run one after another, and what ends that, for UDFs that users wrote."""
    for udf in plan.recipe.udfs:
        is_chain = udf.merge.mode == "chain" and plan.recipe.grid.n_chunks > 1
        if not is_chain or not is_of_user(udf.cls):
            continue
        nav = [name for name, spec in udf.allocated.items() if spec.kind == "nav"]
        several, them = ("s", "them") if len(nav) > 1 else ("", "it")
        yield (
            f"{udf.name}: merges run one after another, because merge might compute the nav "
            f"buffer{several} {', '.join(map(repr, nav))} from earlier chunks. If merge only "
            f"assigns {them}, write this as dest.{nav[0]}[:] = src.{nav[0]} without branches, or "
            "set merge_assigns_nav = True in the class: then chunks are merged in a tree"
        )


def _detectors(plan: Plan) -> Iterator[tuple[int, UDF, list[Coverage]]]:
    """Yield number, instance and detectors of each UDF that has some, or a center."""
    for number, udf in enumerate(plan.recipe.udfs):
        if udf.knows_pixels:
            asked = new_instance(udf.cls, udf.kwargs)
            yield number, asked, list(asked._coverages(plan.recipe.shape.sig))


def detector_advice(plan: Plan) -> tuple[list[str], list[tuple[int, str]]]:
    """Return warnings about likely mistakes, and notes by the numbers of UDFs without a warning.

    Mistakes are disks and rings that cover the whole frame, or a part of a pixel.
    """
    warnings: list[str] = []
    notes: list[tuple[int, str]] = []
    for number, udf, coverages in _detectors(plan):
        lengths = plan.bare_lengths[number]
        in_unit = [_in_unit(lengths, _sig_axes(plan))] if lengths else []
        mistakes = [one for one in coverages if _is_mistake(one, lengths)]
        for one in mistakes:
            radii = " and ".join(f"{name} = {r:g} px" for name, r in one.radii.items())
            what = f"the {one.shape} with {radii} covers {_pixels(one)} of a frame"
            texts = [f"{plan.names[number]}: {what}", *in_unit]
            if one.covered == one.total:
                texts.append(
                    f"The result is that of {one.same_as}: if all pixels are meant, use it, or an "
                    f"infinite {list(one.radii)[-1]}"
                )
            warnings.append(". ".join(texts))
        if mistakes:
            continue
        texts = [_middle_note(udf, plan.recipe.shape.sig)]
        for one in coverages:
            if one.is_cut:
                texts.append(
                    f"the {one.shape} reaches beyond the edge of the frame, where there are no "
                    "pixels"
                )
        notes += [(number, f"{_who(plan, number)}{t}") for t in (*texts, *in_unit) if t]
    return warnings, notes


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
    """Return a text for each detector: "disk, r = 4 px, center y 8, x 8 px, covers 49 of 256"."""
    lines, sig = [], _sig_axes(plan)
    for number, _, coverages in _detectors(plan):
        for one in coverages:
            size, unit = pixel_size(sig, is_stretched=one.stretch != 1)
            words = [f"{_who(plan, number)}{one.shape}"]
            for name, r in one.radii.items():
                in_unit = "" if unit == "px" or not r else f" = {r * size:g} {unit}"
                words.append(f"{name} = {r:g} px{in_unit}" if r < math.inf else f"{name} = inf")
            if one.stretch != 1:
                words.append(f"stretch = {one.stretch:g}")
            if one.center is not None:
                words.append("center y {:.4g}, x {:.4g} px".format(*one.center))
            own = "each frame has its own center"
            words.append(own if one.covered is None else f"covers {_pixels(one, len(sig))}")
            lines.append(", ".join(words))
    return lines


def _sig_axes(plan: Plan) -> tuple[Axis, ...]:
    return plan.calibration.axes[len(plan.recipe.shape.nav) :]


def _who(plan: Plan, number: int) -> str:
    return f"{plan.names[number]}: " if len(plan.names) > 1 else ""


def _pixels(one: Coverage, n_sig: int = 2) -> str:
    """Return how many pixels of a frame a detector covers."""
    steps = "pixels" if n_sig > 1 else "channels"
    count = "all" if one.covered == one.total else f"{one.covered:,} of"
    return f"{count} {one.total:,} {steps}"


def _in_unit(lengths: Mapping[str, float], sig: Sequence[Axis]) -> str:
    """Return how to give lengths in the unit of the axes that have no unit."""
    unit, steps = shared_unit(sig), "pixels" if len(sig) > 1 else "channels"
    numbers = " and ".join(f"{name}={value:g}" for name, value in lengths.items())
    write = ", ".join(f"{name}='{value:g} {unit}'" for name, value in lengths.items())
    are = "are" if len(lengths) > 1 else "is"
    return f"{numbers} {are} in {steps}: for {unit}, write {write}"


def _middle_note(udf: UDF, sig: Sequence[int]) -> str:
    """Return a note on a center in the middle that nobody has asked for; empty if it is not so."""
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
