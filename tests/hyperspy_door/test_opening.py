"""`udfdask.compute` and `persist` take signals, alone and together with other collections."""

import dask
import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from counting import CountedData, counts
from udfdask.udfs import StdDevUDF, SumSigUDF, SumUDF

pytestmark = pytest.mark.full

hs = pytest.importorskip("hyperspy.api", reason="hyperspy is an extra")
import udfdask.hyperspy  # noqa: E402

SHAPE, CHUNKS = (4, 6, 3, 5), (2, 3, 3, 5)


@pytest.fixture
def values():
    return np.arange(float(np.prod(SHAPE))).reshape(SHAPE)


@pytest.fixture
def array(values, tmp_path):
    meta = np.empty((0,) * 4)  # otherwise dask reads a block to find the dtype
    return da.from_array(CountedData(values, tmp_path), chunks=CHUNKS, asarray=False, meta=meta)


@pytest.fixture
def signal(array):
    signal = hs.signals.Signal2D(array).as_lazy()
    signal.metadata.General.title = "Scan"
    return signal


def loads(tmp_path):
    """Return how often each chunk has been loaded since the last call."""
    found = counts(tmp_path)
    return sorted(n for name, n in found.items() if name.startswith("load"))


ONCE = [1, 1, 1, 1]


class TestOnePass:
    """Each of the four chunks is loaded once."""

    @pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
    def test_everything_together(self, signal, array, values, tmp_path, scheduler):
        total, spread = signal.udf.run_udf([SumUDF(), StdDevUDF()])
        sums = signal.udf.run_udf(SumSigUDF())["intensity"]
        bare = ud.run_udf(array, SumUDF())
        everything = {"s": [total, sums], "t": (bare, array.max(), signal), "other": "text"}
        (done, found) = ud.compute(everything, spread, scheduler=scheduler)
        assert loads(tmp_path) == ONCE
        assert done["other"] == "text"
        np.testing.assert_array_equal(done["s"][0]["intensity"].data, values.sum(axis=(0, 1)))
        np.testing.assert_array_equal(done["s"][1].data, values.sum(axis=(2, 3)))
        np.testing.assert_array_equal(done["t"][0]["intensity"], values.sum(axis=(0, 1)))
        assert done["t"][1] == values.max()
        np.testing.assert_array_equal(done["t"][2].data, values)
        np.testing.assert_allclose(found["std"].data, values.std(axis=(0, 1)))
        for made in (done["s"][1], done["t"][2]):
            assert not made._lazy
        assert type(done["t"][2]) is hs.signals.Signal2D
        assert done["s"][1].metadata.General.title == "intensity of Scan"

    def test_dasks_own_doors(self, signal, tmp_path, values):
        total, sums = signal.udf.run_udf([SumUDF(), SumSigUDF()])
        done, _ = dask.compute(total, sums, scheduler="synchronous")
        assert loads(tmp_path) == ONCE
        np.testing.assert_array_equal(done["intensity"].data, values.sum(axis=(0, 1)))
        kept, _ = dask.persist(total, sums, scheduler="synchronous")
        assert loads(tmp_path) == ONCE
        assert kept["intensity"]._lazy
        np.testing.assert_array_equal(kept["intensity"].data, values.sum(axis=(0, 1)))
        assert loads(tmp_path) == []

    def test_persist(self, signal, tmp_path, values):
        total, sums = signal.udf.run_udf([SumUDF(), SumSigUDF()])
        kept, image, whole = ud.persist(total, sums["intensity"], signal, scheduler="synchronous")
        assert loads(tmp_path) == ONCE
        assert type(whole) is hs.signals.LazySignal2D
        assert image._lazy
        np.testing.assert_array_equal(image.data, values.sum(axis=(2, 3)))
        np.testing.assert_array_equal(kept["intensity"].data, values.sum(axis=(0, 1)))
        np.testing.assert_array_equal(whole.data, values)
        assert loads(tmp_path) == []


def test_signals_in_memory_pass_through(values):
    signal = hs.signals.Signal2D(values)
    assert ud.compute(signal, 3) == (signal, 3)
    assert ud.persist([signal])[0][0] is signal
    found = ud.compute(signal, signal, da.ones(3).sum(), scheduler="synchronous")
    assert found[0] is found[1] is signal
    assert found[2] == 3


@pytest.mark.full
def test_on_a_cluster(signal, values, client):
    """Signals are returned, also if parameters are a separate task."""
    with dask.config.set({"udfdask.inline-bytes": 1}):
        total, sums = signal.udf.run_udf([SumUDF(), SumSigUDF()])
        done, image, whole = ud.compute(total, sums["intensity"], signal, scheduler=client)
        (kept,) = ud.persist(sums["intensity"], scheduler=client)
    (by_dask,) = dask.compute(total, scheduler=client)
    np.testing.assert_array_equal(by_dask["intensity"].data, values.sum(axis=(0, 1)))
    assert by_dask["intensity"].metadata.General.title == "intensity of Scan"
    np.testing.assert_array_equal(done["intensity"].data, values.sum(axis=(0, 1)))
    np.testing.assert_array_equal(image.data, values.sum(axis=(2, 3)))
    np.testing.assert_array_equal(whole.data, values)
    np.testing.assert_array_equal(kept.data.compute(scheduler=client), values.sum(axis=(2, 3)))
