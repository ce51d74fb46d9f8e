"""Finds out whether a parameter is made from the data of the run, and from how much of them.

A result over the whole dataset that is a parameter of another run over the same data keeps every
block in memory until the last one has been read. Such a run therefore loads the blocks a second
time: its loading tasks are clones with other names. Lazy aux data share the pass, unless at least
half of the data would have to wait for their blocks.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from dask.array.core import Array as GraphArray
from dask.highlevelgraph import HighLevelGraph

from udfdask.plan.recipe import Recipe

MANY_GROUPS = 64
"""Groups of chunks that are told apart when it is found out what aux data are made from."""


def shares_data(array: GraphArray, value: Any) -> bool:
    """Return whether a lazy parameter is made from the data, or from what they are made of."""
    return bool(set(array.dask.layers) & set(getattr(value.__dask_graph__(), "layers", ())))


def needs_whole_run(array: GraphArray, values: Any, recipe: Recipe) -> bool:
    """Return whether blocks of lazy aux data are made from most blocks of the data.

    Then these would stay in memory until the last one has been read, in whatever order.
    """
    grid = recipe.grid
    if not isinstance(values, GraphArray) or grid.n_chunks < 2 or not shares_data(array, values):
        return False
    ours, theirs = _dependencies(array.dask), _dependencies(values.dask)
    n = min(grid.n_chunks, MANY_GROUPS)
    groups = [range(g * grid.n_chunks // n, (g + 1) * grid.n_chunks // n) for g in range(n)]
    sigs = list(itertools.product(*(range(len(c)) for c in recipe.sig_chunks)))
    extra = (0,) * (values.ndim - len(grid.shape))
    for order in (groups, groups[::-1]):
        first: dict[Any, int] = {}  # the group that needs a task first, as a bit
        for g, chunks in enumerate(order):
            todo = [(array.name, *grid.index(c), *s) for c in chunks for s in sigs]
            while todo:
                key = todo.pop()
                if key not in first:
                    first[key] = 1 << g
                    todo.extend(ours.get(key, ()))
        reached = {key: bit for key, bit in first.items() if key in theirs}
        read = held = 0
        for g, chunks in enumerate(order):
            for c in chunks:
                read |= _reached((values.name, *grid.index(c), *extra), theirs, reached)
            held = max(held, (read >> (g + 1)).bit_count())
        bits = read.bit_count()
        if not held or held < min(bits - 1, bits / 2):
            return False
    return True


def _dependencies(graph: HighLevelGraph) -> dict[Any, Any]:
    """Return the keys that each task of a graph needs."""
    # the graph that is asked keeps the answer: not that of the user
    return HighLevelGraph(graph.layers, graph.dependencies).get_all_dependencies()


def _reached(key: Any, needs: Mapping[Any, Any], known: dict[Any, int]) -> int:
    """Return the bits of all tasks that one is made from; `known` are those found already."""
    todo = [key]
    while todo:
        rest = [k for k in needs.get(todo[-1], ()) if k not in known]
        if todo[-1] in known or not rest:
            last = todo.pop()
            if last not in known:
                bits = 0
                for k in needs.get(last, ()):
                    bits |= known[k]
                known[last] = bits
        else:
            todo.extend(rest)
    return known[key]
