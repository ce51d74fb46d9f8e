"""Describe what a run will do, in words and numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from dask.utils import format_bytes

from udfdask import config
from udfdask.advice import Advice
from udfdask.geometry.shapes import Shape, in_words
from udfdask.geometry.tiling import TilingScheme
from udfdask.plan.plan import Plan
from udfdask.plan.recipe import Recipe, UDFRecipe

if TYPE_CHECKING:
    from udfdask.explanation.loading import LoadingMemory
    from udfdask.explanation.memory import PredictedMemory
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
    def bytes_per_task(self) -> int:
        """Memory in bytes that the largest chunk task needs; sparse data count as dense."""
        return self.memory.per_task

    @property
    def text(self) -> str:
        """The full description, several lines."""
        return "\n".join(_line(label, text) for label, text in self.lines)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text


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
    numbers. `make` makes the description, `make_notes` its notes alone.
    """

    def __init__(
        self, make: Callable[[], Explanation], make_notes: Callable[[], tuple[Note, ...]]
    ) -> None:
        self._make, self._make_notes = make, make_notes
        self._notes: tuple[Note, ...] | None = None

    def get(self) -> Explanation:
        """Return the description, and keep the graph of the data no longer."""
        made = self._make()
        self._make, self._make_notes = (lambda: made), (lambda: made._notes)
        self._notes = made._notes
        return made

    def notes(self) -> tuple[Note, ...]:
        """Return the notes of the description, without making all of it."""
        if self._notes is None:
            self._notes = self._make_notes()
        return self._notes

    def __reduce__(self) -> tuple[Any, ...]:
        return _made_before, (self.get(),)


def _made_before(made: Explanation) -> LazyExplanation:
    """Return the holder of a description that exists."""
    return LazyExplanation(lambda: made, lambda: made._notes)


def describe(plan: Plan, n_tasks: int, loading: LoadingMemory | None = None) -> Explanation:
    """Describe a plan with this number of tasks.

    `loading` is what loading the data needs; None if it is not known.
    """
    from udfdask.explanation.memory import predict_memory
    from udfdask.explanation.notes import detector_lines, notes_of

    recipe = plan.recipe
    tiling, passes = _tiling(recipe), 2 if plan.second_pass else 1
    frame_bytes = recipe.shape.sig.size * recipe.dtype.itemsize
    bytes_read = plan.frames_loaded * frame_bytes * passes
    memory = predict_memory(recipe, joined=plan.joined is not None, loading=loading)
    detectors, every_note = detector_lines(plan), notes_of(plan)
    notes = tuple(dict.fromkeys(note.text for note in every_note))
    pass_text = "one pass"
    if plan.second_pass:
        pass_text = (
            "2 passes: a parameter is a result over the same data, which are then read again"
        )
    if_dense = " if they were dense" if recipe.native.is_sparse else ""
    order = ", one for each signal chunk of a chunk" if recipe.by_sig_chunk else ""
    lines = [
        ("data", f"{in_words(recipe.shape)}, {recipe.dtype}"),
        ("chunks", _chunks(plan)),
        ("reads", f"{format_bytes(bytes_read)}{if_dense}, in {pass_text}"),
        ("tasks", f"{n_tasks}{order}"),
        ("memory", f"{_memory(memory)}"),
        ("tiles", _tiles(tiling, recipe.shape.sig)),
        ("backend", _backends(recipe)),
        *_changes_of_frames(plan, frame_bytes),
        *(
            (name, _udf(udf, name, k in recipe.summed))
            for k, (udf, name) in enumerate(zip(recipe.udfs, plan.names, strict=True))
        ),
        *(("detector", one) for one in detectors),
        *(("warning", one) for one in plan.warnings),
        *(("note", one) for one in notes),
    ]
    return Explanation(
        lines=tuple(lines),
        summary=f"reads     {_reads(plan, bytes_read, passes)}\nmemory    {_in_short(memory)}",
        n_chunks=recipe.grid.n_chunks,
        n_tasks=n_tasks,
        bytes_read=bytes_read,
        memory=memory,
        tile_shape=tuple(tiling.shape),
        passes=passes,
        detectors=(
            *(_line("detector", one) for one in detectors),
            *(_line("note", one.text) for one in every_note if one.is_about_values),
        ),
        advice=plan.advice,
        warnings=plan.warnings,
        notes=notes,
        _notes=every_note,
    )


