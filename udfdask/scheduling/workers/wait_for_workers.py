"""Checks that the workers exist that tasks need, while tasks wait for them.

distributed lets a task wait forever for a worker that never comes. An adaptive cluster, however,
starts workers only after it has been sent tasks. So tasks are sent first, and `Guard` looks at the
workers now and then while the caller waits. It also notices when the last worker with a device is
lost, or the last one that may load a block. Before it raises, it asks the scheduler whether any
task still needs that worker.
"""

from __future__ import annotations

import os
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from udfdask import config
from udfdask.arrays.backends.device import n_devices
from udfdask.errors import ArgumentValueError, ClusterError, DeviceError, UDFError, UDFWarning
from udfdask.scheduling.workers.lost_results import asking_scheduler

LONGEST_PAUSE = 3.0
"""Seconds between two looks at the workers of a cluster, at most."""

UNFINISHED = frozenset({"waiting", "queued", "no-worker", "processing"})
"""States, on a scheduler, of tasks that have still to run; others wait to be forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What some tasks need of a worker."""

    udfs: tuple[str, ...] = ()
    """Names of the UDFs that need the resources."""
    resources: tuple[tuple[str, float], ...] = ()
    """Resources by name, in the amount that each task takes."""
    workers: tuple[str | int, ...] = ()
    """Addresses, names or hosts of the workers that may run the tasks; any if there is none."""

    def is_met_by(self, address: str, worker: Mapping[str, Any]) -> bool:
        """Return whether a worker, as a scheduler describes it, may run the tasks."""
        has = worker["resources"]
        able = all(has.get(name, 0) >= amount for name, amount in self.resources)
        return able and (not self.workers or not _names(address, worker).isdisjoint(self.workers))

    def is_met_in(self, workers: Mapping[str, Any]) -> bool:
        """Return whether any of the workers of a cluster may run the tasks."""
        return any(self.is_met_by(address, worker) for address, worker in workers.items())

    @property
    def anywhere(self) -> Demand:
        """The same on any worker."""
        return replace(self, workers=())


