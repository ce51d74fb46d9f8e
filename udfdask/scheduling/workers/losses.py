"""Explain what a cluster loses: workers that end, data, and connections."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any

from dask import base

from udfdask.errors import ClusterError
from udfdask.graph.chunk_layers import ChunkBlockwise, ChunkLayerInfo, ChunkTasks
from udfdask.plan.recipe import Recipe

_LONGEST_NAME = 115
"""dask cuts the joined name of a fused task after this many letters, and adds a hash."""

_STAGES = {
    "merge": "merge of {udf}",
    "finish": "{udf}.get_results",
    "rows": "results of {udf}",
    "part": "partial results of {udf}",
}
"""Tasks of a single UDF after the chunks, by the stage in the names of their layers."""


class TaskNames:
    """Finds the UDFs and the chunk of a task of dask collections, or of layers by name.

    Nothing is listed before the first task is described: only errors need it.
    """

    def __init__(self, collections: Any = (), layers: Mapping[str, Any] | None = None) -> None:
        self._collections = collections
        self._layers = layers
        self._infos: dict[str, ChunkLayerInfo] | None = None

    def use(self, layers: Mapping[str, Any]) -> None:
        """Use other layers from now on."""
        self._layers, self._infos = layers, None

    def describe(self, key: Any) -> str:
        """Return the UDFs and the chunk of a task in words; other tasks keep dask's name."""
        if self._infos is None:
            self._infos = self._list()
        name, *place = key if isinstance(key, tuple) else (key,)
        for layer_name, info in self._infos.items():
            found = _of_layer(info, layer_name, str(name), tuple(place))
            if found:
                return found
        return f"task {key!r}"

    def _list(self) -> dict[str, ChunkLayerInfo]:
        """Return what the chunk tasks of each layer process."""
        layers = dict(self._layers or {})
        for collection in base.unpack_collections(self._collections)[0]:
            layers |= getattr(collection.__dask_graph__(), "layers", {})
        kinds = (ChunkBlockwise, ChunkTasks)
        return {name: layer.info for name, layer in layers.items() if isinstance(layer, kinds)}


def _of_layer(
    info: ChunkLayerInfo, layer_name: str, name: str, place: tuple[Any, ...]
) -> str | None:
    """Return a task in words if it belongs to the run of a layer; else None."""
    recipe = info.recipe
    numbers = range(len(recipe.udfs)) if info.group is None else info.group.numbers
    udfs = " and ".join(dict.fromkeys(recipe.udfs[k].name for k in numbers))
    if _ends_with(name, layer_name):
        chunk = info.chunks.get((layer_name, *place))
        if chunk is None:
            return None
        return f"{udfs} on {_chunk_in_words(recipe, recipe.grid.index(chunk))}"
    n_nav = len(recipe.grid.shape)
    if _ends_with(name, info.array_name) and len(place) >= n_nav:
        chunk = recipe.grid.chunk_at(place[:n_nav])
        # else another run needs this block
        if chunk < recipe.grid.n_chunks and recipe.grid.index(chunk) == place[:n_nav]:
            return f"loading of {_chunk_in_words(recipe, recipe.grid.index(chunk))} for {udfs}"
    stage = re.search(rf"-([a-z]+)-{re.escape(recipe.token)}(?:_(\d+))?$", name)
    if stage is None:
        return None
    if stage[1] == "load" and len(place) == n_nav:
        return f"{udfs} on the middle of {_chunk_in_words(recipe, place)}"
    if stage[1] == "join":
        return f"{udfs} on {_chunk_in_words(recipe, recipe.grid.index(place[0]))}"
    words = _STAGES.get(stage[1])
    return words.format(udf=recipe.udfs[int(stage[2])].name) if words and stage[2] else None


def _chunk_in_words(recipe: Recipe, index: tuple[int, ...]) -> str:
    """Return the index of a chunk, and its slices of the navigation axes."""
    start, shape = recipe.grid.bounds_at(index)
    slices = ", ".join(f"{a}:{a + n}" for a, n in zip(start, shape, strict=True))
    return f"chunk {index}, navigation [{slices}]"