def _chunks(plan: Plan) -> str:
    """Describe which chunks a run reads, and which frames of them."""
    from udfdask.geometry.seams import loaded_for_others

    recipe, grid = plan.recipe, plan.recipe.grid
    read = grid.n_chunks + len(loaded_for_others(recipe.halos(range(len(recipe.udfs))), grid))
    text = f"{read} of {math.prod(grid.numblocks)} are read"
    if recipe.n_blocks > 1:
        text += f", each in {recipe.n_blocks} signal chunks"
    if grid.roi is not None:
        text += f"; {grid.n_frames} of {grid.size} frames selected"
    if plan.absent:
        text += f"; {plan.absent} of {grid.size} positions have no frame"
    return text + ("; small chunks are joined by merge_small" if plan.joined is not None else "")


def _changes_of_frames(plan: Plan, frame_bytes: int) -> Iterator[tuple[str, str]]:
    """Yield lines about devices, corrections, shifts and neighbors, if there are any."""
    from udfdask.geometry.seams import frames_that_travel

    recipe = plan.recipe
    if users := dict.fromkeys(udf.name for udf in recipe.udfs if udf.needs_cuda):
        yield "needs", f"a CUDA device for {', '.join(users)}; on a cluster, CUDA=1"
    if (corrections := recipe.corrections) is not None:
        parts = [name for name in ("dark", "gain") if getattr(corrections, name) is not None]
        if corrections.excluded_pixels is not None:
            parts.append(f"{corrections.excluded_pixels.shape[1]} excluded pixels")
        yield "corrects", ", ".join(parts)
    if (descan := recipe.descan) is not None:
        by = "parts of a pixel" if descan.subpixel else "whole pixels"
        lazy = "" if isinstance(plan.aux[-1], np.ndarray) else ", computed chunk by chunk"
        yield "descans", f"frames by {by}{lazy}; pixels from outside are {descan.fill!r}"
    if halos := recipe.halos(range(len(recipe.udfs))):
        travel = format_bytes(frames_that_travel(halos, recipe.grid) * frame_bytes)
        yield "neighbors", f"about {travel} of frames at borders go to other chunks"


def _tiling(recipe: Recipe) -> TilingScheme:
    """Return the tiling scheme, the one for sparse tiles if all UDFs get sparse data."""
    takes_sparse = recipe.native.is_sparse and all(u.backend.is_sparse for u in recipe.udfs)
    return recipe.sparse_tiling if takes_sparse and not recipe.makes_dense else recipe.tiling


def _backends(recipe: Recipe) -> str:
    """Describe the backend of the chunks and the backend of the data that each UDF gets."""
    native = recipe.native
    changes = []
    if native.is_sparse and recipe.corrections is not None:
        changes.append("corrected")
    if native.is_sparse and recipe.makes_dense and recipe.descan is not None:
        changes.append("shifted")
    if not changes and all(udf.backend == native for udf in recipe.udfs):
        return native.name
    each = []
    for udf in recipe.udfs:
        backend, steps = udf.backend, []
        if native.is_sparse and not backend.is_sparse:
            steps.append("made dense a tile at a time")
        if native.on_device != backend.on_device:
            steps.append(f"moved to the {'device' if backend.on_device else 'host'}")
        how = f", {' and '.join(steps) or 'converted'}"
        if changes:
            how = f", {', '.join(changes)} and dense before"
        elif backend == native:
            how = " as it is"
        each.append(f"{udf.name} is given {backend.name}{how}")
    return "; ".join([f"{native.name} chunks", *dict.fromkeys(each)])


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
    threads = _threads(memory)
    total = format_bytes(memory.total(threads))
    text = f"{total} in a process with {threads} thread{'s' * (threads > 1)}"
    return f"{text}, or less: this is what dense data would need" if memory.is_bound else text


def _memory(memory: PredictedMemory) -> str:
    """Describe the memory of a process: all of it, what for, and that with one thread."""
    from udfdask.explanation.memory import describe_parts

    threads = _threads(memory)
    text = f"{_in_short(memory)} ({describe_parts(memory, threads)})"
    one = f"; {format_bytes(memory.total(1))} with 1 thread"
    return text + (one if threads > 1 else "")


def _threads(memory: PredictedMemory) -> int:
    """Return the number of threads of a process that have a task."""
    return max(1, min(config.worker_threads(), memory.tasks))


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
    values = {name: f"{spec.kind}, {spec.dtype}" for name, spec in udf.outputs.items()}
    outputs = [f"{', '.join(names)} ({value})" for value, names in groupby(values, values.get)]
    return f"{text}; gives {', '.join(outputs) or 'nothing'}"
