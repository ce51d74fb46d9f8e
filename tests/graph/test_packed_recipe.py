"""A small recipe is pickled once for all tasks, and unpickled once per process."""

import pickle
import threading

import cloudpickle
import dask.array as da
import pytest

import udfdask as ud
from udfdask.graph.run_layers import PackedRecipe


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


class Sum(ud.UDF):
    def __init__(self, thing):
        super().__init__(thing=thing)

    def get_result_buffers(self):
        return {"sum": self.buffer(kind="single", dtype="float64")}

    def process_partition(self, partition):
        self.results.sum += partition.sum()

    def merge(self, dest, src):
        dest.sum += src.sum


def chunk_tasks(thing):
    x = da.ones((20, 4, 4), chunks=(1, 4, 4))
    result = ud.run_udf(x, Sum(thing))
    layers = result["sum"].dask.layers
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
    result = ud.run_udf(x, Sum(threading.Lock()))
    assert result.compute(scheduler="threads")["sum"] == 16
    with pytest.raises(TypeError, match="lock"):
        cloudpickle.dumps(next(iter(result["sum"].dask.values())))


def test_a_class_that_gets_an_earlier_attribute_back(client):
    """Each run has the attributes of its time: a worker keeps the recipe, but not the class."""

    class Times(ud.UDF):
        factor = 1

        def get_result_buffers(self):
            return {"sum": self.buffer(kind="nav", dtype="float64")}

        def process_tile(self, tile):
            self.results.sum += self.factor * tile.sum(axis=(1, 2))

    x = da.ones((6, 2, 2), chunks=(1, 2, 2))
    for factor in (1, 2, 1, 3, 2):
        Times.factor = factor
        result = ud.run_udf(x, Times()).compute(scheduler=client)
        assert result["sum"].tolist() == [4 * factor] * 6
