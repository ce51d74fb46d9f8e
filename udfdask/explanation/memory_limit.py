"""Refuse a run that needs more memory than the user allows, and say which change makes it fit.

The remedies are the same formula with other numbers: nothing is planned again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from dask.utils import format_bytes

from udfdask import config
from udfdask.advice import Advice, MakeChunks, PartOfScan, Rechunk, Remedy, SetOption, SetThreads
from udfdask.errors import MemoryLimitError
from udfdask.explanation.loading import LoadingMemory
from udfdask.explanation.memory import PredictedMemory, describe_parts, predict_memory
from udfdask.geometry.good_chunks import divided
from udfdask.plan.arguments import parse_size
from udfdask.plan.plan import Plan


def check_memory(plan: Plan, max_memory: Any, loading: LoadingMemory | None) -> None:
    """Raise if a run needs more than `max_memory` in one process.

    `loading` is what loading a chunk needs; None if it is not known.
    """
    limit, threads = parse_size(max_memory, "max_memory", "2 GB"), config.worker_threads()
    predicted = predict_memory(plan.recipe, joined=plan.joined is not None, loading=loading)
    needed = predicted.total(threads)
    if needed <= limit:
        return
    dense = ", if the sparse data were dense," if predicted.is_bound else ","
    used = max(1, min(threads, predicted.tasks))
    text = f"the run needs {_needs(predicted, used)}{dense} more than max_memory={max_memory!r}: "
    setting = config.worker_threads_setting()
    fewer = range(min(threads, predicted.tasks) - 1, 0, -1)
    remedies: list[Remedy] = [
        *_smaller_chunks(plan, predicted, limit),
        *[SetThreads(n, setting) for n in fewer if predicted.total(n) <= limit][:1],
    ]
    if len(plan.recipe.udfs) > 1:
        text += "runs of fewer UDFs need less; "
    if not remedies:
        text += f"one thread needs {_needs(predicted, 1)}; "
        remedies += _part_of_scan(plan, predicted, limit)
    end = "" if remedies else "smaller results need less"
    advice = Advice(
        "memory limit",
        (text, *_alternatives(remedies), end),
        {"needed": needed, "limit": limit},
    )
    raise MemoryLimitError(advice.said(plan.door), advice=advice)


def _needs(memory: PredictedMemory, threads: int) -> str:
    """Describe the memory of a process and what it is for."""
    total, several = format_bytes(memory.total(threads)), "s" * (threads > 1)
    parts = describe_parts(memory, threads)
    return f"{total} in a process with {threads} thread{several} ({parts})"


def _alternatives(remedies: Sequence[Remedy]) -> Iterator[str | Remedy]:
    """Yield changes that help, with the words between them."""
    for number, remedy in enumerate(remedies):
        yield ", or with " if number else "it should fit with "
        yield remedy


def _smaller_chunks(plan: Plan, predicted: PredictedMemory, limit: int) -> Iterator[Remedy]:
    """Yield the first smaller chunks that fit, by halves of their number of frames.

    A tree of merges gets a level with each eightfold number of chunks, where partial results wait.
    """
    frames, parts = int(plan.recipe.grid.loaded.max(initial=1)), 1
    while 2 * parts <= frames:
        parts *= 2
        names = ("data", "copies", "shared")
        smaller: dict[str, Any] = {name: getattr(predicted, name) // parts for name in names}
        levels = math.ceil(math.log(parts, 8))
        waiting = predicted.waiting + 7 * levels * predicted.partials
        other = replace(predicted, **smaller, waiting=waiting, tasks=predicted.tasks * parts)
        if other.total(config.worker_threads()) <= limit:
            break
    else:
        return
    if plan.joined is not None:
        yield SetOption("merge_small", None)
        return
    largest = [max(sizes, default=0) for sizes in plan.recipe.grid.nav_chunks]
    nav = divided(largest, len(largest), frames // parts)
    n_sig = len(plan.recipe.shape.sig)
    yield MakeChunks(Rechunk((*nav, *(-1,) * n_sig), n_sig), or_rechunk=False)


def _part_of_scan(plan: Plan, predicted: PredictedMemory, limit: int) -> Iterator[Remedy]:
    """Yield the first part of the scan that fits, by halves of the first axis."""
    grid = plan.recipe.grid
    if grid.roi is not None or not grid.shape or plan.aux:
        return  # these have the shape of the scan
    rows = grid.shape[0] // 2
    while rows:
        share = rows / grid.shape[0]
        other = replace(predicted, results=int(predicted.results * share))
        if other.total(config.worker_threads()) <= limit:
            yield PartOfScan(rows)
            return
        rows //= 2
