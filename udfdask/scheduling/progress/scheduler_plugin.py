"""Collect finished tasks inside the scheduler of a cluster."""

from __future__ import annotations

from typing import Any

from distributed.diagnostics.plugin import SchedulerPlugin


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
