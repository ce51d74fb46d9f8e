"""Tasks that load placed blocks are sent to the workers that may load them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from dask import base
from dask._task_spec import GraphNode, Task
from dask.core import reverse_dict
from dask.highlevelgraph import HighLevelGraph, MaterializedLayer

from udfdask.errors import ArgumentValueError
from udfdask.output_task import OutputTask
from udfdask.placement import PREFIX, Placement


def restrictions(tasks: Mapping[Any, Any]) -> dict[Any, list[str]]:
    """Take optimised tasks by key; return the workers of those that may not run anywhere.

    What only such tasks wait for has to be loaded there too: a block that several tasks use is not
    fused with its loading.
    """
    found = {}
    for key, task in tasks.items():
        placements = [set(p.workers) for p in _placements(task) if p.workers]
        if placements:
            allowed = set.intersection(*placements)
            if not allowed:
                raise ArgumentValueError(
                    f"task {key!r} loads blocks of several arrays of which no worker may load all: "
                    f"{placements}. Let one worker load all of them, or rechunk one of the arrays"
                )
            found[key] = allowed
    _add_upstream(found, tasks)
    return {key: sorted(allowed) for key, allowed in found.items()}


def _add_upstream(found: dict[Any, set[str]], tasks: Mapping[Any, Any]) -> None:
    """Add to the workers of tasks those of the tasks that no others wait for."""
    if not found:
        return
    users = reverse_dict({key: task.dependencies & tasks.keys() for key, task in tasks.items()})
    todo = list(found)
    while todo:
        for key in tasks[todo.pop()].dependencies:
            if key in tasks and key not in found and all(user in found for user in users[key]):
                allowed = set.intersection(*(found[user] for user in users[key]))
                if allowed:
                    found[key] = allowed
                    todo.append(key)


def _placements(part: Any) -> Iterator[Placement]:
    """Yield the placements in a task, in those that are fused into it and in their arguments."""
    if isinstance(part, Placement):
        yield part
    elif isinstance(part, Task):
        yield from _inside((*part.args, *part.kwargs.values()))
    elif isinstance(part, GraphNode):
        yield from _placements(getattr(part, "value", None))
    elif isinstance(part, dict):
        yield from _inside(part.values())
    elif isinstance(part, (list, tuple)):
        yield from _inside(part)


def _inside(parts: Iterable[Any]) -> Iterator[Placement]:
    """Yield the placements in each of several arguments."""
    for part in parts:
        yield from _placements(part)


def pin(
    results: tuple[Any, ...], client: Any, *, loose: bool = False
) -> tuple[tuple[Any, ...], AbstractContextManager[None]]:
    """Take what a cluster is to compute; return it pinned, and the context to compute it in.

    In the context, tasks that load placed blocks run where these may be loaded. `loose` lets them
    run elsewhere if none of these workers is there.
    """
    collections, repack = base.unpack_collections(*results)
    if not any(is_placed(collection) for collection in collections):
        return results, nullcontext()
    expression = base.collections_to_expr(collections).optimize()
    tasks = dict(expression.__dask_graph__())
    where = restrictions(tasks)
    if not loose:
        check_present(where, client)
    # dask optimises once more, which must not fuse these tasks into others
    for key in where:
        task = tasks[key]
        if type(task) is Task:
            tasks[key] = OutputTask(
                key, task.func, *task.args, _data_producer=task.data_producer, **task.kwargs
            )
    graph = _layered(tasks)
    pinned = []
    for collection in collections:
        rebuild, state = collection.__dask_postpersist__()
        pinned.append(rebuild(graph, *state))
    packed: tuple[Any, ...] = repack(pinned)
    return packed, annotated(where)


def annotated(where: Mapping[Any, list[str]]) -> AbstractContextManager[None]:
    """Take the workers of tasks; return the context in which a client keeps to them."""
    if not where:
        return nullcontext()
    lookup = _Lookup(dict(where), base.get_annotations().get("workers", []))
    context: AbstractContextManager[None] = base.annotate(workers=lookup)
    return context


@dataclass(frozen=True, slots=True)
class _Lookup:
    """Tells a scheduler where a task may run."""

    where: dict[Any, list[str]]
    """Workers by key."""
    otherwise: Any
    """Workers of all other tasks, or a function of their keys: what the user annotated."""

    def __call__(self, key: Any) -> Any:
        if key in self.where:
            return self.where[key]
        return self.otherwise(key) if callable(self.otherwise) else self.otherwise


def check_present(where: Mapping[Any, list[str]], client: Any) -> None:
    """Raise if none of the workers that may run a task is there: it would wait for ever."""
    if not where:
        return
    present = client.scheduler_info(n_workers=-1)["workers"]
    known = {str(name) for address, w in present.items() for name in (address, w["id"], w["host"])}
    for key, allowed in where.items():
        if known.isdisjoint(allowed):
            raise ArgumentValueError(
                f"task {key!r} may only load its data on {allowed}, but the cluster has the "
                f"workers {sorted(present)}: start one of these workers, correct workers=, or pass "
                "allow_other_workers=True"
            )


def is_placed(collection: Any) -> bool:
    """Whether any array in the graph of a collection has been placed."""
    layers = getattr(collection.__dask_graph__(), "layers", {})
    return any(name.startswith(PREFIX) for name in layers if isinstance(name, str))


def _layered(tasks: dict[Any, Any]) -> HighLevelGraph:
    """Take optimised tasks; return them in layers named after them."""
    grouped: dict[str, dict[Any, Any]] = {}
    depends: dict[str, set[str]] = {}
    for key, task in tasks.items():
        name = _layer_name(key)
        grouped.setdefault(name, {})[key] = task
        needed = {_layer_name(k) for k in task.dependencies if k in tasks}
        depends.setdefault(name, set()).update(needed - {name})
    layers = {name: MaterializedLayer(group) for name, group in grouped.items()}
    return HighLevelGraph(layers, depends)


def _layer_name(key: Any) -> str:
    """Take a task's key; return the name of the layer it is in."""
    return str(key[0] if isinstance(key, tuple) else key)
