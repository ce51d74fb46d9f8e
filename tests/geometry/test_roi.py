"""Regions of interest: every form, their cost, and the values outside."""

import dask
import dask.array as da
import numpy as np
import pytest

import udf_zoo
import udfdask as ud
from counting import CountedData, counts
from udfdask.testing import run_reference
from udfdask.udfs import SumSigUDF, SumUDF

NAV = (4, 5)
DATA = np.arange(4 * 5 * 2 * 3).reshape(4, 5, 2, 3)
ARRAY = da.from_array(DATA, chunks=(2, 3, 2, 2))
SUMS = DATA.sum(axis=(2, 3))


def mask_of(*positions):
    mask = np.zeros(NAV, dtype=bool)
    for position in positions:
        mask[position] = True
    return mask


FORMS = {
    "mask": (lambda: mask_of((1, 2), (3, 4)), mask_of((1, 2), (3, 4))),
    "nested list": (lambda: mask_of((1, 2)).tolist(), mask_of((1, 2))),
    "position": (lambda: (1, 2), mask_of((1, 2))),
    "position from the end": (lambda: (-1, -2), mask_of((3, 3))),
    "slices": (lambda: np.s_[1:3, 2:4], mask_of(np.s_[1:3, 2:4])),
    "slice and int": (lambda: np.s_[1:3, 2], mask_of(np.s_[1:3, 2])),
    "steps": (lambda: np.s_[::2, ::-2], mask_of(np.s_[::2, ::-2])),
    "one slice": (lambda: np.s_[1:3], mask_of(np.s_[1:3])),
    "ellipsis": (lambda: np.s_[..., 1], mask_of(np.s_[..., 1])),
    "switched on": (lambda: [((1, 2), True), ((3, 4), True)], mask_of((1, 2), (3, 4))),
    "switched off": (lambda: [((1, 2), False), ((3, 4), False)], ~mask_of((1, 2), (3, 4))),
    "on and off": (lambda: [((1, 2), True), ((1, 3), True), ((1, 2), False)], mask_of((1, 3))),
    "full": (lambda: np.ones(NAV, bool), ~mask_of()),
}


@pytest.mark.point(22)
@pytest.mark.parametrize("form", FORMS)
def test_every_form(form):
    make, mask = FORMS[form]
    result = ud.run_udf(ARRAY, [udf_zoo.NavSums(), SumUDF()], roi=make())
    sums, total = ud.compute(*result)
    np.testing.assert_array_equal(sums.raw["sums"], SUMS[mask])
    np.testing.assert_array_equal(sums["sums"], np.where(mask, SUMS, 0))
    np.testing.assert_array_equal(total["intensity"], DATA[mask].sum(axis=0))


@pytest.mark.point(22)
@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32"])
def test_another_dtype_warns_and_casts(dtype):
    roi = mask_of((1, 2)).astype(dtype) * 3
    with pytest.warns(ud.UDFWarning, match=f"dtype {dtype} and is cast to bool"):
        result = ud.run_udf(ARRAY, udf_zoo.NavSums(), roi=roi)
    assert result.compute().raw["sums"] == SUMS[1:2, 2]


@pytest.mark.point(22)
@pytest.mark.parametrize(
    ("roi", "error"),
    [
        (np.ones((4, 4), bool), ud.ArgumentValueError),
        ((1, 2, 3), ud.ArgumentValueError),
        ((4, 0), ud.ArgumentValueError),
        ((-5, 0), ud.ArgumentValueError),
        (np.s_[1:2, 1:2, 1:2], ud.ArgumentValueError),
        ("all", ud.ArgumentTypeError),
        (da.ones(NAV, dtype=bool), ud.ArgumentTypeError),
        ([((9, 9), True)], ud.ArgumentValueError),
    ],
)
def test_what_is_no_roi(roi, error):
    with pytest.raises(error):
        ud.run_udf(ARRAY, udf_zoo.NavSums(), roi=roi)


