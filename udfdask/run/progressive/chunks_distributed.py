"""Computes chunks on a distributed cluster: at any time, a window of them has been sent.

Futures hold upstream tasks that later chunks need, so that they run once. Keys carry a token of
the run: otherwise the cluster would hand out chunks that it computed with other parameters.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterable, Mapping
from concurrent.futures import CancelledError
from typing import Any, NoReturn

from udfdask.chunk.run_chunk import Partials
from udfdask.graph.build import Tasks
from udfdask.graph.shared_recipe import is_small
from udfdask.plan.device_groups import groups_of
from udfdask.plan.recipe import Recipe
from udfdask.run.progressive.chunk_source import Arrivals, Closed, Job
from udfdask.scheduling.workers.find_restrictions import (
    NO_RESTRICTIONS,
    Restrictions,
    find_restrictions,
)
from udfdask.scheduling.workers.lost_results import asking_scheduler, explain_loss
from udfdask.scheduling.workers.restrict import make_cluster_options
from udfdask.scheduling.workers.wait_for_workers import WorkerCheck

TASKS_PER_THREAD = 2
"""Chunks on their way for each thread of the cluster: one runs, one waits for it to end."""


class ClusterChunks:
    """Payloads of all chunks of a job from a distributed client."""

    def __init__(self, job: Job, client: Any, options: Mapping[str, Any]) -> None:
        self._job = job
        self._client = client
        self._options = dict(options)
        self._worker_check = WorkerCheck(client)
        self._arrivals = Arrivals(job.ordered)
        self._ended: deque[Any] = deque()
        self._coming: dict[Any, tuple[int, _Batch]] = {}
        self._graph: _Graph | None = None
        self._sent: Recipe | None = None
        self._inline = False
        self._taken = 0

    def take(self) -> tuple[int, Partials] | None:
        """Return a chunk and its payload, None after the last one."""
        try:
            if self._graph is None:
                self._fill_parameters()
            graph = self._current_graph()
            while self._taken < len(graph.tasks.keys):
                taken = self._arrivals.take()
                if taken is not None:
                    self._taken += 1
                    return taken
                self._send(graph)
                self._receive()
        except CancelledError as error:
            self._end(error)
        except Exception as error:
            # a client that is closed fails in many ways
            if not self._client_closed():
                raise
            self._end(error)
        return None

    def close(self) -> None:
        """Let go of everything, upon which the cluster forgets what nobody else wants."""
        self._arrivals.close()
        # released, not cancelled: upstream futures may be somebody else's too
        _release([*self._coming, *(self._graph.held.values() if self._graph else ())])

    def _end(self, error: Exception) -> NoReturn:
        """Stop, and raise what has ended the run: a loss of the cluster, or somebody's wish."""
        self.close()
        total = self._job.live.now.grid.n_chunks
        loss = explain_loss(error, self._client, f" ({self._taken} of {total} chunks had arrived)")
        if loss is not None:
            raise loss from error
        raise Closed from None

    def _fill_parameters(self) -> None:
        """Compute lazy parameters."""
        tasks = self._job.parameters()
        if tasks is not None:
            self._check_devices()
            (future,) = self._submit(tasks.dsk, tasks.keys, tasks.keys)
            try:
                self._watch(future)
                self._job.live.fill(self._client.gather(self._wait()[0]))
            finally:
                _release([future])

    def _check_devices(self) -> None:
        """Raise if nobody can run the chunks, before anything is computed for them."""
        recipe = self._job.live.now
        needy = [g for g in groups_of(recipe) if g.needs_cuda and recipe.grid.n_chunks]
        restrictions = Restrictions(workers={}, groups={group.names: group for group in needy})
        make_cluster_options(restrictions, self._client, self._options, self._worker_check)

    def _current_graph(self) -> _Graph:
        """Return the graph of all chunks, with the parameters of this moment."""
        recipe = self._job.live.now
        if self._graph is not None and recipe is self._sent:
            return self._graph
        inline = is_small(recipe)
        # in the tasks of a graph, a live recipe is the current one whenever it is pickled
        if self._graph is None or not (inline and self._inline):
            tasks = self._job.chunks(self._job.live if inline else recipe)
            self._graph = _Graph(tasks, self._graph)
        self._sent, self._inline = recipe, inline
        return self._graph

    def _send(self, graph: _Graph) -> None:
        """Send chunks until the window is full, half a window at a time."""
        with asking_scheduler(self._client):
            threads = sum(self._client.nthreads().values())
        window = TASKS_PER_THREAD * max(1, threads)
        keys = graph.tasks.keys
        ahead = graph.n_sent - self._taken
        if ahead > window // 2 or graph.n_sent == len(keys):
            return
        chunks = range(graph.n_sent, min(len(keys), self._taken + window))
        dsk, shared, done_with = graph.next_tasks(chunks)
        results = [keys[chunk] for chunk in chunks]
        futures = self._submit(dsk, results + shared, results, fifo_timeout=0)
        batch = _Batch(done_with)
        for chunk, future in zip(chunks, futures, strict=False):
            self._coming[future] = (chunk, batch)
            self._watch(future)
        graph.held.update(zip(shared, futures[len(chunks) :], strict=True))
        if self._arrivals.closed:  # meanwhile
            self.close()

    def _submit(
        self, dsk: dict[Any, Any], wanted: list[Any], results: list[Any], **defaults: Any
    ) -> list[Any]:
        """Send tasks to the cluster; return the futures of the keys that are wanted.

        `results` are those among them that are payloads, not loaded data for more of these.
        """
        restricted = self._job.is_restricted
        restrictions = find_restrictions(dsk, results) if restricted else NO_RESTRICTIONS
        options = make_cluster_options(
            restrictions, self._client, {**defaults, **self._options}, self._worker_check
        )
        with options.annotated():
            futures: list[Any] = self._client.get(dsk, wanted, sync=False, **options.options)
        return futures

    def _receive(self) -> None:
        """Wait for a payload, and fetch all that are there."""
        futures = self._wait()
        for future, payload in zip(futures, self._client.gather(futures), strict=True):
            chunk, batch = self._coming.pop(future)
            # only now has the cluster surely seen who else needs these
            _release(batch.done_with)
            batch.done_with = []
            self._arrivals.put(chunk, payload)
        _release(futures)

    def _watch(self, future: Any) -> None:
        """Note when a future ends."""
        ended, changed = self._ended, self._arrivals.changed

        def note(future: Any) -> None:
            with changed:
                ended.append(future)
                changed.notify_all()

        future.add_done_callback(note)

    def _client_closed(self) -> bool:
        """Return whether the client has been closed, or is about to be."""
        return self._client.status in ("closing", "closed")

    def _wait(self) -> list[Any]:
        """Wait for futures to end and return them."""
        arrivals, ended = self._arrivals, self._ended
        while True:
            with arrivals.changed:
                arrivals.wait_a_while(lambda: ended)
                # a client that is closed may never say so
                if arrivals.closed or (self._client_closed() and not ended):
                    raise Closed
                if ended:
                    return [ended.popleft() for _ in range(len(ended))]
            # without the lock, for which callbacks of the client wait
            self._worker_check.check()


