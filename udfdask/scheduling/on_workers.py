"""Choose the workers of a cluster that can load each block of an array.

They are an argument of a task that returns its block, where `find_restrictions` finds them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import dask.array as da
from dask import base
from dask.highlevelgraph import HighLevelGraph

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.graph.chunk_layers import PLACED_LAYER
from udfdask.graph.dask_internals.expressions import as_dask, in_kind_of
from udfdask.graph.dask_internals.layers import BlockLayer

Block = tuple[int, ...]
Addresses = str | Sequence[str]
Workers = Addresses | Callable[[Block], Addresses | None] | None
"""Possible values of `workers`."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The workers that can load a block."""

    workers: tuple[str, ...]
    """Addresses, names or hosts; any worker if it is empty."""


def on_workers(array: da.Array, workers: Workers) -> da.Array:
    """Restrict the loading of an array's blocks to some workers of a cluster.

    Use it for data on the disks of particular nodes. A task that loads a block, with all tasks that
    are fused into it, runs on one of its workers; later tasks run on any worker.

    Parameters
    ----------
    array : dask.array.Array
        Any array; all tasks that make a block count as its loading.
    workers : str, sequence of str or callable
        Workers by address (``"tcp://10.0.0.7:40331"``), name or host: one or several for all
        blocks; or a function of the position of a block that returns one, several, or None for any
        worker.

    Returns
    -------
    dask.array.Array
        The same data in the same chunks, with one additional task for each block, which dask fuses
        with its loading.

    Raises
    ------
    ArgumentTypeError
        If `workers` has another type.
    ArgumentValueError
        If a block has an empty list of workers.

    Notes
    -----
    `udfdask.compute`, `udfdask.persist`, `Result.compute` and `run_udf_iter` follow this
    restriction on a cluster, and raise if none of the workers exists. With
    ``allow_other_workers=True``, it is only a preference. Their option ``workers=`` replaces it.
    Plain ``dask.compute`` and the schedulers of one machine ignore it.

    Examples
    --------
    >>> import dask.array as da
    >>> from udfdask import on_workers
    >>> x = da.ones((4, 8, 8), chunks=(1, 8, 8))
    >>> nodes = ["10.0.0.7", "10.0.0.8"]
    >>> x = on_workers(x, lambda block: nodes[block[0] % 2])
    >>> x.sum().compute()
    np.float64(256.0)
    """
    if workers is None:
        return array
    given, array = array, as_dask(array)
    blocks = itertools.product(*map(range, array.numblocks))
    if callable(workers):
        placements = {block: _placement(workers(block)) for block in blocks}
    else:
        placements = dict.fromkeys(blocks, _placement(workers))
    name = f"{PLACED_LAYER}{base.tokenize(array.name, list(placements.values()))}"
    layer = BlockLayer(name, array, _return_block, BlockLayer.BLOCK, placements)
    graph = HighLevelGraph.from_collections(name, layer, dependencies=[array])  # type: ignore[list-item]
    placed: da.Array = in_kind_of(given, da.Array(graph, name, array.chunks, meta=array._meta))
    return placed


def _return_block(block: Any, placement: Placement) -> Any:
    """Return the block unchanged; the placement is found in the arguments of the task."""
    return block


def _placement(addresses: Any) -> Placement:
    """Return the placement for one address, several addresses, or None."""
    if addresses is None:
        return Placement(())
    given = [addresses] if isinstance(addresses, str) else addresses
    if not isinstance(given, (list, tuple, set, frozenset)) or not all(
        isinstance(address, str) for address in given
    ):
        raise ArgumentTypeError(
            "workers must be addresses such as 'tcp://10.0.0.7:40331', names of workers or hosts, "
            f"or a function of a block; got {addresses!r}"
        )
    if not given:
        raise ArgumentValueError("workers has an empty list for a block: pass None for any worker")
    return Placement(tuple(sorted(set(given))))
