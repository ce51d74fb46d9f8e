"""Refuse a run that needs more memory than the user allows, and say which change makes it fit.

Each remedy in the message has been tried: it is a plan whose predicted memory is small enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dask.array.core import Array as GraphArray
from dask.array.core import normalize_chunks
from dask.highlevelgraph import HighLevelGraph
from dask.utils import format_bytes

from udfdask import config
from udfdask.errors import MemoryLimitError
from udfdask.geometry.good_chunks import divided
from udfdask.plan.memory import Memory, PredictedMemory, describe_parts, predict_memory
from udfdask.plan.parse_size import parse_size
from udfdask.plan.plan import FindLoading, Plan
from udfdask.udf import UDF

MAX_REMEDIES = 3
"""Number of remedies in a message."""

Remedy = tuple[str, int]
"""What to write, and the bytes that the run needs then."""


def check_memory(
    plan: Plan,
    array: GraphArray,
    udfs: Sequence[UDF],
    max_memory: Any,
    loading: FindLoading | None,
    plan_other: Callable[..., Plan],
) -> None:
    """Raise if a run needs more than `max_memory` in one process.

    `plan_other(array, udfs, **changes)` returns a plan with changed options.
    """
    limit, threads = parse_size(max_memory, "max_memory", "2 GB"), config.worker_threads()
    search = _Search(array, udfs, limit, threads, loading, plan_other)
    predicted = search.predict(plan, array)
    memory = predicted.in_process(threads)
    if memory.total <= limit:
        return
    dense = ", if the sparse data were dense," if predicted.is_bound else ","
    raise MemoryLimitError(
        f"the run needs {_needs(memory, max(1, min(threads, predicted.tasks)))}{dense} more than "
        f"max_memory={max_memory!r}: {search.advice(plan, predicted)}"
    )


def _needs(memory: Memory, threads: int) -> str:
    """Describe the memory of a process and what it is for."""
    return (
        f"{format_bytes(memory.total)} in a process with {threads} thread{'s' * (threads > 1)} "
        f"({describe_parts(memory)})"
    )


@dataclass(frozen=True)
class _Search:
    """Looks for plans that need less memory."""

    array: GraphArray
    udfs: Sequence[UDF]
    limit: int
    threads: int
    loading: FindLoading | None
    plan_other: Callable[..., Plan]

    def predict(self, plan: Plan, array: GraphArray) -> PredictedMemory:
        """Return the memory of a plan."""
        loading = None if self.loading is None else self.loading(array, plan)
        return predict_memory(plan.recipe, joined=plan.joined is not None, loading=loading)

    def advice(self, plan: Plan, predicted: PredictedMemory) -> str:
        """Return what to write instead, or that nothing would help."""
        found = []
        for remedy in self._remedies(plan, predicted):
            found.append(remedy)
            if len(found) == MAX_REMEDIES:
                break
        if found:
            return "it fits with " + ", or with ".join(
                f"{text} ({format_bytes(size)})" for text, size in found
            )
        part = self._part_of_scan(plan)
        if part is not None:
            return f"it fits with a part of the scan, such as {part[0]} ({format_bytes(part[1])})"
        least = predicted.in_process(1)
        return f"one thread needs {_needs(least, 1)}, and no smaller chunks would fit"

    def _part_of_scan(self, plan: Plan) -> Remedy | None:
        """Return the largest part of the scan that fits, by halves of the first axis."""
        grid = plan.recipe.grid
        if grid.roi is not None or not grid.shape or len(plan.aux) > 0:
            return None  # these have the shape of the scan
        rows = grid.shape[0] // 2
        while rows:
            try:
                size = self._size(self.array[:rows], self.udfs)
            except Exception:  # noqa: BLE001, a UDF of the user refuses this shape
                return None
            if size <= self.limit:
                return f"array[:{rows}]", size
            rows //= 2
        return None

    def _remedies(self, plan: Plan, predicted: PredictedMemory) -> Iterator[Remedy]:
        """Yield the changes after which the run fits."""
        if plan.joined is not None:
            yield from self._fitting("no merge_small", self.array, merge_small=None)
        yield from self._smaller_chunks(plan)
        for threads in range(min(self.threads, predicted.tasks) - 1, 0, -1):
            size = predicted.in_process(threads).total
            if size <= self.limit:
                yield f"dask.config.set({config.worker_threads_setting(threads)})", size
                break
        fan_ins = [udf.merge.fan_in or math.inf for udf in plan.recipe.udfs if udf.has_reduced]
        for split_every in (4, 2):
            if split_every < max(fan_ins, default=0):
                text = f"split_every={split_every}"
                fitting = [*self._fitting(text, self.array, split_every=split_every)]
                yield from fitting
                if fitting:
                    break
        if len(self.udfs) > 1:
            alone = [self._size(self.array, [udf]) for udf in self.udfs]
            if max(alone) <= self.limit:
                yield "the UDFs one after another, in runs of their own", max(alone)

    def _smaller_chunks(self, plan: Plan) -> Iterator[Remedy]:
        """Yield the largest chunks with which the run fits."""
        shape, frames = plan.recipe.shape, int(plan.recipe.grid.loaded.max(initial=1))
        largest = [max(sizes, default=0) for sizes in plan.recipe.grid.nav_chunks]
        tried: set[tuple[int, ...]] = set()
        while frames > 1:
            frames = -(-frames // 2)
            nav = divided(largest, len(largest), frames)
            if nav in tried:
                continue
            tried.add(nav)
            chunks = (*nav, *(-1 for _ in shape.sig))
            array = self._with_chunks(chunks)
            other, also = self.plan_other(array, self.udfs), ""
            if other.joined is not None:  # they would be joined again
                other = self.plan_other(array, self.udfs, merge_small=None)
                also = "no merge_small and "
            made = self._size_if_made(other, array)
            if made > self.limit:
                continue
            # a rechunk loads the chunks as they are now, and cuts them
            size = self.predict(other, self.array.rechunk(chunks)).in_process(self.threads).total
            if size <= self.limit:
                yield f"{also}array.rechunk({chunks})", size
            else:
                text = f"chunks={chunks} where the array is made or the file is opened"
                yield also + text, made
            return

    def _size_if_made(self, plan: Plan, array: GraphArray) -> int:
        """Return the memory if the data had the chunks of `array` from the start."""
        block, before = (math.prod(map(max, a.chunks)) for a in (array, self.array))
        share = block / max(1, before)
        loading = None if self.loading is None else self.loading(self.array, plan, share=share)
        return predict_memory(plan.recipe, loading=loading).in_process(self.threads).total

    def _with_chunks(self, chunks: tuple[int, ...]) -> GraphArray:
        """Return an array with other chunks and no tasks: a rechunk lists many."""
        array = self.array
        sizes = normalize_chunks(chunks, array.shape, dtype=array.dtype)
        name = f"chunks-of-{array.name}"
        graph = HighLevelGraph({name: {}}, {name: set()})
        return GraphArray(graph, name, sizes, meta=array._meta)

    def _fitting(self, text: str, array: GraphArray, **changes: Any) -> Iterator[Remedy]:
        """Yield a remedy if the run fits with it."""
        size = self._size(array, self.udfs, **changes)
        if size <= self.limit:
            yield text, size

    def _size(self, array: GraphArray, udfs: Sequence[UDF], **changes: Any) -> int:
        """Return the memory of a changed run in bytes."""
        plan = self.plan_other(array, udfs, **changes)
        return self.predict(plan, array).in_process(self.threads).total
