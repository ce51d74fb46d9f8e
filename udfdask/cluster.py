"""Describe dask workers for machines with CUDA devices: one per device, others for the cores."""

from __future__ import annotations

import os
import shlex
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from dask.system import CPU_COUNT

from udfdask.backends.device import n_devices
from udfdask.errors import ArgumentTypeError, ArgumentValueError, missing_package

__all__ = ["visible_devices", "worker_commands", "worker_spec"]

VISIBLE = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """The workers of one machine."""

    devices: tuple[str, ...]
    """The CUDA device of each worker that has one, as `CUDA_VISIBLE_DEVICES` names it."""
    cuda_threads: int
    """Threads of each worker with a device."""
    cpu_workers: int
    """Number of workers without a device."""
    threads: int
    """Threads of each worker without a device."""


def worker_spec(
    *,
    cuda_devices: Sequence[int | str] | None = None,
    cuda_threads: int = 1,
    cpu_workers: int | None = None,
    threads: int = 1,
    **options: Any,
) -> dict[str, dict[str, Any]]:
    """Return the workers of a cluster that uses this machine's CUDA devices and its cores.

    Each device has its own worker with the resources ``CUDA=1``, which sees no other device. The
    other workers have no resources and see no device. `udfdask.compute`, `udfdask.persist`,
    `Result.compute` and `run_udf_iter` send UDFs that need a device to the workers with a device,
    and all other tasks to any worker.

    Parameters
    ----------
    cuda_devices : sequence of int or str, optional
        The devices, as numbers or names that ``CUDA_VISIBLE_DEVICES`` accepts: ``[0, 1]``,
        ``["GPU-8932f937"]``. By default all devices that this process can use.
    cuda_threads : int
        Threads of each worker with a device. Tasks that need the device run one at a time; with
        more threads, the worker can run other tasks at the same time.
    cpu_workers : int, optional
        Number of workers without a device. By default one for each remaining core, at least one.
    threads : int
        Threads of each worker without a device. The threads of a worker share its memory and
        Python's lock (GIL).
    **options
        More options of `distributed.Nanny`, for all workers: memory_limit, local_directory, ...

    Returns
    -------
    dict
        Specification of each worker by name, for ``distributed.SpecCluster(workers=...)``.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If a number is invalid, a device is named twice, or there would be no worker.
    ImportError
        If distributed is not installed.

    See Also
    --------
    worker_commands : Command lines for the same workers, for several machines.

    Notes
    -----
    A nanny starts each worker as a process. distributed starts the process with one thread for BLAS
    and OpenMP (config `distributed.nanny.pre-spawn-environ`), and udfdask limits both to the
    threads of a task (config `udfdask.threads-per-task`) inside its tasks.

    If the chunks of an array are already on the device, all workers need a device:
    ``cpu_workers=0``.

    Examples
    --------
    >>> from udfdask.cluster import worker_spec
    >>> spec = worker_spec(cuda_devices=[0], cpu_workers=2)
    >>> sorted(spec)
    ['cpu-0', 'cpu-1', 'cuda-0']
    >>> spec["cuda-0"]["options"]["resources"], spec["cuda-0"]["options"]["env"]
    ({'CUDA': 1}, {'CUDA_VISIBLE_DEVICES': '0'})

    Start a cluster of these workers:

    >>> from distributed import Client, SpecCluster  # doctest: +SKIP
    >>> client = Client(SpecCluster(workers=worker_spec()))  # doctest: +SKIP
    """
    try:
        from distributed import Nanny
    except ImportError:
        raise missing_package("distributed", purpose="worker_spec()", extra="distributed") from None
    layout = _layout(cuda_devices, cuda_threads, cpu_workers, threads)
    with_device: dict[str, dict[str, Any]] = {
        f"cuda-{k}": {
            "nthreads": layout.cuda_threads,
            "resources": {"CUDA": 1},
            "env": {VISIBLE: device},
        }
        for k, device in enumerate(layout.devices)
    }
    without: dict[str, dict[str, Any]] = {
        f"cpu-{k}": {"nthreads": layout.threads, "env": {VISIBLE: ""}}
        for k in range(layout.cpu_workers)
    }
    environ = options.pop("env", {})
    return {
        name: {"cls": Nanny, "options": {**options, **own, "env": {**environ, **own["env"]}}}
        for name, own in {**with_device, **without}.items()
    }


