"""Describe what a run will do, in words and numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
from dask.utils import format_bytes

from udfdask import config
from udfdask.advice import Advice
from udfdask.backends.backend import Backend
from udfdask.explanation.costs import small_chunks_note
from udfdask.geometry.shapes import Shape, in_words
from udfdask.geometry.tiling import TilingScheme
from udfdask.plan.plan import Plan
from udfdask.plan.recipe import CORRECTIONS, Recipe, UDFRecipe

if TYPE_CHECKING:
    from udfdask.explanation.memory import LoadingMemory, PredictedMemory
    from udfdask.explanation.notes import Note


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The description of a run. `print` shows all of it.

    Examples
    --------
    >>> import dask.array as da, udfdask as ud
    >>> from udfdask.udfs import SumUDF
    >>> plan = ud.explain(da.ones((8, 8, 4, 4), chunks=(2, 8, 4, 4)), SumUDF())
    >>> plan.n_chunks, plan.bytes_read, plan.passes
    (4, 8192, 1)
    """

    lines: tuple[tuple[str, str], ...]
    """The full description: pairs of a label and its text."""
    summary: str
    """Two lines: what the run reads, and the memory that it needs."""
    n_chunks: int
    """Chunks that are loaded and processed."""
    n_tasks: int
    """Tasks that udfdask adds to the graph."""
    bytes_read: int
    """Size of the loaded data in bytes, as dask counts it: uncompressed, and dense for sparse
    data."""
    bytes_per_task: int
    """Memory in bytes that the largest chunk task needs for data, copies and buffers; for sparse
    data, the memory that dense data would need."""
    memory: PredictedMemory
    """Memory in bytes that the run needs with any number of threads, and what for."""
    tile_shape: tuple[int, ...]
    """Largest tile, (frames, *signal)."""
    passes: int
    """Number of times that the data are loaded."""
    detectors: tuple[str, ...]
    """The lines of `text` about detectors: radii, centers, number of pixels, and notes."""
    advice: tuple[Advice, ...]
    """The same as `warnings`, as values: kinds, numbers, and the changes that help."""
    warnings: tuple[str, ...]
    """What is nearly surely a mistake, will be slow or need much memory, and the change that
    helps."""
    notes: tuple[str, ...]
    """What is often right, but good to know, such as a detector that is cut by the edge of the
    frame."""
    _notes: tuple[Note, ...] = ()
    """The same with the UDF that each is about."""

    @property
    def text(self) -> str:
        """The full description, several lines."""
        return "\n".join(_line(label, text) for label, text in self.lines)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        from udfdask.explanation.html_table import html_table

        return html_table("Plan", (), self.lines)


def _line(label: str, text: str) -> str:
    """Return a line of a description; what is not one of its topics is the name of a UDF."""
    return f"{label:<9} {text}" if label in _TOPICS else f"{label}: {text}"


_TOPICS = frozenset(
    "data chunks reads tasks memory tiles backend needs corrects descans neighbors detector "
    "warning note".split()
)


class LazyExplanation:
    """A description that is made when somebody asks for it: it takes as long as half a plan.

    Until then it keeps the plan and the graph of the data; a computed result keeps only texts and
    numbers. `make` makes the description.
    """

    __slots__ = ("_made", "_make", "_make_notes", "_notes")

    def __init__(
        self,
        make: Callable[[], Explanation],
        make_notes: Callable[[], tuple[Note, ...]] | None = None,
    ) -> None:
        self._make: Callable[[], Explanation] | None = make
        self._make_notes: Callable[[], tuple[Note, ...]] | None = make_notes
        self._made: Explanation | None = None
        self._notes: tuple[Note, ...] | None = None

    def get(self) -> Explanation:
        """Return the description, and keep the graph of the data no longer."""
        if self._made is None and self._make is not None:
            self._made = self._make()
            self._make = self._make_notes = None
        assert self._made is not None
        return self._made

    def notes(self) -> tuple[Note, ...]:
        """Return the notes of the description, without making all of it."""
        if self._made is not None:
            return self._made._notes
        if self._notes is None:
            self._notes = () if self._make_notes is None else self._make_notes()
        return self._notes

    def __reduce__(self) -> tuple[Callable[[Explanation], LazyExplanation], tuple[Explanation]]:
        return _made_before, (self.get(),)