@pytest.mark.point(22)
@pytest.mark.parametrize(
    ("roi", "match"),
    [
        (np.zeros(NAV, bool), "the roi selects no position"),
        (np.zeros(20, bool), "the roi selects no position"),
        (np.s_[4:9], r"the roi slice\(4, 9, None\) selects no position .* \(4, 5\)"),
        (np.s_[:, 5:], r"the roi \(slice.*slice\(5, None, None\)\) selects no position"),
        (np.s_[3:1, 2], "selects no position"),
        ([((1, 2), True), ((1, 2), False)], "the roi selects no position"),
    ],
    ids="mask flat outside columns reversed entries".split(),
)
def test_a_roi_without_positions_warns(roi, match):
    """Nothing is processed then: the results hold fill values, as those of other positions do."""
    with pytest.warns(ud.UDFWarning, match=match):
        result = ud.run_udf(ARRAY, udf_zoo.NavSums(), roi=roi)
    assert not result.compute()["sums"].any()
    with pytest.warns(ud.UDFWarning, match=match):
        list(ud.run_udf_iter(ARRAY, udf_zoo.NavSums(), roi=roi))
    with pytest.warns(ud.UDFWarning, match=match):
        ud.map_frames(ARRAY, np.sum, roi=roi)
    assert "selects no position" in ud.explain(ARRAY, udf_zoo.NavSums(), roi=roi).text


SHAPES = [(20,), NAV, (1, 4, 1, 5), (20, 1), (5, 4), (2, 10), (2, 2, 5), (10, 1, 2)]


def sparse_forms(mask):
    """Return the mask in the sparse formats that support its number of axes."""
    sparse = pytest.importorskip("sparse")
    scipy_sparse = pytest.importorskip("scipy.sparse")
    yield sparse.COO.from_numpy(mask)
    yield sparse.GCXS.from_numpy(mask)
    if mask.ndim == 2:
        yield scipy_sparse.csr_matrix(mask)
        yield scipy_sparse.coo_array(mask)


@pytest.mark.point(22)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_mask_is_flat_or_has_the_shape_of_the_scan(shape):
    """A transposed mask would select the wrong frames."""
    mask = mask_of((0, 1), (3, 4)).reshape(shape)
    axes = tuple(n for n in shape if n != 1)
    forms = [mask, mask.tolist(), *sparse_forms(mask)]
    for form in forms:
        if axes in (NAV, (20,)):
            sums = ud.run_udf(ARRAY, udf_zoo.NavSums(), roi=form).compute().raw["sums"]
            np.testing.assert_array_equal(sums, SUMS[[0, 3], [1, 4]])
        else:
            with pytest.raises(ud.ArgumentValueError, match=r"navigation shape .* is \(4, 5\)"):
                ud.run_udf(ARRAY, udf_zoo.NavSums(), roi=form)


@pytest.mark.point(22)
@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda m: np.where(m, 1.0, np.nan), ud.ArgumentValueError),
        (lambda m: np.where(m, 1j, np.nan), ud.ArgumentValueError),
        (lambda m: np.ma.masked_array(m, ~m), ud.ArgumentTypeError),
        (lambda m: m.astype("m8[s]"), ud.ArgumentTypeError),
        (lambda m: m.astype("M8[s]"), ud.ArgumentTypeError),
    ],
)
def test_values_that_are_neither_true_nor_false(make, error):
    with pytest.raises(error):
        ud.run_udf(ARRAY, udf_zoo.NavSums(), roi=make(mask_of((1, 2))))


def test_one_frame_of_ten_thousand_chunks_is_one_chunk(tmp_path):
    data = np.broadcast_to(np.float32(1), (100, 100, 2, 2))
    array = da.from_array(CountedData(data, tmp_path), chunks=(1, 1, 2, 2), meta=np.empty(0, "f4"))
    total, sums, all_of_it = ud.run_udf(
        array, [SumUDF(), SumSigUDF(), udf_zoo.MergeAllNav()], roi=(57, 31)
    )
    assert total.explain().n_chunks == 1
    (optimized,) = dask.optimize(total["intensity"])
    assert len(dict(optimized.dask)) < 10
    done = ud.compute(total, sums, all_of_it, scheduler="sync")
    assert done[0]["intensity"].sum() == 4
    assert np.nansum(done[1]["intensity"]) == 4
    assert done[2]["sums"][57, 31] == 4
    assert counts(tmp_path) == {"load-57-31-0-0": 1}


@pytest.mark.point(23)
@pytest.mark.parametrize("cls", udf_zoo.ZOO, ids=lambda c: c.__name__)
def test_every_udf_on_no_frame(cls):
    if cls is udf_zoo.MergeAllOnce:
        pytest.skip("a median of nothing warns")
    roi = np.zeros(NAV, bool)
    done = ud.run_udf(ARRAY, cls(), roi=roi).compute(scheduler="sync")
    wanted = run_reference(DATA, cls(), roi=roi)
    for name in wanted:
        np.testing.assert_array_equal(done[name], wanted[name])
        if done.buffers[name].kind == "nav":
            assert len(done.raw[name]) == 0
            assert not done.valid_mask[name].any()
