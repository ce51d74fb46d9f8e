"""StdDevUDF against NumPy in float64 on the whole array."""

import warnings

import dask
import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from every_dtype import FOREIGN, KNOWN, sample
from udfdask.udfs import StdDevUDF

SHAPE = (4, 6, 7, 9)
CHUNKS = {
    "one": SHAPE,
    "scan": (3, 4, 7, 9),
    "signal": (2, 6, 3, 4),
    "one task a signal chunk": (2, 6, 2, 2),
    "frames": (1, 1, 7, 9),
}


def computed(x, udf=None, **options):
    return dict(ud.run_udf(x, udf or StdDevUDF(), **options).compute(scheduler="synchronous"))


def check(found, frames, rtol=1e-12):
    """Compare with NumPy over the frames, shape (n, *sig)."""
    wide = frames.astype("c16" if frames.dtype.kind == "c" else "f8")
    scale = float(np.abs(wide).max(initial=0))
    assert found["num_frames"].shape == ()
    assert found["num_frames"].dtype == np.int64
    assert found["num_frames"] == len(frames)
    assert found["sum"].dtype == found["mean"].dtype == wide.dtype
    assert {found[k].dtype for k in ("varsum", "var", "std")} == {np.dtype("f8")}
    n = len(frames)
    close = np.testing.assert_allclose
    close(found["sum"], wide.sum(axis=0), rtol=rtol, atol=n * scale * 1e-14)
    close(found["mean"], wide.mean(axis=0), rtol=rtol, atol=scale * 1e-14)
    tiny = (scale * 1e-14) ** 2
    close(found["varsum"], wide.var(axis=0) * n, rtol=rtol, atol=n * tiny)
    close(found["var"], wide.var(axis=0), rtol=rtol, atol=tiny)
    close(found["std"], wide.std(axis=0), rtol=rtol, atol=scale * 1e-14)


@pytest.mark.full
@pytest.mark.parametrize("dtype", KNOWN + FOREIGN)
@pytest.mark.parametrize("chunks", CHUNKS.values(), ids=CHUNKS)
@pytest.mark.parametrize("tiles", ["1 MiB", "100 B"])
def test_every_dtype_and_cut(dtype, chunks, tiles):
    data = sample(dtype, SHAPE)
    with dask.config.set({"udfdask.tile-bytes": tiles}):
        found = computed(da.from_array(data, chunks=chunks))
    check(found, data.reshape(24, 7, 9))


@pytest.mark.parametrize("dtype", ["u2", "f4", "c8"])
def test_no_frame_gives_nan_without_a_warning(dtype):
    x = da.from_array(sample(dtype, SHAPE), chunks=(2, 6, 7, 9))
    with pytest.warns(ud.UDFWarning, match="selects no position"):
        lazy = ud.run_udf(x, StdDevUDF(), roi=np.zeros((4, 6), dtype=bool))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = lazy.compute(scheduler="sync")
    assert found["num_frames"] == 0
    assert not found["sum"].any()
    for name in ("mean", "var", "std"):
        assert np.isnan(found[name]).all()


NOISE = np.random.default_rng(0).integers(-4000, 4000, (32, 32, 4, 5)) / 1024
"""Noise of about 1, in steps that remain exact beside an offset."""


@pytest.mark.full
@pytest.mark.parametrize("chunks", [(1, 32), (5, 32), (32, 32), (1, 1)])
@pytest.mark.parametrize(
    ("dtype", "offset"),
    [
        ("f4", 1e3),
        ("f8", 1e6),
        ("f8", 1e9),
        (">f8", -1e12),
        ("c16", 1e9),
        ("i4", 1e9),
        ("i8", 1e12),
    ],
)
def test_a_large_offset_costs_no_precision(chunks, dtype, offset):
    noise = np.round(1e3 * NOISE) if np.dtype(dtype).kind == "i" else NOISE
    x = da.from_array((noise + offset).astype(dtype), chunks=(*chunks, 4, 5))
    found = computed(x)
    np.testing.assert_allclose(found["var"], noise.var(axis=(0, 1)), rtol=1e-12)
    np.testing.assert_allclose(found["mean"], noise.mean(axis=(0, 1)) + offset, rtol=1e-15)
    np.testing.assert_allclose(found["sum"], found["mean"] * 1024, rtol=1e-15)


@pytest.mark.parametrize(("data", "mean"), [("u2", "f4"), ("f8", "f4"), ("c8", "c8")])
def test_results_in_single_precision(data, mean):
    array = sample(data, SHAPE)
    found = computed(da.from_array(array, chunks=3), StdDevUDF(dtype="float32"))
    assert found["mean"].dtype == np.dtype(mean)
    assert found["var"].dtype == found["std"].dtype == np.float32
    assert found["varsum"].dtype == np.float64
    wide = array.astype("c16" if data == "c8" else "f8")
    np.testing.assert_allclose(found["std"], wide.std(axis=(0, 1)), rtol=1e-6)


@pytest.mark.parametrize(
    "dtype",
    [
        "int64",
        "complex64",
        "nonsense",
    ],
)
def test_bad_dtypes(dtype):
    with pytest.raises(ud.ArgumentTypeError):
        StdDevUDF(dtype=dtype)


def test_times_have_no_variance():
    with pytest.raises(ud.ArgumentTypeError, match=r"are numbers, got timedelta64\[s\]"):
        ud.run_udf(da.zeros(SHAPE, dtype="m8[s]"), StdDevUDF())