def _made_before(explanation: Explanation) -> LazyExplanation:
    """Return the holder of a description that exists."""
    holder = LazyExplanation(lambda: explanation)
    holder.get()
    return holder


def describe(plan: Plan, n_tasks: int, loading: LoadingMemory | None = None) -> Explanation:
    """Describe a plan with this number of tasks.

    `loading` is what loading the data needs; None if it is not known.
    """
    from udfdask.explanation.detectors import detector_lines
    from udfdask.explanation.memory import predict_memory
    from udfdask.geometry.seams import frames_that_travel, loaded_for_others

    recipe = plan.recipe
    grid, sig, tiling = recipe.grid, recipe.shape.sig, _tiling(recipe)
    blocks = math.prod(len(c) for c in recipe.sig_chunks)
    total = math.prod(grid.numblocks)
    itemsize = recipe.dtype.itemsize
    passes, pass_text = 1, "one pass"
    if plan.second_pass:
        passes = 2
        pass_text = (
            "2 passes: a parameter is a result over the same data, which are then read again"
        )
    bytes_read = plan.frames_loaded * sig.size * itemsize * passes
    memory = predict_memory(recipe, joined=plan.joined is not None, loading=loading)
    halos = recipe.halos(range(len(recipe.udfs)))
    read = grid.n_chunks + len(loaded_for_others(halos, grid))
    chunks = f"{read} of {total} are read"
    if blocks > 1:
        chunks += f", each in {blocks} signal chunks"
    if grid.roi is not None:
        chunks += f"; {grid.n_frames} of {grid.size} frames selected"
    if plan.absent:
        chunks += f"; {plan.absent} of {grid.size} positions have no frame"
    if plan.joined is not None:
        chunks += "; small chunks are joined by merge_small"
    if_dense = " if they were dense" if recipe.native.is_sparse else ""
    order = ", one for each signal chunk of a chunk" if recipe.by_sig_chunk else ""
    lines = [
        ("data", f"{in_words(recipe.shape)}, {recipe.dtype}"),
        ("chunks", chunks),
        ("reads", f"{format_bytes(bytes_read)}{if_dense}, in {pass_text}"),
        ("tasks", f"{n_tasks}{order}"),
        ("memory", f"{_memory(memory)}"),
        ("tiles", _tiles(tiling, sig)),
        ("backend", _backends(recipe)),
    ]
    cuda_udfs = dict.fromkeys(udf.name for udf in recipe.udfs if udf.needs_cuda)
    if cuda_udfs:
        users = ", ".join(cuda_udfs)
        lines.append(("needs", f"a CUDA device for {users}; on a cluster, CUDA=1"))
    if recipe.corrections is not None:
        lines.append(("corrects", _corrections(recipe)))
    if recipe.descan is not None:
        lines.append(("descans", _descan(plan)))
    if halos:
        travel = frames_that_travel(halos, grid) * sig.size * itemsize
        text = f"about {format_bytes(travel)} of frames at borders go to other chunks"
        lines.append(("neighbors", text))
    lines += [
        (name, _udf(udf, name, k in recipe.summed))
        for k, (udf, name) in enumerate(zip(recipe.udfs, plan.names, strict=True))
    ]
    detectors, about_detectors = detector_lines(plan)
    all_notes = (*about_detectors, *_other_notes(plan))
    notes = tuple(dict.fromkeys(note.text for note in all_notes))
    lines += [("detector", one) for one in detectors]
    lines += [("warning", one) for one in plan.warnings]
    lines += [("note", one) for one in notes]
    return Explanation(
        lines=tuple(lines),
        summary=f"reads     {_reads(plan, bytes_read, passes)}\nmemory    {_in_short(memory)}",
        n_chunks=grid.n_chunks,
        n_tasks=n_tasks,
        bytes_read=bytes_read,
        bytes_per_task=memory.per_task,
        memory=memory,
        tile_shape=tuple(tiling.shape),
        passes=passes,
        detectors=(
            *(_line("detector", one) for one in detectors),
            *(_line("note", one.text) for one in about_detectors),
        ),
        advice=plan.advice,
        warnings=plan.warnings,
        notes=notes,
        _notes=all_notes,
    )


