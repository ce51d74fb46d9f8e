"""Find what makes a run slow or large: advice with numbers, and the rechunk to make."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from dask.utils import format_bytes, parse_bytes

from udfdask.advice import Advice, MakeChunks, Rechunk, SetOption
from udfdask.config import chunk_bytes
from udfdask.plan.data import task_limit
from udfdask.plan.make_recipe import MANY_BLOCKS
from udfdask.plan.plan import Plan
from udfdask.plan.recipe import Recipe

SMALL_BLOCKS = ((10_000, 1 << 20), (50_000, 1 << 24))
"""A plan warns above this number of blocks, if they have fewer bytes than this on average.

A block is two tasks, one that loads and one that processes it. A task takes 0.1 ms on threads and
1 ms on a cluster; a megabyte is processed in 1 ms.
"""

NOTED_BLOCKS, NOTED_BYTES = 100, 4 << 20
"""`explain` has a note from this number of blocks on, if they have fewer bytes on average: dask
needs 0.2 ms for the two tasks of a block, and the sums of 4 MiB take 0.4 ms."""

LITTLE_DATA = 64 << 20
"""Bytes of data that may be in the wrong chunks, or of frames that chunks may give to neighbors,
without a warning: 64 MiB of frames in 512 to 2048 blocks take 0.3 to 0.5 s, whole ones 0.04 s."""

GOOD_JOINED_SIZE = "64 MiB"
"""Size of joined chunks that a warning recommends."""


def advised(plan: Plan) -> Plan:
    """Return a plan with advice on its detectors and on costs that other chunks would avoid."""
    about_detectors: list[str] = []
    if any(udf.has_detectors for udf in plan.recipe.udfs):
        from udfdask.explanation.notes import detector_warnings  # many have none

        about_detectors += detector_warnings(plan)
    advice = (
        *plan.advice,
        *(Advice("parameters", (text,)) for text in about_detectors),
        *_costs(plan.recipe, plan.names, task_limit()),
    )
    return replace(plan, advice=advice)


def _costs(recipe: Recipe, names: Sequence[str], task_limit: float) -> tuple[Advice, ...]:
    """Return advice about each cost of a run; the data of a task may have `task_limit` bytes."""
    if not recipe.grid.n_chunks:
        return ()
    found = (
        _large_tasks(recipe, task_limit),
        _cut_frames(recipe, names, task_limit),
        _many_blocks(recipe),
        _gathered_rows(recipe, task_limit),
        _wide_margins(recipe, task_limit) if recipe.halos(range(len(recipe.udfs))) else None,
    )
    return tuple(one for one in found if one is not None)


def _share(task_limit: float) -> str:
    """Return what the limit is, in words."""
    return f"a quarter of a worker's memory ({format_bytes(int(task_limit))})"


def _large_tasks(recipe: Recipe, task_limit: float) -> Advice | None:
    """Return advice if the data of a task take too many bytes."""
    task_bytes = _task_bytes(recipe)
    # the number of stored values of sparse data is not known before they are loaded
    if task_bytes <= task_limit or recipe.native.is_sparse:
        return None
    frames, frame_bytes = int(recipe.grid.loaded.max()), _frame_bytes(recipe)
    text = (
        f"the data of one task take {format_bytes(task_bytes)} ({frames} frames of "
        f"{format_bytes(frame_bytes)}), more than {_share(task_limit)}: "
    )
    return Advice(
        "large tasks",
        (text, _whole_frames(recipe, _good_nav(recipe, task_limit)), " would do better"),
        {"task": task_bytes, "limit": int(task_limit)},
        of_data=True,
    )


def _whole_frames(recipe: Recipe, nav: Sequence[int], *, keeps_nav: bool = False) -> Rechunk:
    """Return the chunks of whole frames with these sizes along navigation axes."""
    n_sig = len(recipe.shape.sig)
    return Rechunk((*nav, *(-1,) * n_sig), n_sig, keeps_nav)


def _good_nav(recipe: Recipe, task_limit: float) -> tuple[int, ...]:
    """Return sizes along navigation axes of chunks of whole frames that suit UDFs."""
    from udfdask.geometry.good_chunks import good_chunks  # few runs need advice

    sig = recipe.shape.sig
    chunks = (*recipe.grid.nav_chunks, *recipe.sig_chunks)
    sizes = good_chunks(chunks, len(sig), recipe.dtype.itemsize, task_limit)
    return tuple(sizes[: len(recipe.shape.nav)])


def _cut_frames(recipe: Recipe, names: Sequence[str], task_limit: float) -> Advice | None:
    """Return advice if each task needs many signal chunks.

    None if the data of a task are too large: chunks of whole frames are the cure of both. And if
    there are few data, which take little time in any chunks.
    """
    many = recipe.n_blocks > MANY_BLOCKS and not recipe.by_sig_chunk
    little = int(recipe.grid.loaded.sum()) * _frame_bytes(recipe) < LITTLE_DATA
    if not many or little or _large_tasks(recipe, task_limit):
        return None
    cannot = [
        name
        for name, udf in zip(names, recipe.udfs, strict=True)
        if not udf.promises.adds_signal_parts
    ]
    why = f"{_few(cannot)} cannot process one signal chunk at a time"
    if recipe.descan is not None:
        why = "shifted frames need pixels of several signal chunks"
    elif not cannot:
        why = "excluded pixels are patched from pixels in another signal chunk"
    nav = _good_nav(recipe, task_limit)
    keeps_nav = nav == tuple(map(max, recipe.grid.nav_chunks))  # uneven ones can stay
    text = (
        f"a task takes {recipe.n_blocks} signal chunks, {format_bytes(_task_bytes(recipe))} "
        f"together, because {why}. Chunks of whole frames would do better: "
    )
    return Advice(
        "cut frames",
        (text, MakeChunks(_whole_frames(recipe, nav, keeps_nav=keeps_nav))),
        {"blocks": recipe.n_blocks, "task": _task_bytes(recipe)},
        of_data=True,
    )


def _few(names: Sequence[str]) -> str:
    """Return different names in a text, the first three of them if there are many."""
    different = list(dict.fromkeys(names))
    more = len(different) - 3
    return ", ".join(different[:3]) + (f" and {more} more" if more > 0 else "")


def _frame_bytes(recipe: Recipe) -> int:
    """Return the size of a frame in bytes."""
    return recipe.shape.sig.size * recipe.dtype.itemsize


def _task_bytes(recipe: Recipe) -> int:
    """Return the size in bytes of the data of the largest task."""
    frames = int(recipe.grid.loaded.max())
    if recipe.by_sig_chunk:
        return frames * recipe.dtype.itemsize * math.prod(map(max, recipe.sig_chunks))
    return frames * _frame_bytes(recipe)


def _many_blocks(recipe: Recipe) -> Advice | None:
    """Return advice if dask needs more time for the tasks than the UDFs for the data."""
    count, size = _blocks(recipe)
    if not any(count > many and size < small for many, small in SMALL_BLOCKS):
        return None
    text = (
        f"{count} blocks of {format_bytes(size)} make at least {2 * count} tasks, and dask needs "
        "0.1 ms for each task on threads, 1 ms on a cluster: "
    )
    also = (
        f"{_joins_them(recipe)}. It is faster still to choose larger chunks where the array is "
        "made, for example when the file is opened"
    )
    numbers = {"blocks": count, "block": size}
    return Advice("small chunks", (text, _JOIN, also), numbers, of_data=True)


def small_chunks_note(recipe: Recipe) -> Advice | None:
    """Return advice if `merge_small` would make a run faster."""
    count, size = _blocks(recipe)
    if count < NOTED_BLOCKS or size >= NOTED_BYTES:
        return None
    text = f"{count} blocks of {format_bytes(size)}: "
    numbers = {"blocks": count, "block": size}
    return Advice("small chunks", (text, _JOIN, _joins_them(recipe)), numbers)


def _blocks(recipe: Recipe) -> tuple[int, int]:
    """Return the number of blocks that are loaded and their average size in bytes."""
    count = recipe.grid.n_chunks * recipe.n_blocks
    nbytes = recipe.grid.n_frames * recipe.shape.sig.size * recipe.dtype.itemsize
    return count, nbytes // max(1, count)


_JOIN = SetOption("merge_small", GOOD_JOINED_SIZE)


def _joins_them(recipe: Recipe) -> str:
    """Return what joining small chunks does, with the number of tasks that it leaves."""
    from udfdask.geometry.good_chunks import joined_chunks  # few runs need it

    chunks = (*recipe.grid.nav_chunks, *recipe.sig_chunks)
    joined = joined_chunks(chunks, recipe.dtype.itemsize, parse_bytes(GOOD_JOINED_SIZE))
    count = math.prod(len(sizes) for sizes in joined)
    tasks = "1 task" if count == 1 else f"{count} tasks"
    return f" loads and processes them in {tasks}"


def _gathered_rows(recipe: Recipe, task_limit: float) -> Advice | None:
    """Return advice if all rows of large nav results are needed in one task."""
    gathered = sum(
        spec.nbytes(recipe.grid.n_frames, recipe.shape.sig)
        for udf in recipe.udfs
        if (udf.has_get_results and not udf.elementwise) or udf.merge.gathers_rows
        for spec in udf.buffers.values()
        if spec.kind == "nav"
    )
    if gathered <= task_limit:
        return None
    text = (
        f"nav results of {format_bytes(gathered)} are gathered in one task, more than "
        f"{_share(task_limit)}: if get_results works row by row, set "
        "elementwise_results = True on the UDF"
    )
    return Advice("gathered rows", (text,), {"rows": gathered, "limit": int(task_limit)})


def _wide_margins(recipe: Recipe, task_limit: float) -> Advice | None:
    """Return advice if chunks are too thin for the margins that they give to neighbors."""
    from udfdask.geometry.seams import frames_that_travel  # few runs need it

    halos, grid = recipe.halos(range(len(recipe.udfs))), recipe.grid
    frame_bytes = recipe.shape.sig.size * recipe.dtype.itemsize
    travel, data_bytes = frames_that_travel(halos, grid) * frame_bytes, grid.size * frame_bytes
    if travel <= max(data_bytes, LITTLE_DATA):
        return None
    best = min(chunk_bytes(), task_limit)
    side = max(1, round((best / max(1, frame_bytes)) ** (1 / len(grid.shape))))
    good = tuple(min(side, n) for n in grid.shape)
    text = (
        f"chunks give {format_bytes(travel)} of frames to their neighbors, more than the data "
        f"({format_bytes(data_bytes)}), because they are thin for this halo: "
    )
    numbers = {"travel": travel, "data": data_bytes}
    return Advice("thin chunks", (text, _whole_frames(recipe, good), " would do better"), numbers)
