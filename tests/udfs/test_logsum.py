"""LogsumUDF against the formula on the whole array."""

import dask
import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from every_dtype import FOREIGN, KNOWN, sample
from udfdask.udfs import LogsumUDF

SHAPE = (4, 6, 7, 9)
CHUNKS = {"one": SHAPE, "scan": (3, 4, 7, 9), "signal": (2, 6, 3, 4), "frames": (1, 1, 7, 9)}
# frames are assembled from many signal chunks
pytestmark = pytest.mark.filterwarnings("ignore:a task takes:udfdask.UDFWarning")

REAL = [d for d in KNOWN + FOREIGN if np.dtype(d).kind != "c"]


def logsum(x, **options):
    return ud.run_udf(x, LogsumUDF(), **options)["logsum"].compute(scheduler="synchronous")


def check(found, frames):
    """Compare with the formula in float64 over the frames, shape (n, *sig)."""
    wide = frames.astype("f8")
    lowest = wide.min(axis=tuple(range(1, wide.ndim)), keepdims=True)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.log(wide - lowest + 1).sum(axis=0), rtol=2e-7, atol=1e-12)


@pytest.mark.full
@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("chunks", CHUNKS.values(), ids=CHUNKS)
@pytest.mark.parametrize("tiles", ["1 MiB", "100 B"])
def test_every_dtype_and_cut(dtype, chunks, tiles):
    data = sample(dtype, SHAPE)
    with dask.config.set({"udfdask.tile-bytes": tiles}):
        found = logsum(da.from_array(data, chunks=chunks))
    check(found, data.reshape(24, 7, 9))


def test_it_does_not_wrap():
    """0 - 65535 + 1 is 2 in uint16."""
    frame = np.array([[0, 65535], [1, 65534]], dtype="u2")
    found = logsum(da.from_array(frame[np.newaxis], chunks=1))
    np.testing.assert_allclose(found, np.log(frame + 1.0), rtol=1e-7)


def test_the_lowest_value_is_that_of_the_whole_frame():
    data = np.zeros((3, 1, 8), dtype="u2")
    data[:, :, 4:] = 100
    found = logsum(da.from_array(data, chunks=(1, 1, 4)))
    np.testing.assert_allclose(found[0], [0] * 4 + [3 * np.log(101)] * 4, rtol=1e-6)


def test_what_is_not_finite_stays():
    """-inf - -inf is a NaN with its sign bit set."""
    data = np.random.default_rng(0).random((9, 2, 3), dtype="f4")
    data[4, 1, 1] = -np.inf
    found = logsum(da.from_array(data, chunks=-1))
    assert np.isnan(found[1, 1])
    assert np.isposinf(np.delete(found.ravel(), 4)).all()


def test_many_frames():
    data = sample("u2", (40, 50, 2, 3))
    check(logsum(da.from_array(data, chunks=(3, 50, 2, 3))), data.reshape(-1, 2, 3))


@pytest.mark.parametrize("dtype", ["c8", "m8[s]"])
def test_what_has_no_logarithm(dtype):
    with pytest.raises(ud.ArgumentTypeError, match="expected data that are real numbers, got"):
        ud.run_udf(da.zeros(SHAPE, dtype=dtype), LogsumUDF())
