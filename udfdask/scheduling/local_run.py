"""Run a job on one of dask's schedulers of this process, its threads or its process pool."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from dask import base

from udfdask.scheduling.job import Job


def compute_locally(job: Job) -> Any:
    """Return the computed values of the collections of a job."""
    return _run(job, base.compute)


def persist_locally(job: Job) -> Any:
    """Return persisted collections."""
    return _run(job, base.persist)


def _run(job: Job, run: Callable[..., Any]) -> Any:
    """Return what dask's function returns; report progress."""
    if job.device_udfs:
        from udfdask.scheduling.workers.wait_for_workers import check_device

        check_device(job.get, job.device_udfs)
    with contextlib.ExitStack() as stack:
        if job.counter is not None:
            from udfdask.scheduling.progress.counter import counting_local_tasks, reporting_end

            stack.enter_context(reporting_end(job.counter))
            stack.enter_context(counting_local_tasks(job.counter))
        return run(*job.collections, **job.options)
