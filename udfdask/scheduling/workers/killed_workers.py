"""Say which UDF and chunk ended the processes of workers, and whether it was their memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from dask.utils import format_bytes

from udfdask.scheduling.time_limit.deadline import LISTED, answer_within
from udfdask.scheduling.time_limit.task_names import TaskNames

PATIENCE = 5.0
"""Seconds to wait for the events of a scheduler."""

_MEMORY_TOPIC = "worker-restart-memory"
"""The topic in which a nanny reports that its worker needed too much memory."""


@contextmanager
def explaining_killed_workers(client: Any, names: TaskNames) -> Iterator[None]:
    """Add a note to a KilledWorker: the UDFs, the chunk, the likely cause, what to do."""
    try:
        yield
    except Exception as error:
        if client is not None:
            from distributed import KilledWorker

            if isinstance(error, KilledWorker):
                error.add_note(_note(error, client, names))
        raise


def lost_workers(client: Any, names: TaskNames, keys: Iterable[Any]) -> str:
    """Return what the workers did that ended while they had unfinished tasks; empty if none did.

    A nanny does not restart a worker that ends while it starts. If all workers end like this, no
    task is tried often enough for a KilledWorker.
    """
    removals, memory = _events(client)
    unfinished = set(keys)
    deaths = [event for event in removals if not unfinished.isdisjoint(event["processing-tasks"])]
    if not deaths:
        return ""
    counts = Counter(key for event in deaths for key in event["processing-tasks"])
    # not all: a task that an earlier run has canceled can end a process that has none of these
    suspects = {key for key in unfinished if counts[key] * 2 >= len(deaths)}
    had = f", most of them while they had {_listed(suspects, names)}" if suspects else ""
    over = [memory[event["worker"]] for event in deaths if event["worker"] in memory]
    return (
        f"Processes of workers that ended during the run: {len(deaths)}{had}; "
        f"{_cause(over, len(deaths))}"
    )


def _note(error: Any, client: Any, names: TaskNames) -> str:
    """Return the note on a KilledWorker."""
    removals, memory = _events(client)
    deaths = [event for event in removals if error.task in event["processing-tasks"]]
    deaths = deaths[-error.allowed_failures - 1 :]
    workers = {event["worker"] for event in deaths} | {error.last_worker.address}
    had = [set(event["processing-tasks"]) for event in deaths]
    others = set.intersection(*had) - {error.task} if had else set()
    task = names.describe(error.task)
    lines = [f"raised by {task}: the workers that had this task ended, one after the other"]
    if others:
        lines.append(f"the same workers also had: {_listed(others, names)}")
    over = [memory[worker] for worker in workers if worker in memory]
    return "\n".join([*lines, _cause(over, len(workers))])


def _events(client: Any) -> tuple[list[Mapping[str, Any]], dict[str, int]]:
    """Return the unexpected losses of workers, and the memory of those that needed too much."""

    def ask() -> tuple[Any, Any]:
        return client.get_events("all"), client.get_events(_MEMORY_TOPIC)

    try:
        every, memory = answer_within(PATIENCE, ask)
    except Exception:  # noqa: BLE001  # the note is worth less than the exception itself
        return [], {}
    removals = [
        event
        for _, event in every
        if event.get("action") == "remove-worker" and not event.get("expected")
    ]
    return removals, {event["worker"]: event["rss"] for _, event in memory}


def _listed(keys: set[Any], names: TaskNames) -> str:
    """Return tasks in words."""
    words = sorted(names.describe(key) for key in keys)
    more = f" and {len(words) - LISTED} more" if len(words) > LISTED else ""
    return "; ".join(words[:LISTED]) + more


def _cause(over: list[int], n_workers: int) -> str:
    """Return the cause, if it is known, and what to do."""
    if over:
        return (
            f"{len(over)} of {n_workers} workers ended because they reached their memory limit "
            f"(up to {format_bytes(max(over))} were in use): make chunks smaller with "
            "array.rechunk(...), give each worker fewer threads, or a larger memory_limit"
        )
    return (
        "no nanny reports that its worker reached its memory limit. Either the UDF or a library "
        "ended the process (os._exit, a crash in compiled code), or the operating system did, for "
        "example because the machine ran out of memory. To see more, run this chunk alone on the "
        "scheduler 'synchronous', with roi= set to its positions, in a Python of its own"
    )
