"""Find out whether a parameter is computed from the data of the run, and from how much of them.

If a result over the whole dataset is a parameter of another run over the same data, every block
would stay in memory until the last one has been read. Such a run therefore loads the blocks in a
second pass: its loading tasks are clones with other names. Lazy aux data share the pass, unless at
least half of the blocks would have to wait in memory.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Mapping
from typing import Any

from dask.array.core import Array as GraphArray
from dask.highlevelgraph import HighLevelGraph

from udfdask.plan.recipe import Recipe

Key = Any
Dependencies = Mapping[Key, Any]
"""The keys that each task needs."""

MANY_GROUPS = 64
"""Largest number of groups of chunks whose dependencies are followed separately."""


def shares_data(array: GraphArray, value: Any) -> bool:
    """Return whether a lazy parameter and the data are computed from the same tasks."""
    return bool(set(array.dask.layers) & set(getattr(value.__dask_graph__(), "layers", ())))


def needs_most_blocks(array: GraphArray, values: Any, recipe: Recipe) -> bool:
    """Return whether blocks of lazy aux data are computed from most blocks of the data.

    These blocks would then wait in memory, in whichever order chunks are processed.
    """
    grid = recipe.grid
    if not isinstance(values, GraphArray) or grid.n_chunks < 2 or not shares_data(array, values):
        return False
    needs, aux_needs = _dependencies(array.dask), _dependencies(values.dask)
    sigs = list(itertools.product(*(range(len(c)) for c in recipe.sig_chunks)))
    extra = (0,) * (values.ndim - len(grid.shape))
    n = min(grid.n_chunks, MANY_GROUPS)
    groups = []
    for g in range(n):
        places = [
            grid.index(c) for c in range(g * grid.n_chunks // n, (g + 1) * grid.n_chunks // n)
        ]
        blocks = [(array.name, *place, *sig) for place in places for sig in sigs]
        groups.append((blocks, [(values.name, *place, *extra) for place in places]))
    return all(_most_wait(order, needs, aux_needs) for order in (groups, groups[::-1]))


def _most_wait(
    groups: list[tuple[list[Key], list[Key]]], needs: Dependencies, aux_needs: Dependencies
) -> bool:
    """Return whether at least half of the data wait for a chunk, if chunks run in this order.

    Each group holds the keys of blocks of the data, and of the aux data of the same chunks.
    """
    first: dict[Key, int] = {}  # for each task, the bit of the group that needs it first
    for g, (blocks, _) in enumerate(groups):
        todo = list(blocks)
        while todo:
            key = todo.pop()
            if key not in first:
                first[key] = 1 << g
                todo.extend(needs.get(key, ()))
    known = {key: bit for key, bit in first.items() if key in aux_needs}
    loaded = waiting = 0  # bits: loaded for aux data so far; number of those not yet processed
    for g, (_, aux_blocks) in enumerate(groups):
        for key in aux_blocks:
            loaded |= _groups_below(key, aux_needs, known)
        waiting = max(waiting, (loaded >> (g + 1)).bit_count())
    total = loaded.bit_count()
    return waiting > 0 and waiting >= min(total - 1, total / 2)


def _dependencies(graph: HighLevelGraph) -> Dependencies:
    """Return the keys that each task of a graph needs."""
    # the graph caches the answer; a new one, so that the user's graph does not keep it in memory
    return HighLevelGraph(graph.layers, graph.dependencies).get_all_dependencies()


def _groups_below(key: Key, needs: Dependencies, known: dict[Key, int]) -> int:
    """Return the bits of all groups that a task depends on; `known` has those of other tasks."""
    todo = [key]
    while todo:
        last = todo[-1]
        rest = [] if last in known else [k for k in needs.get(last, ()) if k not in known]
        if rest:
            todo.extend(rest)
            continue
        todo.pop()
        if last not in known:
            known[last] = functools.reduce(operator.or_, (known[k] for k in needs.get(last, ())), 0)
    return known[key]
