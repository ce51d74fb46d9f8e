"""Says why results depend on chunks: looks at partial results and at merges of one or two."""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.merge.merge import merge_partials
from udfdask.testing.differences import Difference
from udfdask.testing.eager_run import EagerRun
from udfdask.testing.udf_under_test import Subject
from udfdask.types import AnyArray


def why_chunks_show(
    subject: Subject, whole: EagerRun, split: EagerRun, difference: Difference
) -> str:
    """Return what is wrong, given a run in one chunk, the same in several, and how they differ."""
    numbers = (
        f"{split.layout} give {difference.name!r} = {difference.one}, one chunk gives "
        f"{difference.other} {difference.where}"
    )
    rows = _rows_that_differ(subject, whole, split)
    if rows:
        return (
            f"nav buffer {rows.name!r} depends on where chunks begin: {split.layout} give "
            f"{rows.one}, one chunk gives {rows.other} {rows.where}. A chunk may begin at any "
            "frame, and each works on a fresh instance: meta.coordinates tells the scan position"
            f"{hint_of_attributes(subject)}"
        )
    mode = split.declared.merge.mode
    if mode == "all":
        return _why_merge_all(split, numbers)
    if mode in ("tree", "chain"):
        return (
            _not_neutral(subject, whole, numbers)
            or _overwritten(subject, whole, split, numbers)
            or _wrong_merge(split, numbers, hint_of_attributes(subject))
        )
    return f"results depend on where chunks begin: {numbers}{hint_of_attributes(subject)}"


def _rows_that_differ(subject: Subject, whole: EagerRun, split: EagerRun) -> Difference | None:
    """Return where nav buffers differ before anything is merged."""
    specs = {k: s for k, s in split.declared.allocated.items() if s.kind == "nav"}
    n = split.recipe.grid.n_frames
    found = {k: s.allocate(n, subject.sig) for k, s in specs.items()}
    for partial in split.partials:
        rows = np.asarray(split.recipe.grid.rows_of(partial.first, partial.stop), dtype=np.int64)
        for name, array in found.items():
            array[rows] = partial.arrays[name]
    wanted = {name: whole.partials[0].arrays[name] for name in specs}
    return subject.difference(found, wanted, split.data)


def hint_of_attributes(subject: Subject) -> str:
    """Return which attributes an instance sets while processing, as a sentence."""
    names = subject.attributes_set()
    if not names:
        return ""
    shown = ", ".join(f"self.{name}" for name in names)
    return (
        f". Note that {shown} changes while data are processed, and that attributes start anew in "
        "every chunk"
    )


def preprocessed(run: EagerRun) -> dict[str, AnyArray]:
    """Return the fresh buffers into which the only chunk of a run is merged."""
    cls: Any = run.declared.cls
    idle = type(cls.__name__, (cls,), {"merge": lambda self, dest, src: None})
    return merge_partials(run.with_changes(cls=idle), 0, run.partials[:1]).arrays


def _why_merge_all(split: EagerRun, numbers: str) -> str:
    """Return what is wrong with a merge_all."""
    if split.declared.merge.fan_in is None:
        return f"merge_all gives something else for other chunks: {numbers}"
    return (
        f"merge_all is not associative: {numbers}. It is called on groups of chunks and on its own "
        "results (an average of averages and a median do not survive that): keep sums and counts "
        "in buffers and divide in get_results"
    )


def _not_neutral(subject: Subject, whole: EagerRun, numbers: str) -> str:
    """Return that preprocess adds something of its own, if it does; else ""."""
    fresh = preprocessed(whole)
    alone = whole.partials[0]
    merged = merge_partials(whole.recipe, 0, [alone])
    for name in whole.declared.allocated:
        if not _is_set(fresh[name]):
            continue
        difference = subject.difference(
            {name: merged.arrays[name]}, {name: alone.arrays[name]}, whole.data
        )
        if difference:
            first = _first(fresh[name], difference)
            return (
                f"preprocess is not neutral: it sets {name!r} to {first}, and a chunk that holds "
                f"{difference.other}, merged into that, gives {difference.one}. Every merge begins "
                f"with buffers from preprocess, which must not add to what comes: {numbers}"
            )
    return ""


def _is_set(array: AnyArray) -> bool:
    """Return whether an array holds anything but zeros."""
    return array.size > 0 and bool((array != np.zeros((), array.dtype)).any())


def _first(array: AnyArray, difference: Difference) -> Any:
    """Return the value of an array at the place of a difference."""
    return array[difference.index] if difference.index is not None else array.ravel()[0]


def _overwritten(subject: Subject, whole: EagerRun, split: EagerRun, numbers: str) -> str:
    """Return that merge keeps one of several chunks, if it does; else ""."""
    alone = whole.partials[0]
    first, last = split.partials[0], split.partials[-1]
    top = split.merged()[1]
    assert top is not None
    fresh = preprocessed(whole)
    for name, spec in split.declared.allocated.items():
        if spec.kind == "nav" or not subject.difference(
            {name: top.arrays[name]}, {name: alone.arrays[name]}, whole.data
        ):
            continue
        for which, kept, lost in (("last", last, first), ("first", first, last)):
            found, empty = {name: top.arrays[name]}, {name: fresh[name]}
            was_there = subject.difference({name: lost.arrays[name]}, empty, whole.data)
            if was_there and not subject.difference(found, {name: kept.arrays[name]}, whole.data):
                does = "overwrites" if which == "last" else "does not add to"
                return (
                    f"merge {does} buffer {name!r}: after merging, it holds what the {which} chunk "
                    f"had, not what all chunks had together: {numbers}. Combine dest and src, as "
                    f"in dest.{name} += src.{name}"
                )
    return ""


def _wrong_merge(split: EagerRun, numbers: str, hint: str) -> str:
    """Return that a merge is wrong for no reason that can be named better."""
    where = "" if split.declared.merge.mode == "chain" else ", however they are grouped"
    return (
        f"merge is not associative: {numbers}. Merging chunks must give what one chunk of all "
        f"their frames gives{where}{hint}"
    )
