"""Whatever the chunks, tiles, ROI, scheduler and kind of array, results equal the reference."""

import dask
import dask.array as da
import numpy as np
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

import udf_zoo
import udfdask as ud
from array_kinds import DASK
from counting import CountedData, counts
from suites import examples
from udfdask.testing import run_reference
from udfdask.testing.strategies import chunkings, rois, shapes
from udfdask.udfs import CoMUDF, NoOpUDF

pytestmark = pytest.mark.filterwarnings("ignore::udfdask.UDFWarning")

# process_frame of a frame without rows and medians of nothing are not what is tested here
fast = settings(deadline=None, max_examples=examples(20), suppress_health_check=list(HealthCheck))


@st.composite
def cases(draw, min_nav=1):
    """An array with its chunks, a ROI and a tile size."""
    shape = draw(shapes(min_nav=min_nav, max_nav=3, max_side=4))
    dtype = draw(st.sampled_from(["uint8", "int16", "int32", ">u2"]))
    data = np.random.default_rng(draw(st.integers(0, 99))).integers(0, 90, shape).astype(dtype)
    return {
        "data": data,
        "chunks": draw(chunkings(shape)),
        "sig_dims": shape.sig_dims,
        "roi": draw(rois(tuple(shape.nav))),
        "tile": draw(st.sampled_from(["1 MiB", 64, 1])),
    }


def check(case, udfs, kind=DASK, folder=None, **how):
    """Run several UDFs in one pass, and each by itself over the whole array."""
    data, sig_dims, roi = case["data"], case["sig_dims"], case["roi"]
    array = kind.from_array(CountedData(data, folder) if folder else data, case["chunks"])
    with dask.config.set({"udfdask.tile-bytes": case["tile"]}):
        lazy = kind.run(array, udfs, sig_dims, roi=roi)
    n_nav = array.ndim - sig_dims
    done = ud.compute(*lazy, **how)
    with np.errstate(all="ignore"):
        expected = run_reference(data, udfs, sig_dims=sig_dims, roi=roi)
    for udf, before, result, wanted in zip(udfs, lazy, done, expected, strict=True):
        assert set(result) == set(wanted)
        for name, value in wanted.items():
            where = f"{type(udf).__name__}.{name}"
            assert result[name].dtype == value.dtype == before[name].dtype, where
            assert result[name].shape == value.shape == before[name].shape, where
            if kind.is_nav(before, name):
                assert before[name].chunks[:n_nav] == array.chunks[:n_nav]
            if value.dtype.kind in "fc":
                np.testing.assert_allclose(result[name], value, rtol=1e-5, atol=1e-3, err_msg=where)
            else:
                np.testing.assert_array_equal(result[name], value, err_msg=where)


@pytest.mark.parametrize("cls", udf_zoo.ZOO, ids=lambda c: c.__name__)
@given(case=cases())
@fast
def test_each_udf_alone(cls, case):
    if cls is udf_zoo.MergeAllOnce and case["roi"] is not None and not case["roi"].any():
        reject()  # there is no median of nothing
    check(case, [cls()], scheduler="sync")


@pytest.mark.parametrize("roi", [None, np.arange(306).reshape(18, 17) % 19 > 0], ids=["all", "roi"])
def test_so_many_chunks_that_their_rows_are_gathered(roi):
    data = np.random.default_rng(1).integers(0, 90, (18, 17, 3, 4)).astype("uint8")
    case = {"data": data, "chunks": (1, 1, 3, 4), "sig_dims": 2, "roi": roi, "tile": "1 MiB"}
    check(case, [*(cls() for cls in udf_zoo.ZOO), CoMUDF(), NoOpUDF()], scheduler="sync")


@given(case=cases(min_nav=0))
@settings(fast, max_examples=10)
def test_any_number_of_nav_axes(case):
    check(case, [cls() for cls in udf_zoo.ZOO if cls is not udf_zoo.MergeAllOnce], scheduler="sync")


@given(case=cases(), classes=st.lists(st.sampled_from(udf_zoo.ZOO), min_size=1, max_size=4))
@settings(fast, max_examples=examples(8, 2))
def test_on_every_scheduler(kind, options, folder, case, classes):
    roi = case["roi"]
    if udf_zoo.MergeAllOnce in classes and roi is not None and not roi.any():
        reject()
    check(case, [cls() for cls in classes], kind, folder, **options)
    assert set(counts(folder).values()) <= {1}  # the ROI leaves out blocks


@pytest.mark.parametrize("cls", [udf_zoo.ZOO[0], udf_zoo.MergeAllNav], ids=lambda c: c.__name__)
def test_no_navigation_and_an_empty_signal_chunk(cls):
    frame = np.arange(5 * 4 * 3).reshape(5, 4, 3)
    cut, whole = (
        ud.run_udf(da.from_array(frame, chunks=(c, 4, 3)), cls(), sig_dims=3).compute()
        for c in ((3, 0, 2), 5)
    )
    for name in whole:
        np.testing.assert_array_equal(cut[name], whole[name])


def test_bits_are_equal_on_every_scheduler(pool):
    data = np.random.default_rng(1).random((6, 5, 4, 3))
    array = da.from_array(data, chunks=(2, 3, 4, 2))
    results = [
        ud.run_udf(array, udf_zoo.Floats()).compute(**how)
        for how in (
            {"scheduler": "sync"},
            {"scheduler": "threads"},
            {"scheduler": "processes", "pool": pool},
        )
    ]
    for other in results[1:]:
        for name in other:
            assert other[name].tobytes() == results[0][name].tobytes()
