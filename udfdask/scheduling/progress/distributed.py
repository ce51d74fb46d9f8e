"""Count the tasks of a cluster: ask its scheduler while the caller waits."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from udfdask.scheduling.progress.counter import ProgressCounter
from udfdask.scheduling.workers.losses import asking_scheduler

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
        from udfdask.scheduling.progress.scheduler_plugin import take_from

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
    from udfdask.scheduling.progress.scheduler_plugin import ChunkTaskPlugin

    name = f"udfdask-progress-{counter.id}"
    plugin = ChunkTaskPlugin(name, client.id, frozenset(counter.layer_names))
    with asking_scheduler(client):
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
