"""The device in a task: made current where the task works on it, asked for where it has to be."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager

from udfdask.arrays.backends.backend import Backend
from udfdask.arrays.backends.device import n_devices
from udfdask.errors import DeviceError
from udfdask.plan.recipe import Recipe


def chunk_device(
    backends: Sequence[Backend], data: Sequence[Backend]
) -> AbstractContextManager[None]:
    """Return the context of a chunk task.

    `backends` are those that the UDFs are given, `data` those of the blocks; of a chunk with
    several, any may be on a device. Raise if a UDF needs a device and there is none.
    """
    if any(backend.device == "cuda" and not backend.on_device for backend in backends):
        _require_cuda()
    there = next((backend for backend in (*data, *backends) if backend.on_device), data[0])
    # data on a device are taken on the stream on which they have been made
    own_stream = not any(backend.on_device for backend in data)
    return there.dense.at_work(own_stream=own_stream)


def merge_device(recipe: Recipe) -> AbstractContextManager[None]:
    """Return the context of a task behind the chunks of a run."""
    return recipe.home.at_work(own_stream=False)


def _require_cuda() -> None:
    """Raise if this task has no CUDA device.

    A worker that carries the resource tag CUDA is taken at its word.
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
    """Return whether this is a task of a distributed worker that carries the tag CUDA."""
    worker = sys.modules.get("distributed.worker")  # not there, and it is no such task
    if worker is None:
        return False
    try:
        resources = worker.get_worker().state.total_resources
    except ValueError:  # not on a worker
        return False
    return bool(resources.get("CUDA", 0) > 0)