class _Batch:
    """Chunks that were sent together."""

    __slots__ = ("done_with",)

    def __init__(self, done_with: list[Any]) -> None:
        self.done_with = done_with
        """Futures to release as soon as the cluster has seen these chunks."""


class _Graph:
    """The tasks of all chunks, and which of them the cluster has."""

    def __init__(self, tasks: Tasks, before: _Graph | None) -> None:
        self.tasks = tasks
        self.n_sent: int = 0 if before is None else before.n_sent
        self.held: dict[Any, Any] = {} if before is None else before.held
        self._waiting: dict[Any, int] = {}
        for task in tasks.dsk.values():
            for key in task.dependencies:
                self._waiting[key] = self._waiting.get(key, 0) + 1
        self._sent: set[Any] = set()
        if before is not None:
            for chunk in range(self.n_sent):
                self._collect(tasks.keys[chunk])
            # a recipe with newer parameters is not there yet, though chunks that were sent take it
            self._sent &= before._sent

    def next_tasks(self, chunks: range) -> tuple[dict[Any, Any], list[Any], list[Any]]:
        """Return the tasks to send for the next chunks.

        And the keys among them that later chunks need too, and the futures of those of before that
        no later chunk needs.
        """
        fresh: dict[Any, Any] = {}
        for chunk in chunks:
            fresh.update(self._collect(self.tasks.keys[chunk]))
        self.n_sent = chunks.stop
        shared = [key for key in fresh if self._waiting.get(key)]
        spent = [key for key in self.held if not self._waiting.get(key)]
        return fresh, shared, [self.held.pop(key) for key in spent]

    def _collect(self, key: Any) -> dict[Any, Any]:
        """Return the tasks that a key needs and that have not been sent, and mark them as sent."""
        fresh = {}
        todo = [key]
        while todo:
            key = todo.pop()
            if key in self._sent or key not in self.tasks.dsk:
                continue
            self._sent.add(key)
            task = fresh[key] = self.tasks.dsk[key]
            for needed in task.dependencies:
                self._waiting[needed] -= 1
                todo.append(needed)
        return fresh


def _release(futures: Iterable[Any]) -> None:
    """Let futures go; nothing to be done where their client has gone already."""
    for future in list(futures):
        with contextlib.suppress(RuntimeError):
            future.release()
