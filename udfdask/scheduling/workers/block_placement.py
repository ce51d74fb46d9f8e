"""Which workers of a cluster may load which blocks of an array.

The permission is an argument of a task that hands its block on, because dask loses the annotations
of layers when it fuses tasks. Whatever task the argument is fused into, `find_restrictions` finds
it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dask.array as da
from dask import base
from dask.highlevelgraph import HighLevelGraph

from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.graph.dask_internals import BlockLayer, PerBlock, graph_array, make_array

Block = tuple[int, ...]
Addresses = str | Sequence[str]
Workers = Addresses | Mapping[int | Block, Addresses] | Callable[[Block], Addresses | None] | None
"""What a user passes as `workers`."""

PREFIX = "on-workers-"
"""What the names of layers with placements begin with."""


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
    ``allow_other_workers=True`` makes it a wish, and ``workers=``, which dask applies to all tasks,
    takes its place. Other schedulers have no workers to choose from; ``dask.compute`` knows nothing
    of it.

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
    array = graph_array(array)
    blocks = list(itertools.product(*map(range, array.numblocks)))
    found = _by_block(workers, blocks, array.numblocks)
    name = f"{PREFIX}{base.tokenize(array.name, [found[block] for block in blocks])}"
    layer = BlockLayer(name, array, _hand_on, BlockLayer.BLOCK, PerBlock(found))
    graph = HighLevelGraph.from_collections(name, layer, dependencies=[array])  # type: ignore[list-item]
    placed: da.Array = make_array(graph, name, array.chunks, array._meta)
    return placed


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
