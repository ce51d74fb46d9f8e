"""Warn about runs that need much memory or many tasks, with numbers and the rechunk to make."""

from __future__ import annotations

import math

from dask.utils import format_bytes

from udfdask.plan.make_recipe import MANY_BLOCKS
from udfdask.plan.recipe import Recipe

SMALL_BLOCKS = ((10_000, 1 << 20), (50_000, 1 << 24))
"""A plan warns above this number of blocks, if they have fewer bytes than this on average.

A block is two tasks, one that loads and one that processes it. A task takes 0.1 ms on threads and
1 ms on a cluster; a megabyte is processed in 1 ms.
"""

GOOD_CHUNK_BYTES = 128 << 20
"""Size of the chunks that a warning recommends."""


def cost_warnings(recipe: Recipe, task_limit: float) -> tuple[str, ...]:
    """Return one warning for each cost of a run that other chunks would avoid.

    `task_limit` is the size in bytes that the data of one task may have.
    """
    if not recipe.grid.n_chunks:
        return ()
    texts = (
        _large_tasks(recipe, task_limit),
        _many_blocks(recipe),
        _gathered_rows(recipe, task_limit),
    )
    return tuple(text for text in texts if text)


def _share(task_limit: float) -> str:
    """Return what the limit is, in words."""
    return f"a quarter of a worker's memory ({format_bytes(int(task_limit))})"


def _large_tasks(recipe: Recipe, task_limit: float) -> str:
    """Return a warning if a task takes too many bytes or signal chunks; else an empty text."""
    frame_bytes = recipe.shape.sig.size * recipe.dtype.itemsize
    frames = int(recipe.grid.loaded.max())
    task_bytes = frames * frame_bytes
    if recipe.by_sig_chunk:
        task_bytes = frames * recipe.dtype.itemsize * math.prod(map(max, recipe.sig_chunks))
    good = max(1, frames * GOOD_CHUNK_BYTES // max(task_bytes, 1))
    # the number of stored values of sparse data is not known before they are loaded
    if task_bytes > task_limit and not recipe.native.is_sparse:
        return (
            f"the data of one task take {format_bytes(task_bytes)} ({frames} frames of "
            f"{format_bytes(frame_bytes)}), more than {_share(task_limit)}: "
            f"{_rechunk_call(recipe, good)}"
        )
    if recipe.n_blocks > MANY_BLOCKS and not recipe.by_sig_chunk:
        cannot = [u.name for u in recipe.udfs if not u.promises.adds_signal_parts]
        why = f"{', '.join(dict.fromkeys(cannot))} cannot process one signal chunk at a time"
        if not cannot:
            why = "excluded pixels are patched from pixels in another signal chunk"
        return (
            f"a task takes {recipe.n_blocks} signal chunks, {format_bytes(task_bytes)} together, "
            f"because {why}: {_rechunk_call(recipe, good)}"
        )
    return ""


def _many_blocks(recipe: Recipe) -> str:
    """Return a warning if dask needs more time for the tasks than the UDFs for the data."""
    frame_bytes = recipe.shape.sig.size * recipe.dtype.itemsize
    count = recipe.grid.n_chunks * recipe.n_blocks
    size = recipe.grid.n_frames * frame_bytes // count
    if not any(count > many and size < small for many, small in SMALL_BLOCKS):
        return ""
    call = _rechunk_call(recipe, max(1, GOOD_CHUNK_BYTES // max(frame_bytes, 1)))
    return (
        f"{count} blocks of {format_bytes(size)} make at least {2 * count} tasks, and dask needs "
        f"0.1 ms for each task on threads, 1 ms on a cluster: {call}. It is faster still to choose "
        "such chunks where the array is made, for example when the file is opened"
    )


def _gathered_rows(recipe: Recipe, task_limit: float) -> str:
    """Return a warning if all rows of large nav results are needed in one task."""
    gathered = sum(
        spec.nbytes(recipe.grid.n_frames, recipe.shape.sig)
        for udf in recipe.udfs
        if (udf.has_get_results and not udf.elementwise) or udf.merge.gathers_rows
        for spec in udf.buffers.values()
        if spec.kind == "nav"
    )
    if gathered <= task_limit:
        return ""
    return (
        f"nav results of {format_bytes(gathered)} are gathered in one task, more than "
        f"{_share(task_limit)}: if get_results works row by row, set "
        "elementwise_results = True on the UDF"
    )


def _rechunk_call(recipe: Recipe, frames: int) -> str:
    """Return the rechunk call that gives chunks of whole frames, at most this number in each."""
    sizes = []
    for full in reversed(recipe.shape.nav):
        take = max(1, min(full, frames))
        sizes.append(take)
        frames //= take
    nav = tuple(reversed(sizes))
    return f"array.rechunk({(*nav, *(-1 for _ in recipe.shape.sig))}) would do better"
