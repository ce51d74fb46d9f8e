"""A plain function of CuPy frames, through every entry point."""

import dask
import dask.array as da
import numpy as np
import pytest

import udfdask as ud
import udfdask.dask
from device_udfs import MODULES, cupy_is, sent
from udfdask.backends import device
from udfdask.backends.table import to_host
from udfdask.testing import raise_if_dask_computes

DATA = np.random.default_rng(3).integers(0, 200, (5, 6, 7, 8)).astype("float32")
X = da.from_array(DATA, chunks=(2, 3, 7, 8))
ROI = np.random.default_rng(4).random((5, 6)) > 0.4
BOTH = ("numpy", "cupy")


class OnDevice:
    """A function that takes CuPy arrays only, with one of each kind of return value."""

    def __init__(self, returns):
        self.returns = returns

    def __call__(self, frame, level=0):
        cupy = device.cupy()
        assert isinstance(frame, cupy.ndarray)
        if self.returns == "a CuPy array":
            return cupy.sum(cupy.maximum(frame, level), axis=0)
        if self.returns == "a CuPy number":
            return frame.max() - level
        if self.returns == "a NumPy array":
            return frame.get()[0] - level
        return float(frame.max()) - level


EXPECTED = {
    "a CuPy array": np.maximum(DATA, 5).sum(axis=2),
    "a CuPy number": DATA.max(axis=(2, 3)) - 5,
    "a NumPy array": DATA[:, :, 0] - 5,
    "a float": DATA.max(axis=(2, 3)) - 5,
}


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("native", ["numpy", "cupy"])
@pytest.mark.parametrize("returns", EXPECTED)
def test_a_function_gets_cupy_frames(module, native, returns):
    """Results follow the chunks: CuPy arrays over CuPy chunks, NumPy arrays over NumPy chunks."""
    with cupy_is(module) as cupy:
        array = X if native == "numpy" else sent(cupy, X)
        found = ud.map_frames(array, OnDevice(returns), backends="cupy", roi=ROI, level=5)
        assert found.dtype == ("float64" if returns == "a float" else "float32")
        value = found.compute()
        assert isinstance(value, cupy.ndarray) == (native == "cupy")
        assert isinstance(found._meta, cupy.ndarray) == (native == "cupy")
        np.testing.assert_allclose(to_host(value)[ROI], EXPECTED[returns][ROI], rtol=1e-6)
        assert np.isnan(to_host(value)[~ROI]).all()


@pytest.mark.parametrize("native", ["numpy", "cupy"])
def test_a_function_for_both_gets_frames_as_they_are(cupy, native):
    kinds = set()

    def total(frame):
        kinds.add(type(frame))
        return frame.sum()

    array = X if native == "numpy" else sent(cupy, X)
    found = ud.map_frames(array, total, backends=BOTH, output_shape=(), output_dtype="float32")
    np.testing.assert_allclose(to_host(found.compute()), DATA.sum(axis=(2, 3)), rtol=1e-6)
    assert kinds == {np.ndarray if native == "numpy" else cupy.ndarray}


def test_without_a_device_here_the_output_has_to_be_given(no_device):
    """A client without a device can plan a run for workers that have one."""
    with pytest.raises(ud.errors.DeviceError, match=r"output_shape= and output_dtype="):
        ud.map_frames(X, OnDevice("a float"), backends="cupy")
    with raise_if_dask_computes():
        lazy = ud.map_frames(
            X, OnDevice("a float"), backends="cupy", output_shape=(), output_dtype="float64"
        )
    assert lazy.shape == (5, 6)
    with pytest.raises(ud.errors.DeviceError), dask.config.set(scheduler="synchronous"):
        lazy.compute()


@pytest.mark.parametrize("name", ["scipy.sparse.csr_matrix", "sparse.COO"])
def test_sparse_frames(name):
    sparse = pytest.importorskip("sparse", reason="sparse is an extra")
    pytest.importorskip("sparseconverter", reason="sparseconverter is an extra")
    shapes = set()

    def total(frame):
        shapes.add(frame.shape)
        return frame.sum()

    array = X.map_blocks(
        sparse.COO.from_numpy, meta=sparse.COO.from_numpy(np.empty((0,) * 4, "f4"))
    )
    found = ud.map_frames(array, total, backends=name).compute(scheduler="synchronous")
    np.testing.assert_allclose(found, DATA.sum(axis=(2, 3)), rtol=1e-6)
    assert shapes == {(1, 56) if "matrix" in name else (7, 8)}
