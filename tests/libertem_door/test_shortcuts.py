"""The functions that run one built-in UDF: the results of that UDF, computed."""

import dask.array as da
import numpy as np
import scipy.sparse
import sparse

import udfdask as ud
from udfdask import libertem

DATA = np.random.default_rng(2).random((3, 4, 8, 8)).astype(np.float32)
X = da.from_array(DATA, chunks=(2, 2, 8, 8))


def test_options_of_a_run():
    lines = da.from_array(DATA.reshape(3, 4, 64), chunks=(1, 4, 64))
    assert libertem.run_stddev(lines, sig_dims=1)["mean"].shape == (64,)
    dark = np.full((8, 8), 0.5, dtype=np.float32)
    corrected = libertem.run_stddev(X, corrections=ud.corrections.CorrectionSet(dark=dark))
    np.testing.assert_allclose(corrected["mean"], DATA.mean((0, 1)) - 0.5, atol=1e-6)


def test_products_and_counts():
    assert libertem.UDFException is ud.UDFError
    assert libertem.prod(np.array([2**31, 2**31, 2**31], dtype="int64")) == 2**93
    assert libertem.prod(()) == 1
    mask = np.eye(3, dtype=bool)
    assert libertem.count_nonzero(mask) == 3
    assert libertem.count_nonzero(scipy.sparse.csr_matrix(mask)) == 3
    assert libertem.count_nonzero(sparse.COO.from_numpy(mask)) == 3
