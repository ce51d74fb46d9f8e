"""Counts on a distributed cluster, by asking its scheduler while the caller waits."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from udfdask.scheduling.progress.counter import Tally
from udfdask.scheduling.workers.lost_results import asking_scheduler

INTERVAL = 0.2
"""Seconds between two questions to the scheduler."""

_GONE = (OSError, RuntimeError, ValueError, AttributeError)
"""What a question to the scheduler raises where it is gone, or the client has been closed."""

Look = Callable[[], object] | None
"""What else is to be looked after while somebody waits; it may raise."""


class Watch:
    """Counts the tasks of a tally, if there is one, while futures of a client are waited for."""

    def __init__(self, client: Any, tally: Tally | None, plugin: str, look: Look) -> None:
        self._client = client
        self._look = look
        self._tally = tally
        self._plugin = plugin

    def wait(self, futures: Sequence[Any]) -> bool:
        """Wait for futures, in this thread; return whether all of them have finished well.

        The first that does not ends the waiting, and so does a client that is closed.
        """
        over = _over(futures)
        while not over.wait(INTERVAL) and not self._client_closed():
            if self._look is not None:
                self._look()
            self._ask()
        self._ask()
        return all(future.status == "finished" for future in futures)

    def _ask(self) -> None:
        """Ask the scheduler what has been done since the last time, and count it."""
        if self._tally is None:
            return
        from udfdask.scheduling.progress.scheduler_plugin import take_from

        try:
            known, done = self._client.run_on_scheduler(partial(take_from, self._plugin))
        except _GONE:  # which the futures tell about
            return
        if known and not self._tally.started:
            self._tally.start(known)
        if done and self._tally.started:
            self._tally.add(done)

    def _client_closed(self) -> bool:
        """Return whether the client has been closed, upon which futures may stay as they are."""
        return self._client.status in ("closing", "closed")


@contextmanager
def counted_on(client: Any, tally: Tally | None, look: Look = None) -> Iterator[Watch]:
    """Give what counts on a cluster; the scheduler keeps nothing of it afterwards."""
    if tally is None:
        yield Watch(client, None, "", look)
        return
    from udfdask.scheduling.progress.scheduler_plugin import ChunkTaskPlugin

    name = f"udfdask-progress-{tally.id}"
    plugin = ChunkTaskPlugin(name, client.id, frozenset(tally.layer_names))
    with asking_scheduler(client):
        client.register_plugin(plugin)
    try:
        yield Watch(client, tally, name, look)
    finally:
        with suppress(*_GONE):  # a client that is closed took it along
            client.unregister_scheduler_plugin(name)


def _over(futures: Sequence[Any]) -> threading.Event:
    """Return an event that is set when all futures have finished, or one has failed."""
    over, left = threading.Event(), set(range(len(futures)))

    def note(number: int, future: Any) -> None:
        left.discard(number)
        if not left or future.status != "finished":
            over.set()

    for number, future in enumerate(futures):
        future.add_done_callback(partial(note, number))
    if not futures:
        over.set()
    return over
