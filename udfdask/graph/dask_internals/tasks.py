"""Tasks: make them, take them apart, join them.

- `Task(key, function, *arguments)`, where `TaskRef(key)` is the result of another task, also inside
  of a `List`.
- `OutputTask`: a task that is never fused with the task it reads from, however dask optimizes;
  `never_fused(task)`: the same task, which further optimizations leave alone.
- `needed_tasks(keys, tasks)`: those of some tasks that keys need.
- `alias_target(task)`: the key that an alias stands for.
- `in_one_task(key, function, keys, tasks)`: a task that runs others itself.
- `with_other_inputs(task, names, key)`: the same task, which reads other keys.
- `Delayed`: the class of `dask.delayed` values, which know the key of their task.
- `as_task(task, key, keys)`: the task of a layer that may have it as a tuple, as `Delayed` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from dask._task_spec import Alias, List, Task, TaskRef, convert_legacy_task
from dask.delayed import Delayed

__all__ = [
    "Delayed",
    "List",
    "OutputTask",
    "Task",
    "TaskRef",
    "alias_target",
    "as_task",
    "in_one_task",
    "needed_tasks",
    "never_fused",
    "with_other_inputs",
]


class OutputTask(Task):
    """A task that is never fused with the task it reads from.

    All tasks after the chunks are of this class, which keeps law 2. `dask.optimize` optimizes each
    collection separately: if two results of one chunk task were each fused with it, it would run
    twice. Chunk tasks are not: they must be fused with the loading of their block, or a process
    pool would send every block twice.
    """

    __slots__ = ()

    @property
    def block_fusion(self) -> bool:
        """Tell dask not to fuse this task."""
        return True


def never_fused(task: Any) -> Any:
    """Return a task as one that dask does not fuse with others; aliases and data as they are."""
    if type(task) is not Task:
        return task
    return OutputTask(
        task.key, task.func, *task.args, _data_producer=task.data_producer, **task.kwargs
    )


def alias_target(task: Any) -> Any:
    """Return the key that an alias stands for; None if this is no alias."""
    return task.target if isinstance(task, Alias) else None


def with_other_inputs(task: Any, names: Mapping[Any, Any], key: Any) -> Any:
    """Return a task under another key that reads the tasks that `names` has for its inputs."""
    return task.substitute({k: names[k] for k in task.dependencies if k in names}, key)


def as_task(task: Any, key: Any, keys: Iterable[Any]) -> Any:
    """Return a task under its key; if it is a tuple, the arguments among `keys` are other tasks."""
    return convert_legacy_task(key, task, set(keys))


def needed_tasks(keys: Iterable[Any], tasks: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return those of some tasks that keys need, directly or not."""
    needed: dict[Any, Any] = {}
    todo = list(keys)
    while todo:
        key = todo.pop()
        if key in tasks and key not in needed:
            needed[key] = tasks[key]
            todo.extend(tasks[key].dependencies)
    return needed


def in_one_task(
    key: Any,
    function: Callable[..., Any],
    keys: Sequence[Any],
    tasks: Mapping[Any, Any],
    *arguments: Any,
) -> Any:
    """Return a task that calls `function(values of keys, *arguments)` and runs `tasks` itself.

    A key that is not among `tasks` is that of another task of the graph.
    """
    chosen = [_resolved(k, tasks) for k in keys]
    inside = [tasks[k] for k in chosen if k in tasks]
    if len({*chosen}) == len(chosen) and not any(
        k in tasks for t in inside for k in t.dependencies
    ):
        # dask runs tasks that are arguments of a task one after another, and plans nothing
        return Task(key, function, List(*(tasks.get(k, TaskRef(k)) for k in chosen)), *arguments)
    last = Task(("last", key), function, List(*map(TaskRef, keys)), *arguments)
    return Task.fuse(*needed_tasks(keys, tasks).values(), last, key=key)


def _resolved(key: Any, tasks: Mapping[Any, Any]) -> Any:
    """Return the key that a key stands for, after all aliases among some tasks."""
    while isinstance(tasks.get(key), Alias):
        key = tasks[key].target
    return key
