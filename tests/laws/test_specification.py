"""The examples of the specification agree with NumPy, whatever the chunks and the ROI."""

import functools

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from counting import CountedData, counts
from specification_udfs import (
    AverageUDF,
    CoordUDF,
    CorrelationUDF,
    CustomValidMask,
    MySumMergeUDF,
    MySumUDF,
    OnlyMergeAllUDF,
    PixelsumUDF,
    SumSigUDF,
)
from udfdask.udfs import AutoUDF, SumUDF

NAV, SIG = (14, 15), (6, 8)
DATA = np.random.default_rng(7).integers(0, 500, NAV + SIG).astype("float32")

CHUNKS = {
    "one": (14, 15, 6, 8),
    "rows": (4, 15, 6, 8),
    "frames": (3, 1, 6, 8),
    "second nav axis": (5, 4, 6, 8),
    "signal": (4, 15, 3, 4),
    "all axes": (5, 7, 6, 3),
    "uneven": ((1, 13), (2, 6, 7), (6,), (7, 1)),
}
ROIS = {
    "all": None,
    "two": np.zeros(NAV, dtype=bool),
    "scattered": np.random.default_rng(8).random(NAV) < 0.3,
    "block": np.zeros(NAV, dtype=bool),
}
ROIS["two"][7, 13] = ROIS["two"][11, 3] = True
ROIS["block"][3:9, 2:11] = True


@pytest.fixture(params=CHUNKS)
def dataset(request) -> da.Array:
    return da.from_array(DATA, chunks=CHUNKS[request.param])


@pytest.fixture(params=ROIS)
def roi(request) -> np.ndarray | None:
    return ROIS[request.param]


def frames(roi):
    """The selected frames in C order, as float64."""
    return (DATA.reshape((-1, *SIG)) if roi is None else DATA[roi]).astype("float64")


def in_place(rows, roi):
    """Rows in the shape of the scan, NaN where nothing was selected."""
    if roi is None:
        return rows.reshape(NAV + rows.shape[1:])
    full = np.full(NAV + rows.shape[1:], np.nan)
    full[roi] = rows
    return full


def run(udf, dataset, roi=None, **options):
    return ud.run_udf(dataset, udf, roi=roi, **options).compute(scheduler="synchronous")


# Dask integration.


def test_a_udf_over_a_dask_array():
    a = da.random.default_rng(1).random((23, 42, 17, 19))
    res = ud.run_udf(a, SumUDF(), sig_dims=2)
    total, expected = ud.compute(res, a.sum(axis=(0, 1)))
    assert np.allclose(expected, total["intensity"])


@pytest.mark.point(17)
@pytest.mark.parametrize("split_every", [None, 2, False])
@pytest.mark.parametrize("cls", [MySumUDF, MySumMergeUDF, OnlyMergeAllUDF])
def test_sums_by_merge_and_by_merge_all(cls, dataset, roi, split_every):
    done = run(cls(), dataset, roi, split_every=split_every)
    assert done["intensity"].dtype == np.float32
    np.testing.assert_allclose(done["intensity"], frames(roi).sum(axis=0))


# Post-processing after merging.


@pytest.mark.point(11, 13)
def test_average(dataset, roi):
    done = run(AverageUDF(), dataset, roi)
    assert {name: a.dtype.str for name, a in done.items()} == {
        "sum": "<f4",
        "num_frames": "<u8",
        "average": "<f4",
    }
    np.testing.assert_allclose(done["sum"], frames(roi).sum(axis=0))
    np.testing.assert_allclose(done["average"], frames(roi).mean(axis=0), rtol=1e-6)
    assert done["num_frames"] == len(frames(roi))


# Valid data masking.


@pytest.mark.point(14, 16)
def test_custom_valid_mask(dataset, roi):
    done = run(CustomValidMask(), dataset, roi)
    sums = frames(roi).sum(axis=(1, 2))
    shape = NAV if roi is None else sums.shape
    np.testing.assert_allclose(done["custom_2d"], sums.reshape(shape))
    assert done.valid_mask["custom_2d"].shape == shape
    assert done.valid_mask["custom_2d"].all()
    assert done.masked["custom_2d"].count() == len(sums)


# Meta information.


