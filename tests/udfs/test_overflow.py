"""Sums of 64-bit integers that do not fit 64 bits: an error, never a number that wrapped around."""

import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import udfdask as ud
from suites import examples
from udfdask.udfs import ApplyMasksUDF, SumSigUDF, SumUDF, VirtualDetectorUDF

SHAPE = (3, 4, 4, 5)
SYNC = {"scheduler": "synchronous"}


def mask():
    return np.arange(20).reshape(4, 5) % 3 - 1


UDFS = {
    "frames": (SumUDF, lambda x: x.sum(axis=(0, 1))),
    "pixels": (SumSigUDF, lambda x: x.sum(axis=(2, 3))),
    "disk": (lambda: VirtualDetectorUDF("disk", r=np.inf), lambda x: x.sum(axis=(2, 3))),
    "point": (lambda: VirtualDetectorUDF("point", x=1, y=2), lambda x: x[:, :, 2, 1]),
    "dense masks": (
        lambda: ApplyMasksUDF([lambda: mask() > 0], use_sparse=False),
        lambda x: (x * (mask() > 0)).sum(axis=(2, 3), keepdims=True)[..., 0],
    ),
    "sparse masks": (
        lambda: ApplyMasksUDF([lambda: mask() > 0], use_sparse=True),
        lambda x: (x * (mask() > 0)).sum(axis=(2, 3), keepdims=True)[..., 0],
    ),
    "shifted masks": (
        lambda: ApplyMasksUDF([lambda: mask() > 0], shifts=(0, 0)),
        lambda x: (x * (mask() > 0)).sum(axis=(2, 3), keepdims=True)[..., 0],
    ),
}


def outcome(x, name):
    """The result of a UDF, None if it stopped because a sum did not fit."""
    try:
        (found,) = ud.compute(ud.run_udf(x, UDFS[name][0]()), **SYNC)
    except ud.SumOverflowError:
        return None
    return found["intensity"]


def check(x, data, name):
    """Right numbers if they fit; with values of one sign never an error if they do."""
    exact, limits = UDFS[name][1](data.astype(object)), np.iinfo(data.dtype)
    found, fits = outcome(x, name), limits.min <= exact.min() and exact.max() <= limits.max
    if found is not None or not fits:
        assert (found is not None) == fits
    if found is not None:
        np.testing.assert_array_equal(found, exact.astype(data.dtype))
    elif (data >= 0).all():
        assert not fits