class Guard:
    """Sees to it that no computation waits longer than the configured time for a worker."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._timeout = config.resources_timeout()
        self._pause = min(LONGEST_PAUSE, max(0.05, self._timeout / 20))
        self._keys: dict[Demand, list[Any]] = {}
        self._look_at = 0.0
        self._waiting_since: float | None = None

    def require(self, demands: Mapping[Any, Demand]) -> None:
        """Add what tasks need that are about to be sent; raise if no worker will ever have it.

        Where workers may still come, as on an empty or an adaptive cluster, warn, and begin to
        wait: an adaptive cluster grows once it has been sent tasks.
        """
        fresh = set(demands.values()) - self._keys.keys()
        for key, demand in demands.items():
            self._keys.setdefault(demand, []).append(key)
        if not fresh:
            return
        workers = workers_of(self._client)
        missing = _unmet(fresh, workers)
        if not missing:
            return
        if workers and not is_adaptive(self._client):
            raise _error(missing, workers)
        self._wait(missing, workers)

    def look(self) -> None:
        """Raise if tasks have waited for a worker for too long; to be called now and then."""
        now = time.monotonic()
        if not self._keys or now < self._look_at:
            return
        self._look_at = now + self._pause
        try:
            workers = workers_of(self._client)
            missing = _unmet(self._keys, workers)
            waited = 0.0 if self._waiting_since is None else now - self._waiting_since
            if self._waiting_since is None or waited >= self._timeout:
                missing = self._still_missing(missing)
        except (OSError, ClusterError):  # the futures tell about a scheduler that is gone
            self._waiting_since = None
            return
        if not missing:
            self._waiting_since = None
        elif self._waiting_since is None:  # workers have gone
            self._wait(missing, workers)
        elif waited >= self._timeout:
            raise _error(
                missing,
                workers,
                f". None came within {self._timeout:g} s (config udfdask.resources-timeout)",
            )

    def _still_missing(self, missing: list[Demand]) -> list[Demand]:
        """Return those of some demands of which tasks have still to run."""
        if not missing:
            return []
        keys = [self._keys[demand] for demand in missing]
        left = self._client.run_on_scheduler(partial(_have_to_run, keys))
        return [demand for demand, needed in zip(missing, left, strict=True) if needed]

    def wait(self) -> None:
        """Wait for workers that may still come; raise if they do not."""
        while self._waiting_since is not None:
            self.look()
            time.sleep(self._pause / 4)

    def _wait(self, missing: list[Demand], workers: Mapping[str, Any]) -> None:
        """Begin to wait, and say so."""
        self._waiting_since = time.monotonic()
        warnings.warn(
            f"{_error(missing, workers)}. Waiting for one for {self._timeout:g} s "
            "(config udfdask.resources-timeout)",
            UDFWarning,
            stacklevel=2,
        )


def _have_to_run(groups: list[list[Any]], dask_scheduler: Any) -> list[bool]:
    """Return for groups of keys whether any of the tasks has still to run on this scheduler."""
    tasks = dask_scheduler.tasks
    return [any(k in tasks and tasks[k].state in UNFINISHED for k in keys) for keys in groups]


def workers_of(client: Any) -> Mapping[str, Any]:
    """Return the workers of a cluster by address, as its scheduler describes them."""
    # client.scheduler_info() returns what the client last heard, and in the background it asks for
    # no workers every two seconds: now and then there seem to be none
    with asking_scheduler(client):
        found: Mapping[str, Any] = client.sync(client.scheduler.identity, n_workers=-1)["workers"]
    return found


def is_adaptive(client: Any) -> bool:
    """Return whether a cluster starts workers by itself; one known by its address alone does not.

    Its scheduler cannot tell: what scales a cluster lives beside it.
    """
    adaptive = getattr(getattr(client, "cluster", None), "_adaptive", None)
    return getattr(adaptive, "periodic_callback", None) is not None


def check_device(get: Any, udfs: Sequence[str]) -> None:
    """Raise if a scheduler of this machine is to run UDFs that need a device, and it has none.

    A function or a pool of somebody else's may run tasks elsewhere.
    """
    here = str(getattr(get, "__module__", "")).startswith("dask.")
    if udfs and here and not n_devices():
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        raise DeviceError(
            f"{', '.join(udfs)} can run on a CUDA device alone, and this machine shows none "
            f"(CUDA_VISIBLE_DEVICES is {'not set' if visible is None else repr(visible)}): run on "
            "a cluster with workers that have the resources CUDA=1 (udfdask.cluster.worker_spec); "
            "or let the UDF run without a device, by 'numpy' in its get_backends() and in "
            "backends=, if you pass that"
        )


def check_workers(options: Mapping[str, Any], client: Any, needy: bool) -> None:
    """Raise if a cluster has none of the workers that a user asks for: tasks would wait for ever.

    An empty cluster, and one that starts workers by itself, may still get them. A Guard sees to
    the resources where UDFs are `needy`, which means that they need a device.
    """
    if not needy:
        _check_resources(options.get("resources"), client)
    asked = options.get("workers")
    if not asked or options.get("allow_other_workers") or callable(asked):
        return
    wanted = [asked] if isinstance(asked, (str, int)) else list(asked)
    present = workers_of(client)
    known = {name for address, worker in present.items() for name in _names(address, worker)}
    if present and known.isdisjoint(wanted) and not is_adaptive(client):
        raise ArgumentValueError(
            f"workers={asked!r} names none of the workers of the cluster, which has "
            f"{_listed(present)}: pass addresses, names or hosts of these, or "
            "allow_other_workers=True"
        )


def _check_resources(asked: Any, client: Any) -> None:
    """Raise if no worker has the resources that a user asks for."""
    if not asked or not isinstance(asked, Mapping) or is_adaptive(client):
        return
    present = workers_of(client)
    if present and not Demand(resources=tuple(asked.items())).is_met_in(present):
        tags = ",".join(f"{name}={amount:g}" for name, amount in asked.items())
        raise ArgumentValueError(
            f"resources={dict(asked)!r}: no worker has these resources, {_described(present)}. "
            f"Start such a worker, 'dask worker <scheduler> --resources {tags}', or correct "
            "resources="
        )


def check_present(where: Mapping[Any, list[str]], client: Any) -> None:
    """Raise if none of the workers that may run a task is there: it would wait for ever."""
    if not where or is_adaptive(client):
        return
    present = workers_of(client)
    known = {n for address, worker in present.items() for n in _names(address, worker)}
    for key, allowed in where.items():
        if known.isdisjoint(allowed):
            raise ArgumentValueError(
                f"task {key!r} may only load its data on {allowed}, but the cluster has the "
                f"workers {_listed(present)}: start one of these workers, correct workers=, or "
                "pass allow_other_workers=True"
            )


def _names(address: str, worker: Mapping[str, Any]) -> set[Any]:
    """Return the names a worker answers to: address, name and host.

    A number is not the same as its text: the first worker of a LocalCluster is called 0, and a
    scheduler takes "0" for a host.
    """
    return {address, address.removeprefix("tcp://"), worker["id"], worker["host"]}


def _listed(workers: Mapping[str, Any]) -> str:
    """Return the workers of a cluster in words, the first few of many."""
    few = [f"{address} (name {worker['id']!r})" for address, worker in workers.items()][:8]
    more = len(workers) - len(few)
    return ", ".join(few) + (f" and {more} more" if more else "")


def _unmet(demands: Iterable[Demand], workers: Mapping[str, Any]) -> list[Demand]:
    """Return the demands that no worker meets, in an order of their own."""
    return sorted(
        (demand for demand in demands if not demand.is_met_in(workers)),
        key=lambda d: (d.udfs, d.resources, d.workers),
    )


def _error(missing: list[Demand], workers: Mapping[str, Any], more: str = "") -> UDFError:
    """Return which tasks need what, what there is, and what can be done, as an error."""
    tagged = [demand for demand in missing if demand.resources]
    if not tagged:
        return ArgumentValueError(
            f"blocks may only be loaded on {list(missing[0].workers)}, but the cluster has the "
            f"workers {_listed(workers)}: start one of these workers, correct workers=, or pass "
            f"allow_other_workers=True{more}"
        )
    demand = tagged[0]
    udfs = ", ".join(dict.fromkeys(name for d in tagged for name in d.udfs))
    tags = ",".join(f"{name}={amount:g}" for name, amount in demand.resources)
    able = demand.anywhere.is_met_in(workers)
    where = f" among {list(demand.workers)}, to which they are restricted," if able else ""
    return DeviceError(
        f"{udfs} can run on a CUDA device alone: the tasks need a worker{where} with the resources "
        f"{tags}, but {_described(workers)}. Start such a worker, "
        f"'dask worker <scheduler> --resources {tags}' on a machine with a device, or a cluster of "
        "udfdask.cluster.worker_spec(); or let the UDF run without a device, by 'numpy' in its "
        f"get_backends() and in backends=, if you pass that{more}"
    )


def _described(workers: Mapping[str, Any]) -> str:
    """Return how many workers a cluster has, and with which resources, in words."""
    if not workers:
        return "the cluster has no workers"
    kinds = Counter(
        ",".join(f"{name}={amount:g}" for name, amount in sorted(worker["resources"].items()))
        for worker in workers.values()
    )
    parts = [f"{n} with {tags or 'no resources'}" for tags, n in sorted(kinds.items())]
    return f"the cluster has {len(workers)} worker(s), {', '.join(parts)}"
