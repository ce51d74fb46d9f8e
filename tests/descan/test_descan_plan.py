"""What the plan says to shifts: mistakes, names of runs, `explain`, predicted memory, warnings."""

import pickle

import dask
import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from udfdask.corrections import CorrectionSet, Descan
from udfdask.testing import raise_if_dask_computes
from udfdask.udfs import CoMUDF, SumSigUDF, SumUDF

SIG = (8, 9)
DATA = np.random.default_rng(0).integers(0, 900, (4, 6, *SIG)).astype("uint16")
SHIFTS = np.random.default_rng(1).uniform(-3, 3, (4, 6, 2))
X = da.from_array(DATA, chunks=(2, 3, *SIG), name="x")
HOLES = np.where(np.arange(48).reshape((4, 6, 2)) == 13, np.nan, SHIFTS)
INFINITE = np.where(np.arange(48).reshape((4, 6, 2)) == 13, -np.inf, SHIFTS)
UNKNOWN = da.from_array(SHIFTS, chunks=2)[da.from_array(np.ones(4, dtype=bool))]


@pytest.mark.parametrize(
    "descan",
    [
        SHIFTS[0],
        np.moveaxis(SHIFTS, -1, 0),
        (1, -2),
        SHIFTS.reshape((24, 2)),
        SHIFTS[..., :1],
        3,
        [[1], [2, 3]],
        INFINITE,
        UNKNOWN,
        Descan(SHIFTS, fill=-1),
        Descan(SHIFTS, fill=0.5),
        Descan(SHIFTS, fill=np.nan),
        Descan(SHIFTS, fill=10**30),
        Descan(SHIFTS, subpixel=True, fill=1j),
    ],
)
def test_a_wrong_value_is_an_error_of_the_plan(descan):
    with raise_if_dask_computes(), pytest.raises(ud.ArgumentValueError):
        ud.run_udf(X, SumUDF(), descan=descan)


@pytest.mark.parametrize(
    "descan",
    [
        SHIFTS * 1j,
        da.from_array(SHIFTS.astype("c8")),
        SHIFTS > 0,
        SHIFTS.astype("M8[s]"),
        SHIFTS.astype(object),
        "raw_shifts",
        np.ma.masked_array(SHIFTS),
        dask.delayed(SHIFTS),
        Descan,
        False,
        {"shifts": SHIFTS},
    ],
)
def test_a_wrong_type_is_an_error_of_the_plan(descan):
    with raise_if_dask_computes(), pytest.raises(ud.ArgumentTypeError):
        ud.run_udf(X, SumUDF(), descan=descan)


def test_a_result_is_not_an_array():
    com = ud.run_udf(X, CoMUDF())
    with pytest.raises(ud.ArgumentTypeError, match=r'result\["raw_shifts"\]'):
        ud.run_udf(X, SumUDF(), descan=com)


def test_dates_are_not_shifted():
    with pytest.raises(ud.ArgumentTypeError, match=r"numbers, not datetime64"):
        ud.run_udf(X.astype("M8[s]"), SumUDF(), descan=SHIFTS)


@pytest.mark.parametrize(
    "arguments",
    [
        {"shifts": None},
        {"shifts": Descan(SHIFTS)},
        {"shifts": SHIFTS, "subpixel": 1},
        {"shifts": SHIFTS, "fill": "0"},
        {"shifts": SHIFTS, "fill": None},
    ],
)
def test_arguments_of_the_value(arguments):
    with pytest.raises(ud.ArgumentTypeError):
        Descan(**arguments)


def test_frames_without_a_shift_are_empty_and_counted():
    with pytest.warns(ud.UDFWarning, match=r"no shift \(NaN\) for 1 of 24 frames.*isfinite"):
        result = ud.run_udf(X, SumSigUDF(), descan=HOLES)
    sums = result["intensity"].compute()
    assert sums[1, 0] == 0
    assert (sums != 0).sum() == 23
    roi = np.isfinite(HOLES).all(axis=-1)
    for given in (HOLES, INFINITE):  # no frame that is processed lacks a shift
        left = ud.run_udf(X, SumSigUDF(), descan=given, roi=roi)["intensity"].compute()
        np.testing.assert_array_equal(left[roi], sums[roi])


def test_infinite_shifts_of_a_dask_array_fail_where_they_are_computed():
    result = ud.run_udf(X, SumSigUDF(), descan=da.from_array(INFINITE))
    with pytest.raises(ud.UDFError, match=r"infinite shift"):
        result.compute(scheduler="sync")


def test_blocks_that_are_not_as_announced():
    wrong = da.from_array(SHIFTS, chunks=(2, 3, 2)).map_blocks(lambda b: b[:1], dtype=float)
    with pytest.raises(ud.UDFError, match=r"shifts of descan: a chunk of shape \(2, 3, 2\) was"):
        ud.run_udf(X, SumSigUDF(), descan=wrong).compute(scheduler="sync")


