"""A run computes the parameters that it was made with, whatever happens to them later."""

import dataclasses
import functools
import json
from types import MappingProxyType
from typing import NamedTuple

import dask
import dask.array as da
import numpy as np
import pytest
import scipy.sparse

import udfdask as ud
from udf_zoo import Rows
from udfdask.plan.parameters import parameter_text
from udfdask.plan.plan import make_plan

X = da.from_array(np.random.default_rng(5).random((4, 6, 3, 2)), chunks=(2, 3, 3, 2))


class Pair(NamedTuple):
    first: object
    second: object


@dataclasses.dataclass(frozen=True)
class Model:
    weights: object


class Scale:
    """A model whose method is run on frames."""

    def __init__(self):
        self.factor = 1
        self.weights = np.ones((3, 2))

    def run(self, frame):
        return (frame * self.weights).sum() * self.factor


def total(value):
    """Sum of all numbers in nested containers."""
    if isinstance(value, (dict, MappingProxyType)):
        value = list(value.values())
    if isinstance(value, functools.partial):
        return value()
    if isinstance(value, Model):
        return total(value.weights)
    if isinstance(value, memoryview):
        value = np.asarray(value)
    if isinstance(value, (list, tuple)):
        return sum(total(member) for member in value)
    return value.sum()


class Scaled(Rows):
    """Frame sums times the sum of a parameter."""

    def __init__(self, weights):
        super().__init__(weights=weights)

    def process_frame(self, frame):
        self.results.sums[:] = frame.sum() * total(self.params.weights)


def array_in(around):
    """A parameter that holds an array, and a function that changes it in place."""

    def make():
        array = np.arange(6.0)
        return around(array), functools.partial(array.fill, 100)

    return make


def read_only_view():
    array = np.arange(6.0)
    view = array[1:]
    view.flags.writeable = False
    return view, functools.partial(array.fill, 9)


def sparse_matrix():
    matrix = scipy.sparse.csr_matrix(np.eye(3))
    return matrix, functools.partial(matrix.data.fill, 9)


CASES = {
    "array": array_in(lambda a: a),
    "list": array_in(lambda a: [a, a[:2]]),
    "namedtuple": array_in(lambda a: Pair(a, [a])),
    "dict": array_in(lambda a: {"x": (a, a)}),
    "transposed": array_in(lambda a: a.reshape(2, 3).T),
    "repeated": array_in(lambda a: np.broadcast_to(a[:, np.newaxis], (6, 10_000))),
    "over a buffer": array_in(lambda a: np.frombuffer(memoryview(a))),
    "read-only dict": array_in(lambda a: MappingProxyType({"x": [a]})),
    "memoryview": array_in(memoryview),
    "read-only view": read_only_view,
    "sparse matrix": sparse_matrix,
    "dataclass": array_in(Model),
    "partial": array_in(lambda a: functools.partial(np.sum, a)),
}


def last(snapshots):
    *_, snapshot = snapshots
    return snapshot.buffers[0]["sums"]


@pytest.mark.parametrize("case", CASES)
def test_a_later_change_does_not_reach_the_run(case):
    weights, change = CASES[case]()
    udf = Scaled(weights)
    expected = ud.run_udf(X, udf)["sums"].compute(scheduler="sync")
    waiting = ud.run_udf(X, udf)["sums"]
    progressive = ud.run_udf_iter(X, udf, scheduler="threads")
    change()
    np.testing.assert_array_equal(waiting.compute(scheduler="threads"), expected)
    np.testing.assert_array_equal(last(progressive), expected)
    again = ud.run_udf(X, udf)["sums"]
    assert again.name != waiting.name
    assert not np.array_equal(again.compute(scheduler="threads"), expected)


@pytest.mark.parametrize("kind", ["nav", "sig", "single"])
def test_aux_data(kind):
    values = np.full({"nav": (4, 6), "sig": (3, 2), "single": (1,)}[kind], 2.0)
    udf = Scaled(ud.UDF.aux_data(values, kind, dtype="f8"))
    expected = ud.run_udf(X, udf)["sums"].compute(scheduler="sync")
    waiting, progressive = ud.run_udf(X, udf)["sums"], ud.run_udf_iter(X, udf, scheduler="sync")
    values[...] = 7
    np.testing.assert_array_equal(waiting.compute(scheduler="sync"), expected)
    np.testing.assert_array_equal(last(progressive), expected)


def test_a_method_of_a_model_that_is_changed_between_runs():
    model, sums = Scale(), []
    for factor in (1, 2, 3):
        model.factor = factor
        sums.append(ud.map_frames(X, model.run).sum())
    first, second, third = dask.compute(*sums, scheduler="sync")
    np.testing.assert_allclose([second, third], [2 * first, 3 * first])


def kept(*weights):
    return [p["weights"] for p in make_plan(X, [Scaled(w) for w in weights]).parameters]


def test_no_copy_without_need():
    constant = np.ones(3)
    constant.flags.writeable = False
    one, several = kept(constant, (constant, 3, "x"))
    assert one is constant
    assert several[0] is constant
    repeated = kept(np.broadcast_to(np.ones(1), (1000, 1000)))[0]
    assert repeated.shape == (1000, 1000)
    assert repeated.strides == (0, 0)


def test_an_array_that_two_udfs_have_stays_one():
    weights = np.ones(3)
    one, several, model = kept(weights, [weights], Model(weights))
    assert one is several[0] is model.weights
    assert one is not weights


class Closed:
    """An object whose attributes and texts raise."""

    __len__ = __fspath__ = property(lambda self: 1 / 0)
    shape = dtype = data = property(lambda self: 1 / 0)

    def __repr__(self):
        raise OSError("closed")


@pytest.mark.parametrize("wrap", [lambda value: value, lambda value: [value], lambda v: {"k": v}])
def test_objects_that_raise_when_asked_are_named_by_their_type(wrap):
    udf = Rows(value=wrap(Closed()))
    assert json.loads(parameter_text(udf)) == {"value": wrap("Closed")}
    ud.run_udf(X, udf)
