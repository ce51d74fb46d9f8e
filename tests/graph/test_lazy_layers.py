"""Tasks are listed when they are needed: a cluster's client never does."""

import tracemalloc

import cloudpickle
import dask.array as da
import numpy as np
import pytest
from dask.base import collections_to_expr

import udf_zoo
import udfdask as ud
from udfdask.graph.dask_internals.layers import LazyLayer
from udfdask.udfs import ApplyMasksUDF, CoMUDF, SumSigUDF, SumUDF

RUNS = {
    "frames": {},
    "roi": {"roi": np.arange(30).reshape(5, 6) % 7 < 3},
    "empty roi": {"roi": np.zeros((5, 6), bool)},
    "small chunks joined": {"merge_small": "1 KiB"},
}
CHUNKS = {"frames": (2, 2, 4, 6), "signal chunks": (2, 3, 2, 3)}


def lazy_layers(results):
    found = {}
    for result in results:
        layers = result.__dask_graph__().layers
        found |= {name: each for name, each in layers.items() if isinstance(each, LazyLayer)}
    return found


def built_ins():
    masks = ApplyMasksUDF(mask_factories=[lambda: np.ones((4, 6), "float32")])
    return [SumUDF(), CoMUDF(), masks, SumSigUDF()]


@pytest.mark.parametrize("chunks", CHUNKS)
@pytest.mark.parametrize("options", RUNS)
def test_a_layer_has_the_tasks_that_it_announces(options, chunks):
    """Its length, keys that others read, and layers that it depends on."""
    x = da.ones((5, 6, 4, 6), chunks=CHUNKS[chunks], dtype="uint16")
    for udfs in ([cls() for cls in udf_zoo.ZOO], built_ins()):
        results = ud.run_udf(x, udfs, **RUNS[options])
        layers = lazy_layers(results)
        assert len(layers) > 1
        for name, layer in layers.items():
            assert not layer.is_materialized()
            n = len(layer)
            tasks = dict(layer)
            assert layer.is_materialized()
            assert len(tasks) == n
            assert layer.get_output_keys() == tasks.keys()
            assert all(key == task.key and key[0] == name for key, task in tasks.items())
        for result in results:
            graph = result.__dask_graph__()
            keys = set(graph.to_dict())
            assert keys.issuperset(result.__dask_keys__())
            for name in lazy_layers([result]):
                needed = set().union(*(task.dependencies for task in layers[name].values()))
                assert needed <= keys
                names = {key[0] for key in needed} - {name}
                assert names == set(graph.dependencies[name])


def test_the_client_needs_little_memory():
    """Less than dask's own sum, while the graph is built, held and sent."""

    def peak_of(build, n):
        x = da.ones((n, 2, 2), chunks=(1, 2, 2), dtype="uint16")
        assert len(x.shape) == 3  # dask keeps the bounds of chunks
        tracemalloc.start()
        try:
            built = build(x)
            sent = cloudpickle.dumps(collections_to_expr(built))
            return tracemalloc.get_traced_memory()[1], len(sent)
        finally:
            tracemalloc.stop()

    def of_one_chunk(build):
        small, large = peak_of(build, 1000), peak_of(build, 9000)
        return [(b - a) / 8000 for a, b in zip(small, large, strict=True)]

    dask_memory, dask_sent = of_one_chunk(lambda x: [x.sum(axis=0)])

    def with_centers(n):
        return CoMUDF(centers=np.ones((n, 2)))

    for make in (lambda _: SumUDF(), lambda _: CoMUDF(), lambda _: SumSigUDF(), with_centers):
        memory, sent = of_one_chunk(lambda x, make=make: [ud.run_udf(x, make(len(x)))])
        assert memory < 0.5 * dask_memory
        values = 16 * (make is with_centers)
        assert sent - values < 0.25 * dask_sent


def test_the_client_of_a_cluster_never_lists_the_tasks(client):
    x = da.ones((40, 4, 6), chunks=(1, 4, 6), dtype="uint16")
    centered = CoMUDF(centers=np.ones((40, 2)))
    results = ud.run_udf(x, [SumUDF(), CoMUDF(), SumSigUDF(), udf_zoo.Elementwise(), centered])
    total, com, sums, *_ = ud.compute(*results, scheduler=client, progress=lambda *_: None)
    np.testing.assert_array_equal(total["intensity"], np.full((4, 6), 40))
    np.testing.assert_array_equal(sums["intensity"], np.full(40, 24))
    assert com["raw_com"].shape == (40, 2)
    layers = lazy_layers(results)
    assert len(layers) >= 3
    assert not any(layer.is_materialized() for layer in layers.values())
