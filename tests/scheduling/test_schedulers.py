"""Law 14: every scheduler and every door gives the same bits."""

import pickle

import cloudpickle
import dask
import dask.array as da
import numpy as np
import pytest

import udf_zoo
import udfdask as ud
from udfdask.udfs import SumSigUDF, SumUDF

distributed = pytest.importorskip("distributed")

NAV, SIG = (5, 7), (6, 9)


@pytest.fixture(scope="module")
def values() -> np.ndarray:
    """Awkward float32: tiny and huge, of both signs, denormal, negative zero."""
    random = np.random.default_rng(7)
    data = random.normal(size=(*NAV, *SIG)) * 10.0 ** random.integers(-12, 12, size=(*NAV, *SIG))
    data = data.astype("float32")
    data[0, 0, 0, :4] = [1e-42, -0.0, 1e19, -1e19]
    return data


@pytest.fixture
def x(values) -> da.Array:
    return da.from_array(values, chunks=((2, 3), (3, 4), (4, 2), (9,)))


def bits(result) -> dict[str, bytes]:
    return {name: np.asarray(result[name]).tobytes() for name in result}


def udfs():
    return [SumUDF(), SumSigUDF(), udf_zoo.Floats()]


@pytest.mark.parametrize("roi", [None, np.s_[1:4, 2:]], ids=["all", "roi"])
def test_same_bits(x, options, roi):
    expected = ud.compute(*ud.run_udf(x, udfs(), roi=roi), scheduler="synchronous")
    found = ud.compute(*ud.run_udf(x, udfs(), roi=roi), **options)
    assert [bits(r) for r in found] == [bits(r) for r in expected]


def test_every_door(x, client):
    res = ud.run_udf(x, udf_zoo.Floats())
    expected = bits(res.compute(scheduler="synchronous"))
    assert bits(dask.compute(res, scheduler="threads")[0]) == expected
    assert bits(ud.compute(res, scheduler="threads")[0]) == expected
    assert bits(dask.persist(res, scheduler="threads")[0].compute(scheduler="sync")) == expected
    assert bits(ud.persist(res, scheduler="threads")[0].compute(scheduler="sync")) == expected
    assert bits(res.persist(scheduler="threads").compute(scheduler="sync")) == expected
    assert bits(dask.optimize(res)[0].compute(scheduler="sync")) == expected
    arrays = dict(zip(res, dask.compute(*res.values(), scheduler="threads"), strict=True))
    assert bits(arrays) == expected
    assert bits(client.compute(res).result()) == expected
    assert bits(client.gather(client.compute([res]))[0]) == expected
    assert bits(client.persist(res).compute(scheduler=client)) == expected
    assert bits(ud.persist(res, scheduler=client)[0].compute(scheduler=client)) == expected


@pytest.mark.parametrize("dumps", [cloudpickle.dumps, pickle.dumps])
def test_pickling_a_result(x, dumps):
    res = ud.run_udf(x, [SumUDF(), SumSigUDF()])[1]
    again = pickle.loads(dumps(res))
    assert again["intensity"].name == res["intensity"].name
    done = res.compute(scheduler="synchronous")
    assert bits(again.compute(scheduler="synchronous")) == bits(done)
    restored = pickle.loads(dumps(done))
    assert bits(restored) == bits(done)
    np.testing.assert_array_equal(restored.raw["intensity"], done.raw["intensity"])
    np.testing.assert_array_equal(restored.masked["intensity"], done.masked["intensity"])
