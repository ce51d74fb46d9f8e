"""Check that suitable workers exist before tasks are sent; otherwise they would wait forever."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dask.base import get_annotations

from udfdask.backends.device import n_devices
from udfdask.errors import ArgumentValueError, DeviceError, UDFError
from udfdask.scheduling.workers.losses import asking_scheduler

_WITHOUT_DEVICE = (
    "or let the UDF run without a device: return 'numpy' in its get_backends(), and include it in "
    "backends= if you pass that"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """The resources and workers that some tasks need."""

    udfs: tuple[str, ...] = ()
    """Names of the UDFs that need the resources."""
    resources: tuple[tuple[str, float], ...] = ()
    """Resources by name, in the amount that each task takes."""
    workers: tuple[str | int, ...] = ()
    """Addresses, names or hosts of the workers that can run the tasks; any worker if empty."""

    def is_met_by(self, address: str, worker: Mapping[str, Any]) -> bool:
        """Return whether a worker can run the tasks; `worker` is the scheduler's description."""
        has = worker["resources"]
        able = all(has.get(name, 0) >= amount for name, amount in self.resources)
        return able and (not self.workers or not _names(address, worker).isdisjoint(self.workers))

    def is_met_in(self, workers: Mapping[str, Any]) -> bool:
        """Return whether at least one worker of a cluster can run the tasks."""
        return any(self.is_met_by(address, worker) for address, worker in workers.items())

    @property
    def anywhere(self) -> Demand:
        """The same resources on any worker."""
        return replace(self, workers=())


def check_demands(demands: Iterable[Demand], client: Any) -> None:
    """Raise if no worker meets the demands of tasks: they would wait forever.

    An empty or adaptive cluster may still get suitable workers.
    """
    wanted = set(demands)
    if not wanted:
        return
    workers = workers_of(client)
    missing = _unmet(wanted, workers)
    if missing and workers and not is_adaptive(client):
        raise _error(missing, workers)


def workers_of(client: Any) -> Mapping[str, Any]:
    """Return the workers of a cluster by address, as its scheduler describes them."""
    # not client.scheduler_info(): every two seconds, the client replaces this information by one
    # without workers
    with asking_scheduler(client):
        workers: Mapping[str, Any] = client.sync(client.scheduler.identity, n_workers=-1)["workers"]
    return workers


def is_adaptive(client: Any) -> bool:
    """Return whether a cluster starts workers by itself; False if only its address is known.

    The scheduler does not know it, because the object that scales a cluster is in another process.
    """
    adaptive = getattr(getattr(client, "cluster", None), "_adaptive", None)
    return getattr(adaptive, "periodic_callback", None) is not None


def check_device(get: Any, udfs: Sequence[str]) -> None:
    """Raise if dask's local scheduler would run UDFs that need a device, but there is none.

    A user's own scheduler function can run tasks on other machines.
    """
    here = str(getattr(get, "__module__", "")).startswith("dask.")
    if udfs and here and not n_devices():
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        raise DeviceError(
            f"{', '.join(udfs)} can run only on a CUDA device, but this machine has none "
            f"(CUDA_VISIBLE_DEVICES is {'not set' if visible is None else repr(visible)}): run on "
            "a cluster with workers that have the resources CUDA=1; "
            f"{_WITHOUT_DEVICE}"
        )


def check_workers(options: Mapping[str, Any], client: Any, need_device: bool) -> None:
    """Raise if a cluster has none of the workers in `options`: tasks would wait forever.

    Annotations around the call, as of `dask.annotate`, count as options. An empty or adaptive
    cluster may still get the workers. If UDFs need a device, `check_demands` checks the resources.
    """
    given = {name: value for name, value in options.items() if value}
    wanted = {**get_annotations(), **given}
    if not need_device:
        _check_resources(wanted.get("resources"), client)
    asked = wanted.get("workers")
    if not asked or wanted.get("allow_other_workers") or callable(asked):
        return
    names = [asked] if isinstance(asked, (str, int)) else list(asked)
    present = workers_of(client)
    if present and _all_names(present).isdisjoint(names) and not is_adaptive(client):
        raise ArgumentValueError(
            f"workers={asked!r} names none of the workers of the cluster, which has "
            f"{_listed(present)}: pass addresses, names or hosts of existing workers, or "
            "allow_other_workers=True"
        )


