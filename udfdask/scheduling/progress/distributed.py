"""Count the tasks of a cluster with a plugin of its scheduler, which is asked regularly."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from distributed.diagnostics.plugin import SchedulerPlugin

from udfdask.scheduling.progress.counter import ProgressCounter


class ChunkTaskPlugin(SchedulerPlugin):
    """Collects the tasks of some layers that the scheduler receives, and those that finish.

    The plugin is removed together with its client.
    """

    def __init__(self, name: str, client: str, layers: frozenset[str]) -> None:
        self.name = name
        self._client = client
        self._layers = layers
        self._received: list[Any] | None = None
        self._done: list[Any] = []

    def _is_ours(self, key: Any) -> bool:
        """Return whether a task belongs to one of our layers."""
        return isinstance(key, tuple) and key[0] in self._layers

    def update_graph(self, scheduler: Any, *, tasks: Any = (), **_: Any) -> None:
        """Record received tasks, and those of them that had finished before."""
        ours = [key for key in tasks if self._is_ours(key)]
        if ours:
            self._received = [*(self._received or []), *ours]
            self._done += [key for key in ours if scheduler.tasks[key].state == "memory"]

    def transition(self, key: Any, start: Any, finish: Any, *_: Any, **__: Any) -> None:
        """Record a finished task."""
        if finish == "memory" and self._is_ours(key):
            self._done.append(key)

    def remove_client(self, scheduler: Any, client: str) -> None:
        """Remove the plugin when its client is lost."""
        if client == self._client:
            scheduler.remove_plugin(name=self.name)

    def take(self) -> tuple[list[Any] | None, list[Any]]:
        """Return the tasks received since the last call (None if none) and those finished."""
        received, self._received = self._received, None
        done, self._done = self._done, []
        return received, done


def take_from(name: str, dask_scheduler: Any) -> tuple[list[Any] | None, list[Any]]:
    """Return the tasks that a plugin has collected; runs inside the scheduler."""
    plugin = dask_scheduler.plugins.get(name)
    return (None, []) if plugin is None else plugin.take()


INTERVAL = 0.2
"""Seconds between two requests to the scheduler."""

_LOST = (OSError, RuntimeError, ValueError, AttributeError)
"""Exceptions of a request if the scheduler is lost or the client has been closed."""


class FutureWaiter:
    """Waits for futures of a client, and counts finished tasks."""

    def __init__(self, client: Any, counter: ProgressCounter, plugin: str) -> None:
        self._client = client
        self._counter = counter
        self._plugin = plugin

    def wait(self, futures: Sequence[Any]) -> bool:
        """Wait in this thread until all futures have finished; return whether they have.

        The wait also ends if a future fails or the client is closed.
        """
        done = _done_event(futures)
        # the futures of a closed client may never change their state
        while not done.wait(INTERVAL) and self._client.status not in ("closing", "closed"):
            self._count()
        self._count()
        return all(future.status == "finished" for future in futures)

    def _count(self) -> None:
        """Count the tasks that the scheduler has finished since the last call."""
        try:
            received, done = self._client.run_on_scheduler(partial(take_from, self._plugin))
        except _LOST:  # the futures will raise an error about it
            return
        if received and not self._counter.started:
            self._counter.start(received)
        if done and self._counter.started:
            self._counter.add(done)


@contextmanager
def counting_on_cluster(client: Any, counter: ProgressCounter) -> Iterator[FutureWaiter]:
    """Yield a waiter that counts tasks; afterwards, remove its plugin from the scheduler."""
    name = f"udfdask-progress-{counter.id}"
    plugin = ChunkTaskPlugin(name, client.id, frozenset(counter.layer_names))
    client.register_plugin(plugin)
    try:
        yield FutureWaiter(client, counter, name)
    finally:
        with suppress(*_LOST):  # if the client is closed, the plugin has been removed with it
            client.unregister_scheduler_plugin(name)


def _done_event(futures: Sequence[Any]) -> threading.Event:
    """Return an event that is set when all futures have finished, or one has failed."""
    done, remaining = threading.Event(), set(range(len(futures)))

    def on_done(number: int, future: Any) -> None:
        remaining.discard(number)
        if not remaining or future.status != "finished":
            done.set()

    for number, future in enumerate(futures):
        future.add_done_callback(partial(on_done, number))
    if not futures:
        done.set()
    return done
