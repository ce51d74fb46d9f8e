"""Check that suitable workers exist before tasks are sent; otherwise they would wait forever."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dask.base import get_annotations

from udfdask.errors import ArgumentValueError, DeviceError, UDFError


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """The resources and workers that some tasks need."""

    udfs: tuple[str, ...] = ()
    """Names of the UDFs that need the resources."""
    resources: tuple[tuple[str, float], ...] = ()
    """Resources by name, in the amount that each task takes."""
    workers: tuple[str | int, ...] = ()
    """Addresses, names or hosts of the workers that can run the tasks; any worker if empty."""

    def is_met_in(self, workers: Mapping[str, Any]) -> bool:
        """Return whether one of the workers that a scheduler describes can run the tasks."""
        for address, worker in workers.items():
            has = worker["resources"]
            # the name of the first worker of a LocalCluster is the number 0; "0" would be a host
            names = {address, address.removeprefix("tcp://"), worker["id"], worker["host"]}
            if all(has.get(name, 0) >= amount for name, amount in self.resources) and (
                not self.workers or not names.isdisjoint(self.workers)
            ):
                return True
        return False


def check_demands(demands: Iterable[Demand], client: Any) -> None:
    """Raise if no worker meets a demand of tasks: they would wait forever.

    An empty or adaptive cluster may still get suitable workers.
    """
    wanted = set(demands)
    if not wanted or is_adaptive(client):
        return
    workers = workers_of(client)
    missing = [demand for demand in wanted if not demand.is_met_in(workers)]
    if missing and workers:
        udfs = sorted({name for demand in missing for name in demand.udfs})
        # devices come first
        demand = min(missing, key=lambda demand: (not demand.udfs, str(demand)))
        raise _error(demand, udfs, workers)


def workers_of(client: Any) -> Mapping[str, Any]:
    """Return the workers of a cluster by address, as its scheduler describes them."""
    # not client.scheduler_info(): every two seconds, the client replaces this information by one
    # without workers
    workers: Mapping[str, Any] = client.sync(client.scheduler.identity, n_workers=-1)["workers"]
    return workers


def is_adaptive(client: Any) -> bool:
    """Return whether a cluster starts workers by itself; False if only its address is known.

    The scheduler does not know it, because the object that scales a cluster is in another process.
    """
    adaptive = getattr(getattr(client, "cluster", None), "_adaptive", None)
    return getattr(adaptive, "periodic_callback", None) is not None


def check_workers(options: Mapping[str, Any], client: Any, need_device: bool) -> None:
    """Raise if no worker has the `resources` or is one of the `workers` in options of a call.

    Annotations around the call, as of `dask.annotate`, count as options. If UDFs need a device,
    the restrictions of their tasks are checked instead.
    """
    wanted = {**get_annotations(), **{name: value for name, value in options.items() if value}}
    resources, names = wanted.get("resources"), worker_names(wanted.get("workers"))
    asked = Demand(
        resources=() if need_device or callable(resources) else tuple((resources or {}).items()),
        workers=() if wanted.get("allow_other_workers") else names,
    )
    if asked.resources or asked.workers:
        check_demands([asked], client)


def worker_names(workers: Any) -> tuple[str | int, ...]:
    """Return one or several addresses or names of workers as a tuple; empty for a function."""
    if not workers or callable(workers):
        return ()
    given = [workers] if isinstance(workers, (str, int)) else workers
    return tuple(sorted(given, key=str))


def _error(demand: Demand, udfs: Sequence[str], workers: Mapping[str, Any]) -> UDFError:
    """Return the error for a missing worker; `udfs` are all that need a device."""
    tags = _tags(dict(demand.resources))
    needs = [f"among {list(demand.workers)}"] if demand.workers else []
    needs += [f"with the resources {tags}"] if tags else []
    text = f"tasks need a worker {' '.join(needs)}, but the cluster has {_listed(workers)}"
    if udfs:
        return DeviceError(
            f"{', '.join(udfs)} can run only on a CUDA device: the {text}. Start such a "
            f"worker, 'dask worker <scheduler> --resources {tags}' on a machine with a device; "
            "or let the UDF run without a device: return 'numpy' in its get_backends(), and "
            "include it in backends= if you pass that"
        )
    return ArgumentValueError(
        f"{text}: start such a worker, correct workers= or resources=, or pass "
        "allow_other_workers=True"
    )


def _tags(resources: Mapping[str, float]) -> str:
    """Return resources as the option of a worker."""
    return ",".join(f"{name}={amount:g}" for name, amount in sorted(resources.items()))


def _listed(workers: Mapping[str, Any]) -> str:
    """Return the first 8 workers of a cluster with their names and resources, as text."""
    texts = []
    for address, worker in list(workers.items())[:8]:
        tags = _tags(worker["resources"])
        texts.append(f"{address} (name {worker['id']!r}{tags and f', {tags}'})")
    return ", ".join(texts) + (", ..." if len(workers) > 8 else "")