def _check_resources(asked: Any, client: Any) -> None:
    """Raise if no worker has the resources that the user asks for."""
    if not asked or not isinstance(asked, Mapping) or is_adaptive(client):
        return
    present = workers_of(client)
    if present and not Demand(resources=tuple(asked.items())).is_met_in(present):
        tags = ",".join(f"{name}={amount:g}" for name, amount in asked.items())
        raise ArgumentValueError(
            f"resources={dict(asked)!r}: no worker has these resources, {_described(present)}. "
            f"Start such a worker, 'dask worker <scheduler> --resources {tags}', or correct "
            "resources= or dask.annotate(resources=...)"
        )


def check_present(by_key: Mapping[Any, list[str]], client: Any) -> None:
    """Raise if none of the workers that can run a task exists: it would wait forever."""
    if not by_key or is_adaptive(client):
        return
    present = workers_of(client)
    names = _all_names(present)
    for key, allowed in by_key.items():
        if names.isdisjoint(allowed):
            raise ArgumentValueError(
                f"task {key!r} can load its data only on {allowed}, but the cluster has the "
                f"workers {_listed(present)}: start one of these workers, correct workers=, or "
                "pass allow_other_workers=True"
            )


def _names(address: str, worker: Mapping[str, Any]) -> set[Any]:
    """Return the names a worker answers to: address, name and host.

    The name of the first worker of a LocalCluster is the number 0. The text "0" is not this name:
    the scheduler treats it as a host.
    """
    return {address, address.removeprefix("tcp://"), worker["id"], worker["host"]}


def _all_names(workers: Mapping[str, Any]) -> set[Any]:
    """Return the names of all workers of a cluster."""
    return {name for address, worker in workers.items() for name in _names(address, worker)}


def _listed(workers: Mapping[str, Any]) -> str:
    """Return a list of the first 8 workers of a cluster, as text."""
    few = [f"{address} (name {worker['id']!r})" for address, worker in workers.items()][:8]
    more = len(workers) - len(few)
    return ", ".join(few) + (f" and {more} more" if more else "")


def _unmet(demands: Iterable[Demand], workers: Mapping[str, Any]) -> list[Demand]:
    """Return the demands that no worker meets, sorted."""
    return sorted(
        (demand for demand in demands if not demand.is_met_in(workers)),
        key=lambda d: (d.udfs, d.resources, d.workers),
    )


def _error(missing: list[Demand], workers: Mapping[str, Any]) -> UDFError:
    """Return the error for missing workers: the demands, the existing workers, what to do."""
    tagged = [demand for demand in missing if demand.resources]
    if not tagged:
        return ArgumentValueError(
            f"blocks can be loaded only on {list(missing[0].workers)}, but the cluster has the "
            f"workers {_listed(workers)}: start one of these workers, correct workers=, or pass "
            "allow_other_workers=True"
        )
    demand = tagged[0]
    udfs = ", ".join(dict.fromkeys(name for d in tagged for name in d.udfs))
    tags = ",".join(f"{name}={amount:g}" for name, amount in demand.resources)
    able = demand.anywhere.is_met_in(workers)
    where = f" among {list(demand.workers)}, to which they are restricted," if able else ""
    return DeviceError(
        f"{udfs} can run only on a CUDA device: the tasks need a worker{where} with the resources "
        f"{tags}, but {_described(workers)}. Start such a worker, "
        f"'dask worker <scheduler> --resources {tags}' on a machine with a device; "
        f"{_WITHOUT_DEVICE}"
    )


def _described(workers: Mapping[str, Any]) -> str:
    """Return the number of workers of a cluster and their resources, as text."""
    if not workers:
        return "the cluster has no workers"
    kinds = Counter(
        ",".join(f"{name}={amount:g}" for name, amount in sorted(worker["resources"].items()))
        for worker in workers.values()
    )
    parts = [f"{n} with {tags or 'no resources'}" for tags, n in sorted(kinds.items())]
    return f"the cluster has {len(workers)} worker(s), {', '.join(parts)}"
