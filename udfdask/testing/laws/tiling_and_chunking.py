"""Laws about tiles, chunks, their order and the fan-in: none of them changes the results."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from udfdask.chunk.partial_result import Partial
from udfdask.merge.merge import merge_partials
from udfdask.plan.merge_tree import Merge
from udfdask.testing.differences import Difference
from udfdask.testing.eager_run import EagerRun, Layout
from udfdask.testing.laws.explain_failure import hint_of_attributes, why_chunks_show
from udfdask.testing.sample_data import (
    parts_and_chunkings,
    ragged_sig_chunks,
    scan_chunkings,
    tile_sizes,
)
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
                tiling = run.recipe.tiling
                subject.fail(
                    f"{difference.name!r} depends on the shape of tiles: tiles of shape "
                    f"{tuple(tiling.shape)} give {difference.one}, one tile of shape "
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
        results = subject.results_of(split)
        difference = subject.difference(results, subject.results_of(single), data)
        if difference:
            subject.fail(why_chunks_show(subject, single, split, difference))
        if len(split.partials) == 3 and split.declared.merge.mode in ("tree", "all"):
            _check_groups(subject, split, results)


def _check_groups(subject: Subject, split: EagerRun, expected: dict[str, AnyArray]) -> None:
    """Fail if another grouping of three chunks in the merges gives other results."""
    partials = split.partials
    if split.declared.merge.fan_in is None:
        return
    groups = {
        "the last two merged first": [partials[:1], partials[1:]],
        "the first two merged first": [partials[:2], partials[2:]],
        "each merged alone first": [[p] for p in partials],
    }
    for how, parts in groups.items():
        when = f"with {split.layout}, {how}"
        first = [subject.attempt(when, _merged_alone, split, part) for part in parts]
        merged = subject.attempt(when, _merged_alone, split, first)
        results = subject.attempt(when, split.finalize, merged)
        difference = subject.difference(results, expected, split.data)
        if difference:
            method = "merge_all" if split.declared.merge.mode == "all" else "merge"
            subject.fail(
                f"{method} is not associative: {split.layout} give {difference.name!r} = "
                f"{difference.other}, with {how} they give {difference.one} {difference.where}"
            )


def _merged_alone(run: EagerRun, partials: list[Partial]) -> Partial:
    """Merge some partial results, as in a run that has no others."""
    tree = replace(run.declared.merge, n_chunks=len(partials))

    def merge(step: Merge, some: Sequence[Partial]) -> Partial:
        return merge_partials(run.recipe, 0, some, step.checked)

    top = tree.apply(partials, merge)[1]
    assert top is not None
    return top


def order_does_not_show(subject: Subject) -> None:
    """The order in which chunks are processed does not change the results."""
    for nav_chunks in scan_chunkings(subject.nav):
        forwards = subject.results(Layout(nav_chunks=nav_chunks))
        layout = Layout(nav_chunks=nav_chunks, backwards=True)
        difference = subject.difference(subject.results(layout), forwards)
        if difference:
            subject.fail(
                f"{difference.name!r} depends on the order in which chunks are processed: "
                f"{layout} give {difference.one}, from the first to the last {difference.other} "
                f"{difference.where}. Something is kept from chunk to chunk"
                f"{hint_of_attributes(subject)}"
            )


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
