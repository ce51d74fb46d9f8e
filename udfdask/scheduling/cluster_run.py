"""Run a job on the workers of a cluster."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from typing import Any

from dask import base
from distributed import futures_of

from udfdask.scheduling.job import Job
from udfdask.scheduling.progress.counter import reporting_end
from udfdask.scheduling.progress.distributed import FutureWaiter, counting_on_cluster
from udfdask.scheduling.workers.check_workers import check_workers
from udfdask.scheduling.workers.killed_workers import explaining_killed_workers, layers_of
from udfdask.scheduling.workers.restrict import restrict


class ClusterRun:
    """One computation on a cluster: restricts tasks to workers, and observes it meanwhile."""

    def __init__(self, job: Job) -> None:
        check_workers(job.options, job.client, bool(job.device_udfs))
        self._job = job
        self._client = job.client
        self._collections, self._options = restrict(job.collections, job.client, job.options)

    def compute(self) -> Any:
        """Return the computed values."""
        return self._run(base.compute, self._compute_observed)

    def persist(self) -> Any:
        """Return persisted collections."""
        return self._run(base.persist, self._persist_observed)

    def _run(self, run: Callable[..., Any], run_observed: Callable[[FutureWaiter], Any]) -> Any:
        """Return the values of dask's function, or of ours if tasks have to be counted."""
        counter = self._job.counter
        counts = counter if counter is not None and counter.layer_names else None
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._options.annotated())
            if counter is not None:
                stack.enter_context(reporting_end(counter))
            stack.enter_context(explaining_killed_workers(lambda: layers_of(self._job.given)))
            if counts is not None:
                counting = counting_on_cluster(self._client, counts)
                return run_observed(stack.enter_context(counting))
            return run(*self._collections, **self._options.options)

    def _compute_observed(self, waiter: FutureWaiter) -> Any:
        """Return computed values; count tasks meanwhile."""
        collections, repack = base.unpack_collections(*self._collections)
        futures = self._client.compute(collections, **self._options_of(self._client.compute))
        try:
            waiter.wait(futures)
            return repack(self._client.gather(futures))
        finally:
            # otherwise the cluster would go on as long as a traceback refers to the futures
            for future in futures:
                future.release()

    def _persist_observed(self, waiter: FutureWaiter) -> Any:
        """Return persisted collections when all is counted.

        Errors of tasks are raised later, when the collections are used.
        """
        # not dask.persist: dask 2025.12 would use the current client, and wait if it is another one
        collections, repack = base.unpack_collections(*self._collections)
        persisted = self._client.persist(collections, **self._options_of(self._client.persist))
        persisted = repack(persisted)
        futures = futures_of(persisted, client=self._client)
        counter = self._job.counter
        try:
            if counter is not None and not waiter.wait(futures):
                counter.end("failed")
        except BaseException:
            for future in futures:
                future.release()
            raise
        return persisted

    def _options_of(self, method: Any) -> dict[str, Any]:
        """Return the options that a client's method accepts.

        Options of local schedulers, such as num_workers, are dropped, as `dask.compute` does.
        """
        accepted = inspect.signature(method).parameters
        return {k: v for k, v in self._options.options.items() if k in accepted}
