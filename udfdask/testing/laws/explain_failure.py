"""Find out why results depend on chunks: compare partial results, and merges of one or two."""

from __future__ import annotations

from typing import Any

import numpy as np

from udfdask.merge.merge import merge_partials
from udfdask.testing.differences import Difference
from udfdask.testing.eager_run import EagerRun
from udfdask.testing.udf_under_test import Subject
from udfdask.types import AnyArray


def why_chunks_show(
    subject: Subject, single: EagerRun, split: EagerRun, difference: Difference
) -> str:
    """Return the message for results that differ between one chunk and several chunks."""
    numbers = (
        f"{split.layout} give {difference.name!r} = {difference.one}, one chunk gives "
        f"{difference.other} {difference.where}"
    )
    rows = _rows_that_differ(subject, single, split)
    if rows:
        return (
            f"nav buffer {rows.name!r} depends on where chunks begin: {split.layout} give "
            f"{rows.one}, one chunk gives {rows.other} {rows.where}. A chunk can begin at any "
            "frame, and has its own instance of the UDF: use meta.coordinates for scan positions"
            f"{hint_of_attributes(subject)}"
        )
    mode = split.declared.merge.mode
    if mode == "all":
        return _why_merge_all(split, numbers)
    if mode in ("tree", "chain"):
        return (
            _not_neutral(subject, single, numbers)
            or _overwritten(subject, single, split, numbers)
            or _wrong_merge(split, numbers, hint_of_attributes(subject))
        )
    return f"results depend on where chunks begin: {numbers}{hint_of_attributes(subject)}"


def _rows_that_differ(subject: Subject, single: EagerRun, split: EagerRun) -> Difference | None:
    """Return the first difference between nav buffers before any merge."""
    specs = {k: s for k, s in split.declared.allocated.items() if s.kind == "nav"}
    n = split.recipe.grid.n_frames
    joined = {k: s.allocate(n, subject.sig) for k, s in specs.items()}
    for partial in split.partials:
        rows = np.asarray(split.recipe.grid.rows_of(partial.first, partial.stop), dtype=np.int64)
        for name, array in joined.items():
            array[rows] = partial.arrays[name]
    expected = {name: single.partials[0].arrays[name] for name in specs}
    return subject.difference(joined, expected, split.data)


def hint_of_attributes(subject: Subject) -> str:
    """Return a sentence about attributes that an instance sets during processing; may be ""."""
    names = subject.attributes_set()
    if not names:
        return ""
    shown = ", ".join(f"self.{name}" for name in names)
    return (
        f". Note that {shown} changes while data are processed, but each chunk starts with new "
        "attributes"
    )


def preprocessed(run: EagerRun) -> dict[str, AnyArray]:
    """Return the fresh buffers into which the only chunk of a run is merged."""
    cls: Any = run.declared.cls
    idle = type(cls.__name__, (cls,), {"merge": lambda self, dest, src: None})
    return merge_partials(run.with_changes(cls=idle), 0, run.partials[:1]).arrays


def _why_merge_all(split: EagerRun, numbers: str) -> str:
    """Return the message for a wrong merge_all."""
    if split.declared.merge.fan_in is None:
        return f"merge_all gives other results for other chunks: {numbers}"
    return (
        f"merge_all is not associative: {numbers}. It is called with groups of chunks and with its "
        "own results, which is wrong for averages and medians. Keep sums and counts in buffers, "
        "and divide in get_results"
    )


def _not_neutral(subject: Subject, single: EagerRun, numbers: str) -> str:
    """Return the message if preprocess changes merged values; otherwise ""."""
    fresh = preprocessed(single)
    alone = single.partials[0]
    merged = merge_partials(single.recipe, 0, [alone])
    for name in single.declared.allocated:
        if not _is_set(fresh[name]):
            continue
        difference = subject.difference(
            {name: merged.arrays[name]}, {name: alone.arrays[name]}, single.data
        )
        if difference:
            first = _first(fresh[name], difference)
            return (
                f"preprocess is not neutral: it sets {name!r} to {first}. One chunk has "
                f"{difference.other}, merged into that it gives {difference.one}. Each merge "
                "starts with buffers from preprocess, so they must not change the result: "
                f"{numbers}"
            )
    return ""


def _is_set(array: AnyArray) -> bool:
    """Return whether an array contains a value that is not zero."""
    return array.size > 0 and bool((array != np.zeros((), array.dtype)).any())


def _first(array: AnyArray, difference: Difference) -> Any:
    """Return the value of an array at the index of a difference."""
    return array[difference.index] if difference.index is not None else array.ravel()[0]


def _overwritten(subject: Subject, single: EagerRun, split: EagerRun, numbers: str) -> str:
    """Return the message if merge keeps the values of only one chunk; otherwise ""."""
    alone = single.partials[0]
    first, last = split.partials[0], split.partials[-1]
    merged = split.merged()[1]
    assert merged is not None
    fresh = preprocessed(single)
    for name, spec in split.declared.allocated.items():
        if spec.kind == "nav" or not subject.difference(
            {name: merged.arrays[name]}, {name: alone.arrays[name]}, single.data
        ):
            continue
        for which, kept, lost in (("last", last, first), ("first", first, last)):
            result, empty = {name: merged.arrays[name]}, {name: fresh[name]}
            was_filled = subject.difference({name: lost.arrays[name]}, empty, single.data)
            if was_filled and not subject.difference(
                result, {name: kept.arrays[name]}, single.data
            ):
                does = "overwrites" if which == "last" else "does not add to"
                return (
                    f"merge {does} buffer {name!r}: after the merge, it has the values of the "
                    f"{which} chunk, not of all chunks together: {numbers}. Combine dest and src: "
                    f"dest.{name} += src.{name} for a sum, dest.{name}[:] = "
                    f"np.maximum(dest.{name}, src.{name}) for a maximum"
                )
    return ""


def _wrong_merge(split: EagerRun, numbers: str, hint: str) -> str:
    """Return the general message for a wrong merge."""
    where = "" if split.declared.merge.mode == "chain" else ", in all groupings"
    return (
        f"merge is not associative: {numbers}. Merged chunks must give the same as one chunk "
        f"with all their frames{where}{hint}"
    )
