"""Sparse chunks through every entry point; task names and `explain` include the backends."""

import dask.array as da
import numpy as np
import pytest
import xarray as xr

import udfdask as ud
import udfdask.dask
import udfdask.xarray
from backend_udfs import Wants
from chunk_backends import chunks_in
from making import SYNC
from udfdask.udfs import SumUDF

DATA = np.random.default_rng(0).poisson(0.5, (4, 6, 5, 7)).astype("u2")
X = da.from_array(DATA, chunks=(2, 3, 5, 7))
SUM = DATA.sum(axis=(0, 1))

pytestmark = pytest.mark.parametrize(
    "native", [ud.UDF.BACKEND_SPARSE_COO, ud.UDF.BACKEND_SPARSE_GCXS]
)


@pytest.fixture
def x(native):
    return chunks_in(X, native, 2)


def test_xarray(x):
    """Dims in another order are transposed; sparse data in memory become one chunk."""
    array = xr.DataArray(x, dims=("y", "x", "ky", "kx")).transpose("ky", "kx", "y", "x")
    roi = xr.DataArray(np.arange(4) > 0, dims="y").expand_dims(x=6)
    for given in (array, array.copy(data=array.data.compute(**SYNC))):
        total = given.udf.run_udf(SumUDF(), sig_dims=("ky", "kx"), roi=roi)["intensity"]
        np.testing.assert_array_equal(total.compute(**SYNC), DATA[1:].sum(axis=(0, 1)))


def test_hyperspy(x):
    signals = pytest.importorskip("hyperspy.api", reason="hyperspy is an extra").signals
    pytest.importorskip("udfdask.hyperspy")
    signal = signals.Signal2D(x).as_lazy()
    done = signal.udf.run_udf(SumUDF()).compute(**SYNC)
    np.testing.assert_array_equal(done["intensity"].data, SUM)
    assert "sparse" in str(signal.udf.explain(SumUDF()))


def test_names(x, native):
    """Law 8: task names depend on the backend that a UDF gets."""

    def name(array, udf, **options):
        return ud.run_udf(array, udf, **options)["total"].name

    def make():
        return Wants(("numpy", ud.UDF.BACKEND_SPARSE_COO, ud.UDF.BACKEND_SPARSE_GCXS))

    assert name(x, make()) == name(x, make())
    restrictions = [None, "numpy", ud.UDF.BACKEND_SPARSE_COO, ud.UDF.BACKEND_SPARSE_GCXS]
    found = {name(X, make(), backends=backends) for backends in restrictions}
    assert len({*found, name(x, make())}) == 5
    announced = da.Array(X.dask, X.name, X.chunks, meta=x._meta)  # the same tasks, it says
    assert name(announced, make()) != name(X, make())
