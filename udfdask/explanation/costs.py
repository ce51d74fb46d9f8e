"""Find what makes a run slow or large: advice with numbers, and the rechunk to make."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from dask.utils import format_bytes

from udfdask.advice import Advice, MakeChunks, Rechunk, SetOption
from udfdask.base.config import chunk_bytes
from udfdask.plan.arguments import task_limit
from udfdask.plan.make_recipe import MANY_BLOCKS
from udfdask.plan.plan import Plan
from udfdask.plan.recipe import Recipe

SMALL_BLOCKS = ((10_001, 1 << 20), (50_001, 1 << 24))
"""A plan warns from this number of blocks on, if they have fewer bytes than this on average.

A block is two tasks, one that loads and one that processes it. A task takes 0.1 ms on threads and
1 ms on a cluster; a megabyte is processed in 1 ms.
"""

NOTED_BLOCKS = ((100, 4 << 20),)
"""The same for a note of `explain`: dask needs 0.2 ms for the two tasks of a block, and the sums
of 4 MiB take 0.4 ms."""

LITTLE_DATA = 64 << 20
"""Bytes of data that may be in the wrong chunks, or of frames that chunks may give to neighbors,
without a warning: 64 MiB of frames in 512 to 2048 blocks take 0.3 to 0.5 s, whole ones 0.04 s."""

GOOD_JOINED_SIZE = 64 << 20
"""Size of joined chunks that a warning recommends, in bytes; joined ones can be twice as large."""


def advised(plan: Plan) -> Plan:
    """Return a plan with advice on its detectors and on costs that other chunks would avoid."""
    recipe, limit, advice = plan.recipe, task_limit(), [*plan.advice]
    notes: list[tuple[int, str]] = []
    if any(udf.knows_pixels for udf in recipe.udfs):
        from udfdask.explanation.notes import detector_advice  # many have none

        warnings, notes = detector_advice(plan)
        advice += [Advice("parameters", (text,)) for text in warnings]
    if recipe.grid.n_chunks:
        advice += _frames_of_a_task(recipe, plan.names, limit)
        advice += [*many_blocks(recipe, SMALL_BLOCKS), *_gathered_rows(recipe, limit)]
        advice += _wide_margins(recipe, limit) if recipe.halos(range(len(recipe.udfs))) else ()
    return replace(plan, advice=tuple(advice), notes=tuple(notes))


def _frames_of_a_task(recipe: Recipe, names: Sequence[str], limit: float) -> Iterator[Advice]:
    """Yield advice if the data of a task take too many bytes, or are in many signal chunks."""
    frames, frame = int(recipe.grid.loaded.max()), recipe.shape.sig.size * recipe.dtype.itemsize
    part = recipe.dtype.itemsize * math.prod(map(max, recipe.sig_chunks))
    task = frames * (part if recipe.by_sig_chunk else frame)
    # the number of stored values of sparse data is not known before they are loaded
    if task > limit and not recipe.native.is_sparse:
        text = (
            f"the data of one task take {format_bytes(task)} ({frames} frames of "
            f"{format_bytes(frame)}), more than {_share(limit)}: "
        )
        good = _whole_frames(recipe, _good_nav(recipe, limit))
        numbers = {"task": task, "limit": int(limit)}
        yield Advice("large tasks", (text, good, " would do better"), numbers)
        return  # chunks of whole frames are the cure of both
    many = recipe.n_blocks > MANY_BLOCKS and not recipe.by_sig_chunk
    if not many or int(recipe.grid.loaded.sum()) * frame < LITTLE_DATA:
        return
    cannot = [
        name
        for name, udf in zip(names, recipe.udfs, strict=True)
        if not udf.promises.adds_signal_parts
    ]
    why = f"{', '.join(dict.fromkeys(cannot))} cannot process one signal chunk at a time"
    if recipe.descan is not None:
        why = "shifted frames need pixels of several signal chunks"
    elif not cannot:
        why = "excluded pixels are patched from pixels in another signal chunk"
    nav = _good_nav(recipe, limit)
    keeps_nav = nav == tuple(map(max, recipe.grid.nav_chunks))  # uneven ones can stay
    text = (
        f"a task takes {recipe.n_blocks} signal chunks, {format_bytes(task)} together, because "
        f"{why}. Chunks of whole frames would do better: "
    )
    cure = MakeChunks(_whole_frames(recipe, nav, keeps_nav=keeps_nav))
    numbers = {"blocks": recipe.n_blocks, "task": task}
    yield Advice("cut frames", (text, cure), numbers)


def _share(limit: float) -> str:
    return f"a quarter of a worker's memory ({format_bytes(int(limit))})"


def _whole_frames(recipe: Recipe, nav: Sequence[int], *, keeps_nav: bool = False) -> Rechunk:
    n_sig = len(recipe.shape.sig)
    return Rechunk((*nav, *(-1,) * n_sig), n_sig, keeps_nav)


def _good_nav(recipe: Recipe, limit: float) -> tuple[int, ...]:
    """Return sizes along navigation axes of chunks of whole frames that suit UDFs."""
    from udfdask.geometry.good_chunks import good_chunks  # few runs need advice

    chunks = (*recipe.grid.nav_chunks, *recipe.sig_chunks)
    sizes = good_chunks(chunks, len(recipe.shape.sig), recipe.dtype.itemsize, limit)
    return tuple(sizes[: len(recipe.shape.nav)])


def many_blocks(recipe: Recipe, limits: Sequence[tuple[int, int]]) -> Iterator[Advice]:
    """Yield advice above a number of blocks with fewer bytes, so that dask takes most time."""
    count = recipe.grid.n_chunks * recipe.n_blocks
    frames = int(recipe.grid.loaded.sum())
    size = frames * recipe.shape.sig.size * recipe.dtype.itemsize // max(1, count)
    if not any(count >= many and size < small for many, small in limits):
        return
    from udfdask.geometry.good_chunks import joined_chunks  # few runs need it

    chunks = (*recipe.grid.nav_chunks, *recipe.sig_chunks)
    good = max(1, int(min(GOOD_JOINED_SIZE, task_limit() / 2)) >> 20)
    joined = joined_chunks(chunks, recipe.dtype.itemsize, good << 20)
    share = count / math.prod(map(len, chunks))  # of the chunks that have selected frames
    tasks = math.ceil(math.prod(map(len, joined)) * share)
    also = (
        f" loads and processes them in {tasks} task{'s' * (tasks > 1)}; larger chunks where the "
        "array is made are faster still"
    )
    text = f"{count} blocks of {format_bytes(size)}: "
    parts = (text, SetOption("merge_small", f"{good} MiB"), also)
    yield Advice("small chunks", parts, {"blocks": count, "block": size, "tasks": tasks})


def _gathered_rows(recipe: Recipe, limit: float) -> Iterator[Advice]:
    """Yield advice if all rows of large nav results are needed in one task."""
    gathered = sum(
        spec.nbytes(recipe.grid.n_frames, recipe.shape.sig)
        for udf in recipe.udfs
        if (udf.has_get_results and not udf.elementwise) or udf.merge.gathers_rows
        for spec in udf.buffers.values()
        if spec.kind == "nav"
    )
    if gathered > limit:
        text = (
            f"nav results of {format_bytes(gathered)} are gathered in one task, more than "
            f"{_share(limit)}: if get_results works row by row, set "
            "elementwise_results = True on the UDF"
        )
        yield Advice("gathered rows", (text,), {"rows": gathered, "limit": int(limit)})


def _wide_margins(recipe: Recipe, limit: float) -> Iterator[Advice]:
    """Yield advice if chunks are too thin for the margins that they give to neighbors."""
    from udfdask.geometry.halo import frames_that_travel  # few runs need it

    halos, grid = recipe.halos(range(len(recipe.udfs))), recipe.grid
    frame_bytes = recipe.shape.sig.size * recipe.dtype.itemsize
    travel, data_bytes = frames_that_travel(halos, grid) * frame_bytes, grid.size * frame_bytes
    if travel <= max(data_bytes, LITTLE_DATA):
        return
    best = min(chunk_bytes(), limit)
    side = max(1, int((best / max(1, frame_bytes)) ** (1 / len(grid.shape))))
    text = (
        f"chunks give {format_bytes(travel)} of frames to their neighbors, more than the data "
        f"({format_bytes(data_bytes)}), because they are thin for this halo: "
    )
    good = _whole_frames(recipe, tuple(min(side, n) for n in grid.shape))
    numbers = {"travel": travel, "data": data_bytes}
    yield Advice("thin chunks", (text, good, " would do better"), numbers)
