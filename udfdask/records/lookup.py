"""Decide what a run reads from records and what it computes: from the last merge down to chunks.

A merge needs its sources only if it is not stored itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from udfdask.backends.backend import NUMPY, DenseBackend
from udfdask.plan.merge_tree import Merge
from udfdask.plan.recipe import Recipe
from udfdask.records.record_names import ChunkNames, merge_name, with_versions

Action = Literal["compute", "read", "nothing"]


@dataclass(frozen=True, slots=True)
class Saved:
    """Where the partial result of a UDF is kept."""

    name: str
    """Name of its record."""
    on_device: tuple[tuple[str, DenseBackend], ...] = ()
    """Array backend of the buffers that are on a device."""
    of_run: str = ""
    """End of the name if the UDF looked beyond the chunk; empty for merges."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names that it can have: valid for any ROI, or for that of the run."""
        return (self.name, self.name + self.of_run) if self.of_run else (self.name,)


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
    has_rows: bool = False
    """Whether it has nav rows of the result, which are in no later merge."""
    wanted: bool = False
    """Whether the run needs it."""
    action: Action = "nothing"
    """How the run gets it."""

    def decide(self, stored: Callable[[str], bool]) -> None:
        """Choose the action, and tell the sources whether they are needed."""
        if not self.wanted:
            return
        found = next(filter(stored, self.saved.names), None)
        if found is not None:
            self.saved = Saved(found, self.saved.on_device)
            self.action = "read"
            return
        self.action = "compute"
        for source in self.sources:
            source.wanted = True

    @property
    def superfluous(self) -> tuple[str, ...]:
        """Names of the records that nobody needs after this merge."""
        without_rows = (source for source in self.sources if not source.has_rows)
        return tuple(name for source in without_rows for name in source.saved.names)


@dataclass(frozen=True, slots=True)
class Lookup:
    """The partial results of a UDF in a run."""

    chunks: list[Node]
    """Those of the chunks."""
    merges: dict[tuple[int, int], Node]
    """Those of merges, by level and place, in the order in which they are made."""

    def decide(self, stored: Callable[[str], bool]) -> None:
        """Choose the action of each node; `stored` tells whether there is a record of a name."""
        for node in reversed([*self.chunks, *self.merges.values()]):
            node.decide(stored)


def look_up(recipe: Recipe, number: int, data: str, udf: str) -> Lookup:
    """Return the partial results of a UDF; `data` and `udf` are names of the data and the UDF."""
    declared, grid, udf = recipe.udfs[number], recipe.grid, with_versions(udf)
    backend = recipe.merge_backend(number)
    backends = ((name, spec.backend(backend)) for name, spec in declared.allocated.items())
    on_device = tuple((name, dense) for name, dense in backends if dense != NUMPY)
    names = ChunkNames(data, udf, number, recipe)
    chunks = [
        Node(Saved(names.name(c), on_device, names.of_run), c, c + 1) for c in range(grid.n_chunks)
    ]
    merges: dict[tuple[int, int], Node] = {}
    mode = declared.merge.mode

    def merge(step: Merge, sources: Sequence[Node]) -> Node:
        before = [source.saved.name for source in sources]
        name = merge_name(udf, names.of_run, mode, step.checked, before)
        first = sources[-1 if mode == "chain" else 0].first
        node = Node(Saved(name, on_device), first, sources[-1].stop, sources)
        merges[step.level, step.place] = node
        return node

    rows, last = declared.merge.apply(chunks, merge)
    for node in rows:
        node.has_rows = node.wanted = declared.has_nav or not declared.has_reduced
    if last is not None:
        last.wanted = True
    return Lookup(chunks, merges)
