"""Predict the memory that a run needs: arithmetic with the sizes in a plan, nothing is computed.

A process needs memory for what its threads work on, and for what waits: partial results that are
not merged yet, and rows of nav results, which wait until the result is assembled. At the end of a
run no chunk is processed, and the results exist twice. The larger of these two moments counts.

Not included is what nobody declares: arrays that the methods of a UDF make for themselves, and what
was in memory before the run.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields

import numpy as np

from udfdask.plan.recipe import Recipe, UDFRecipe
from udfdask.udf import UDFMethod
from udfdask.udf.buffers import BufferSpec

TASK_BYTES = 512 << 10
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
    """The memory of one process at one moment, in bytes."""

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
        """Return the parts that are not zero, by name."""
        every = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: size for name, size in every.items() if size}


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedMemory:
    """The memory of a run for any number of threads.

    All fields are bytes, and those up to `merging` of one task.
    """

    data: int
    """The block of the largest chunk, or its blocks; 0 if they are in memory before the run."""
    loading: int
    """Needed in addition while the data are loaded."""
    copies: int
    """Copies of tiles while the data are processed."""
    buffers: int
    """Result buffers and rows of aux data while the data are processed."""
    merging: int
    """New buffers and copies of one merge of chunks, or of `get_results` on a chunk."""
    partials: int
    """The partial results of one chunk."""
    shared: int
    """Blocks that wait because later tasks need them too."""
    waiting: int
    """Partial results that wait for merges, with one thread."""
    rows: int
    """Rows of nav results that wait until all chunks are processed."""
    last: int
    """Needed in addition after the last chunk: the last merges, `get_results`, final arrays."""
    last_of_worker: int
    """The same without the final arrays, which the client of a cluster makes."""
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
        """Return the memory of a run on threads of this process."""
        return self._largest(threads, self.last)

    def in_worker(self, threads: int) -> Memory:
        """Return the memory of one worker process of a cluster, should it get all rows."""
        return self._largest(threads, self.last_of_worker)

    def _largest(self, threads: int, last: int) -> Memory:
        """Return the moment of a run that needs most memory."""
        n = max(1, min(threads, self.tasks))
        common = {"parameters": self.parameters, "tasks": n * TASK_BYTES, "results": self.rows}
        waiting = self.waiting + (n - 1) * self.partials
        moments = (
            Memory(
                data=n * self.data + self.shared, copies=n * self.loading, merges=waiting, **common
            ),
            Memory(
                data=n * self.data + self.shared,
                copies=n * self.copies,
                buffers=n * self.buffers,
                merges=waiting,
                **common,
            ),
            Memory(data=self.shared, merges=waiting + n * self.merging, **common),
            Memory(**{**common, "results": self.rows + last}),
        )
        return max(moments, key=lambda moment: moment.total)


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
    udfs = [_memory_of_udf(recipe, udf, rows) for udf in recipe.udfs] if grid.n_chunks else []
    parts = recipe.n_blocks if recipe.by_sig_chunk else 1
    return PredictedMemory(
        data=0 if loading.in_memory and not joined else block + loading.held,
        loading=loading.extra
        + (block if joined else 0),  # small blocks are copied into a large one
        copies=_copies(recipe, rows),
        buffers=sum(udf.buffers for udf in udfs),
        merging=max((udf.merging for udf in udfs), default=0),
        partials=sum(udf.partial for udf in udfs),
        shared=loading.waiting,
        waiting=sum(udf.waiting for udf in udfs),
        rows=sum(udf.rows for udf in udfs),
        last=max(sum(udf.finishing for udf in udfs), sum(udf.final for udf in udfs)),
        last_of_worker=sum(udf.finishing for udf in udfs),
        parameters=recipe.nbytes,
        tasks=grid.n_chunks * parts,
        is_bound=recipe.native.is_sparse,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _UDFMemory:
    """The share of one UDF, in bytes."""

    buffers: int
    partial: int
    merging: int
    waiting: int
    rows: int
    finishing: int  # the last merge and `get_results` on all rows, in addition to `rows`
    final: int  # the arrays of the result, in addition to `rows`


def _memory_of_udf(recipe: Recipe, udf: UDFRecipe, rows: int) -> _UDFMemory:
    """Return the share of one UDF; `rows` is the number of frames of the largest chunk."""
    grid = recipe.grid
    specs, outputs = udf.allocated.values(), udf.outputs.values()
    aux = sum(
        math.prod(udf.aux[name].extra_shape) * udf.aux[name].dtype.itemsize for name in udf.nav_aux
    )
    kept_aux = aux if udf.carries_aux else 0
    row = _row_bytes(recipe, specs) + kept_aux  # bytes of the nav buffers for one frame
    reduced = _reduced_bytes(recipe, specs)
    partial = rows * row + reduced
    all_rows, out_rows = grid.n_frames * row, grid.n_frames * _row_bytes(recipe, outputs)
    out_reduced = _reduced_bytes(recipe, outputs)

    # merges
    sizes = _level_sizes(udf, rows, row, reduced, all_rows)
    fan_in = udf.merge.fan_in or grid.n_chunks
    copied = 0 if udf.promises.merge_only_reads_src else 1
    mode = udf.merge.mode
    waiting, merging, last_merge = 0, 0, 0
    if mode in ("tree", "all"):
        n, group = grid.n_chunks, 1
        for size in sizes[:-1]:
            group = min(n, fan_in)
            waiting += (group - 1) * size
            n = -(-n // fan_in)
        waiting += sizes[0]
        if mode == "tree":
            merging = sizes[1] + copied * sizes[0]
            last_merge = sizes[-1] + copied * sizes[-2] + group * sizes[-2]
        else:
            first = min(grid.n_chunks, fan_in)
            merging = _merge_all_bytes(first * sizes[0], sizes[1], reduced, checked=True)
            merging = merging if udf.merge.repeats_merge_all else first * sizes[0] + 2 * sizes[1]
            last_merge = 2 * group * sizes[-2] + 2 * sizes[-1]
    elif mode == "rows":
        waiting, merging = partial, partial + copied * partial
    elif mode == "chain":
        waiting, merging = partial + reduced, partial + copied * partial
    if recipe.by_sig_chunk:  # partial results of the signal chunks, and where they are joined
        parts = recipe.n_blocks * (rows * row) + reduced
        waiting, merging = waiting + parts, max(merging, partial)

    # what is kept until the end, and what comes then
    kept, finishing = out_rows, 0
    if udf.has_get_results:
        made = out_rows + out_reduced
        if udf.elementwise:
            merging = max(merging, partial + rows * _row_bytes(recipe, outputs) + out_reduced)
        else:
            kept = all_rows
            finishing = all_rows + reduced + made
    if mode == "all":
        kept = 0 if len(sizes) > 1 else kept
        finishing = max(last_merge, sizes[-1] + finishing)
    elif mode == "tree":
        finishing = max(last_merge, finishing + reduced)
        if row and len(sizes) > 2:  # higher levels copy the rows of lower ones
            finishing += all_rows
    masked = udf.has_get_results
    final = sum(
        grid.size * _row_bytes(recipe, [spec])
        if spec.kind == "nav"
        else _reduced_bytes(recipe, [spec])
        for spec in outputs
    )
    if masked:
        final += sum(
            (grid.size + grid.n_frames * (grid.roi is not None)) * math.prod(spec.extra_shape)
            if spec.kind == "nav"
            else math.prod(spec.shape(0, recipe.shape.sig))
            for spec in outputs
        )
    held = out_reduced + (sizes[-1] if mode == "all" else 0)
    aux_rows = 0 if udf.carries_aux else rows * aux
    return _UDFMemory(
        buffers=partial + aux_rows + _window_copies(recipe, specs),
        partial=partial if mode != "none" else rows * row,
        merging=merging,
        waiting=waiting,
        rows=kept,
        finishing=finishing,
        final=final + held,
    )


def _level_sizes(udf: UDFRecipe, rows: int, row: int, reduced: int, all_rows: int) -> list[int]:
    """Return the size of a partial result of a chunk, and of one of each level of the tree."""
    n, sizes = udf.merge.n_chunks, [rows * row + reduced]
    if udf.merge.mode not in ("tree", "all"):
        return sizes
    fan_in, span = udf.merge.fan_in or max(n, 2), 1
    while n > 1 or len(sizes) == 1:
        n, span = -(-n // fan_in), span * fan_in
        sizes.append(min(span * rows * row, all_rows) + reduced)
    return sizes


def _merge_all_bytes(sources: int, merged: int, reduced: int, *, checked: bool) -> int:
    """Return what a call of `merge_all` needs in addition to its sources.

    It gets copies, returns arrays, and these are copied into buffers. A checked merge does this
    again in two parts, which are then merged.
    """
    once = sources + 2 * merged
    return max(once, 5 * merged + 2 * reduced) if checked else once


def _row_bytes(recipe: Recipe, specs: Iterable[BufferSpec]) -> int:
    """Return the size of one row of the nav buffers."""
    return sum(spec.nbytes(1, recipe.shape.sig) for spec in specs if spec.kind == "nav")


def _reduced_bytes(recipe: Recipe, specs: Iterable[BufferSpec]) -> int:
    """Return the size of the sig and single buffers."""
    return sum(spec.nbytes(0, recipe.shape.sig) for spec in specs if spec.kind != "nav")


def _window_copies(recipe: Recipe, specs: Iterable[BufferSpec]) -> int:
    """Return the size of the contiguous copies of sig buffers that a UDF writes to, part by part.

    The leading signal axis is cut first; parts that span all other axes are contiguous.
    """
    part, sig = tuple(recipe.tiling.sig_shape), tuple(recipe.shape.sig)
    if part[1:] == sig[1:]:
        return 0
    return sum(
        math.prod(part) * math.prod(spec.extra_shape) * spec.dtype.itemsize
        for spec in specs
        if spec.kind == "sig"
    )


def _copies(recipe: Recipe, rows: int) -> int:
    """Return the size of the copies of tiles that exist at the same time."""
    as_they_are = recipe.native.is_sparse and recipe.corrections is None
    dense = [udf for udf in recipe.udfs if not (as_they_are and udf.backend.is_sparse)]
    sparse = [udf for udf in recipe.udfs if as_they_are and udf.backend.is_sparse]
    copies = max((_sparse_copies(recipe, udf, rows) for udf in sparse), default=0)
    if not dense:
        return copies
    tiling, frame = recipe.tiling, recipe.shape.sig.size
    by_method = {m: [udf for udf in dense if udf.method is m] for m in UDFMethod}
    tiles, frames = by_method[UDFMethod.TILE], by_method[UDFMethod.FRAME]
    whole = tiling.whole_frames or not tiles
    assembled = recipe.n_blocks > 1 and not recipe.by_sig_chunk
    views = _tiles_are_views(recipe, dense)
    depth = tiling.depth if views and not assembled else tiling.frame_depth
    full_frames = tiles + frames if whole else frames
    if full_frames:
        copies = max(copies, _tile_copies(recipe, full_frames, frame * depth, assembled))
    if not whole:
        deep = tiling.depth if views else tiling.gathered_depth
        copies = max(copies, _tile_copies(recipe, tiles, math.prod(tiling.sig_shape) * deep, False))
    partitions = by_method[UDFMethod.PARTITION]
    if partitions:
        copies = max(copies, _tile_copies(recipe, partitions, frame * rows, assembled))
    return copies


def _tiles_are_views(recipe: Recipe, udfs: Iterable[UDFRecipe]) -> bool:
    """Return whether tiles are views of the blocks, and no UDF gets copies on another device."""
    if recipe.native.is_sparse or not _all_selected(recipe):
        return False
    return all(udf.backend.on_device == recipe.native.on_device for udf in udfs)


def _all_selected(recipe: Recipe) -> bool:
    """Return whether all frames of the chunks that are loaded are selected."""
    return bool(np.array_equal(recipe.grid.loaded, recipe.grid.counts))


def _tile_copies(recipe: Recipe, udfs: Iterable[UDFRecipe], pixels: int, assembled: bool) -> int:
    """Return the size of the copies of one tile for some UDFs."""
    native = recipe.dtype
    gathered = not _all_selected(recipe)
    copies = pixels * native.itemsize * (assembled + (gathered or recipe.native.is_sparse))
    converted: set[np.dtype[np.generic]] = set()
    private = 0
    for udf in udfs:
        dtype = udf.input_dtype
        size = pixels * dtype.itemsize
        if udf.cls.writable_input:
            private = max(private, size)
        if recipe.corrections is not None:
            if not udf.promises.only_sums_frames:
                converted.add(dtype)
        elif not udf.cls.writable_input:
            given = native.newbyteorder("=") if udf.promises.takes_any_byte_order else native
            if dtype != given:
                converted.add(dtype)
    return copies + private + sum(pixels * dtype.itemsize for dtype in converted)


def _sparse_copies(recipe: Recipe, udf: UDFRecipe, rows: int) -> int:
    """Return the size of the sparse tiles of a UDF that are converted, as if they were dense."""
    if udf.backend == recipe.native and udf.input_dtype == recipe.dtype:
        return 0
    pixels = min(rows, recipe.sparse_tiling.depth) * recipe.shape.sig.size
    return pixels * udf.input_dtype.itemsize
