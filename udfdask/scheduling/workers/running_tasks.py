"""Find the tasks that a cluster is running when the time of a computation is over."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from threading import Thread
from typing import Any

from udfdask.errors import RunTimeoutError
from udfdask.scheduling.time_limit.deadline import (
    LISTED,
    Deadline,
    answer_within,
    innermost_user_line,
)
from udfdask.scheduling.time_limit.task_names import TaskNames
from udfdask.scheduling.workers.killed_workers import lost_workers

PATIENCE = 5.0
"""Seconds to wait for an answer of the scheduler or a worker."""

_UNKNOWN = (
    "The scheduler does not say which tasks run. What has not started is canceled. A longer "
    "timeout= gives the run more time"
)


_OTHER = object()
"""Stands for the key of a task of another computation."""


@dataclass(frozen=True, slots=True)
class _Sent:
    """A task that the scheduler has sent to a worker."""

    key: Any
    worker: str
    name: Any
    seconds: float
    """Time since it was sent or last began."""


@dataclass(frozen=True, slots=True)
class _Unfinished:
    """The unfinished tasks of a computation."""

    sent: list[_Sent]
    waiting: list[Any]
    """Tasks that have not been sent to a worker."""
    n_workers: int


def timeout_error(
    deadline: Deadline, client: Any, futures: Iterable[Any], names: TaskNames
) -> RunTimeoutError:
    """Return the error for a computation on a cluster, with the tasks that run and where."""
    keys = [future.key for future in futures if future.status == "pending"]
    request = partial(client.run_on_scheduler, partial(_find_unfinished, keys))
    try:
        found: _Unfinished = answer_within(PATIENCE, request)
    except Exception:  # noqa: BLE001  # a lost scheduler raises many types of errors
        return deadline.error([], _UNKNOWN)
    stacks = _call_stacks(client, found.sent)
    # a worker has more tasks than threads: it says which of them it executes
    silent = {task.worker for task in found.sent} - {w for w, key in stacks if key != _OTHER}
    running = [
        f"{names.describe(task.key)}: on worker {task.worker} (name {task.name!r}), "
        + _place(stacks.get((task.worker, task.key)), stacks.get((task.worker, _OTHER)))
        for task in sorted(found.sent, key=lambda task: -task.seconds)
        if (task.worker, task.key) in stacks or task.worker in silent
    ]
    unfinished = [*found.waiting, *(task.key for task in found.sent)]
    lost = lost_workers(client, names, unfinished)
    return deadline.error(running, "\n".join(filter(None, [lost, _remedy(found)])))


def _place(stack: Sequence[str] | None, other: Sequence[str] | None) -> str:
    """Return where a task is, or what its worker does instead, in words."""
    if stack is None and other is not None:
        line = innermost_user_line(other)
        return f"which executes a task of another computation{line and f', at {line}'}"
    if stack is None:
        return "which does not say what it executes"
    line = innermost_user_line(stack)
    return f"at {line}" if line else "about to start or end"


def _remedy(found: _Unfinished) -> str:
    """Return what happens to the tasks, and what to do."""
    if not found.n_workers:
        return (
            f"Tasks that wait: {len(found.waiting)}. The cluster has no worker, start some. The "
            "tasks are canceled"
        )
    workers = list(dict.fromkeys(task.worker for task in found.sent))[:LISTED]
    ending = (
        "A running task cannot be stopped: its worker is busy until the task ends. If it hangs, "
        f"end the worker, whose nanny starts a new one: client.restart_workers({workers}). Other "
        "results on that worker are then computed again. "
        if workers
        else ""
    )
    canceled = f"Tasks that had not been sent to a worker are canceled: {len(found.waiting)}. "
    return f"{canceled if found.waiting else ''}{ending}A longer timeout= gives the run more time"


def _find_unfinished(keys: list[Any], dask_scheduler: Any) -> _Unfinished:
    """Return the unfinished tasks that some keys need; runs inside the scheduler."""
    tasks, sent, waiting = dask_scheduler.tasks, [], []
    todo = [tasks[key] for key in keys if key in tasks]
    seen = set(todo)
    while todo:
        task = todo.pop()
        if task.state in ("memory", "erred", "released", "forgotten"):
            continue
        worker = task.processing_on
        if worker is None:
            waiting.append(task.key)
        else:
            seconds = worker.executing.get(task, 0.0)
            sent.append(_Sent(task.key, worker.address, worker.name, float(seconds)))
        new = task.dependencies - seen
        seen |= new
        todo.extend(new)
    return _Unfinished(sent, waiting, len(dask_scheduler.workers))


def _call_stacks(client: Any, sent: Iterable[_Sent]) -> dict[tuple[str, Any], list[str]]:
    """Return the call stacks of executing tasks by worker and key; ask all workers at once."""
    stacks: dict[tuple[str, Any], list[str]] = {}
    by_worker: dict[str, list[Any]] = {}
    for task in sent:
        by_worker.setdefault(task.worker, []).append(task.key)

    def ask(worker: str, keys: list[Any]) -> None:
        with suppress(Exception):  # the worker is lost, or the task has ended meanwhile
            answer = client.call_stack(keys=keys).get(worker, {})
            stacks.update({(worker, key): list(stack) for key, stack in answer.items()})
            if not answer:  # a task that was canceled may hold its thread
                request = {"op": "call_stack", "keys": None}
                every = client.sync(client.scheduler.broadcast, msg=request, workers=[worker])
                for stack in every[worker].values():
                    stacks[worker, _OTHER] = list(stack)

    _run_all([partial(ask, worker, keys) for worker, keys in by_worker.items()])
    return dict(stacks)


def _run_all(functions: Iterable[Callable[[], None]]) -> None:
    """Run functions at the same time, and wait for them for a few seconds."""
    threads = [Thread(target=function, daemon=True) for function in functions]
    for thread in threads:
        thread.start()
    end = time.monotonic() + PATIENCE
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
