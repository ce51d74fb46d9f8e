"""Watches tasks where they end: inside the scheduler of a cluster."""

from __future__ import annotations

from typing import Any

from distributed.diagnostics.plugin import SchedulerPlugin


class ChunkTaskPlugin(SchedulerPlugin):
    """Collects the tasks of some layers that enter the scheduler, and those that are done.

    It goes with the client that has brought it.
    """

    def __init__(self, name: str, client: str, layers: frozenset[str]) -> None:
        self.name = name
        self._client = client
        self._layers = layers
        self._known: list[Any] | None = None
        self._done: list[Any] = []

    def _is_ours(self, key: Any) -> bool:
        """Return whether a task is of one of our layers."""
        return isinstance(key, tuple) and key[0] in self._layers

    def update_graph(self, scheduler: Any, *, tasks: Any = (), **_: Any) -> None:
        """Note tasks that came in, and which of them have been done before."""
        ours = [key for key in tasks if self._is_ours(key)]
        if ours:
            self._known = [*(self._known or []), *ours]
            self._done += [key for key in ours if scheduler.tasks[key].state == "memory"]

    def transition(self, key: Any, start: Any, finish: Any, *_: Any, **__: Any) -> None:
        """Note a task that is done."""
        if finish == "memory" and self._is_ours(key):
            self._done.append(key)

    def remove_client(self, scheduler: Any, client: str) -> None:
        """Leave with the client, which may not have had the time to say so."""
        if client == self._client:
            scheduler.remove_plugin(name=self.name)

    def take(self) -> tuple[list[Any] | None, list[Any]]:
        """Return the tasks that came in since the last time, None without any, and those done."""
        known, self._known = self._known, None
        done, self._done = self._done, []
        return known, done


def take_from(name: str, dask_scheduler: Any) -> tuple[list[Any] | None, list[Any]]:
    """Return what a plugin has collected; runs inside the scheduler."""
    plugin = dask_scheduler.plugins.get(name)
    return (None, []) if plugin is None else plugin.take()