@st.composite
def long_integers(draw):
    """Integers of 64 bits, most of them small, some as large as there are."""
    dtype = np.dtype(draw(st.sampled_from(["i8", "u8", ">i8", ">u8"])))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    limits, bits = np.iinfo(dtype), draw(st.sampled_from([8, 40, 57, 59, 61, 63]))
    low = draw(st.sampled_from([0, -(2**bits) if dtype.kind == "i" else 0]))
    data = rng.integers(low, 2**bits, SHAPE, dtype=dtype.newbyteorder("=")).astype(dtype)
    for _ in range(draw(st.integers(0, 2))):
        place = tuple(draw(st.integers(0, n - 1)) for n in SHAPE)
        data[place] = draw(st.sampled_from([limits.min, limits.max, limits.max // 2 + 1]))
    return data


@pytest.mark.full
@settings(deadline=None, max_examples=examples(60))
@given(long_integers(), st.sampled_from(sorted(UDFS)), st.data())
def test_right_or_refused(data, name, draw):
    chunks = draw.draw(st.sampled_from([SHAPE, (1, 4, 4, 5), (2, 3, 2, 5), (1, 1, 4, 5)]))
    check(da.from_array(data, chunks=chunks), data, name)


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(UDFS))
@pytest.mark.parametrize("dtype", ["i8", "u8"])
@pytest.mark.parametrize("chunks", [SHAPE, (1, 2, 4, 5), (2, 4, 2, 5)])
def test_each_at_the_limit(name, dtype, chunks):
    """The largest sum that fits, and one more: in one tile, over signal chunks, in a merge."""
    most = int(np.iinfo(dtype).max)
    for more in (0, 1):
        data = np.zeros(SHAPE, dtype)
        data[0, 0, 2, 1] = most // 2
        data[(2, 3, 2, 1) if name == "frames" else (0, 0, 0, 2)] = most - most // 2 + more
        x = da.from_array(data, chunks=chunks)
        check(x, data, name)
        assert (outcome(x, name) is None) == (more == 1 and name != "point")


@pytest.mark.full
@pytest.mark.parametrize("dtype", ["i8", "u8"])
@pytest.mark.parametrize("udf", [SumUDF, SumSigUDF])
def test_a_floating_dtype_holds_any_sum(udf, dtype):
    data = np.full(SHAPE, np.iinfo(dtype).max, dtype)
    x = da.from_array(data, chunks=(1, 4, 2, 5))
    (found,) = ud.compute(ud.run_udf(x, udf(dtype="float64")), **SYNC)
    axes = (0, 1) if udf is SumUDF else (2, 3)
    np.testing.assert_allclose(found["intensity"], data.sum(axis=axes, dtype="f8"), rtol=1e-15)


@pytest.mark.full
def test_masks_with_large_weights():
    """Narrow data do not fit either, if weights are large."""
    data = np.full(SHAPE, 200, "u1")
    x = da.from_array(data, chunks=(1, 4, 4, 5))
    for weight, fits in ((2**51, True), (2**53, False)):
        for sparse in (False, True):
            udf = ApplyMasksUDF([lambda w=weight: np.full((4, 5), w)], use_sparse=sparse)
            if fits:
                (found,) = ud.compute(ud.run_udf(x, udf), **SYNC)
                assert (found["intensity"] == 4000 * weight).all()
            else:
                with pytest.raises(ud.SumOverflowError):
                    ud.compute(ud.run_udf(x, udf), **SYNC)
    floats = ApplyMasksUDF([lambda: np.full((4, 5), 2**53)], preferred_dtype="float64")
    (found,) = ud.compute(ud.run_udf(x, floats), **SYNC)
    assert (found["intensity"] == 4000.0 * 2**53).all()


@pytest.mark.parametrize("dtype", ["u1", "i2", "u2", "i4", "u4"])
def test_narrow_integers_fit_or_are_refused_in_the_plan(dtype):
    chunks = (2**22, 1, 1)
    fits = da.zeros((2**31, 1, 1), chunks=chunks, dtype=dtype)
    ud.run_udf(fits, SumUDF())
    if dtype in ("i4", "u4"):
        too_many = da.zeros((2**33, 1, 1), chunks=(2**25, 1, 1), dtype=dtype)
        with pytest.raises(ud.ArgumentValueError, match=r"8589934592 values of .* may not fit"):
            ud.run_udf(too_many, SumUDF())


# differences of sums


@pytest.mark.parametrize("dtype", ["u1", "u2", ">u2", "u4"])
@pytest.mark.parametrize("chunks", [SHAPE, (1, 2, 2, 3)])
@pytest.mark.parametrize("name", UDFS)
def test_differences_of_sums_do_not_wrap(name, chunks, dtype):
    """The largest values have the exact sum, in a dtype in which 0 minus the sum is negative."""
    values = np.full(SHAPE, np.iinfo(dtype).max, dtype)
    lazy = ud.run_udf(da.from_array(values, chunks=chunks), UDFS[name][0]())["intensity"]
    found = lazy.compute(**SYNC)
    assert found.dtype == lazy.dtype == np.int64
    want = UDFS[name][1](values.astype(object))
    np.testing.assert_array_equal(0 * found - found, -want)


def test_a_left_and_a_right_detector():
    left = np.arange(20).reshape(4, 5) % 5 < 2
    x = da.from_array(np.where(left, 7, 0)[np.newaxis].astype("u2"))
    found = ud.run_udf(x, ApplyMasksUDF({"left": left, "right": ~left}))
    assert (found["right"] - found["left"]).compute(**SYNC) == -56


def test_unsigned_sums_that_may_not_fit_int64():
    x = da.ones(SHAPE, dtype="u8")
    heavy = {"mask_count": 1, "mask_dtype": "u8"}
    udfs = [SumUDF(), SumSigUDF(), VirtualDetectorUDF(mask() > 0), ApplyMasksUDF([mask() > 0])]
    udfs += [ApplyMasksUDF(lambda: np.ones((1, 4, 5), "u8"), **heavy)]
    for done in ud.run_udf(x, udfs):
        assert done["intensity"].dtype == np.uint64
    weights = np.full((4, 5), 2**32, "u8")
    light = ud.run_udf(da.ones(SHAPE, dtype="u1"), ApplyMasksUDF([weights]))["intensity"]
    assert light.dtype == np.int64
    assert light.compute(**SYNC).max() == 20 * 2**32
