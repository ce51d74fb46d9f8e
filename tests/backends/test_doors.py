"""Sparse chunks through every entry point; task names and `explain` include the backends."""

import dask
import dask.array as da
import numpy as np
import pytest
import sparse
import xarray as xr

import udfdask as ud
import udfdask.dask
import udfdask.xarray
from backend_udfs import Wants
from chunk_backends import chunks_in
from udfdask.udfs import SumUDF

DATA = np.random.default_rng(0).poisson(0.5, (4, 6, 5, 7)).astype("u2")
X = da.from_array(DATA, chunks=(2, 3, 5, 7))
SUM = DATA.sum(axis=(0, 1))
SYNC = {"scheduler": "synchronous"}

pytestmark = pytest.mark.parametrize(
    "native", [ud.UDF.BACKEND_SPARSE_COO, ud.UDF.BACKEND_SPARSE_GCXS]
)


@pytest.fixture
def x(native):
    return chunks_in(X, native, 2)


@pytest.mark.full
@pytest.mark.parametrize(
    ("order", "sig_dims", "held"),
    [
        ("y x ky kx", ("ky", "kx"), "chunks"),
        ("ky kx y x", ("kx", "ky"), "chunks"),
        ("ky kx y x", ("ky", "kx"), "memory"),
    ],
)
def test_xarray(x, order, sig_dims, held):
    """Dims in another order are transposed; sparse data in memory become one chunk."""
    array = xr.DataArray(x, dims=("y", "x", "ky", "kx")).transpose(*order.split())
    if held == "memory":
        array = array.copy(data=array.data.compute(**SYNC))
    how = {"sig_dims": sig_dims, "roi": xr.DataArray(np.arange(4) > 0, dims="y").expand_dims(x=6)}
    lazy = array.udf.run_udf([SumUDF(), Wants(ud.UDF.BACKEND_SPARSE_COO)], **how)
    total, seen = dask.compute(*lazy, **SYNC)
    assert total["intensity"].dims == sig_dims
    wanted = DATA[1:].sum(axis=(0, 1))
    np.testing.assert_array_equal(total["intensity"].transpose("ky", "kx"), wanted)
    found = seen["total"].transpose("ky", "kx")
    np.testing.assert_array_equal(found, wanted)


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


def test_explain(x, native):
    text = str(ud.explain(x, [Wants(native), Wants(ud.UDF.BACKEND_SCIPY_CSR), Wants("numpy")]))
    assert f"Wants is given {native} as it is" in text
    assert "Wants is given scipy.sparse.csr_matrix, converted" in text
    assert "Wants is given numpy, made dense a tile at a time" in text


@pytest.mark.full
def test_no_warning_of_memory_that_sparse_chunks_need_not(native):
    """A chunk without entries that would take 8 TiB if it were dense."""
    shape = (1 << 12, 1 << 15, 1 << 15)
    block = sparse.COO(np.empty((3, 0), "i8"), np.empty(0, "u2"), shape=shape)
    if native == ud.UDF.BACKEND_SPARSE_GCXS:
        entries = (np.empty(0, "u2"), np.empty(0, "i8"), np.zeros(shape[0] + 1, "i8"))
        block = sparse.GCXS(entries, shape=shape, compressed_axes=(0,))
    with dask.config.set({"udfdask.worker-memory": "1 GiB"}):
        lazy = ud.run_udf(da.from_array(block, chunks=-1, asarray=False), Wants(native))
    assert not lazy.explain().warnings
