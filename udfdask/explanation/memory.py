"""Predict the memory that a run needs: one sum over the sizes in a plan, nothing is computed.

Each thread holds the data of a chunk, copies of them and result buffers. In the process, there are
also partial results that wait for merges, the results, and parameters. The sum is at least what a
run needs, and at most about twice as much, since not all of this exists at the same time.

Not included is what nobody declares: arrays that the methods of a UDF make for themselves, and what
was in memory before the run.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
from dask.utils import format_bytes

from udfdask.advice import Advice
from udfdask.base import config
from udfdask.errors import MemoryLimitError
from udfdask.explanation.loading import loading_memory
from udfdask.geometry.halo import slabs
from udfdask.graph.dask_internals.layers import blocks_in_memory
from udfdask.plan.arguments import parse_size
from udfdask.plan.plan import Plan
from udfdask.plan.recipe import Recipe, UDFRecipe
from udfdask.udf import UDFMethod
from udfdask.udf.buffers import BufferSpec

TASK_BYTES = 3 << 19
"""Memory that a running task needs beyond arrays: Python objects, the stack of its thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedMemory:
    """The memory of a run in bytes, for any number of threads.

    Examples
    --------
    >>> import dask.array as da, udfdask as ud
    >>> from udfdask.udfs import SumUDF
    >>> plan = ud.explain(da.ones((8, 8, 4, 4), chunks=(2, 8, 4, 4)), SumUDF())
    >>> plan.memory.data, plan.memory.tasks  # bytes of a chunk, number of chunk tasks
    (2048, 4)
    >>> plan.memory.total(threads=1) == sum(plan.memory.parts(threads=1).values())
    True
    """

    data: int
    """The blocks of the largest chunk; 0 if they are in memory before the run."""
    copies: int
    """Copies of these data while they are loaded, and copies of tiles while they are processed."""
    buffers: int
    """Result buffers, rows of aux data and shifts of a chunk."""
    partials: int
    """Partial results of a chunk."""
    waiting: int
    """Partial results that wait for merges with one thread, and the buffers of a merge."""
    shared: int
    """Blocks that wait because later tasks need them too, and borders of chunks for neighbors."""
    results: int
    """Results, and the rows of nav results before they are put together."""
    parameters: int
    """Parameters of the UDFs and corrections."""
    tasks: int
    """Number of tasks that can run at the same time."""
    is_bound: bool
    """Whether the data are sparse: then they need less, in proportion to their stored values."""

    def parts(self, threads: int) -> dict[str, int]:
        """Return what a run on threads of one process needs memory for; parts of 0 are left out.

        Parameters
        ----------
        threads : int
            Number of threads.

        Returns
        -------
        dict of str to int
            Bytes of each part.
        """
        n = max(1, min(threads, self.tasks))
        every = {
            "data": n * self.data + self.shared,
            "copies": n * self.copies,
            "buffers": n * self.buffers,
            "merges": self.waiting + (n - 1) * self.partials,
            "results": self.results,
            "parameters": self.parameters,
            "tasks": n * TASK_BYTES,
        }
        return {name: size for name, size in every.items() if size}

    def total(self, threads: int) -> int:
        """Return the memory of a run on threads of one process.

        Parameters
        ----------
        threads : int
            Number of threads.

        Returns
        -------
        int
            Bytes.
        """
        return sum(self.parts(threads).values())


def describe_memory(memory: PredictedMemory) -> tuple[str, str]:
    """Return the memory of a process with all its threads, and what for, the largest part first."""
    threads = max(1, min(config.worker_threads(), memory.tasks))
    parts = sorted(memory.parts(threads).items(), key=lambda part: -part[1])
    total = format_bytes(memory.total(threads))
    return (
        f"{total} in a process with {threads} thread{'s' * (threads > 1)}",
        ", ".join(f"{name} {format_bytes(size)}" for name, size in parts),
    )


def check_memory(plan: Plan, array: da.Array, max_memory: Any) -> None:
    """Raise if a run needs more than `max_memory` in one process."""
    limit, memory = parse_size(max_memory, "max_memory", "2 GB"), predict_memory(plan, array)
    needed = memory.total(config.worker_threads())
    if needed <= limit:
        return
    total, parts = describe_memory(memory)
    dense = ", if the sparse data were dense," if memory.is_bound else ","
    text = (
        f"the run needs {total} ({parts}){dense} more than max_memory={max_memory!r}: smaller "
        "chunks where the array is made or the file is opened need less, and so do fewer threads "
        "(num_workers in dask's configuration, udfdask.worker-threads for a cluster), fewer UDFs "
        "in one run, or a part of the scan"
    )
    advice = Advice("memory limit", (text,), {"needed": needed, "limit": limit})
    raise MemoryLimitError(text, advice=advice)


