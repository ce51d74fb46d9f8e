"""Point 21: any number of navigation and signal axes."""

import dask.array as da
import numpy as np
import pytest

from making import compute, make


@pytest.mark.point(21)
@pytest.mark.parametrize("sig_dims", [1, 2, 3, 4])
@pytest.mark.parametrize("method", ["process_frame", "process_tile", "process_partition"])
def test_sig_dims(values, sig_dims, method):
    x = da.from_array(values, chunks=(2, 6, 2, 5))
    nav, sig = x.shape[: 4 - sig_dims], x.shape[4 - sig_dims :]

    def process(self, data):
        assert data.shape[-sig_dims:] == sig or method == "process_tile"
        self.results.v += data.reshape(len(self.results.v), -1).sum(axis=1)
        assert self.meta.coordinates.shape[1] == 4 - sig_dims

    udf = make({"v": {"kind": "nav", "dtype": "float64"}}, **{method: process})()
    done = compute(x, udf, sig_dims=sig_dims)
    assert done["v"].shape == nav
    axes = tuple(range(4 - sig_dims, 4))
    np.testing.assert_allclose(done["v"], values.sum(axis=axes, dtype="float64"))
    assert done.raw["v"].shape == (int(np.prod(nav)),)
