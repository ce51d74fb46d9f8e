"""What a run costs in each layout of the chunks: its graph, its time and its memory."""

from __future__ import annotations

from typing import Any, ClassVar

import dask

import udfdask as ud
from benchmarks.layouts import CHUNK_LAYOUTS, in_chunks
from udfdask import udfs

RUNS: dict[str, tuple[str, ...]] = {
    "sum": ("SumUDF",),
    "three": ("SumUDF", "SumSigUDF", "CoMUDF"),
    "neighbors": ("NeighborSimilarityUDF",),
}
"""The UDFs of a run: merges in a tree, three UDFs in one pass, and margins of other chunks."""


class OfChunks:
    """Make what the benchmarks of this module need; asv finds nothing to measure here."""

    timeout = 600
    param_names: ClassVar = ["chunks", "run"]
    params: ClassVar[Any] = (list(CHUNK_LAYOUTS), list(RUNS))

    def setup(self, chunks: str, run: str) -> None:
        self.array = in_chunks(chunks)
        self.udfs = [getattr(udfs, name)() for name in RUNS[run]]

    def build(self) -> tuple[ud.Result, ...]:
        return ud.run_udf(self.array, self.udfs)


class ChunksGraph(OfChunks):
    """Building a run, and the graph that the scheduler gets; no machine changes the counts."""

    def time_build(self, chunks: str, run: str) -> None:
        self.build()

    def time_build_and_optimize(self, chunks: str, run: str) -> None:
        dask.optimize(*self.build())

    def track_tasks(self, chunks: str, run: str) -> int:
        optimized = dask.optimize(*self.build())
        return len(set().union(*(dict(one.__dask_graph__()) for one in optimized)))

    def track_layers(self, chunks: str, run: str) -> int:
        return len(set().union(*(one.__dask_graph__().layers for one in self.build())))

    def track_predicted_memory(self, chunks: str, run: str) -> int:
        return ud.explain(self.array, self.udfs).memory.total(2)

    track_tasks.unit = "tasks"
    track_layers.unit = "layers"
    track_predicted_memory.unit = "bytes"


class ChunksRun(OfChunks):
    """Building and computing a run with two threads."""

    def setup(self, chunks: str, run: str) -> None:
        if (chunks, run) == ("frames", "neighbors"):
            raise NotImplementedError("each single frame travels to eight others: no user does so")
        super().setup(chunks, run)

    def compute(self) -> None:
        ud.compute(*self.build(), scheduler="threads", num_workers=2)

    def time_run(self, chunks: str, run: str) -> None:
        self.compute()

    def peakmem_run(self, chunks: str, run: str) -> None:
        self.compute()
