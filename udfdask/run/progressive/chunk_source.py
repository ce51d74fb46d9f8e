"""The interface to the background computation of chunks, for all schedulers."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from typing import Any, Protocol

import dask.array as da
from dask.base import is_dask_collection

from udfdask.chunk.partial_result import Partials
from udfdask.graph.build import Tasks, build_chunks, build_parameters
from udfdask.plan.plan import Plan
from udfdask.run.progressive.live_recipe import LiveRecipe
from udfdask.scheduling.restrictions import is_restricted

POLL = 1.0
"""Seconds after which a waiting thread wakes up: on Windows, Ctrl-C is handled only then."""


class Closed(Exception):
    """The run has been closed."""


class Arrivals:
    """Partial results of chunks that have been computed and not been taken yet.

    They are taken in the order in which they are computed, or in navigation order.
    """

    def __init__(self, ordered: bool) -> None:
        self.changed = threading.Condition()
        self.closed = False
        self._ordered = ordered
        self._payloads: dict[int, Partials] = {}
        self._next = 0
        self._n_in_order = 0
        self._computed: set[int] = set()

    @property
    def progress(self) -> int:
        """Number of computed chunks; if order matters, those before the first missing chunk."""
        return self._n_in_order if self._ordered else len(self._computed)

    def put(self, chunk: int, payload: Partials) -> None:
        """Add partial results, or drop them if the run is closed."""
        with self.changed:
            self._computed.add(chunk)
            while self._n_in_order in self._computed:
                self._n_in_order += 1
            if not self.closed:
                self._payloads[chunk] = payload
            self.changed.notify_all()

    def ready(self, most: int = 1) -> int:
        """Return the number of chunks that can be taken, at most `most`."""
        if not self._ordered:
            return min(most, len(self._payloads))
        count = 0
        while count < most and self._next + count in self._payloads:
            count += 1
        return count

    def take(self) -> tuple[int, Partials] | None:
        """Return the next chunk and its partial results, None if it is not computed yet."""
        with self.changed:
            if self.closed:
                raise Closed
            if not self.ready():
                return None
            chunk = self._next if self._ordered else next(iter(self._payloads))
            payload = self._payloads.pop(chunk)
            self._next += 1
            self.changed.notify_all()
            return chunk, payload

    def close(self) -> None:
        """Wake all waiting threads: no partial results will be taken any more."""
        with self.changed:
            self.closed = True
            self._payloads.clear()
            self.changed.notify_all()

    def wait_until(self, condition: Callable[[], object]) -> None:
        """Wait until a condition is true or the run is closed; the caller holds the lock."""
        while not self.closed and not condition():
            self.changed.wait(POLL)


class Job:
    """The tasks of a run, built on request."""

    def __init__(self, plan: Plan, array: da.Array, live: LiveRecipe) -> None:
        self._plan = plan
        self._array = array
        # a random token: parameters may change, and a cluster computes equal names only once
        self._token = uuid.uuid4().hex
        self.live = live
        parts = [array, *plan.aux, *(plan.recipe.lazy_value(*s) for s in plan.recipe.lazy_slots)]
        graphs = [part.__dask_graph__() for part in parts if is_dask_collection(part)]
        self.is_restricted = any(map(is_restricted, graphs)) or any(
            udf.needs_cuda for udf in plan.recipe.udfs
        )
        self.ordered = any(udf.progressive_merge.needs_order for udf in plan.recipe.udfs)

    def parameters(self) -> Tasks | None:
        """Return tasks that compute lazy parameters: their only result is the filled recipe."""
        return build_parameters(self.live.now, self._token)

    def chunks(self, recipe: Any) -> Tasks:
        """Return tasks that return the partial results; `recipe` is the argument of these tasks."""
        return build_chunks(self._plan, self._array, recipe, self._token)


def first_needs(tasks: Tasks) -> dict[Any, int]:
    """Return the first chunk that needs each task."""
    first: dict[Any, int] = {}
    for chunk, key in enumerate(tasks.keys):
        todo = [key]
        while todo:
            needed = todo.pop()
            if needed not in first and needed in tasks.dsk:
                first[needed] = chunk
                todo.extend(tasks.dsk[needed].dependencies)
    return first


class Chunks(Protocol):
    """Computes chunks in the background, a few chunks ahead of the consumer."""

    def take(self) -> tuple[int, Partials] | None:
        """Return a chunk and its partial results, None after the last; raise Closed once closed."""

    def close(self) -> None:
        """Stop without waiting: running tasks may finish, no new task starts."""
