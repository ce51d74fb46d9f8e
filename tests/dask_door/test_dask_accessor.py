"""`array.udf` forwards its arguments; inputs and outputs are dask arrays, loaded once."""

import dask
import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import udfdask as ud
import udfdask.dask
from counting import CountedData, counts
from udfdask.testing import assert_eq, raise_if_dask_computes
from udfdask.udfs import StdDevUDF, SumSigUDF, SumUDF

SHAPE = (6, 8, 12, 16)
NAV_CHUNKS = (2, 8)
N_BLOCKS = 3


@pytest.fixture
def data():
    return np.random.default_rng(1).integers(0, 99, SHAPE)


@pytest.fixture
def array(data, folder):
    """Records each load of a block."""
    return da.from_array(
        CountedData(data, folder), chunks=(*NAV_CHUNKS, 12, 16), meta=np.empty(0, data.dtype)
    )


def binned(x):
    if isinstance(x, np.ndarray):
        return x.reshape(6, 8, 6, 2, 8, 2).sum(axis=(3, 5))
    return da.coarsen(np.sum, x, {2: 2, 3: 2})


def smoothed(x):
    """Each frame together with its neighbors in the scan."""

    def average(block):
        return (block + np.roll(block, 1, axis=0) + np.roll(block, -1, axis=0)) / 3

    if isinstance(x, np.ndarray):
        padded = np.concatenate([np.zeros_like(x[:1]), x, np.zeros_like(x[:1])])
        return average(padded)[1:-1]
    return x.map_overlap(average, depth={0: 1}, boundary=0, meta=np.empty((0,) * 4, "f8"))


def turned(x):
    return x.transpose(1, 0, 3, 2)[::-1]


PREPARATIONS = [binned, smoothed, turned]


@pytest.mark.filterwarnings("ignore::udfdask.UDFWarning")
@pytest.mark.parametrize("prepare", PREPARATIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_prepared_arrays_are_loaded_once(prepare, scheduler, array, data, folder, pool):
    with raise_if_dask_computes():
        total, each = prepare(array).udf.run_udf([SumUDF(), SumSigUDF()], sig_dims=2)
        largest = each["intensity"].max()
    with dask.config.set(scheduler=scheduler, pool=pool if scheduler == "processes" else None):
        total, each, largest = ud.compute(total, each, largest)
    wanted = prepare(data)
    np.testing.assert_allclose(total["intensity"], wanted.sum(axis=(0, 1)))
    np.testing.assert_allclose(each["intensity"], wanted.sum(axis=(2, 3)))
    np.testing.assert_allclose(largest, wanted.sum(axis=(2, 3)).max())
    found = counts(folder)
    assert len(found) == N_BLOCKS
    assert set(found.values()) == {1}


def test_a_udf_on_the_result_of_a_udf(array, data, folder):
    spectra = array.udf.map_frames(np.sum, axis=-1, output_shape=(12,), output_dtype="f8")
    with raise_if_dask_computes():
        spread = spectra.udf.run_udf(StdDevUDF(), sig_dims=1)
        maxima = (spectra / 2).udf.map_frames(
            np.max, sig_dims=1, output_shape=(), output_dtype="f8"
        )
    spread, maxima = ud.compute(spread, maxima)
    wanted = data.sum(axis=-1)
    np.testing.assert_allclose(spread["std"], wanted.std(axis=(0, 1)))
    np.testing.assert_allclose(maxima, wanted.max(axis=-1) / 2)
    found = counts(folder)
    assert len(found) == N_BLOCKS
    assert set(found.values()) == {1}


@settings(deadline=None, max_examples=5)
@given(sig_dims=st.integers(1, 3))
def test_the_other_methods(sig_dims):
    x = da.ones((3, 4, 5, 6), chunks=(1, 4, 5, 6))
    text = str(x.udf.explain(SumUDF(), sig_dims=sig_dims))
    assert text == str(ud.explain(x, SumUDF(), sig_dims=sig_dims))
    ours = list(x.udf.run_udf_iter(SumUDF(), sig_dims=sig_dims, scheduler="synchronous"))[-1]
    plain = ud.run_udf(x, SumUDF(), sig_dims=sig_dims).compute(scheduler="synchronous")
    assert_eq(ours.buffers[0]["intensity"], plain["intensity"])
    mapped = x.udf.map_frames(np.mean, sig_dims=sig_dims)
    assert mapped.name == ud.map_frames(x, np.mean, sig_dims=sig_dims).name