def notes_of(plan: Plan) -> tuple[Note, ...]:
    """Return the notes in the description of a plan."""
    from udfdask.explanation.detectors import detector_lines

    _, about_detectors = detector_lines(plan)
    return (*about_detectors, *_other_notes(plan))


def _other_notes(plan: Plan) -> tuple[Note, ...]:
    """Return the notes about merges and about the run; a run of one UDF is that of the UDF."""
    from udfdask.explanation.notes import (
        Note,  # runs need it, imports do not
        merge_notes,
    )

    number = 0 if len(plan.recipe.udfs) == 1 else None
    return (*merge_notes(plan), *(Note(text, number) for text in _notes_of_run(plan)))


def _tiling(recipe: Recipe) -> TilingScheme:
    """Return the tiling scheme, the one for sparse tiles if all UDFs get sparse data."""
    takes_sparse = recipe.native.is_sparse and all(u.backend.is_sparse for u in recipe.udfs)
    return recipe.sparse_tiling if takes_sparse and not recipe.makes_dense else recipe.tiling


def _backends(recipe: Recipe) -> str:
    """Describe the backend of the chunks and the backend of the data that each UDF gets."""
    native = recipe.native
    changed = ", ".join(
        word
        for word, is_so in (
            ("corrected", recipe.corrections is not None),
            ("shifted", recipe.makes_dense and recipe.descan is not None),
        )
        if is_so and native.is_sparse
    )
    if not changed and all(udf.backend == native for udf in recipe.udfs):
        return native.name
    each = [
        f"{udf.name} is given {_converted(native, udf.backend, changed)}" for udf in recipe.udfs
    ]
    return "; ".join([f"{native.name} chunks", *dict.fromkeys(each)])


def _converted(native: Backend, backend: Backend, changed: str) -> str:
    """Describe the backend of the data that a UDF gets, and the conversions to it.

    `changed` says what is done to the pixels of sparse data before.
    """
    if changed:
        return f"{backend.name}, {changed} and dense before"
    if backend == native:
        return f"{backend.name} as it is"
    steps = []
    if native.is_sparse and not backend.is_sparse:
        steps.append("made dense a tile at a time")
    if native.on_device != backend.on_device:
        steps.append(f"moved to the {'device' if backend.on_device else 'host'}")
    return f"{backend.name}, {' and '.join(steps) or 'converted'}"


def _reads(plan: Plan, bytes_read: int, passes: int) -> str:
    """Describe in short what a run reads."""
    grid = plan.recipe.grid
    total = math.prod(grid.numblocks)
    text = f"{format_bytes(bytes_read)} in {total} chunk{'s' * (total > 1)}"
    if grid.n_chunks != total:
        text = f"{format_bytes(bytes_read)} in {grid.n_chunks} of {total} chunks"
    if grid.roi is not None:
        text += f", {grid.n_frames} of {grid.size} frames"
    return text + (f", in {passes} passes" if passes > 1 else "")


def _in_short(memory: PredictedMemory) -> str:
    """Describe the memory of a process with all threads."""
    threads = max(1, min(config.worker_threads(), memory.tasks))
    total = format_bytes(memory.total(threads))
    text = f"{total} in a process with {threads} thread{'s' * (threads > 1)}"
    return f"{text}, or less: this is what dense data would need" if memory.is_bound else text