def _ends_with(name: str, layer: str) -> bool:
    """Return whether a task belongs to a layer, or has been fused with what it reads.

    dask joins the names of fused tasks, the last one at the end.
    """
    if name == layer or name.endswith(f"-{layer}"):
        return True
    if len(name) < _LONGEST_NAME:
        return False
    joined = name[:_LONGEST_NAME]
    # a name that ends before its token could belong to any run of the same UDFs
    least = layer.rfind("-") + 4
    return any(joined.endswith(f"-{layer[:n]}") for n in range(least, len(layer)))


_GONE = (
    "the cluster has lost data that the run needs: their worker has ended, and they cannot be "
    "computed again. Scatter or persist the data again, then repeat the run"
)
_CONNECTION = (
    "the connection to the scheduler was lost: its process has ended, or the network has "
    "failed. Restart the cluster, and repeat the run with a new client"
)
_CLOSED = "the client has been closed. Repeat the run with a new client"
_MESSAGES = {
    "scheduler-connection-lost": _CONNECTION,
    "scheduler-restart": (
        "the scheduler was restarted, and has lost all tasks and results. Repeat the run"
    ),
    "lost dependencies": _GONE,
    "already forgotten": _GONE,
}
"""Messages by dask's reasons; for all other reasons, the user cancelled the future."""


@contextmanager
def explaining_killed_workers(client: Any, names: TaskNames) -> Iterator[None]:
    """Add a note to a KilledWorker: the UDFs, the chunk, and what to do."""
    try:
        yield
    except Exception as error:
        if client is not None:
            from distributed import KilledWorker

            if isinstance(error, KilledWorker):
                error.add_note(
                    f"raised by {names.describe(error.task)}: the workers that had it ended. Their "
                    "logs say whether they reached their memory limit: then make chunks smaller "
                    "with array.rechunk(...), or give each worker fewer threads. Otherwise the UDF "
                    "or a library ended the process: run this chunk alone on the scheduler "
                    "'synchronous', with roi= set to its positions"
                )
        raise


def explain_loss(error: BaseException, client: Any = None, state: str = "") -> ClusterError | None:
    """Return an error that explains a cancelled future; None if the user cancelled it.

    `state` is a text about the progress of the run.
    """
    message = _MESSAGES.get(getattr(error, "reason", ""))
    if message is None and _has_given_up(client):
        message = _CONNECTION
    return None if message is None else ClusterError(f"{message}{state}")


@contextmanager
def asking_scheduler(client: Any) -> Iterator[None]:
    """Raise a ClusterError if the scheduler does not answer a request. Run no tasks inside."""
    check_open(client)
    try:
        yield
    except OSError as error:
        raise ClusterError(_CONNECTION) from error


def check_open(client: Any) -> None:
    """Raise a ClusterError if a client has been closed; otherwise it would fail in many ways."""
    if client.status == "closed":
        raise ClusterError(_CONNECTION if _has_given_up(client) else _CLOSED)


@contextmanager
def explaining_losses(client: Any) -> Iterator[None]:
    """Raise a ClusterError if futures are cancelled because of a loss or a closed client."""
    try:
        yield
    except Exception as error:  # a client without a connection raises many types of errors
        loss = explain_loss(error, client)
        is_closed = getattr(client, "status", "") in ("closing", "closed")
        # distributed's sync fails with an UnboundLocalError if its event loop has ended
        if loss is None and is_closed and isinstance(error, (CancelledError, UnboundLocalError)):
            loss = ClusterError(_CLOSED)
        if loss is None:
            raise
        raise loss from error


def _has_given_up(client: Any) -> bool:
    """Return whether a client has closed itself because it could not reconnect to its scheduler.

    Such a client cancels futures without a reason. It has no connection object; a client that the
    user closes still has one.
    """
    return getattr(client, "status", "") in ("closing", "closed") and client.scheduler_comm is None
