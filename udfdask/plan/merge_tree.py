"""Plan how the partial results of all chunks are merged into one: the merge tree of a UDF.

This file alone decides which chunks are merged together, in how many levels, in which order and
with which checks; all that run or explain merges read the tree. `run_reference` has no chunks: it
is an independent oracle, which shows a wrong tree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

from udfdask.errors import ArgumentTypeError, ArgumentValueError, MissingMergeError
from udfdask.geometry.chunk_grid import Grid
from udfdask.udf import UDF
from udfdask.udf.base import overrides
from udfdask.udf.buffers import BufferSpec
from udfdask.udf.merge_code import assigns_nav

MergeMode = Literal["none", "rows", "chain", "tree", "all"]
"""The method that combines partial results. `none`: no method, nav buffers are results as they are.
`rows`: `merge` on each chunk separately. `chain`: `merge` on one chunk after another. `tree`:
`merge` on groups of neighbors. `all`: `merge_all` on groups of neighbors."""

T = TypeVar("T")


class Merge(NamedTuple):
    """One merge: it combines neighbors of the level below into one partial result."""

    # a tuple, because a chain has one for each chunk: 10,000 take 17 ms, as dataclasses 50 ms

    level: int
    """Level in the tree; the merges of level 0 combine chunks."""
    place: int
    """Place in its level, in navigation order."""
    sources: range
    """Places of its sources in the level below, or numbers of chunks in level 0."""
    checked: bool
    """Whether `merge_all` runs a second time, in two uneven parts that must agree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeTree:
    """All merges of one UDF in a run; the sources of each merge are in navigation order.

    All modes have this form: `none` has no level; `rows` and `chain` have one level with one merge
    per chunk. A run without chunks has one merge without sources, which gives fresh buffers.
    """

    mode: MergeMode
    """The method that combines partial results."""
    n_chunks: int
    """Number of chunks whose partial results are merged."""
    fan_in: int | None
    """Largest number of sources of one merge of a tree; None for a tree of one merge."""
    needs_order: bool
    """Whether a progressive run must also merge chunks in navigation order."""

    def levels(self) -> tuple[tuple[Merge, ...], ...]:
        """Return the merges of each level, the one that combines chunks first."""
        below = (self.n_chunks, *self.sizes)
        return tuple(self._level(level, below[level]) for level in range(len(self.sizes)))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of merges of each level, the one that combines chunks first."""
        if self.mode == "none":
            return ()
        sizes = [math.ceil(max(1, self.n_chunks) / self._group_size(self.n_chunks))]
        while self.mode in ("tree", "all") and sizes[-1] > 1:
            sizes.append(math.ceil(sizes[-1] / self._group_size(sizes[-1])))
        return tuple(sizes)

    @property
    def last(self) -> tuple[int, int] | None:
        """Level and place of the last merge; None if nothing is merged."""
        return (len(self.sizes) - 1, self.sizes[-1] - 1) if self.sizes else None

    def merge_with_rows(self, chunk: int) -> tuple[int, int]:
        """Return level and place of the merge that has the final nav rows of a chunk."""
        # higher levels combine sig and single buffers only: level 0 has the final rows
        if self.gathers_rows and self.last is not None:
            return self.last
        return (0, chunk // self._group_size(self.n_chunks))

    def _group_size(self, n_sources: int) -> int:
        """Return the largest number of neighbors that a merge of a level combines."""
        return (self.fan_in or max(1, n_sources)) if self.mode in ("tree", "all") else 1

    def _level(self, level: int, n_sources: int) -> tuple[Merge, ...]:
        n, size = max(1, n_sources), self._group_size(n_sources)
        groups = [range(k, min(k + size, n_sources)) for k in range(0, n, size)]
        # Law 5 asks for a check of the first group. The last group is checked too: the border of a
        # scan is often empty, and there an average of averages equals the average. A merge_all that
        # only fails in the groups between them is not noticed.
        ends = (groups[0], groups[-1]) if level == 0 and self.repeats_merge_all else ()
        return tuple(
            Merge(level, k, group, len(group) > 1 and group in ends)
            for k, group in enumerate(groups)
        )

    @property
    def repeats_merge_all(self) -> bool:
        """Whether `merge_all` is called on its own results."""
        return self.mode == "all" and self.fan_in is not None

    def apply(
        self, sources: list[T], merge: Callable[[Merge, Sequence[T]], T]
    ) -> tuple[list[T], T | None]:
        """Carry out all merges; return the node with the nav rows of each chunk, and the last node.

        `sources` are the partial results of the chunks, or the keys of tasks that give them.
        `merge` combines some of them into a node; in a chain, the first is the previous node. If
        nothing is merged, the rows are `sources` itself.
        """
        assert len(sources) == self.n_chunks
        levels: list[list[T]] = []
        nodes = sources
        for level in self.levels():
            done: list[T] = []
            for step in level:
                before = done[-1:] if self.mode == "chain" else []
                done.append(merge(step, [*before, *nodes[step.sources.start : step.sources.stop]]))
            levels.append(done)
            nodes = done
        if not levels:
            return sources, None
        places = map(self.merge_with_rows, range(self.n_chunks))
        return [levels[level][place] for level, place in places], nodes[-1]

    @property
    def gathers_rows(self) -> bool:
        """Whether the last merge has the nav rows of all chunks: `merge_all` may change rows."""
        return self.mode == "all"

    def __str__(self) -> str:
        together = "of all partial results at once"
        if self.fan_in is not None:
            together = f"of up to {self.fan_in} partial results at a time"
        return {
            "none": "each chunk's rows are the result, nothing is merged",
            "rows": "own merge, on each chunk by itself",
            "chain": "own merge, one chunk after another in navigation order",
            "tree": f"own merge, {together}",
            "all": f"merge_all, {together}",
        }[self.mode]


def _instead(udf: UDF) -> str:
    from udfdask.udf.written_methods import misspelled_methods  # only errors need it

    return "".join(
        f". {text}" for text in misspelled_methods(udf, ("merge", "merge_all"), cutoff=0.6)
    )


def plan_merges(
    udf: UDF, buffers: Mapping[str, BufferSpec], grid: Grid, split_every: int | bool
) -> tuple[MergeTree, MergeTree]:
    """Return how the chunks of a UDF are merged: by `run_udf`, and by a progressive run.

    `merge_all` wins over `merge`, except where chunks come one at a time.
    """
    specs = {name: s for name, s in buffers.items() if s.use != "result_only"}
    own = _mode_of_merge(udf, specs)
    chosen: MergeMode = "all" if hasattr(udf, "merge_all") else own or "none"
    whole = [name for name, s in specs.items() if s.kind != "nav"]
    if chosen == "none" and whole:
        raise MissingMergeError(
            f"{type(udf).__name__} has buffers that the default merge cannot combine: "
            f"{', '.join(whole)} (kind sig or single). Implement merge(self, dest, src) or "
            f"merge_all(self, ordered_results){_instead(udf)}"
        )
    # the author of a UDF knows its merge better than the caller of run_udf
    chosen_fan_in = split_every if udf.split_every is None else udf.split_every
    fan_in = check_split_every(chosen_fan_in, f"{type(udf).__name__}.split_every")
    has_objects = any(s.dtype.hasobject for s in specs.values())

    def tree(mode: MergeMode) -> MergeTree:
        # A progressive run merges sig and single buffers in the order in which chunks are computed,
        # so that no slow chunk delays a snapshot. Objects are the exception: lists are usually
        # concatenated, and run_udf does that in navigation order.
        ordered = mode in ("chain", "all") or (mode == "tree" and has_objects)
        return MergeTree(mode=mode, n_chunks=grid.n_chunks, fan_in=fan_in, needs_order=ordered)

    return tree(chosen), tree(own or chosen)


def _mode_of_merge(udf: UDF, specs: Mapping[str, BufferSpec]) -> MergeMode | None:
    """Return how a UDF's own `merge` runs; None if it has none."""
    if not overrides(udf, "merge"):
        return None
    nav = {name for name, spec in specs.items() if spec.kind == "nav"}
    if not nav:
        return "tree"
    if nav == specs.keys():
        return "rows"
    assigns = udf.merge_assigns_nav or assigns_nav(udf.merge, nav, specs.keys() - nav)
    return "tree" if assigns else "chain"


def check_split_every(value: Any, where: str) -> int | None:
    """Return the fan-in; None for a merge in one step, which the user writes as False."""
    if value is False:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise ArgumentTypeError(f"{where} must be an int of at least 2, or False, not {value!r}")
    if value < 2:
        raise ArgumentValueError(f"{where} must be at least 2, or False, not {value!r}")
    return int(value)
