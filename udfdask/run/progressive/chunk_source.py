"""What is to be computed, whoever computes it, and how its payloads are asked for."""

from __future__ import annotations

import uuid
from typing import Any, Protocol

import dask.array as da
from dask.base import is_dask_collection

from udfdask.chunk.run_chunk import Payload
from udfdask.graph.build import Tasks, build_chunks, build_parameters
from udfdask.plan.plan import Plan
from udfdask.run.progressive.accumulate import is_ordered
from udfdask.run.progressive.live_recipe import LiveRecipe
from udfdask.scheduling.workers.find_restrictions import is_limited


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
        self.is_limited = any(map(is_limited, graphs)) or any(
            udf.needs_cuda for udf in plan.recipe.udfs
        )
        self.ordered = is_ordered(plan.recipe)

    def parameters(self) -> Tasks | None:
        """Return tasks whose only result is the recipe with lazy parameters filled in."""
        return build_parameters(self.live.now, self._token)

    def chunks(self, given: Any) -> Tasks:
        """Return tasks whose results are the payloads; `given` is what they take as recipe."""
        return build_chunks(self._plan, self._array, given, self._token)


class Chunks(Protocol):
    """Computes chunks in the background, not far ahead of whoever takes them."""

    def take(self) -> tuple[int, Payload] | None:
        """Return a chunk and its payload, None after the last one; raise Closed once closed."""

    def close(self) -> None:
        """Stop, without waiting: what runs may finish, nothing new starts."""