@pytest.mark.point(19)
def test_pixelsum(dataset, roi):
    done = run(PixelsumUDF(), dataset, roi)
    np.testing.assert_allclose(done["pixelsum_nav_raw"], frames(roi).sum(axis=(1, 2)))


@pytest.mark.point(19)
def test_coordinates(dataset, roi):
    done = run(CoordUDF(), dataset, roi)
    expected = np.argwhere(np.ones(NAV) if roi is None else roi)
    np.testing.assert_array_equal(done.raw["coords"], expected)
    if roi is ROIS["two"]:
        assert np.all(done.raw["coords"] == np.array([(7, 13), (11, 3)]))


# CuPy and sparse arrays.


@pytest.mark.parametrize("backends", ["numpy", ("numpy",)])
def test_sum_over_the_signal(dataset, roi, backends):
    done = run(SumSigUDF(), dataset, roi, backends=backends)
    np.testing.assert_allclose(done["intensity"], in_place(frames(roi).sum(axis=(1, 2)), roi))


# Auto UDF.


def test_auto_udf(dataset, roi):
    expected = in_place(frames(roi).sum(axis=-1), roi)
    result = ud.map_frames(dataset, functools.partial(np.sum, axis=-1), roi=roi)
    np.testing.assert_allclose(result.compute(scheduler="synchronous"), expected)
    udf = AutoUDF(f=functools.partial(np.sum, axis=-1))
    np.testing.assert_allclose(run(udf, dataset, roi)["result"], expected)


# Tiled processing, task data, post-processing of partition results.


PEAKS = np.array([[2, 3], [3, 5]])
TEMPLATE = np.array([[1, 2, 1], [2, 4, 2], [1, 2, 1]], dtype="float32")


@pytest.mark.point(2, 10)
def test_correlation_with_postprocessing(dataset, roi):
    done = run(CorrelationUDF(PEAKS, 1, TEMPLATE), dataset, roi)
    assert sorted(done) == ["centers", "heights"]
    data = frames(roi)
    data = np.log(data - data.min(axis=(1, 2), keepdims=True) + 1)
    windows = np.lib.stride_tricks.sliding_window_view(data, (3, 3), axis=(1, 2))
    maps = np.einsum("nyxij,ij->nyx", windows, TEMPLATE)  # centered one pixel further in
    for p, (y, x) in enumerate(PEAKS):
        around = maps[:, y - 2 : y + 1, x - 2 : x + 1].reshape(len(data), 9)
        best = around.argmax(axis=1)
        np.testing.assert_allclose(done.raw["heights"][:, p], around.max(axis=1), rtol=1e-5)
        rows, columns = np.unravel_index(best, (3, 3))
        expected = np.stack([rows + y - 1, columns + x - 1], axis=-1)
        np.testing.assert_array_equal(done.raw["centers"][:, p], expected)


UDFS = [
    MySumUDF(),
    MySumMergeUDF(),
    AverageUDF(),
    CustomValidMask(),
    PixelsumUDF(),
    CoordUDF(),
    SumSigUDF(),
    AutoUDF(f=functools.partial(np.sum, axis=-1)),
    CorrelationUDF(PEAKS, 1, TEMPLATE),
]


def check_all(together, dataset, roi):
    """One after another or side by side, the results are the same."""
    for udf, beside in zip(UDFS, together, strict=True):
        alone = run(udf, dataset, roi)
        assert list(alone) == list(beside)
        for name in alone:
            if alone[name].dtype.kind == "f":
                np.testing.assert_allclose(alone[name], beside[name], rtol=1e-5)
            else:
                np.testing.assert_array_equal(alone[name], beside[name])


def test_all_of_them_in_one_pass(dataset, roi):
    together = ud.compute(*ud.run_udf(dataset, UDFS, roi=roi), scheduler="threads")
    check_all(together, dataset, roi)


@pytest.mark.parametrize("chunks", ["second nav axis", "uneven"])
def test_every_kind_of_array_on_every_scheduler(kind, options, folder, chunks):
    dataset = kind.from_array(CountedData(DATA, folder), CHUNKS[chunks])
    for roi in ROIS.values():
        lazy = kind.run(dataset, UDFS, roi=roi)
        assert not counts(folder)
        together = ud.compute(*lazy, **options)
        assert set(counts(folder).values()) == {1}
        check_all(together, da.from_array(DATA), roi)
