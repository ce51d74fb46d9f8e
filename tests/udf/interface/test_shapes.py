"""Point 21: any number of navigation and signal axes."""

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from making import SYNC, compute, make


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


METHODS = ["process_frame", "process_tile", "process_partition"]


def sums(nav_extra=()):
    """A UDF that adds up frames and pixels, by the method of the test."""

    def process(self, data):
        n = self.meta.sig_slice.shape
        axes = tuple(range(data.ndim - len(n), data.ndim))
        part = data.sum(axis=axes)
        self.results.v += part.reshape((*part.shape, *(1 for _ in nav_extra)))
        self.results.s += data if data.ndim == len(n) else data.sum(axis=0)

    def merge(self, dest, src):
        dest.v[:] = src.v
        dest.s += src.s

    kinds = {
        "v": {"kind": "nav", "extra_shape": nav_extra, "dtype": "float64"},
        "s": {"kind": "sig", "dtype": "float64"},
    }
    return [make(kinds, merge=merge, **{method: process})() for method in METHODS]


@pytest.mark.point(21)
@pytest.mark.parametrize("extra", [(), (2,)])
@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 3, 4), (2, 3, 2, 3), (2, 1, 3, 2, 2)])
def test_one_frame(shape, extra):
    """sig_dims == ndim: nav results have the shape () + extra."""
    data = np.arange(np.prod(shape), dtype="float32").reshape(shape)
    x = da.from_array(data, chunks=2 if len(shape) < 3 else -1)
    lazy = ud.run_udf(x, sums(extra), sig_dims=len(shape))
    for result, done in zip(lazy, ud.compute(*lazy, **SYNC), strict=True):
        assert result["v"].shape == done["v"].shape == extra
        assert done.raw["v"].shape == (1, *extra)
        assert result.raw["v"].compute(**SYNC).shape == (1, *extra)
        assert (done["v"] == data.sum()).all()
        np.testing.assert_array_equal(done["s"], data)
        assert result.valid_mask["v"].shape == extra


@pytest.mark.point(21)
@pytest.mark.parametrize("nav", [(4,), (2, 3), (2, 3, 2), (1, 2, 1, 3)])
@pytest.mark.parametrize("sig", [(5,), (2, 3), (2, 3, 2), (1, 2, 2, 2)])
def test_any_number_of_axes(nav, sig):
    data = np.arange(np.prod(nav + sig), dtype="float32").reshape(nav + sig)
    x = da.from_array(data, chunks=(*(2 for _ in nav), *(max(2, n // 2 + 1) for n in sig)))
    roi = np.indices(nav).sum(axis=0) % 2 == 0
    sig_axes = tuple(range(len(nav), x.ndim))
    for done in compute(x, sums(), sig_dims=len(sig), roi=roi):
        np.testing.assert_array_equal(done["v"][roi], data.sum(axis=sig_axes)[roi])
        np.testing.assert_array_equal(done["s"], data[roi].sum(axis=0))


@pytest.mark.point(21)
@pytest.mark.parametrize("sig_dims", [5, 6, 0])
def test_more_signal_axes_than_axes(x, sig_dims):
    with pytest.raises(ud.ArgumentValueError, match=rf"between 1 and 4, .*not {sig_dims}"):
        ud.run_udf(x, sums(), sig_dims=sig_dims)


@pytest.mark.point(21)
@pytest.mark.parametrize("empty", [0, 1, 2, 3])
def test_axes_without_extent(empty):
    shape = [2, 3, 4, 5]
    shape[empty] = 0
    for done in compute(da.zeros(shape, chunks=-1), sums()):
        assert done["v"].shape == tuple(shape[:2])
        assert done["s"].shape == tuple(shape[2:])
        assert not done["v"].any()
        assert not done["s"].any()
