"""Make the device current in a task that works on it, and check that a needed one exists."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager

from udfdask.backends.backend import Backend
from udfdask.backends.device import n_devices
from udfdask.errors import DeviceError
from udfdask.plan.recipe import Recipe


def chunk_device(
    backends: Sequence[Backend], data: Sequence[Backend]
) -> AbstractContextManager[None]:
    """Return the context of a chunk task.

    `backends` are those that the UDFs are given, `data` those of the blocks, some of which may be
    on a device. Raise if a UDF needs a device and there is none.
    """
    if any(backend.device == "cuda" and not backend.on_device for backend in backends):
        _require_cuda()
    place = next((backend for backend in (*data, *backends) if backend.on_device), data[0])
    # NumPy chunks are sent to the device and processed on a stream of this thread, and each task
    # waits for its stream before it ends: a stream that uses its results finds them there. CuPy
    # chunks are processed on the current stream, which made them: another would not wait for them.
    own_stream = not any(backend.on_device for backend in data)
    return place.dense.at_work(own_stream=own_stream)


def merge_device(recipe: Recipe) -> AbstractContextManager[None]:
    """Return the context of a task that merges or finalizes results."""
    return recipe.result_backend.at_work(own_stream=False)


def _require_cuda() -> None:
    """Raise if this task has no CUDA device.

    A worker with the resource tag CUDA is assumed to have one.
    """
    if n_devices() or _carries_tag():
        return
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    raise DeviceError(
        "a UDF that needs a CUDA device was run where there is none (CUDA_VISIBLE_DEVICES is "
        f"{'not set' if visible is None else repr(visible)}): compute with Result.compute() or "
        "udfdask.compute() on a cluster with workers that carry the resource tag CUDA=1, or pass "
        "resources=udfdask.get_resources(udf) yourself; without a cluster, run on a machine with a "
        "device, or let the UDF offer 'numpy' in get_backends()"
    )


def _carries_tag() -> bool:
    """Return whether a distributed worker with the resource tag CUDA runs this task."""
    worker = sys.modules.get("distributed.worker")  # not imported: no distributed worker
    if worker is None:
        return False
    try:
        resources = worker.get_worker().state.total_resources
    except ValueError:  # not on a worker
        return False
    return bool(resources.get("CUDA", 0) > 0)
