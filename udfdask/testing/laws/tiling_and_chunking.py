"""Laws about tiles, chunks and the fan-in: none of them changes the results."""

from __future__ import annotations

import itertools

import numpy as np

from udfdask.merge.merge import merge_partials
from udfdask.testing.differences import Difference
from udfdask.testing.eager_run import EagerRun, Layout
from udfdask.testing.sample_data import parts_and_chunkings, ragged_sig_chunks, tile_sizes
from udfdask.testing.udf_under_test import Subject
from udfdask.types import AnyArray


def tiles_do_not_show(subject: Subject) -> None:
    """The shape of tiles does not change the results."""
    for data in (*_few_frames(subject), subject.data):
        single = subject.run(data=data)
        expected = subject.results_of(single)
        for size in tile_sizes(
            subject.sig, single.declared.input_dtype, single.recipe.grid.n_frames
        ):
            run = subject.run(Layout(tile_bytes=size), data=data)
            results = subject.results_of(run)
            difference = subject.difference(results, expected, data)
            if difference:
                subject.fail(
                    f"{difference.name!r} depends on the shape of tiles: tiles of shape "
                    f"{tuple(run.recipe.tiling.shape)} give {difference.one}, one tile of shape "
                    f"{tuple(single.recipe.tiling.shape)} gives {difference.other} "
                    f"{difference.where}. A frame can arrive in several tiles: combine with the "
                    "value in the buffer (+=, np.maximum), or set whole_frames = True"
                )


def _few_frames(subject: Subject) -> list[AnyArray]:
    """Return the first frame and the first two frames, if the UDF works with them."""
    parts: list[AnyArray] = []
    for data, _ in itertools.islice(parts_and_chunkings(subject.data, subject.sig_dims), 1):
        parts += [data[(*(slice(None),) * (len(subject.nav) - 1), slice(0, 1))], data]
    return [data for data in parts if subject.error_with(data) is None]


def signal_chunks_do_not_show(subject: Subject) -> None:
    """Signal chunks do not change the results."""
    chunks = ragged_sig_chunks(subject.sig)
    for data in (*_few_frames(subject), subject.data):
        difference = subject.difference(
            subject.results(Layout(sig_chunks=chunks), data=data),
            subject.results(data=data),
            data,
        )
        if difference:
            subject.fail(
                f"{difference.name!r} depends on signal chunks: {chunks} give {difference.one}, "
                f"one chunk gives {difference.other} {difference.where}. meta.sig_slice says which "
                "part of the signal a tile is"
            )


def chunks_do_not_show(subject: Subject) -> None:
    """Chunks of the scan do not change the results."""
    usable: dict[tuple[int, ...], bool] = {}
    for data, nav_chunks in parts_and_chunkings(subject.data, subject.sig_dims):
        if data.shape not in usable:  # parameters may fit only one scan shape
            usable[data.shape] = subject.error_with(data) is None
        if not usable[data.shape]:
            continue
        single = subject.run(data=data)
        split = subject.run(Layout(nav_chunks=nav_chunks), data=data)
        difference = subject.difference(subject.results_of(split), subject.results_of(single), data)
        if difference:
            subject.fail(_why_chunks_show(subject, single, split, difference))


def fan_in_does_not_show(subject: Subject) -> None:
    """The fan-in of the merge tree does not change the results."""
    if not subject.nav:
        return
    one_each = tuple((1,) * n for n in subject.nav)
    for nav_chunks in (subject.two_chunks, one_each):
        first: dict[str, AnyArray] | None = None
        for fan_in in (2, 3, 8, False):
            run = subject.run(Layout(nav_chunks=nav_chunks, fan_in=fan_in))
            if run.declared.merge.mode not in ("tree", "all"):
                return
            results = subject.results_of(run)
            first = results if first is None else first
            difference: Difference | None = subject.difference(results, first)
            if difference:
                subject.fail(
                    f"{difference.name!r} depends on how many partial results a merge combines: "
                    f"split_every={fan_in} gives {difference.one}, split_every=2 gives "
                    f"{difference.other} {difference.where}. merge must be associative"
                )


