"""Law 7: the size of a task does not grow with the scan, for any chunks, UDF and ROI."""

import pickle
import threading

import cloudpickle
import dask.array as da
import numpy as np
import pytest
from dask.base import collections_to_expr

import udfdask as ud
from udf_zoo import ElementwiseWithWhole, Rows, TileTree
from udfdask.graph.run_layers import PackedRecipe
from udfdask.udfs import AutoUDF, SumSigUDF, SumUDF

SCANS = {  # chunks of 1 x ... x 2 frames along each navigation axis: 500, and 20,000
    "one axis": ((500,), (20_000,)),
    "two axes": ((20, 25), (100, 200)),
    "three axes": ((5, 10, 10), (20, 25, 40)),
}


class MergedAtOnce(SumSigUDF):
    """Merged by merge_all, in a tree."""

    def merge_all(self, ordered_results):
        return {"intensity": np.concatenate([r.intensity for r in ordered_results.values()])}


def of_random_sizes(count, rng):
    return tuple(map(int, rng.integers(1, 4, count)))


def sizes(counts, roi, ragged=False, udfs=None):
    """Bytes of the largest of some tasks of each layer, whose token is cut off its name."""
    rng = np.random.default_rng(3)
    nav = [of_random_sizes(n, rng) if ragged else (1,) * n for n in counts[:-1]]
    nav.append(of_random_sizes(counts[-1], rng) if ragged else (2,) * counts[-1])
    shape = tuple(map(sum, nav))
    x = da.ones((*shape, 2, 2), chunks=(*nav, 2, 2), dtype="uint8")
    mask = rng.random(shape) < 0.5 if roi else None
    udfs = udfs or [SumUDF(), SumSigUDF(), ElementwiseWithWhole(), MergedAtOnce()]
    results = ud.run_udf(x, udfs, roi=mask)
    found = {}
    for array in (array for result in results for array in result.values()):
        for name, layer in array.dask.layers.items():
            if name == x.name or name.startswith("recipe-"):
                continue  # the data, and what travels once
            keys = list(layer)
            some = [layer[key] for key in keys[:: 1 + len(keys) // 20]]
            found[name.rpartition("-")[0]] = max(len(cloudpickle.dumps(task)) for task in some)
    return found


SMALL_BLOCKS = pytest.mark.filterwarnings("ignore:.* blocks of .* task:udfdask.UDFWarning")


@pytest.mark.full
@SMALL_BLOCKS
@pytest.mark.parametrize(
    ("scan", "roi"),
    [("one axis", True), ("two axes", False), ("two axes", True), ("three axes", True)],
)
def test_tasks_do_not_grow_with_the_number_of_chunks(scan, roi):
    few, many = (sizes(counts, roi) for counts in SCANS[scan])
    assert few.keys() == many.keys()
    assert {name.split("-")[-1] for name in few} >= {"chunk", "merge", "finish", "nav", "sig"}
    grown = {name: (few[name], many[name]) for name in few if many[name] > 2 * few[name]}
    assert not grown


@SMALL_BLOCKS
def test_nor_with_chunks_of_different_sizes():
    few = sizes((500,), roi=False, ragged=True, udfs=[SumUDF(), SumSigUDF()])
    many = sizes((20_000,), roi=False, ragged=True, udfs=[SumUDF(), SumSigUDF()])
    assert all(many[name] <= 2 * few[name] for name in few)


class Lookup:
    """An array-like that is read block by block."""

    shape, dtype, ndim = (6, 4, 2, 2), np.dtype("float64"), 4

    def __getitem__(self, index):
        return np.ones(self.shape)[index]


ARRAYS = {
    "from_array": lambda: da.from_array(Lookup(), chunks=(2, 4, 2, 2)),
    "map_blocks": lambda: da.from_array(Lookup(), chunks=(2, 4, 2, 2)).map_blocks(np.abs) + 1,
    "in memory": lambda: da.from_array(np.ones(Lookup.shape), chunks=(2, 4, 2, 2)),
    "generated": lambda: da.ones(Lookup.shape, chunks=(2, 4, 2, 2)),
}


@pytest.mark.parametrize("array", ARRAYS)
def test_a_heavy_parameter_does_not_part_chunks_from_their_loading(array):
    """One task a chunk loads and processes it, as with a light parameter."""

    def loads(values):
        x = ARRAYS[array]()
        result = ud.run_udf(x, Total(values))
        graph = collections_to_expr([result["sums"]]).optimize().__dask_graph__()
        names = [key[0] if isinstance(key, tuple) else key for key in graph]
        ours = ("total-", "recipe-")
        assert (values.nbytes > 1000) == any(name.startswith("recipe-") for name in names)
        assert result.compute(scheduler="synchronous")["sums"].shape == x.shape[:2]
        # the array-like itself is a task, from which blocks are cut
        return sum(not n.startswith(ours) and not n.startswith("original-") for n in names)

    assert loads(np.ones(100_000)) == loads(np.ones(1))


class Total(Rows):
    """Sums of frames, with a parameter of any size."""

    def __init__(self, values):
        super().__init__(values=values)

    def process_frame(self, frame):
        self.results.sums[:] = frame.sum() + self.params.values[-1]


def test_what_a_function_holds_counts_as_a_parameter():
    """Large arrays may hide in closures, where only pickling finds them."""
    table = np.ones(100_000)
    x = da.ones((4, 2, 2), chunks=(1, 2, 2))
    result = ud.run_udf(x, AutoUDF(lambda frame: frame.sum() + table[-1]))
    layers = next(iter(result.values())).dask.layers
    assert any(name.startswith("recipe-") for name in layers)


def test_a_second_pass_over_the_data_is_fused_with_their_loading():
    x = da.ones((8, 4, 4), chunks=(2, 4, 4))
    mean = ud.run_udf(x, SumUDF())["intensity"][-1] / 8
    centered = ud.run_udf(x, Total(mean))["sums"]
    names = [str(key) for key in collections_to_expr([centered]).optimize().__dask_graph__()]
    assert not [name for name in names if name.startswith("('ones")]
    np.testing.assert_array_equal(centered, 17)


def test_a_second_pass_over_the_results_of_a_run_with_lazy_parameters():
    x = da.ones((8, 4, 4), chunks=(2, 4, 4))
    first = ud.run_udf(x, Total(da.arange(3.0, chunks=1)))["sums"].reshape(2, 4)
    mean = ud.run_udf(first, SumUDF(), sig_dims=1)["intensity"]
    total = ud.run_udf(first, Total(mean), sig_dims=1)["sums"]
    np.testing.assert_array_equal(total, 4 * 18 + 36)


class Counted:
    """A parameter that counts how often it is pickled and unpickled."""

    pickled = 0
    unpickled = 0

    def __reduce__(self):
        Counted.pickled += 1
        return Counted.again, ()

    @classmethod
    def again(cls):
        cls.unpickled += 1
        return cls()


class Sum(TileTree):
    pass


def chunk_tasks(thing):
    x = da.ones((20, 4, 4), chunks=(1, 4, 4))
    result = ud.run_udf(x, Sum(thing=thing))
    layers = result["count"].dask.layers
    return [task for name in layers if "sum-" in name for task in layers[name].values()]


def test_once():
    tasks = chunk_tasks(Counted())
    Counted.pickled = Counted.unpickled = 0
    sent = [cloudpickle.dumps(task) for task in tasks]
    assert len(sent) > 20
    assert Counted.pickled == 0  # the bytes were made with the graph
    there = [pickle.loads(each) for each in sent]
    passed_on = [pickle.loads(cloudpickle.dumps(task)) for task in there]
    assert Counted.unpickled == 0  # a scheduler does not unpickle the recipe
    packed = [a for task in passed_on for a in task.args if isinstance(a, PackedRecipe)]
    assert len(packed) > 20
    assert len({id(each.now) for each in packed}) == 1
    assert Counted.unpickled == 1


def test_what_cannot_be_pickled_runs_on_threads():
    x = da.ones((4, 2, 2), chunks=(1, 2, 2))
    result = ud.run_udf(x, Sum(thing=threading.Lock()))
    assert result.compute(scheduler="threads")["count"] == 4
    with pytest.raises(TypeError, match="lock"):
        cloudpickle.dumps(next(iter(result["count"].dask.values())))


def test_a_class_that_gets_an_earlier_attribute_back(client):
    """Each run has the attributes of its time: a worker keeps the recipe, but not the class."""

    class Times(Rows):
        factor = 1

        def process_frame(self, frame):
            self.results.sums[:] = self.factor * frame.sum()

    x = da.ones((6, 2, 2), chunks=(1, 2, 2))
    for factor in (1, 2, 1, 3, 2):
        Times.factor = factor
        result = ud.run_udf(x, Times()).compute(scheduler=client)
        assert result["sums"].tolist() == [4 * factor] * 6
