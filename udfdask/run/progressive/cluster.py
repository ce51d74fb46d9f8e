"""Compute chunks on a cluster, a window of chunks at a time.

Futures keep the results of upstream tasks that later chunks need, so that these tasks run once.
Keys contain a token of the run: otherwise the cluster would return chunks that it computed with
other parameters. `on_distributed` and `on_frisky` send tasks to a cluster and wait for them.
"""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

import dask.array as da

from udfdask.chunk.partial_result import Partials
from udfdask.graph.build import Tasks
from udfdask.graph.run_layers import pack_if_small
from udfdask.plan.plan import Plan
from udfdask.plan.recipe import Recipe
from udfdask.run.progressive.chunks import Chunks, Closed, first_needs
from udfdask.run.progressive.parameters import LiveRecipe

TASKS_PER_THREAD = 2
"""Chunks to send for each thread of the cluster: one runs, the next one waits for it."""


class ClusterChunks(Chunks):
    """Computes chunks on the cluster of a client."""

    lost: tuple[type[Exception], ...]
    """Exceptions if the cluster has lost its data or scheduler, or the user has canceled."""

    def __init__(
        self,
        plan: Plan,
        array: da.Array,
        live: LiveRecipe,
        client: Any,
        options: Mapping[str, Any],
    ) -> None:
        super().__init__(plan, array, live)
        self._client, self._options = client, dict(options)
        self._pending: dict[Any, tuple[int, list[Any]]] = {}
        """Futures of chunks: the chunk, and the futures to release when the first of them ends."""
        self._graph: _Graph | None = None
        self._sent: Recipe | None = None
        self._inline = False

    def take(self) -> tuple[int, Partials]:
        """Return the next chunk and its partial results; raise Closed once closed."""
        try:
            if self._graph is None:
                self._fill_parameters()
            graph = self._current_graph()
            while (taken := self.take_ready()) is None:
                self._send(graph)
                self._receive()
        except Exception as error:
            # a closed client raises many kinds of exceptions
            if not isinstance(error, self.lost) and not self._client_closed():
                raise
            self.close()
            raise Closed from error
        else:
            return taken

    def close(self) -> None:
        """Release all futures so that the scheduler can free them."""
        super().close()
        # released, not canceled: other computations may share upstream futures
        _release([*self._pending, *(self._graph.held.values() if self._graph else ())])

    def _fill_parameters(self) -> None:
        """Compute lazy parameters."""
        tasks = self.parameter_tasks()
        if tasks is not None:
            (future,) = self._submit(tasks.dsk, tasks.keys, 1)
            try:
                self.live.fill(self._client.gather(self._wait())[0])
            finally:
                _release([future])

    def _current_graph(self) -> _Graph:
        """Return the graph of all chunks with the current parameters."""
        recipe = self.live.now
        if self._graph is not None and recipe is self._sent:
            return self._graph
        inline = pack_if_small(recipe) is not None
        # a live recipe in the tasks of a graph is pickled as the recipe of that moment: the same
        # graph serves after a change of parameters
        if self._graph is None or not (inline and self._inline):
            tasks = self.chunk_tasks(self.live if inline else recipe)
            self._graph = _Graph(tasks, self._graph)
        self._sent, self._inline = recipe, inline
        return self._graph

    def _send(self, graph: _Graph) -> None:
        """Send chunks until the window is full, half a window at a time: fewer messages."""
        window = TASKS_PER_THREAD * max(1, self._n_threads())
        keys = graph.tasks.keys
        if graph.n_sent - self.n_taken > window // 2 or graph.n_sent == len(keys):
            return
        chunks = range(graph.n_sent, min(len(keys), self.n_taken + window))
        dsk, shared, unneeded = graph.next_tasks(chunks)
        results = [keys[chunk] for chunk in chunks]
        futures = self._submit(dsk, results + shared, len(results))
        for chunk, future in zip(chunks, futures, strict=False):
            self._pending[future] = (chunk, unneeded)
        graph.held.update(zip(shared, futures[len(chunks) :], strict=True))
        if self.closed:  # meanwhile
            self.close()

    def _receive(self) -> None:
        """Wait for partial results, and fetch all that are ready."""
        futures = self._wait()
        for future, partials in zip(futures, self._client.gather(futures), strict=True):
            chunk, unneeded = self._pending.pop(future)
            # only now has the scheduler certainly received the other tasks that need these data
            _release(unneeded)
            unneeded.clear()  # all chunks that were sent together share this list
            self.put(chunk, partials)
        _release(futures)

    @abstractmethod
    def _n_threads(self) -> int:
        """Return the number of threads of the cluster."""

    @abstractmethod
    def _submit(self, dsk: dict[Any, Any], keys: list[Any], n_results: int) -> list[Any]:
        """Send tasks to the cluster; return the futures of `keys`.

        The first `n_results` of them are results to wait for. Later chunks need the data of the
        others.
        """

    @abstractmethod
    def _wait(self) -> list[Any]:
        """Wait until at least one of the submitted results has ended; return all that have."""

    @abstractmethod
    def _client_closed(self) -> bool:
        """Return whether the client has been closed."""


class _Graph:
    """The tasks of all chunks, and the set of tasks that have been sent."""

    def __init__(self, tasks: Tasks, before: _Graph | None) -> None:
        self.tasks = tasks
        self.n_sent: int = 0 if before is None else before.n_sent
        self.held: dict[Any, Any] = {} if before is None else before.held
        self._sent: set[Any] = set() if before is None else before._sent
        self._new_in: dict[int, list[Any]] = {}
        """The tasks to send with each chunk."""
        self._last: dict[Any, int] = {}
        """The last chunk with which a task is sent that needs each task."""
        for key, first in first_needs(tasks).items():
            # the recipe with newer parameters has another key, which has not been sent
            chunk = first if key in self._sent else max(first, self.n_sent)
            self._new_in.setdefault(chunk, []).append(key)
            for needed in tasks.dsk[key].dependencies:
                self._last[needed] = max(self._last.get(needed, 0), chunk)

    def next_tasks(self, chunks: range) -> tuple[dict[Any, Any], list[Any], list[Any]]:
        """Return the tasks to send for the next chunks, shared keys, and futures to release.

        Later chunks need the shared keys too. No later chunk needs the futures to release.
        """
        fresh = [key for chunk in chunks for key in self._new_in.get(chunk, ())]
        self.n_sent = chunks.stop
        self._sent.update(fresh)
        shared = [key for key in fresh if self._last.get(key, 0) >= chunks.stop]
        spent = [key for key in self.held if self._last.get(key, 0) < chunks.stop]
        dsk = {key: self.tasks.dsk[key] for key in fresh}
        return dsk, shared, [self.held.pop(key) for key in spent]


def _release(futures: Iterable[Any]) -> None:
    """Release futures; a future whose client is gone needs no release."""
    for future in list(futures):
        with contextlib.suppress(RuntimeError):
            future.release()