def _why_chunks_show(
    subject: Subject, single: EagerRun, split: EagerRun, difference: Difference
) -> str:
    """Return the message for results that differ between one chunk and several chunks."""
    numbers = (
        f"{split.layout} give {difference.name!r} = {difference.one}, one chunk gives "
        f"{difference.other} {difference.where}"
    )
    hint = _hint_of_attributes(subject)
    if rows := _rows_that_differ(subject, single, split):
        return (
            f"nav buffer {rows.name!r} depends on where chunks begin: {split.layout} give "
            f"{rows.one}, one chunk gives {rows.other} {rows.where}. A chunk can begin at any "
            "frame, and has its own instance of the UDF: use meta.coordinates for scan positions"
            f"{hint}"
        )
    merge = split.declared.merge
    if merge.mode == "all" and merge.fan_in is None:
        return f"merge_all gives other results for other chunks: {numbers}"
    if merge.mode == "all":
        return (
            f"merge_all is not associative: {numbers}. It is called with groups of chunks and "
            "with its own results, which is wrong for averages and medians. Keep sums and counts "
            "in buffers, and divide in get_results"
        )
    if merge.mode in ("tree", "chain"):
        return (
            _not_neutral(subject, single, numbers)
            or _overwritten(subject, single, split, numbers)
            or f"merge is not associative: {numbers}. Merged chunks must give the same as one "
            f"chunk with all their frames, in all groupings{hint}"
        )
    return f"results depend on where chunks begin: {numbers}{hint}"


def _hint_of_attributes(subject: Subject) -> str:
    """Return a sentence about attributes that an instance sets during processing; may be ""."""
    shown = ", ".join(f"self.{name}" for name in subject.attributes_set())
    if not shown:
        return ""
    return (
        f". Note that {shown} changes while data are processed, but each chunk starts with new "
        "attributes"
    )


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


def _not_neutral(subject: Subject, single: EagerRun, numbers: str) -> str:
    """Return the message if preprocess changes merged values; otherwise ""."""
    fresh, alone = single.fresh_buffers(), single.partials[0]
    merged = merge_partials(single.recipe, 0, [alone])
    for name, array in fresh.items():
        if not (array != np.zeros((), array.dtype)).any():
            continue
        difference = subject.difference(
            {name: merged.arrays[name]}, {name: alone.arrays[name]}, single.data
        )
        if difference:
            return (
                f"preprocess is not neutral: it sets {name!r} to {array[difference.index or ...]}. "
                f"One chunk has {difference.other}, merged into that it gives {difference.one}. "
                "Each merge starts with buffers from preprocess, so they must not change the "
                f"result: {numbers}"
            )
    return ""


def _overwritten(subject: Subject, single: EagerRun, split: EagerRun, numbers: str) -> str:
    """Return the message if merge keeps the values of only one chunk; otherwise ""."""
    merged, fresh = split.merged()[1], single.fresh_buffers()
    assert merged is not None
    first, last = split.partials[0], split.partials[-1]

    def same(name: str, one: AnyArray, other: AnyArray) -> bool:
        return subject.difference({name: one}, {name: other}, single.data) is None

    for name, spec in split.declared.allocated.items():
        array = merged.arrays[name]
        if spec.kind == "nav" or same(name, array, single.partials[0].arrays[name]):
            continue
        for which, kept, lost in (("last", last, first), ("first", first, last)):
            was_filled = not same(name, lost.arrays[name], fresh[name])
            if was_filled and same(name, array, kept.arrays[name]):
                does = "overwrites" if which == "last" else "does not add to"
                return (
                    f"merge {does} buffer {name!r}: after the merge, it has the values of the "
                    f"{which} chunk, not of all chunks together: {numbers}. Combine dest and src: "
                    f"dest.{name} += src.{name} for a sum, dest.{name}[:] = "
                    f"np.maximum(dest.{name}, src.{name}) for a maximum"
                )
    return ""
