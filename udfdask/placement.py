"""Which workers of a cluster may load which blocks of an array.

dask's annotations of layers are lost when tasks are fused. Here the permission is an argument of a
task that hands its block on: whatever task it is fused into, it is found there before the tasks are
sent.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import dask.array as da
from dask import base
from dask._task_spec import GraphNode, Task
from dask.blockwise import BlockwiseDepDict, blockwise
from dask.core import reverse_dict
from dask.highlevelgraph import HighLevelGraph, MaterializedLayer

from udfdask.chunk_layers import ChunkBlockwise, ChunkTasks
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.output_task import OutputTask

Block = tuple[int, ...]
Addresses = str | Sequence[str]
Workers = Addresses | Mapping[int | Block, Addresses] | Callable[[Block], Addresses | None] | None
"""What a user passes as `workers`."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The workers that may load a block."""

    workers: tuple[str, ...]
    """Addresses, names or hosts; any worker if there is none."""


def on_workers(array: da.Array, workers: Workers) -> da.Array:
    """Let only some workers of a cluster load the blocks of an array.

    For data that lie on the disks of particular nodes. A task that loads a block, with whatever is
    fused into it, runs on one of the workers that may load it; what follows runs anywhere.

    Parameters
    ----------
    array : dask.array.Array
        Any array; what its blocks are made of counts as their loading.
    workers : str, sequence of str, mapping or callable
        Workers by address (``"tcp://10.0.0.7:40331"``), name or host: one or several for all
        blocks; a mapping from positions of blocks to these, where a key with fewer numbers than the
        array has dimensions, such as 3 or ``(3, 0)``, means all blocks that begin so, the longest
        key counts, and blocks that no key fits are loaded anywhere; or a function that is called
        with the position of each block and returns one, several, or None for anywhere.

    Returns
    -------
    dask.array.Array
        The same data in the same chunks, with one task more for each block, which dask fuses with
        its loading.

    Raises
    ------
    ArgumentTypeError
        If `workers` is of another type.
    ArgumentValueError
        If a key is no position of a block, or a block has an empty list of workers.

    Notes
    -----
    `udfdask.compute`, `udfdask.persist`, `Result.compute` and `run_udf_iter` keep to it when they
    run on a cluster, and raise an ArgumentValueError where none of the workers is there;
    ``allow_other_workers=True`` makes it a wish. Other schedulers have no workers to choose from.
    ``dask.compute`` knows nothing of it.

    Examples
    --------
    >>> import dask.array as da
    >>> from udfdask.io import on_workers
    >>> x = da.ones((4, 8, 8), chunks=(1, 8, 8))
    >>> nodes = ["10.0.0.7", "10.0.0.8"]
    >>> x = on_workers(x, lambda block: nodes[block[0] % 2])
    >>> x.sum().compute()
    np.float64(256.0)
    """
    if workers is None:
        return array
    blocks = list(itertools.product(*map(range, array.numblocks)))
    found = _by_block(workers, blocks, array.numblocks)
    name = f"on-workers-{base.tokenize(array.name, [found[block] for block in blocks])}"
    axes = tuple(range(array.ndim))
    layer = blockwise(
        _hand_on,
        name,
        axes,
        array.name,
        axes,
        BlockwiseDepDict(found, array.numblocks),
        axes,
        numblocks={array.name: array.numblocks},
    )
    graph = HighLevelGraph.from_collections(name, layer, dependencies=[array])  # type: ignore[list-item]
    return da.Array(graph, name, array.chunks, meta=array._meta)


def _hand_on(block: Any, placement: Placement) -> Any:
    """Return the block."""
    return block


def _by_block(
    workers: Any, blocks: list[Block], numblocks: tuple[int, ...]
) -> dict[Block, Placement]:
    """Take what the user passed and all blocks; return who may load each of them."""
    if callable(workers):
        return {block: _placement(workers(block)) for block in blocks}
    if not isinstance(workers, Mapping):
        return dict.fromkeys(blocks, _placement(workers))
    by_prefix = {
        _prefix(key, numblocks): _placement(addresses) for key, addresses in workers.items()
    }
    anywhere = Placement(())
    lengths = range(len(numblocks), -1, -1)  # what is said of the block itself comes first
    return {
        block: next((by_prefix[block[:n]] for n in lengths if block[:n] in by_prefix), anywhere)
        for block in blocks
    }


