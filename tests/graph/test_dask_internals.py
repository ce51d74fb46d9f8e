"""What `udfdask.graph.dask_internals` offers, tested without the rest: does this dask still do it?

If a new dask fails here, these modules are what has to change.
"""

import dask
import dask.array as da
import numpy as np
import pytest
from dask.graph_manipulation import clone
from dask.highlevelgraph import HighLevelGraph

from udfdask.graph.dask_internals.layers import (
    BlockLayer,
    LazyLayer,
    TaskLayer,
    loaded_again,
    optimized,
)
from udfdask.graph.dask_internals.tasks import OutputTask, Task, TaskRef, alias_target

CALLS: list[object] = []


@pytest.fixture(autouse=True)
def no_calls_yet():
    CALLS.clear()


class Source:
    """Reading it is counted."""

    shape, dtype, ndim = (8,), np.dtype(float), 1

    def __getitem__(self, index):
        CALLS.append("load")
        return np.arange(8.0)[index]


def work(block, *rest):
    CALLS.append("work")
    return block, rest


def pick(payload, number):
    return payload[number]


def loaded():
    """Four blocks whose loading is counted."""
    return da.from_array(Source(), chunks=2, name="load", asarray=False, meta=np.empty(0))


def array_of(array, name, tasks_or_layer, depends):
    graph = HighLevelGraph(
        {**array.dask.layers, name: tasks_or_layer}, {**array.dask.dependencies, name: depends}
    )
    return da.Array(graph, name, array.chunks, meta=np.empty(0))


def worked(array, *arguments):
    """Chunk tasks whose results are payloads, and the name of their layer."""
    layer = BlockLayer("work", array, work, BlockLayer.BLOCK, *arguments)
    return array_of(array, "work", layer, {array.name})


def outputs(array, name, number, kind=OutputTask):
    """Results picked out of the payloads."""
    tasks = {(name, k): kind((name, k), pick, TaskRef((array.name, k)), number) for k in range(4)}
    return array_of(array, name, TaskLayer(tasks), {array.name})


def ran(graph):
    """The tasks that run: no aliases, no data."""
    return {
        key for key, task in graph.items() if isinstance(task, Task) and alias_target(task) is None
    }


# A layer whose tasks are listed when they are needed.


def picks(name, source, n):
    CALLS.append("list")
    return {(name, k): OutputTask((name, k), pick, TaskRef((source, k)), 0) for k in range(n)}


@pytest.mark.parametrize("collection", ["whole", "part", "clone"])
def test_tasks_are_listed_once_and_culled(collection):
    array = worked(loaded())
    with dask.annotate(priority=3):
        layer = LazyLayer(4, picks, "picked", array.name, 4)
    picked = array_of(array, "picked", layer, {array.name})
    assert CALLS == []
    assert len(picked.dask.layers["picked"]) == 4
    if collection == "part":
        culled = picked.dask.cull([("picked", 1)])
        (left,) = (each for name, each in culled.layers.items() if name.startswith("picked"))
        assert set(left) == {("picked", 1)}
        assert left.annotations == {"priority": 3}
        picked, wanted = picked[2:4], [2, 3]
    else:
        picked = clone(picked) if collection == "clone" else picked
        wanted = range(8)
    CALLS.clear()
    np.testing.assert_array_equal(picked.compute(scheduler="sync"), wanted)
    assert CALLS.count("list") <= 1
    assert CALLS.count("load") == CALLS.count("work") == len(wanted) // 2


# A task that is never fused with what it reads.


@pytest.mark.parametrize("turned", [False, True])
def test_output_tasks_keep_one_pass_through_optimize(turned):
    array = loaded()
    payloads = worked(array)
    pair = outputs(payloads, "a", 0), outputs(payloads, "b", 0)
    dask.compute(*dask.optimize(*(pair[::-1] if turned else pair)), scheduler="sync")
    assert CALLS.count("load") == CALLS.count("work") == 4


# A layer with one task per block, which dask fuses with loading.


def test_a_block_layer_is_fused_with_loading():
    result = outputs(worked(loaded(), BlockLayer.INDEX), "a", 1)
    keys = [("a", k) for k in range(4)]
    tasks = optimized(result.dask, keys)
    assert ran(tasks) == {*keys, *(("work", k) for k in range(4))}
    assert dask.get(tasks, keys) == tuple(((k,),) for k in range(4))
    assert CALLS == ["load", "work"] * 4


def placed(block, index, value):
    return index, value


def test_an_argument_with_a_value_for_each_block():
    array, values = loaded(), {(k,): 10 * k for k in range(4)}
    arguments = BlockLayer.BLOCK, BlockLayer.INDEX, values
    changed = array_of(array, "work", BlockLayer("work", array, placed, *arguments), {array.name})
    keys = [("work", k) for k in range(4)]
    tasks = optimized(changed.dask, keys)
    assert ran(tasks) == set(keys)  # still fused with loading
    assert dask.get(tasks, keys) == tuple(((k,), values[k,]) for k in range(4))
    # culling keeps the values at their places
    assert dask.get(optimized(changed.dask, keys[2:3]), keys[2]) == ((2,), values[2,])


@pytest.mark.parametrize("made", [lambda x: x, lambda x: x[1:], lambda x: x.rechunk(3)[::2]])
def test_loading_again(made):
    array = made(loaded())
    twin = loaded_again(array, "seed")
    assert twin.chunks == array.chunks
    assert not set(twin.dask) & set(array.dask)
    np.testing.assert_array_equal(*dask.compute(array, twin, scheduler="sync"))
    assert loaded_again(array, "seed").name == twin.name
    assert loaded_again(array, "other").name != twin.name


@pytest.mark.full
def test_loading_again_what_a_cluster_holds(client):
    values = np.arange(24.0).reshape(4, 6)
    kept = client.persist(da.from_array(values, chunks=2))
    for array in (kept, kept + 0, kept[1:]):
        twin = loaded_again(array, "seed")
        assert not set(twin.dask) & set(array.dask)
        both = client.compute([array, twin, (array + twin).sum()], sync=True)
        np.testing.assert_array_equal(both[0], both[1])
        assert both[2] == 2 * both[0].sum()