def test_shifts_far_beyond_the_frame_leave_nothing():
    for size in (8, 9, 1e9, 1e300):
        for subpixel in (False, True):
            given = Descan(np.full((4, 6, 2), size), subpixel=subpixel, fill=2)
            sums = ud.run_udf(X, SumSigUDF(), descan=given)["intensity"]
            assert (sums.compute() == 2 * 72).all()


def test_halves_go_to_the_even_pixel():
    spots = np.zeros((4, 5), dtype="uint8")
    spots[:, 2] = 1
    shifts = np.array([-0.5, 0.5, 1.5, 2.5])
    options = {"sig_dims": 1, "descan": shifts}
    found = ud.run_udf(da.from_array(spots), ud.udfs.PickUDF(), **options)["intensity"].compute()
    np.testing.assert_array_equal(found.argmax(axis=1), [2, 2, 0, 0])


def test_names_of_runs():
    def name(descan=None, **options):
        return ud.run_udf(X, SumUDF(), descan=descan, **options)["intensity"].name

    lazy = da.from_array(SHIFTS, chunks=2, name="shifts")
    equal = [[SHIFTS, Descan(SHIFTS), SHIFTS.copy(), SHIFTS.tolist()], [lazy, Descan(lazy)]]
    for group in equal:
        assert len({name(descan) for descan in group}) == 1
    others = [
        None,
        SHIFTS,
        SHIFTS + 1e-9,
        lazy,
        Descan(SHIFTS, subpixel=True),
        Descan(SHIFTS, fill=1),
    ]
    assert len({name(descan) for descan in others}) == len(others)


def test_shifts_are_copied():
    shifts = SHIFTS.copy()
    descan = Descan(shifts)
    planned = [ud.run_udf(X, SumUDF(), descan=given) for given in (shifts, descan)]
    shifts[...] = 0
    planned.append(ud.run_udf(X, SumUDF(), descan=descan))
    expected = ud.run_udf(X, SumUDF(), descan=SHIFTS)["intensity"].compute()
    for result in planned:
        np.testing.assert_array_equal(result["intensity"].compute(), expected)
    again = pickle.loads(pickle.dumps(descan))
    with pytest.raises(ValueError, match="read-only"):
        again.shifts[...] = 0
    assert repr(again) == "Descan(shifts=(4, 6, 2) float64)"
    many = Descan(da.from_array(SHIFTS), subpixel=True, fill=1)
    assert repr(many) == "Descan(shifts=(4, 6, 2) float64 lazy, subpixel=True, fill=1)"


def test_explain():
    assert "descans" in dict(ud.explain(X, SumUDF(), descan=SHIFTS).lines)
    lazy = Descan(da.from_array(SHIFTS), subpixel=True, fill=1.5)
    plan = ud.explain(X, [SumUDF(), SumSigUDF()], descan=lazy)
    assert "1.5" in dict(plan.lines)["descans"]
    assert plan.passes == 1
    assert "descans" not in dict(ud.explain(X, SumUDF()).lines)


@pytest.mark.usefixtures("warns_of_few_data")
def test_shifted_frames_need_all_signal_chunks():
    x = X.rechunk((2, 3, 1, 9))
    assert "one for each signal chunk" in str(ud.explain(x, SumUDF()))
    with pytest.warns(ud.UDFWarning, match="shifted frames need pixels of several signal chunks"):
        result = ud.run_udf(x, SumUDF(), descan=SHIFTS)
    expected = ud.run_udf(X, SumUDF(), descan=SHIFTS)["intensity"].compute()
    np.testing.assert_array_equal(result["intensity"].compute(), expected)


def test_the_copies_of_tiles_are_predicted():
    plain, whole, parts = (
        ud.explain(X, SumUDF(), descan=descan).memory.copies
        for descan in (None, SHIFTS, Descan(SHIFTS, subpixel=True))
    )
    assert (plain, whole, parts) == (0, 6 * 72 * 2, 6 * 72 * 4)
    corrections = CorrectionSet(dark=np.ones(SIG))
    both = ud.explain(X, SumUDF(), descan=SHIFTS, corrections=corrections).memory.copies
    assert both == 2 * 6 * 72 * 4


def test_the_own_center_of_mass_removes_the_descan():
    """Lazy shifts that are computed from the same data, in one pass."""
    y, x = np.mgrid[:16, :16]
    places = 8 + np.random.default_rng(3).integers(-3, 4, (4, 5, 2))
    spots = np.hypot(y - places[..., :1, None], x - places[..., 1:, None]) < 2.5
    array = da.from_array(spots.astype("uint8"), chunks=(2, 5, 16, 16))
    com = ud.run_udf(array, CoMUDF())
    centered = ud.run_udf(array, [CoMUDF(), SumUDF()], descan=com["raw_shifts"])
    after, total = ud.compute(*centered)
    np.testing.assert_allclose(after["raw_shifts"], 0, atol=1e-9)
    np.testing.assert_array_equal(total["intensity"], 20 * (np.hypot(y - 8, x - 8) < 2.5))
