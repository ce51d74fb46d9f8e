"""Compute the chunks of a progressive run on a Frisky cluster."""

from __future__ import annotations

import contextlib
from typing import Any

from frisky import CancelledError, as_completed

from udfdask.run.progressive.chunks import Closed
from udfdask.run.progressive.cluster import ClusterChunks
from udfdask.scheduling.frisky_run import INTERVAL, n_threads, submit_tasks, warn_without_workers


class FriskyChunks(ClusterChunks):
    """Computes chunks on the cluster of a Frisky client."""

    lost = (CancelledError, ConnectionError)

    def __init__(self, *run: Any) -> None:
        super().__init__(*run)
        self._watched: dict[Any, None] = {}

    def _n_threads(self) -> int:
        return n_threads(self._client) or 0

    def _submit(self, dsk: dict[Any, Any], keys: list[Any], n_results: int) -> list[Any]:
        futures = submit_tasks(self._client, dsk, keys)
        self._watched |= dict.fromkeys(futures[:n_results])
        return futures

    def _client_closed(self) -> bool:
        return n_threads(self._client) is None

    def _wait(self) -> list[Any]:
        turn = 0
        while not self.closed:
            turn += 1
            with contextlib.suppress(TimeoutError):
                ended: list[Any] = as_completed(self._watched, timeout=INTERVAL).next_batch()
                for future in ended:
                    del self._watched[future]
                return ended
            warn_without_workers(self._client, turn)
        raise Closed