def _prefix(key: Any, numblocks: tuple[int, ...]) -> Block:
    """Take a key of the user's mapping; return the first numbers of block positions."""
    prefix = key if isinstance(key, tuple) else (key,)
    if not all(isinstance(n, int) and not isinstance(n, bool) for n in prefix):
        raise ArgumentTypeError(
            f"keys of workers must be positions of blocks such as 3 or (3, 0), got {key!r}"
        )
    inside = len(prefix) <= len(numblocks) and all(
        0 <= n < count for n, count in zip(prefix, numblocks, strict=False)
    )
    if not inside:
        raise ArgumentValueError(
            f"workers names the block {key!r}, but the array has {numblocks} blocks: pass "
            "positions from 0 up, or choose chunks that fit the map"
        )
    return prefix


def _placement(addresses: Any) -> Placement:
    """Take one address, several, or None; return them as a value."""
    if addresses is None:
        return Placement(())
    given = [addresses] if isinstance(addresses, str) else addresses
    if not isinstance(given, (list, tuple, set, frozenset)) or not all(
        isinstance(address, str) for address in given
    ):
        raise ArgumentTypeError(
            "workers must be addresses such as 'tcp://10.0.0.7:40331', names of workers or hosts, "
            f"a mapping from blocks to these, or a function of a block; got {addresses!r}"
        )
    if not given:
        raise ArgumentValueError(
            "workers lists no worker for a block, which nothing could load then: pass None for "
            "blocks that any worker may load"
        )
    return Placement(tuple(sorted(set(given))))


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
    if not any(_is_placed(collection) for collection in collections):
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
    graph = _layered(tasks, collections)
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
    context: AbstractContextManager[None] = base.annotate(workers=_Lookup(dict(where)))
    return context


@dataclass(frozen=True, slots=True)
class _Lookup:
    """Tells a scheduler where a task may run."""

    where: dict[Any, list[str]]
    """Workers by key."""

    def __call__(self, key: Any) -> list[str]:
        return self.where.get(key, [])


def check_present(where: Mapping[Any, list[str]], client: Any) -> None:
    """Raise if none of the workers that may run a task is there: it would wait for ever."""
    present = client.scheduler_info(n_workers=-1)["workers"]
    known = {str(name) for address, w in present.items() for name in (address, w["id"], w["host"])}
    for key, allowed in where.items():
        if known.isdisjoint(allowed):
            raise ArgumentValueError(
                f"task {key!r} may only load its data on {allowed}, but the cluster has the "
                f"workers {sorted(present)}: start one of these workers, correct workers=, or pass "
                "allow_other_workers=True"
            )


def _is_placed(collection: Any) -> bool:
    """Whether any array in the graph of a collection has been placed."""
    layers = getattr(collection.__dask_graph__(), "layers", {})
    return any(name.startswith("on-workers-") for name in layers if isinstance(name, str))


def _layered(tasks: dict[Any, Any], collections: Sequence[Any]) -> HighLevelGraph:
    """Take optimised tasks and what they were; return them in layers of the same names."""
    grouped: dict[str, dict[Any, Any]] = {}
    depends: dict[str, set[str]] = {}
    for key, task in tasks.items():
        name = _layer_name(key)
        grouped.setdefault(name, {})[key] = task
        needed = {_layer_name(k) for k in task.dependencies if k in tasks}
        depends.setdefault(name, set()).update(needed - {name})
    frames: dict[Any, float] = {}
    for collection in collections:
        for layer in getattr(collection.__dask_graph__(), "layers", {}).values():
            if isinstance(layer, (ChunkBlockwise, ChunkTasks)):
                frames.update(layer.frames)
    layers: dict[str, Any] = {}
    for name, group in grouped.items():
        counted = {key: frames[key] for key in group if key in frames}
        layers[name] = ChunkTasks(group, counted) if counted else MaterializedLayer(group)
    return HighLevelGraph(layers, depends)


def _layer_name(key: Any) -> str:
    """Take a task's key; return the name of the layer it is in."""
    return str(key[0] if isinstance(key, tuple) else key)