def predict_memory(plan: Plan, array: da.Array) -> PredictedMemory:
    """Return the memory of a run over an array with a graph."""
    recipe, joined = plan.recipe, plan.joined is not None
    # each task of joined chunks runs the tasks of its own chunks
    in_memory = not joined and blocks_in_memory(array) is not None
    loading, shared = (0, 0) if joined or in_memory else loading_memory(array)
    grid, sig = recipe.grid, recipe.shape.sig
    loaded, rows = int(grid.loaded.max(initial=0)), int(grid.counts.max(initial=0))
    pixels = math.prod(max(sizes, default=0) for sizes in recipe.sig_chunks)
    block = loaded * recipe.dtype.itemsize * (pixels if recipe.by_sig_chunk else sig.size)
    udfs = [_UDFMemory(recipe, udf, rows) for udf in recipe.udfs] if grid.n_chunks else []
    moved = recipe.descan is not None and recipe.descan.moves_entries
    copied = _copies_of_tiles(recipe, rows) + _windows(recipe) + block * moved
    return PredictedMemory(
        data=0 if in_memory else block,
        copies=max(block if joined else loading, copied),
        buffers=sum(udf.buffers for udf in udfs) + _shifts(recipe, rows),
        partials=sum(udf.partial for udf in udfs),
        waiting=sum(udf.waiting for udf in udfs),
        shared=shared + _borders(recipe),
        results=sum(udf.results for udf in udfs),
        parameters=recipe.nbytes,
        tasks=grid.n_chunks * (recipe.n_blocks if recipe.by_sig_chunk else 1),
        is_bound=recipe.native.is_sparse,
    )


