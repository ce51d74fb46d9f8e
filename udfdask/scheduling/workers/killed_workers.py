"""Name the UDFs and the chunk of a task that ended its workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from udfdask.graph.chunk_layers import ChunkBlockwise, ChunkLayerInfo, ChunkTasks
from udfdask.tracebacks import add_origin


@contextmanager
def explaining_killed_workers(layers: Callable[[], Mapping[str, Any]]) -> Iterator[None]:
    """Add a note to distributed's KilledWorker: the UDFs, the chunk, and what to do.

    `layers` returns those of the tasks that run; only an error needs them.
    """
    from distributed import KilledWorker

    try:
        yield
    except KilledWorker as error:
        add_origin(
            error,
            f"raised by {describe_task(error.task, layers())}: the workers that had it ended. "
            "Their logs say whether they reached their memory limit: then make chunks smaller with "
            "array.rechunk(...), or give each worker fewer threads. Otherwise the UDF or a library "
            "ended the process: run this chunk alone on the scheduler 'synchronous', with roi= set "
            "to its positions",
        )
        raise


def describe_task(key: Any, layers: Mapping[str, Any]) -> str:
    """Return the UDFs and the chunk of a task in words; other tasks keep dask's name."""
    name, *place = key if isinstance(key, tuple) else (key,)
    for layer_name, layer in layers.items():
        if isinstance(layer, (ChunkBlockwise, ChunkTasks)):
            words = _of_layer(layer.info, layer_name, str(name), tuple(place))
            if words:
                return words
    return f"task {key!r}"


def _of_layer(info: ChunkLayerInfo, layer: str, name: str, place: tuple[Any, ...]) -> str | None:
    """Return a task in words if it processes a chunk of a layer, or loads it; else None."""
    grid, udfs = info.recipe.grid, info.recipe.udfs
    numbers = range(len(udfs)) if info.group is None else info.group.numbers
    names = " and ".join(dict.fromkeys(udfs[k].name for k in numbers))
    block = place[: len(grid.shape)]
    # dask joins the names of fused tasks
    if name == layer or name.endswith(f"-{layer}"):
        chunk = info.chunks.get((layer, *place))
        words = f"{names} on "
    elif name == info.array_name and len(block) == len(grid.shape):
        chunk = grid.chunk_at(block)
        if chunk >= grid.n_chunks or grid.index(chunk) != block:
            return None  # another run needs this block
        words = f"loading for {names} of "
    else:
        return None
    if chunk is None:
        return None
    index = grid.index(chunk)
    slices = ", ".join(f"{a}:{a + n}" for a, n in zip(*grid.bounds_at(index), strict=True))
    return f"{words}chunk {index}, navigation [{slices}]"