def _memory(memory: PredictedMemory) -> str:
    """Describe the memory of a process: all of it, what for, and that with one thread."""
    from udfdask.explanation.memory import describe_parts

    threads = max(1, min(config.worker_threads(), memory.tasks))
    text = f"{_in_short(memory)} ({describe_parts(memory, threads)})"
    if threads > 1:
        text += f"; {format_bytes(memory.total(1))} with 1 thread"
    return text


def _tiles(tiling: TilingScheme, sig: Shape) -> str:
    """Describe how many frames a UDF sees at a time, and how much of them."""
    depth, *part = tiling.shape
    frames = "1 frame" if depth == 1 else f"up to {depth} frames"
    if len(tiling) == 1:
        return f"{frames} at a time"
    size = " x ".join(map(str, part))
    return f"{frames} at a time, in {len(tiling)} parts of up to {size} pixels"


def _udf(udf: UDFRecipe, name: str, shares_sums: bool) -> str:
    """Describe how one UDF runs; `name` is what the user sees before."""
    text = f"process_{udf.method.value} on {udf.input_dtype}"
    if shares_sums:
        text = f"sums of {udf.input_dtype} values, which several UDFs share"
    if not name.startswith(udf.name):
        text = f"{udf.name}, {text}"
    if udf.halo is not None:
        window = " x ".join(map(str, udf.halo.window)) or "1"
        text += f", windows of {window} frames, boundary {udf.halo.boundary}"
    text += f"; {udf.merge}"
    if udf.has_get_results:
        text += "; get_results " + ("on each chunk" if udf.elementwise else "once, on all of it")
    outputs = [
        f"{', '.join(names)} ({kind_and_dtype})"
        for kind_and_dtype, names in groupby(udf.outputs, lambda k: _kind_and_dtype(udf, k))
    ]
    return f"{text}; gives {', '.join(outputs) or 'nothing'}"


def _kind_and_dtype(udf: UDFRecipe, name: str) -> str:
    """Describe the values of a result."""
    return f"{udf.outputs[name].kind}, {udf.outputs[name].dtype}"


def _corrections(recipe: Recipe) -> str:
    """Describe the corrections of the data."""
    corrections = recipe.corrections
    assert corrections is not None
    parts = [name for name in ("dark", "gain") if getattr(corrections, name) is not None]
    if corrections.excluded_pixels is not None:
        parts.append(f"{corrections.excluded_pixels.shape[1]} excluded pixels")
    return ", ".join(parts)


def _descan(plan: Plan) -> str:
    """Describe the shifts of the frames."""
    descan = plan.recipe.descan
    assert descan is not None
    by = "parts of a pixel" if descan.subpixel else "whole pixels"
    lazy = "" if isinstance(plan.aux[-1], np.ndarray) else ", computed chunk by chunk"
    return f"frames by {by}{lazy}; pixels from outside are {descan.fill!r}"


def _notes_of_run(plan: Plan) -> list[str]:
    """Return notes about what a run reads and sends."""
    names = {CORRECTIONS: "corrections", **{k: u.name for k, u in enumerate(plan.recipe.udfs)}}
    slots = [(k, p[0] if isinstance(p, tuple) else p) for k, p in plan.recipe.lazy_slots]
    lazy = [f"{names[k]}.{p}" for k, p in dict.fromkeys(slots)]
    notes = []
    if plan.recipe.native.is_sparse:
        notes.append(
            "dask knows only the dense size of sparse chunks; the memory that they need is "
            "proportional to the number of stored values"
        )
    if not plan.advice and (note := small_chunks_note(plan.recipe)):
        notes.append(note.said(plan.door))
    if lazy:
        notes.append(f"{', '.join(lazy)} computed first, then passed to every task")
    if plan.recipe.nbytes > (1 << 20):
        notes.append(
            f"parameters of {format_bytes(plan.recipe.nbytes)} are a task of their own, which a "
            "distributed cluster sends to each worker once; the processes scheduler sends them "
            "with every task"
        )
    return notes
