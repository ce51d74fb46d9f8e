"""Decide what a run reads from records and what it computes: from the last merge down to chunks.

A merge needs its sources only if it is not stored itself. The nav rows of a result can be in
partial results whose sig and single buffers have been merged further. These are kept in two
records, so that the second can be removed: otherwise a folder would grow by a frame per chunk.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from udfdask.arrays.backends.backend import DenseBackend
from udfdask.arrays.backends.dense_backends import NUMPY
from udfdask.plan.merge_tree import Merge
from udfdask.plan.recipe import Recipe, UDFRecipe
from udfdask.records.names import ChunkNames, merge_name, with_versions

Action = Literal["compute", "read", "read rows", "nothing"]


@dataclass(frozen=True, slots=True)
class Saved:
    """Where the partial result of a UDF is kept."""

    name: str
    """Name of its record."""
    split: bool
    """Whether there are two records: one for nav rows and one for sig and single buffers."""
    on_device: tuple[tuple[str, DenseBackend], ...] = ()
    """Array backend of the buffers that are on a device."""
    of_run: str = ""
    """End of the name if the UDF looked beyond the chunk; empty for merges."""

    @property
    def places(self) -> tuple[Saved, ...]:
        """Where it can be: valid for any ROI, or for that of the run."""
        return (self, self.for_run) if self.of_run else (self,)

    @property
    def for_run(self) -> Saved:
        """Where it is kept if the UDF looked beyond the chunk."""
        return replace(self, name=self.name + self.of_run, of_run="")

    @property
    def rows(self) -> str:
        """Name of the record that has the nav rows."""
        return f"{self.name}-rows" if self.split else self.name

    @property
    def sums(self) -> str:
        """Name of the record that has the sig and single buffers."""
        return f"{self.name}-sums" if self.split else self.name

    @property
    def records(self) -> tuple[str, ...]:
        """Names of all records."""
        return (self.rows, self.sums) if self.split else (self.name,)


@dataclass(slots=True, eq=False)
class Node:
    """A partial result in the merge tree of a UDF: of one chunk, or merged."""

    saved: Saved
    """Where it is kept."""
    first: int
    """The first chunk."""
    stop: int
    """The chunk after the last one."""
    sources: Sequence[Node] = ()
    """The partial results that are merged."""
    wanted: set[Literal["all", "rows"]] = field(default_factory=set)
    """The buffers that the run needs."""
    action: Action = "nothing"
    """How the run gets it."""

    @property
    def superfluous(self) -> tuple[str, ...]:
        """Names of the records that nobody needs after this merge."""
        return tuple(place.sums for source in self.sources for place in source.saved.places)


@dataclass(frozen=True, slots=True)
class Lookup:
    """The partial results of a UDF in a run."""

    chunks: list[Node]
    """Those of the chunks."""
    merges: dict[tuple[int, int], Node]
    """Those of merges, by level and place."""

    def decide(self, stored: Container[str]) -> None:
        """Choose the action of each node; `stored` has the names of the records that exist."""
        levels = max((level for level, _ in self.merges), default=-1)
        for level in range(levels, -1, -1):
            # backwards, because each merge of a chain needs the one before
            for node in reversed([n for (at, _), n in self.merges.items() if at == level]):
                _decide(node, stored)
        for node in self.chunks:
            _decide(node, stored)

    @property
    def read(self) -> list[str]:
        """Names of all records that the run reads."""
        names: list[str] = []
        for node in (*self.chunks, *self.merges.values()):
            if node.action == "read":
                names += node.saved.records
            elif node.action == "read rows":
                names.append(node.saved.rows)
        return names


def _decide(node: Node, stored: Container[str]) -> None:
    """Choose the action of a node, and tell its sources what it needs."""
    if not node.wanted:
        node.action = "nothing"
        return
    rows_only = "all" not in node.wanted
    for place in node.saved.places:
        names = (place.rows,) if rows_only else place.records
        if all(name in stored for name in names):
            node.saved = place
            node.action = "read rows" if rows_only and place.split else "read"
            return
    node.action = "compute"
    for source in node.sources:
        source.wanted.add("all")


def look_up(recipe: Recipe, number: int, data: str, udf: str) -> Lookup:
    """Return the partial results of a UDF with the names of their records.

    `data` and `udf` are names of the data and of the UDF.
    """
    declared, grid, udf = recipe.udfs[number], recipe.grid, with_versions(udf)
    on_device = _on_device(declared, recipe.merge_backend(number))
    mode = declared.merge.mode
    names = ChunkNames(data, udf, number, recipe)
    chunks = [
        Node(Saved(names.name(c), False, on_device, names.of_run), c, c + 1)
        for c in range(grid.n_chunks)
    ]
    merges: dict[tuple[int, int], Node] = {}
    splits = mode in ("chain", "tree") and declared.has_nav and declared.has_reduced

    def merge(step: Merge, sources: Sequence[Node]) -> Node:
        before = [source.saved.name for source in sources]
        name = merge_name(udf, names.of_run, mode, step.checked, before)
        first, stop = sources[0].first, sources[-1].stop
        if mode == "chain":
            first = sources[-1].first
        saved = Saved(name, splits and step.level == 0, on_device)
        merges[step.level, step.place] = Node(saved, first, stop, sources)
        return merges[step.level, step.place]

    rows, last = declared.merge.apply(chunks, merge)
    for node in rows:
        if declared.has_nav or not declared.has_reduced:
            node.wanted.add("rows")
    if last is not None:
        last.wanted.add("all")
    return Lookup(chunks, merges)


def _on_device(declared: UDFRecipe, backend: DenseBackend) -> tuple[tuple[str, Any], ...]:
    """Return the backends of the merged buffers that are on a device."""
    by_name = ((name, spec.backend(backend)) for name, spec in declared.allocated.items())
    return tuple((name, dense) for name, dense in by_name if dense != NUMPY)