@dataclass(frozen=True)
class _UDFMemory:
    """The memory for the results of one UDF, in bytes; `rows` are the frames of a chunk."""

    recipe: Recipe
    udf: UDFRecipe
    rows: int

    @property
    def aux(self) -> int:
        """Aux data of one frame."""
        aux = (self.udf.aux[name] for name in self.udf.nav_aux)
        return sum(math.prod(one.extra_shape) * one.dtype.itemsize for one in aux)

    @property
    def row(self) -> int:
        """What a partial result has for one frame."""
        return self._row_bytes(self.udf.allocated.values()) + self.aux * self.udf.carries_aux

    @property
    def reduced(self) -> int:
        """Sig and single buffers."""
        sig = self.recipe.shape.sig
        return sum(s.nbytes(0, sig) for s in self.udf.allocated.values() if s.kind != "nav")

    @property
    def partial(self) -> int:
        """The partial result of the largest chunk."""
        return self.rows * self.row + self.reduced

    @property
    def buffers(self) -> int:
        """Buffers and aux data of a chunk; sig buffers are copied if tiles are parts of frames."""
        part, sig = tuple(self.recipe.tiling.sig_shape), tuple(self.recipe.shape.sig)
        copied = self.reduced if part[1:] != sig[1:] else 0
        return self.partial + self.rows * self.aux * (not self.udf.carries_aux) + copied

    @property
    def waiting(self) -> int:
        """Partial results that wait for merges, and two more, which a merge makes and copies."""
        mode, n = self.udf.merge.mode, self.recipe.grid.n_chunks
        parts = self.recipe.n_blocks * self.rows * self.row + self.reduced
        parts *= self.recipe.by_sig_chunk
        if mode == "none":
            return parts
        if mode not in ("tree", "all"):
            return 2 * self.partial + self.reduced + parts
        fan_in, span, total = self.udf.merge.fan_in or max(n, 2), 1, self.partial
        level = self.partial
        while n > 1:  # chunks are processed depth first: all sources of a merge but one can wait
            total += (min(n, fan_in) - 1) * level
            n, span = -(-n // fan_in), span * fan_in
            level = min(span * self.rows, self.recipe.grid.n_frames) * self.row + self.reduced
        copies = 1 if self.udf.promises.merge_only_reads_src else 2
        return total + (3 if mode == "all" else copies) * level + parts

    @property
    def results(self) -> int:
        """Rows that wait, what `get_results` makes of them, and the arrays of the result."""
        grid, sig, outputs = self.recipe.grid, self.recipe.shape.sig, self.udf.outputs.values()
        final = sum(spec.nbytes(grid.size, sig) for spec in outputs)
        rows = grid.n_frames * self._row_bytes(outputs)
        if self.udf.has_get_results:
            masks = sum(math.prod(s.shape(grid.size + grid.n_frames, sig)) for s in outputs)
            final += masks + self.reduced
            if not self.udf.elementwise:
                rows += grid.n_frames * self.row
        elif self.udf.merge.mode == "all":
            rows = grid.n_frames * self.row
        return rows + final

    def _row_bytes(self, specs: Iterable[BufferSpec]) -> int:
        return sum(spec.nbytes(1, self.recipe.shape.sig) for spec in specs if spec.kind == "nav")


def _shifts(recipe: Recipe, rows: int) -> int:
    """Return the size of the shifts of some frames, with their whole pixels and parts of pixels."""
    if recipe.descan is None:
        return 0
    return 3 * rows * math.prod(recipe.descan.shifts.extra_shape) * np.dtype(float).itemsize


def _copies_of_tiles(recipe: Recipe, rows: int) -> int:
    """Return the size of the copies of a tile: gathered, converted, corrected, shifted, private."""
    alone = [udf for udf in recipe.udfs if udf.halo is None]
    if not alone:
        return 0
    native, tiling, frame = recipe.native, recipe.tiling, recipe.shape.sig.size
    selected = bool(np.array_equal(recipe.grid.loaded, recipe.grid.counts))
    assembled = recipe.n_blocks > 1 and not recipe.by_sig_chunk
    on_place = all(udf.backend.on_device == native.on_device for udf in alone)
    views = selected and on_place and not (native.is_sparse or assembled or recipe.descan)
    full = frame * (tiling.depth if views else tiling.frame_depth)
    part = math.prod(tiling.sig_shape) * (tiling.depth if views else tiling.gathered_depth)
    changes = (recipe.corrections is not None) + (recipe.descan is not None)
    largest = 0
    for udf in alone:
        pixels = frame * rows if udf.method is UDFMethod.PARTITION else max(full, part)
        is_made = udf.cls.writable_input or udf.input_dtype != recipe.dtype
        size = pixels * recipe.dtype.itemsize * (assembled + (not selected) + native.is_sparse)
        size += pixels * udf.input_dtype.itemsize * max(is_made, changes)
        largest = max(largest, size)
    return largest * len({udf.input_dtype for udf in alone})


def _windows(recipe: Recipe) -> int:
    """Return the size of the windows of frames that one task makes at a time."""
    frame, box = recipe.shape.sig.size, [(0, max(a, default=0)) for a in recipe.grid.nav_chunks]
    largest = 0
    for udf in recipe.udfs:
        if udf.halo is not None:
            itemsize = max(recipe.dtype.itemsize, udf.input_dtype.itemsize)
            first = slabs(udf.halo, tuple(box), frame * itemsize)[:1]
            frames = max((math.prod(udf.halo.around(slab)) for slab in first), default=0)
            # as they came, and as the UDF is given them
            made = frames * frame * (recipe.dtype.itemsize + udf.input_dtype.itemsize)
            largest = max(largest, made)
    return largest


def _borders(recipe: Recipe) -> int:
    """Return the size of borders that wait until the next line of chunks, in C order, is loaded."""
    halos, grid = recipe.halos(range(len(recipe.udfs))), recipe.grid
    if not halos or grid.n_chunks < 2:
        return 0
    sizes = [max(axis, default=0) for axis in grid.nav_chunks]
    cut = next((axis for axis, n in enumerate(grid.numblocks) if n > 1), 0)
    depth = max(1 + -(-max(halo.sides[cut]) // max(1, sizes[cut])) for halo in halos)
    waiting = min(grid.n_chunks, depth * math.prod(grid.numblocks[cut + 1 :]) + 2)
    every = math.prod(sizes)
    kept = every
    if not any(map(recipe.keeps_chunks, range(len(recipe.udfs)))):
        inner = (
            math.prod(
                max(0, n - 2 * (before + after)) if len(axis) > 1 else n
                for n, (before, after), axis in zip(sizes, halo.sides, grid.nav_chunks, strict=True)
            )
            for halo in halos
        )
        kept = sum(every - each for each in inner)
    frames = waiting * min(kept, len(halos) * every)
    return frames * recipe.shape.sig.size * recipe.dtype.itemsize
