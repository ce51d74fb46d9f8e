"""Optimize and run tasks as dask does."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

from dask import base, config
from dask._task_spec import convert_legacy_graph, execute_graph
from dask.array.core import Array as GraphArray
from dask.array.core import concatenate3
from dask.core import flatten
from dask.highlevelgraph import HighLevelGraph
from dask.utils import ensure_dict

from udfdask.graph.dask_internals.tasks import needed_tasks


def optimized(graph: HighLevelGraph, keys: list[Any]) -> dict[Any, Any]:
    """Return the tasks that some keys need, optimized as those of dask arrays are."""
    return dict(convert_legacy_graph(ensure_dict(GraphArray.__dask_optimize__(graph, keys))))


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizedTasks:
    """The tasks of several collections, optimized together."""

    tasks: dict[Any, Any]
    """Tasks by key."""
    futures: dict[Any, Any]
    """Results that a cluster has already, by key."""
    keys: set[Any]
    """Keys of the collections."""


def optimized_together(collections: Any) -> OptimizedTasks:
    """Return the tasks that are needed for collections, as `dask.compute` optimizes them."""
    expression = base.collections_to_expr(collections).optimize()
    keys = set(flatten(expression.__dask_keys__()))
    # it may still contain legacy tasks, bare values, and tasks that are not needed any more
    given = dict(expression.__dask_graph__())
    every = convert_legacy_graph(given)
    futures = {key: given[key] for key in given.keys() - every.keys()}
    return OptimizedTasks(tasks=needed_tasks(keys, every), futures=futures, keys=keys)


def compute_here(array: Any) -> Any:
    """Return the values of an array, computed by this thread without a scheduler.

    A scheduler inside of a task would report its tasks as tasks of the outer computation.
    """
    keys = array.__dask_keys__()
    flat = list(flatten(keys))
    graph = dict(array.__dask_optimize__(array.dask, flat))
    blocks = execute_graph(graph, keys=set(flat))
    return blocks[flat[0]] if len(flat) == 1 else concatenate3(_nested(keys, blocks))


def _nested(keys: Any, blocks: Mapping[Any, Any]) -> Any:
    """Return blocks in the same nested lists as their keys."""
    return [_nested(key, blocks) if isinstance(key, list) else blocks[key] for key in keys]


def process_pool(n: int, initializer: Callable[[], object] | None) -> ProcessPoolExecutor:
    """Return a new pool of processes like the one that dask's process scheduler makes."""
    from dask import multiprocessing  # loads much that other schedulers do not need

    if os.environ.get("PYTHONHASHSEED") in (None, "0"):
        os.environ["PYTHONHASHSEED"] = "6640"  # dask's number: all processes hash alike
    initializer = initializer or config.get("multiprocessing.initializer", None)
    return ProcessPoolExecutor(
        n,
        mp_context=multiprocessing.get_context(),
        initializer=functools.partial(
            multiprocessing.initialize_worker_process, user_initializer=initializer
        ),
    )


def submitted_keys(arguments: tuple[Any, ...]) -> list[Any]:
    """Return the keys of the tasks that a local scheduler passes to the `submit` of its pool."""
    try:
        return [task[0] for task in arguments[0]]
    except (IndexError, TypeError):
        return []
