"""Describe what a run will do, in words and numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
from dask.utils import format_bytes

from udfdask.advice import Advice
from udfdask.geometry.shapes import in_words
from udfdask.geometry.tiling import TilingScheme
from udfdask.plan.plan import Plan
from udfdask.plan.recipe import Recipe, UDFRecipe

if TYPE_CHECKING:
    import dask.array as da

    from udfdask.explanation.memory import PredictedMemory


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
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
    n_chunks: int
    """Chunks that are loaded and processed."""
    n_tasks: int
    """Tasks that run if all results of the run are computed together: those that load the data,
    and one that assembles each result, included. dask may run the loading in the same task as the
    processing. If it keeps the array itself in a task, as for a file that `from_array` reads, a
    cluster runs this task, and other schedulers only hold it."""
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
    """What is nearly surely a mistake, will be slow or need much memory, and what helps."""
    notes: tuple[str, ...]
    """What is often right, but good to know, such as a detector that is cut by the edge."""

    @property
    def text(self) -> str:
        """The full description, several lines."""
        return "\n".join(_line(label, text) for label, text in self.lines)

    @property
    def summary(self) -> str:
        """Three lines: the chunks that the run reads, their size, and the memory that it needs."""
        first = dict(reversed(self.lines))  # a UDF may have the name of a topic, and comes later
        return "\n".join(_line(label, first[label]) for label in ("chunks", "reads", "memory"))

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


def _line(label: str, text: str) -> str:
    """Return a line of a description; what is not one of its topics is the name of a UDF."""
    return f"{label:<9} {text}" if label in _TOPICS else f"{label}: {text}"


_TOPICS = frozenset(
    "data chunks reads tasks memory speed tiles backend needs corrects descans neighbors detector "
    "warning note".split()
)


def describe(plan: Plan, array: da.Array, n_tasks: int) -> Explanation:
    """Describe a plan with this number of tasks over an array with a graph."""
    from udfdask.explanation.memory import describe_memory, predict_memory
    from udfdask.explanation.notes import detector_lines, notes_of_run

    recipe = plan.recipe
    tiling, passes = _tiling(recipe), 2 if plan.second_pass else 1
    frame_bytes = recipe.shape.sig.size * recipe.dtype.itemsize
    bytes_read = plan.frames_loaded * frame_bytes * passes
    memory = predict_memory(plan, array)
    detectors, notes = detector_lines(plan), tuple(dict.fromkeys(notes_of_run(plan)))
    total, parts = describe_memory(memory)
    bound = ", or less: this is what dense data would need" if memory.is_bound else ""
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
        ("memory", f"{total}{bound} ({parts}); {format_bytes(memory.total(1))} with 1 thread"),
        ("tiles", _tiles(tiling)),
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
        n_chunks=recipe.grid.n_chunks,
        n_tasks=n_tasks,
        bytes_read=bytes_read,
        memory=memory,
        tile_shape=tuple(tiling.shape),
        passes=passes,
        detectors=(
            *(_line("detector", one) for one in detectors),
            *(_line("note", one) for _, one in plan.notes),
        ),
        advice=plan.advice,
        warnings=plan.warnings,
        notes=notes,
    )


def _chunks(plan: Plan) -> str:
    """Describe which chunks a run reads, and which frames of them."""
    recipe, grid = plan.recipe, plan.recipe.grid
    read, halos = grid.n_chunks, recipe.halos(range(len(recipe.udfs)))
    if halos:
        from udfdask.geometry.halo import loaded_for_others

        read += len(loaded_for_others(halos, grid))
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
    from udfdask.geometry.halo import frames_that_travel

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
    each = []
    for udf in recipe.udfs:
        how = ", converted"
        if udf.backend == native:
            how = " as it is"
        elif native.is_sparse and not udf.backend.is_sparse:
            how = ", made dense a tile at a time"
        each.append(f"{udf.name} is given {udf.backend.name}{how}")
    if native.is_sparse and recipe.makes_dense:
        each = ["made dense a tile at a time to correct or shift them"]
    elif all(udf.backend == native for udf in recipe.udfs):
        return native.name
    return "; ".join([f"{native.name} chunks", *dict.fromkeys(each)])


def _tiles(tiling: TilingScheme) -> str:
    """Describe how many frames a UDF sees at a time, and how much of them."""
    depth, *part = tiling.shape
    text = f"{'1 frame' if depth == 1 else f'up to {depth} frames'} at a time"
    if len(tiling) == 1:
        return text
    return f"{text}, in {len(tiling)} parts of up to {' x '.join(map(str, part))} pixels"


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
