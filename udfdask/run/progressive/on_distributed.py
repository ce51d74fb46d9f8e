"""Compute the chunks of a progressive run on a distributed cluster."""

from __future__ import annotations

from collections import deque
from concurrent.futures import CancelledError
from typing import Any

from dask import base
from distributed.comm.core import CommClosedError

from udfdask.chunk.partial_result import Partials, send_without_copies
from udfdask.plan.groups import groups_of
from udfdask.run.progressive.chunks import Closed
from udfdask.run.progressive.cluster import ClusterChunks
from udfdask.scheduling.cluster_run import explaining_killed_workers
from udfdask.scheduling.restrictions import Restrictions, find_restrictions, make_cluster_options


class DistributedChunks(ClusterChunks):
    """Computes chunks on the cluster of a distributed client."""

    lost = (CancelledError, CommClosedError)
    """CommClosedError if results were on the way when the scheduler was lost."""

    def __init__(self, *run: Any) -> None:
        super().__init__(*run)
        send_without_copies()
        self._ended: deque[Any] = deque()
        recipe = self.live.now
        if recipe.lazy_slots and recipe.grid.n_chunks:
            # no parameter is computed if no worker can run the chunks
            groups = [group for group in groups_of(recipe) if group.needs_cuda]
            limits = Restrictions(workers={}, groups={group.names: group for group in groups})
            make_cluster_options(limits, self._client, self._options)

    def take(self) -> tuple[int, Partials]:
        """Return the next chunk and its partial results; raise Closed once closed."""
        with explaining_killed_workers(lambda: self._graph.tasks.layers if self._graph else {}):
            return super().take()

    def _n_threads(self) -> int:
        return sum(self._client.nthreads().values())

    def _submit(self, dsk: dict[Any, Any], keys: list[Any], n_results: int) -> list[Any]:
        limits = find_restrictions(dsk, keys[:n_results])
        options = {"fifo_timeout": 0, **self._options}
        annotations, rest = make_cluster_options(limits, self._client, options)
        with base.annotate(**annotations):
            futures: list[Any] = self._client.get(dsk, keys, sync=False, **rest)
        ended, changed = self._ended, self.changed

        def note(future: Any) -> None:
            with changed:
                ended.append(future)
                changed.notify_all()

        for future in futures[:n_results]:
            future.add_done_callback(note)
        return futures

    def _client_closed(self) -> bool:
        return self._client.status in ("closing", "closed")

    def _wait(self) -> list[Any]:
        ended = self._ended
        with self.changed:
            # a closed client may never call the callbacks of its futures
            self.wait_until(lambda: ended or self._client_closed())
            if self.closed or not ended:
                raise Closed
            return [ended.popleft() for _ in range(len(ended))]
