"""Run a job on the workers of a cluster."""

from __future__ import annotations

import contextlib
import inspect
from typing import Any, Literal

from dask import base
from distributed import futures_of

from udfdask.scheduling.job import Job
from udfdask.scheduling.progress.counter import reporting_end
from udfdask.scheduling.progress.distributed import FutureWaiter, counting_on_cluster
from udfdask.scheduling.workers.check_workers import check_workers
from udfdask.scheduling.workers.find_restrictions import layers_of
from udfdask.scheduling.workers.killed_workers import explaining_killed_workers
from udfdask.scheduling.workers.restrict import restrict


def run_on_cluster(job: Job, name: Literal["compute", "persist"]) -> Any:
    """Return computed values, or persisted collections; restrict tasks, and observe them."""
    client, counter = job.client, job.counter
    check_workers(job.options, client, bool(job.device_udfs))
    collections, annotations, options = restrict(job.collections, client, job.options)
    with contextlib.ExitStack() as stack:
        stack.enter_context(base.annotate(**annotations))
        if counter is not None:
            stack.enter_context(reporting_end(counter))
        stack.enter_context(explaining_killed_workers(lambda: layers_of(job.given)))
        if counter is None or not counter.layer_names:
            return getattr(base, name)(*collections, **options)
        waiter = stack.enter_context(counting_on_cluster(client, counter))
        method = getattr(client, name)
        # as `dask.compute` does, drop options of local schedulers, such as num_workers
        accepted = inspect.signature(method).parameters
        options = {name: value for name, value in options.items() if name in accepted}
        # not dask.persist: dask 2025.12 would use the current client, and wait if it is another one
        flat, repack = base.unpack_collections(*collections)
        if name == "compute":
            return _compute(job, waiter, method(flat, **options), repack)
        return _persist(job, waiter, repack(method(flat, **options)))


def _compute(job: Job, waiter: FutureWaiter, futures: Any, repack: Any) -> Any:
    """Return computed values; count tasks meanwhile."""
    try:
        waiter.wait(futures)
        return repack(job.client.gather(futures))
    finally:
        # otherwise the cluster would go on as long as a traceback refers to the futures
        for future in futures:
            future.release()


def _persist(job: Job, waiter: FutureWaiter, persisted: Any) -> Any:
    """Return persisted collections when all is counted; they raise errors when they are used."""
    futures = futures_of(persisted, client=job.client)
    try:
        if not waiter.wait(futures) and job.counter is not None:
            job.counter.end("failed")
    except BaseException:
        for future in futures:
            future.release()
        raise
    return persisted