def worker_commands(
    scheduler: str,
    *,
    cuda_devices: Sequence[int | str] | None = None,
    cuda_threads: int = 1,
    cpu_workers: int | None = None,
    threads: int = 1,
    options: Sequence[str] = (),
) -> list[str]:
    """Return the commands that start the workers of `worker_spec` on this machine.

    Use it in a job script that runs on each machine, because it looks at the devices and cores of
    the machine that it runs on.

    Parameters
    ----------
    scheduler : str
        Address of the scheduler, such as ``"tcp://10.0.0.1:8786"``.
    cuda_devices, cuda_threads, cpu_workers, threads
        As in `worker_spec`.
    options : sequence of str
        More options of ``dask worker``, for example ``["--memory-limit", "16 GB"]``.

    Returns
    -------
    list of str
        A POSIX shell command for each worker with a device, and one for all other workers.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        As `worker_spec` does.

    Examples
    --------
    >>> from udfdask.cluster import worker_commands
    >>> for line in worker_commands("tcp://10.0.0.1:8786", cuda_devices=[0], cpu_workers=6):
    ...     print(line)  # doctest: +ELLIPSIS
    CUDA_VISIBLE_DEVICES=0 dask worker tcp://10.0.0.1:8786 ... --nthreads 1 --resources CUDA=1
    CUDA_VISIBLE_DEVICES= dask worker tcp://10.0.0.1:8786 ... --nthreads 1 --nworkers 6
    """
    if not isinstance(scheduler, str):
        raise ArgumentTypeError(
            f"scheduler must be an address such as 'tcp://10.0.0.1:8786', got {scheduler!r}"
        )
    layout = _layout(cuda_devices, cuda_threads, cpu_workers, threads)
    host = socket.gethostname()

    def line(device: str, name: str, nthreads: int, *more: str) -> str:
        command = ["dask", "worker", scheduler, "--name", f"{host}-{name}"]
        command += ["--nthreads", str(nthreads), *more, *options]
        return f"{VISIBLE}={shlex.quote(device) if device else ''} {shlex.join(command)}"

    lines = [
        line(device, f"cuda-{k}", layout.cuda_threads, "--resources", "CUDA=1")
        for k, device in enumerate(layout.devices)
    ]
    if layout.cpu_workers:
        lines.append(line("", "cpu", layout.threads, "--nworkers", str(layout.cpu_workers)))
    return lines


def visible_devices() -> tuple[str, ...]:
    """Return the CUDA devices that this process can use, as `CUDA_VISIBLE_DEVICES` names them.

    Returns
    -------
    tuple of str
        Numbers, or the names in ``CUDA_VISIBLE_DEVICES``; empty without a device.

    Examples
    --------
    >>> from udfdask.cluster import visible_devices
    >>> len(visible_devices()) >= 0
    True
    """
    n, given = n_devices(), os.environ.get(VISIBLE)
    if given is None:
        return tuple(map(str, range(n)))
    names = [name.strip() for name in given.split(",")]
    return tuple(names[:n])


def _layout(cuda_devices: Any, cuda_threads: Any, cpu_workers: Any, threads: Any) -> _Layout:
    """Return the workers of this machine, checked."""
    devices = visible_devices() if cuda_devices is None else _named(cuda_devices)
    n_cuda = _number(cuda_threads, "cuda_threads", 1)
    n = _number(threads, "threads", 1)
    left = (CPU_COUNT - len(devices) * n_cuda) // n
    workers = max(1, left) if cpu_workers is None else _number(cpu_workers, "cpu_workers", 0)
    if not devices and not workers:
        raise ArgumentValueError(
            "there would be no worker at all: no CUDA device was given or found, and cpu_workers "
            "is 0. Name devices in cuda_devices, or set cpu_workers to at least 1"
        )
    return _Layout(devices=devices, cuda_threads=n_cuda, cpu_workers=workers, threads=n)


def _named(devices: Any) -> tuple[str, ...]:
    """Return the names of the devices in `cuda_devices`, checked."""
    if not isinstance(devices, (list, tuple, range)) or not all(
        isinstance(d, (int, np.integer, str)) and not isinstance(d, bool) for d in devices
    ):
        raise ArgumentTypeError(
            "cuda_devices must be a list of numbers or names of devices, such as [0, 1] or "
            f"['GPU-8932f937'], got {devices!r}"
        )
    names = tuple(str(device).strip() for device in devices)
    wrong = [name for name in names if not name or name.startswith("-") or "," in name]
    twice = sorted({name for name in names if names.count(name) > 1})
    if wrong or twice:
        raise ArgumentValueError(
            f"cuda_devices contains {wrong or twice}{' more than once' if twice else ''}: list "
            "each device once, as a number from 0 up or as a name that CUDA_VISIBLE_DEVICES accepts"
        )
    return names


def _number(value: Any, name: str, least: int) -> int:
    """Return an integer; raise if it is less than `least`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise ArgumentTypeError(f"{name} must be an integer of at least {least}, not {value!r}")
    if value < least:
        raise ArgumentValueError(f"{name} must be an integer of at least {least}, not {value!r}")
    return int(value)
