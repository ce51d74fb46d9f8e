"""Predict the memory that a run needs: arithmetic with the sizes in a plan, nothing is computed.

A process needs memory for what its threads work on, and for what waits: partial results that are
not merged yet, and rows of nav results, which wait until the result is assembled. At the end of a
run no chunk is processed, and the results exist twice. The larger of these two moments counts.

Not included is what nobody declares: arrays that the methods of a UDF make for themselves, and what
was in memory before the run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np
from dask.utils import format_bytes

from udfdask.explanation.memory_of_copies import copies_of_tiles, copies_of_windows, waiting_borders
from udfdask.explanation.memory_of_udf import memory_of_udf
from udfdask.plan.recipe import Recipe

TASK_BYTES = 3 << 19
"""Memory that a running task needs beyond arrays: Python objects, the stack of its thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadingMemory:
    """What loading the data of a task needs in addition to the data themselves."""

    extra: int = 0
    """Bytes that are free again as soon as the data are loaded."""
    held: int = 0
    """Bytes that stay until the data are processed: they are a view of a larger block."""
    waiting: int = 0
    """Bytes of blocks that later tasks need too, in the whole process."""
    in_memory: bool = False
    """Whether the data are in memory before the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """The memory of one process at one moment, in bytes.

    Examples
    --------
    >>> import dask.array as da, udfdask as ud
    >>> from udfdask.udfs import SumUDF
    >>> plan = ud.explain(da.ones((8, 8, 4, 4), chunks=(2, 8, 4, 4)), SumUDF())
    >>> memory = plan.memory.in_process(threads=2)
    >>> memory.total == sum(memory.parts().values())
    True
    """

    data: int = 0
    """Blocks of the chunks that are processed."""
    copies: int = 0
    """Tiles that are copies, converted or corrected, and copies while data are loaded."""
    buffers: int = 0
    """Result buffers of the chunks that are processed."""
    merges: int = 0
    """Partial results that wait for a merge, and the buffers of merges."""
    results: int = 0
    """Results, and rows of nav results that wait until the result is assembled."""
    parameters: int = 0
    """Parameters of the UDFs and corrections."""
    tasks: int = 0
    """What running tasks need beyond arrays."""

    @property
    def total(self) -> int:
        """All parts together."""
        return sum(getattr(self, field.name) for field in fields(self))

    def parts(self) -> dict[str, int]:
        """Return the parts that are not zero, by name.

        Returns
        -------
        dict of str to int
            Bytes of each part.

        Examples
        --------
        >>> from udfdask.explanation.memory import Memory
        >>> Memory(data=100, results=20).parts()
        {'data': 100, 'results': 20}
        """
        every = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: size for name, size in every.items() if size}


def describe_parts(memory: Memory) -> str:
    """Return what memory is for in words, the largest part first."""
    parts = sorted(memory.parts().items(), key=lambda part: -part[1])
    return ", ".join(f"{name} {format_bytes(size)}" for name, size in parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedMemory:
    """The memory of a run for any number of threads.

    All fields are bytes, and those up to `merging` of one task.

    Examples
    --------
    >>> import dask.array as da, udfdask as ud
    >>> from udfdask.udfs import SumUDF
    >>> plan = ud.explain(da.ones((8, 8, 4, 4), chunks=(2, 8, 4, 4)), SumUDF())
    >>> plan.memory.data, plan.memory.tasks  # bytes of a chunk, number of chunk tasks
    (2048, 4)
    """

    data: int
    """The block of the largest chunk, or its blocks; 0 if they are in memory before the run."""
    loading: int
    """Needed in addition while the data are loaded."""
    copies: int
    """Copies of tiles while the data are processed."""
    buffers: int
    """Result buffers, rows of aux data and shifts while the data are processed."""
    merging: int
    """New buffers and copies of one merge of chunks, or of `get_results` on a chunk."""
    chunks_per_merge: int
    """Number of chunks after which there is such a merge."""
    partials: int
    """The partial results of one chunk."""
    shared: int
    """Blocks that wait because later tasks need them too, and borders of chunks that wait for the
    margins of others."""
    waiting: int
    """Partial results that wait for merges, with one thread, when the largest merge starts."""
    completing: int
    """Those of them that come last, and complete a merge; no thread is done with its chunk then."""
    early: int
    """Partial results of all chunks that a chain of merges takes one after another: other workers
    do not wait for it."""
    rows: int
    """Rows of nav results that wait until all chunks are processed."""
    last: int
    """Needed in addition after the last chunk: the last merges, `get_results`, final arrays."""
    parameters: int
    """Parameters of the UDFs and corrections."""
    tasks: int
    """Number of tasks that can run at the same time."""
    is_bound: bool
    """Whether the data are sparse: then they need less, in proportion to their stored values."""

    @property
    def per_task(self) -> int:
        """The memory of the largest chunk task for data, copies and buffers."""
        return self.data + max(self.loading, self.copies + self.buffers)

    def in_process(self, threads: int) -> Memory:
        """Return the memory of a run on threads of this process.

        Parameters
        ----------
        threads : int
            Number of threads.

        Returns
        -------
        Memory
            The memory of the moment at which the run needs most.

        Examples
        --------
        >>> import dask.array as da, udfdask as ud
        >>> from udfdask.udfs import SumUDF
        >>> plan = ud.explain(da.ones((8, 8, 4, 4), chunks=(2, 8, 4, 4)), SumUDF())
        >>> one, two = (plan.memory.in_process(threads=n) for n in (1, 2))
        >>> one.total < two.total
        True
        """
        return self.in_worker(threads, 1)

    def in_worker(self, threads: int, workers: int) -> Memory:
        """Return the memory of one of some workers of a cluster.

        They hold equally many rows until one of them puts the result together.

        Parameters
        ----------
        threads : int
            Number of threads of each worker.
        workers : int
            Number of workers.

        Returns
        -------
        Memory
            The memory of the moment at which the worker needs most.

        Examples
        --------
        >>> import dask.array as da, udfdask as ud
        >>> from udfdask.udfs import SumUDF
        >>> plan = ud.explain(da.ones((8, 8, 4, 4), chunks=(2, 8, 4, 4)), SumUDF())
        >>> plan.memory.in_worker(threads=1, workers=1) == plan.memory.in_process(threads=1)
        True
        """
        n = max(1, min(threads, self.tasks))
        rows = -(-self.rows // workers)
        common = {"parameters": self.parameters, "tasks": n * TASK_BYTES, "results": rows}
        before, arrived = self.waiting - self.completing, n - 1
        if workers > 1:
            before += self.early // workers
            arrived += 2  # from other workers, while the threads of this one merge
        moments = (
            Memory(merges=before, **self._working(n, loading=True), **common),
            Memory(merges=before, **self._working(n, loading=False), **common),
            self._while_merging(n, before + self.completing + arrived * self.partials, common),
            Memory(**{**common, "results": self.rows + self.last}),
        )
        return max(moments, key=lambda moment: moment.total)

    def _working(self, n: int, *, loading: bool) -> dict[str, int]:
        """Return the parts for n threads that load or process chunks."""
        data = n * self.data + self.shared
        if loading:
            return {"data": data, "copies": n * self.loading}
        return {"data": data, "copies": n * self.copies, "buffers": n * self.buffers}

    def _while_merging(self, n: int, waiting: int, common: dict[str, int]) -> Memory:
        """Return the memory while some of n threads merge, and the others work on chunks."""
        mergers = -(-n // self.chunks_per_merge)
        return Memory(
            merges=waiting + mergers * self.merging,
            **self._working(n - mergers, loading=self.loading > self.copies + self.buffers),
            **common,
        )


def predict_memory(
    recipe: Recipe, *, joined: bool = False, loading: LoadingMemory | None = None
) -> PredictedMemory:
    """Return the memory of a run; `joined` says whether the chunks are joined small ones.

    Without `loading`, loading needs no more memory than the data themselves.
    """
    loading = loading or LoadingMemory()
    grid, sig = recipe.grid, recipe.shape.sig
    loaded, rows = int(grid.loaded.max(initial=0)), int(grid.counts.max(initial=0))
    pixels = math.prod(max(sizes, default=0) for sizes in recipe.sig_chunks)
    block = loaded * recipe.dtype.itemsize * (pixels if recipe.by_sig_chunk else sig.size)
    udfs = [memory_of_udf(recipe, udf, rows) for udf in recipe.udfs] if grid.n_chunks else []
    merging = max(udfs, key=lambda udf: udf.merging, default=None)
    parts = recipe.n_blocks if recipe.by_sig_chunk else 1
    return PredictedMemory(
        data=0 if loading.in_memory and not joined else block + loading.held,
        loading=loading.extra
        + (block if joined else 0),  # small blocks are copied into a large one
        copies=max(
            copies_of_tiles(recipe, rows, gathered=loading.held > 0), copies_of_windows(recipe)
        )
        + (block if recipe.descan is not None and recipe.descan.moves_entries else 0),
        buffers=sum(udf.buffers for udf in udfs) + _shifts(recipe, rows),
        merging=merging.merging if merging else 0,
        chunks_per_merge=merging.chunks_per_merge if merging else 1,
        partials=sum(udf.partial for udf in udfs),
        shared=loading.waiting + waiting_borders(recipe),
        waiting=sum(udf.waiting for udf in udfs),
        completing=sum(udf.completing for udf in udfs),
        early=sum(udf.early for udf in udfs),
        rows=sum(udf.rows for udf in udfs),
        last=max(sum(udf.finishing for udf in udfs), sum(udf.final for udf in udfs)),
        parameters=recipe.nbytes,
        tasks=grid.n_chunks * parts,
        is_bound=recipe.native.is_sparse,
    )


def _shifts(recipe: Recipe, rows: int) -> int:
    """Return the size of the shifts of some frames, with their whole pixels and parts of pixels."""
    if recipe.descan is None:
        return 0
    return 3 * rows * math.prod(recipe.descan.shifts.extra_shape) * np.dtype(float).itemsize
