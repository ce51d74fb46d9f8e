"""What is to be computed, whoever computes it, and how its payloads are asked for."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from typing import Any, Protocol

import dask.array as da
from dask.base import is_dask_collection

from udfdask.chunk.run_chunk import Partials
from udfdask.graph.build import Tasks, build_chunks, build_parameters
from udfdask.plan.plan import Plan
from udfdask.run.progressive.live_recipe import LiveRecipe
from udfdask.scheduling.workers.find_restrictions import is_restricted

POLL = 1.0
"""Seconds after which a waiting thread looks around: Windows hears of Ctrl-C only then."""


class Closed(Exception):
    """The run has been closed."""


class Arrivals:
    """Payloads of chunks that have arrived and are not taken yet.

    They are taken as they come, or in navigation order.
    """

    def __init__(self, ordered: bool) -> None:
        self.changed = threading.Condition()
        self.closed = False
        self._ordered = ordered
        self._here: dict[int, Partials] = {}
        self._next = 0
        self._missing = 0
        self._count = 0
        self._came: set[int] = set()

    @property
    def progress(self) -> int:
        """How many chunks have arrived; where order matters, without a gap."""
        return self._missing if self._ordered else self._count

    def put(self, chunk: int, payload: Partials) -> None:
        """Add a payload; one that nobody will take is dropped."""
        with self.changed:
            self._count += 1
            self._came.add(chunk)
            while self._missing in self._came:
                self._came.remove(self._missing)
                self._missing += 1
            if not self.closed:
                self._here[chunk] = payload
            self.changed.notify_all()

    def ready(self, most: int = 1) -> int:
        """Return how many payloads can be taken, counting up to `most`."""
        if not self._ordered:
            return min(most, len(self._here))
        count = 0
        while count < most and self._next + count in self._here:
            count += 1
        return count

    def take(self) -> tuple[int, Partials] | None:
        """Return the next payload and its chunk, None if there is none yet."""
        with self.changed:
            if self.closed:
                raise Closed
            if not self.ready():
                return None
            chunk = self._next if self._ordered else next(iter(self._here))
            payload = self._here.pop(chunk)
            self._next += 1
            self.changed.notify_all()
            return chunk, payload

    def close(self) -> None:
        """Wake everybody up: nothing will be taken any more."""
        with self.changed:
            self.closed = True
            self._here.clear()
            self.changed.notify_all()

    def wait_until(self, condition: Callable[[], object]) -> None:
        """Wait, the lock held, until something is true or the run is closed."""
        while not self.closed and not condition():
            self.changed.wait(POLL)

    def wait_a_while(self, condition: Callable[[], object]) -> None:
        """Wait, the lock held, until something is true, the run is closed, or to look around."""
        if not self.closed and not condition():
            self.changed.wait(POLL)


class Job:
    """The tasks of a run, built when they are needed."""

    def __init__(self, plan: Plan, array: da.Array, live: LiveRecipe) -> None:
        self._plan = plan
        self._array = array
        # a name of its own: parameters may change, and a cluster computes equal names once
        self._token = uuid.uuid4().hex
        self.live = live
        parts = [array, *plan.aux, *(plan.recipe.lazy_value(*s) for s in plan.recipe.lazy_slots)]
        graphs = [part.__dask_graph__() for part in parts if is_dask_collection(part)]
        self.is_restricted = any(map(is_restricted, graphs)) or any(
            udf.needs_cuda for udf in plan.recipe.udfs
        )
        self.ordered = any(udf.progressive_merge.needs_order for udf in plan.recipe.udfs)

    def parameters(self) -> Tasks | None:
        """Return tasks whose only result is the recipe with lazy parameters filled in."""
        return build_parameters(self.live.now, self._token)

    def chunks(self, given: Any) -> Tasks:
        """Return tasks whose results are the payloads; `given` is what they take as recipe."""
        return build_chunks(self._plan, self._array, given, self._token)


class Chunks(Protocol):
    """Computes chunks in the background, not far ahead of whoever takes them."""

    def take(self) -> tuple[int, Partials] | None:
        """Return a chunk and its payload, None after the last one; raise Closed once closed."""

    def close(self) -> None:
        """Stop, without waiting: what runs may finish, nothing new starts."""
