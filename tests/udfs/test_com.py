"""The center of mass and the field that it shows, against plain float64 NumPy."""

import math

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from making import SYNC, compute
from udfdask import ArgumentTypeError, ArgumentValueError
from udfdask.testing import raise_if_dask_computes
from udfdask.udfs import CoMUDF

NAV, SIG = (5, 6), (9, 12)
NAMES = (
    "raw_com",
    "raw_shifts",
    "field",
    "field_y",
    "field_x",
    "magnitude",
    "divergence",
    "curl",
    "regression",
)


def frames(dtype="uint16", nav=NAV, sig=SIG, seed=0):
    return np.random.default_rng(seed).integers(0, 90, (*nav, *sig)).astype(dtype)


def plain_com(data, cy=None, cx=None, r=math.inf, ri=0, roi=None):
    """Centers and shifts, one frame and one pixel at a time; NaN outside of the ROI."""
    *nav, ny, nx = data.shape
    cy, cx = ny // 2 if cy is None else cy, nx // 2 if cx is None else cx
    com, shifts = np.full((*nav, 2), np.nan), np.full((*nav, 2), np.nan)
    for place in np.ndindex(*nav):
        if roi is not None and not roi[place]:
            continue
        total, moments = 0.0, np.zeros(2)
        for y, x in np.ndindex(ny, nx):
            d2 = (y - cy) ** 2 + (x - cx) ** 2
            if d2 <= r * r and (ri == 0 or d2 > ri * ri):
                value = float(data[(*place, y, x)])
                total += value
                moments += value * np.array([y, x])
        com[place] = moments / total if total else (cy, cx)
        shifts[place] = com[place] - (cy, cx)
    return com, shifts


def plain_field(shifts, scan_rotation=0, flip_y=False, regression=-1):
    """All that follows from shifts of shape (ny, nx, 2)."""
    t = math.radians(scan_rotation)
    turn = np.array([[math.cos(t), math.sin(t)], [-math.sin(t), math.cos(t)]])
    flip = np.diag([-1.0 if flip_y else 1.0, 1.0])
    field = np.einsum("ij,yxj->yxi", turn @ flip, shifts)
    y, x = np.mgrid[: shifts.shape[0], : shifts.shape[1]]
    design = np.stack([np.ones(y.shape), y, x], axis=-1)
    valid = np.isfinite(field).all(axis=-1)
    plane = np.zeros((3, 2))
    if np.ndim(regression):
        plane = np.asarray(regression, dtype=float)
    elif regression == 0:
        plane[0] = field[valid].mean(axis=0)
    elif regression == 1:
        plane = np.linalg.pinv(design[valid]) @ field[valid]
    field = field - design @ plane
    fy, fx = field[..., 0], field[..., 1]
    div = np.gradient(fy, axis=0) + np.gradient(fx, axis=1)
    curl = np.gradient(fy, axis=1) - np.gradient(fx, axis=0)
    return {
        "field": field,
        "field_y": fy,
        "field_x": fx,
        "magnitude": np.hypot(fy, fx),
        "divergence": np.where(valid, div, np.nan),
        "curl": np.where(valid, curl, np.nan),
        "regression": plane,
    }


def plain(data, roi=None, scan_rotation=0, flip_y=False, regression=-1, **mask):
    com, shifts = plain_com(data, roi=roi, **mask)
    return {
        "raw_com": com,
        "raw_shifts": shifts,
        **plain_field(shifts, scan_rotation, flip_y, regression),
    }


def assert_close(found, wanted):
    assert set(found) == set(wanted)
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-11, atol=1e-11, err_msg=name)


CASES = [
    {},
    {"r": 3},
    {"cy": 3.3, "cx": 7.5, "r": 4, "ri": 1.5},
    {"cy": 4, "cx": 4, "ri": 2},
    {"cy": -1, "cx": 13, "r": 6},
    {"scan_rotation": 37.5, "flip_y": True},
    {"regression": 0},
    {"regression": 1, "scan_rotation": -120},
    {"regression": [[1, 2], [0.1, 0.2], [0.3, -0.4]], "flip_y": True, "r": 4.2},
]


@pytest.mark.parametrize("roi", [None, "some"])
@pytest.mark.parametrize("parameters", CASES, ids=str)
def test_results_follow_the_formulas(parameters, roi):
    data = frames()
    data[1, 2] = 0  # a frame without a center
    mask = None if roi is None else np.random.default_rng(3).random(NAV) < 0.8
    x = da.from_array(data, chunks=(2, 4, 5, 12))
    found = compute(x, CoMUDF(**parameters), roi=mask)
    assert_close(found, plain(data, mask, **parameters))


@pytest.mark.full
@pytest.mark.parametrize(
    "dtype",
    ["u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "g", "?", ">u2", ">f4"],
)
def test_every_real_dtype(dtype):
    data = frames("int64")
    if np.dtype(dtype).kind in "if":
        data[..., ::3] *= -1
    data = data.astype(dtype)
    found = compute(da.from_array(data, chunks=(3, 6, 9, 5)), CoMUDF(r=4))
    assert_close(found, plain(data, r=4))
    assert all(found[name].dtype == np.float64 for name in NAMES)


@pytest.mark.full
@pytest.mark.parametrize("dtype", ["u1", "u2", "i1", "i2"])
def test_sums_of_small_integers_do_not_wrap(dtype):
    info = np.iinfo(dtype)
    for value in {info.min, info.max} - {0}:
        data = np.full((1, 2, 300, 600), value, dtype)
        found = compute(da.from_array(data), CoMUDF(), roi=np.ones((1, 2), bool))
        np.testing.assert_array_equal(found["raw_com"], [[[149.5, 299.5]] * 2])


@pytest.mark.parametrize(
    ("scan_rotation", "flip_y", "seen"),
    [
        (0, False, (0, 1)),
        (90, False, (1, 0)),  # clockwise on a screen: +x goes to +y
        (180, False, (0, -1)),
        (-90, False, (-1, 0)),
        (0, True, (0, 1)),
        (90, True, (1, 0)),
    ],
)
def test_a_shift_along_x_is_turned(scan_rotation, flip_y, seen):
    data = np.zeros((2, 2, 8, 8))
    data[..., 4, 5] = 1
    found = compute(da.from_array(data), CoMUDF(scan_rotation=scan_rotation, flip_y=flip_y))
    np.testing.assert_allclose(found["field"], np.broadcast_to(seen, (2, 2, 2)), atol=1e-15)
    np.testing.assert_array_equal(found["raw_shifts"], np.broadcast_to((0, 1), (2, 2, 2)))


def test_flip_comes_before_turning():
    data = np.zeros((2, 2, 8, 8))
    data[..., 5, 4] = 1  # +y; flipped -y; by +90 degrees from -y to +x
    found = compute(da.from_array(data), CoMUDF(scan_rotation=90, flip_y=True))
    np.testing.assert_allclose(found["field_x"], 1)
    np.testing.assert_allclose(found["field_y"], 0, atol=1e-15)


def test_divergence_and_curl_have_their_signs():
    y, x = np.mgrid[-2:3, -2:3]
    for spot, divergence, curl in [((y, x), 2, 0), ((x, -y), 0, 2), ((-y, -x), -2, 0)]:
        data = np.zeros((5, 5, 9, 9), "u1")
        for place in np.ndindex(5, 5):
            data[(*place, 4 + spot[0][place], 4 + spot[1][place])] = 7
        found = compute(da.from_array(data, chunks=(2, 3, 9, 9)), CoMUDF())
        np.testing.assert_allclose(found["divergence"], divergence)
        np.testing.assert_allclose(found["curl"], curl)


def test_linear_regression_takes_away_a_plane():
    data = np.zeros((6, 7, 40, 40), "u2")
    for y, x in np.ndindex(6, 7):
        data[y, x, 5 + 2 * y + x, 9 + 3 * x] = 5
    x = da.from_array(data, chunks=(2, 3, 40, 40))
    found = compute(x, CoMUDF(regression=1))
    np.testing.assert_allclose(found["field"], 0, atol=1e-12)
    np.testing.assert_allclose(found["regression"], [[-15, -11], [2, 0], [1, 3]], atol=1e-12)
    again = compute(x, CoMUDF(regression=found["regression"]))
    np.testing.assert_array_equal(again["field"], found["field"])
    np.testing.assert_array_equal(found["raw_shifts"][0, 0], [-15, -11])


def test_regression_leaves_out_frames_without_a_number():
    data = frames("f8")
    data[2, 2, 0, 0] = np.nan
    found = compute(da.from_array(data, chunks=(3, 3, 9, 12)), CoMUDF(regression=1))
    without = np.ones(NAV, dtype=bool)
    without[2, 2] = False
    alone = compute(da.from_array(data), CoMUDF(regression=1), roi=without)
    np.testing.assert_allclose(found["regression"], alone["regression"], rtol=1e-12)
    np.testing.assert_allclose(found["field"], alone["field"], rtol=1e-12)
    assert np.isnan(found["raw_com"][2, 2]).all()


def test_pixels_outside_of_the_mask_are_not_read():
    data = frames("f8")
    want = compute(da.from_array(data), CoMUDF(r=3, ri=1))
    data[..., 0, 0] = np.nan
    data[..., 4, 6] = np.inf  # the center
    found = compute(da.from_array(data), CoMUDF(r=3, ri=1))
    assert_close(found, want)


def test_an_empty_roi_gives_nan_without_a_warning():
    for regression in (-1, 0, 1):
        udf = CoMUDF(regression=regression)
        found = compute(da.from_array(frames()), udf, roi=np.zeros(NAV, dtype=bool))
        assert np.isnan(found["curl"]).all()
        assert np.isnan(found["regression"][0]).all() == (regression != -1)


@pytest.mark.parametrize("nav", [(), (6,), (1, 6), (6, 1), (2, 3, 2)])
def test_a_scan_without_two_axes_has_no_derivatives(nav):
    data = frames(nav=nav)
    found = compute(da.from_array(data, chunks=(1,) * len(nav) + SIG), CoMUDF(flip_y=True))
    assert list(found) == ["raw_com", "raw_shifts", "field", "field_y", "field_x", "magnitude"]
    com, shifts = plain_com(data)
    np.testing.assert_allclose(found["raw_com"], com)
    np.testing.assert_allclose(found["field"], shifts * (-1, 1), atol=1e-12)
    for regression in (0, 1, np.zeros((3, 2))):
        with pytest.raises(ArgumentValueError, match=r"regression needs a 2-D scan .* leave it"):
            ud.run_udf(da.from_array(data), CoMUDF(regression=regression))


def test_snapshots_hold_nan_where_nothing_is_known():
    data = frames()
    whole = plain(data)
    x = da.from_array(data, chunks=(2, 6, 9, 12))
    snapshots = list(ud.run_udf_iter(x, CoMUDF(regression=0), scheduler="synchronous"))
    assert len(snapshots) == 3
    for snapshot in snapshots:
        result, done = snapshot.buffers[0], snapshot.damage
        assert 0 < done.sum() <= done.size
        np.testing.assert_allclose(result["raw_com"][done], whole["raw_com"][done])
        for name in NAMES[:-1]:
            assert np.isnan(result[name][~done]).all(), name
            np.testing.assert_array_equal(
                result.valid_mask[name], ~np.isnan(result[name]), err_msg=name
            )
        mean = whole["raw_shifts"][done].mean(axis=0)
        np.testing.assert_allclose(result["regression"], [mean, [0, 0], [0, 0]])
    # rows at the border of what is known have a neighbor less
    np.testing.assert_allclose(snapshots[0].buffers[0]["curl"][0], whole["curl"][0], atol=1e-12)
    assert np.isnan(snapshots[0].buffers[0]["curl"][1]).all()


def test_valid_masks_know_where_derivatives_are_missing():
    roi = np.ones(NAV, dtype=bool)
    roi[2, 2] = False
    found = compute(da.from_array(frames(), chunks=(2, 3, 9, 12)), CoMUDF(), roi=roi)
    assert np.array_equal(found.valid_mask["magnitude"], roi)
    missing = ~found.valid_mask["divergence"]
    assert {(2, 2), (1, 2), (3, 2), (2, 1), (2, 3)} == set(map(tuple, np.argwhere(missing)))


def test_axes_of_results():
    result = ud.run_udf(da.from_array(frames()), CoMUDF())
    (vector,) = result.extra_axes["field"]
    assert (vector.name, vector.labels) == ("component", ("y", "x"))
    assert [axis.labels for axis in result.extra_axes["regression"]] == [
        ("1", "y", "x"),
        ("y", "x"),
    ]
    assert list(result) == [*NAMES]


def test_with_params_is_the_same():
    given = {"cy": 3, "cx": 4, "r": 5, "ri": 1, "scan_rotation": 6, "flip_y": True}
    assert repr(CoMUDF.with_params(**given, regression=1)) == repr(CoMUDF(**given, regression=1))
    assert repr(CoMUDF.with_params()) == repr(CoMUDF())


def test_a_centre_may_be_the_result_of_another_run():
    data = frames()
    x = da.from_array(data, chunks=(2, 3, 9, 12))
    center = ud.run_udf(x, CoMUDF())["raw_com"].mean(axis=(0, 1))
    found = compute(x, CoMUDF(cy=center[0], cx=center[1], r=3))
    cy, cx = plain_com(data)[0].mean(axis=(0, 1))
    assert_close(found, plain(data, cy=cy, cx=cx, r=3))


def test_an_angle_and_a_flip_may_be_lazy():
    data = frames()
    x = da.from_array(data, chunks=(2, 3, 9, 12))
    with raise_if_dask_computes():
        lazy = CoMUDF(scan_rotation=da.ones(()) * 20, flip_y=da.ones((), dtype=bool))
        result = ud.run_udf(x, lazy)
    assert_close(result.compute(**SYNC), plain(data, scan_rotation=20, flip_y=True))


def test_numbers_may_be_arrays_without_axes():
    data = frames()
    numbers = {"cy": np.array(4.0), "cx": np.float32(5), "r": np.array(3)}
    found = compute(da.from_array(data), CoMUDF(**numbers, flip_y=np.array(True)))
    assert_close(found, plain(data, cy=4, cx=5, r=3, flip_y=True))


def test_a_subclass_may_make_more_of_the_field():
    class Energy(CoMUDF):
        def get_result_buffers(self):
            more = self.buffer(kind="nav", dtype="float64", use="result_only")
            return {**super().get_result_buffers(), "energy": more}

        def get_field_results(self, field_y, field_x):
            before = super().get_field_results(field_y, field_x)
            return {**before, "energy": field_y**2 + field_x**2}

    found = compute(da.from_array(frames(), chunks=(2, 3, 9, 12)), Energy(), roi=(slice(1, 4),))
    np.testing.assert_allclose(found["energy"], found["magnitude"] ** 2)


def test_signal_chunks_have_tasks_of_their_own():
    x = da.from_array(frames(sig=(16, 16)), chunks=(5, 6, 2, 8))
    result = ud.run_udf(x, CoMUDF(r=5))
    assert_close(result.compute(**SYNC), plain(frames(sig=(16, 16)), r=5))


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"r": -1}, ArgumentValueError),
        ({"ri": -1}, ArgumentValueError),
        ({"r": 2, "ri": 2}, ArgumentValueError),
        ({"r": "2 mrad", "ri": "8 mrad"}, ArgumentValueError),
        ({"r": 0}, ArgumentValueError),
        ({"r": math.nan}, ArgumentValueError),
        ({"r": "3"}, ArgumentTypeError),
        ({"cy": "3"}, ArgumentTypeError),
        ({"r": "wide"}, ArgumentTypeError),
        ({"cy": math.inf}, ArgumentValueError),
        ({"cx": (1, 2)}, ArgumentTypeError),
        ({"scan_rotation": "left"}, ArgumentTypeError),
        ({"scan_rotation": math.inf}, ArgumentValueError),
        ({"flip_y": 1}, ArgumentTypeError),
        ({"regression": 2}, ArgumentValueError),
        ({"regression": 0.5}, ArgumentValueError),
        ({"regression": True}, ArgumentTypeError),
        ({"regression": "mean"}, ArgumentTypeError),
        ({"regression": np.zeros((2, 3))}, ArgumentValueError),
        ({"regression": [[1, 2], [3]]}, ArgumentTypeError),
    ],
    ids=str,
)
def test_wrong_parameters_are_named(parameters, error):
    with pytest.raises(error):
        CoMUDF(**parameters)
    with pytest.raises(error):
        CoMUDF.with_params(**parameters)


def test_wrong_data_are_named_before_there_is_a_graph():
    with pytest.raises(ArgumentValueError, match=r"2-D frames, .* shape \(3, 9, 12\): pass sig_d"):
        ud.run_udf(da.ones((4, 3, 9, 12)), CoMUDF(), sig_dims=3)
    with pytest.raises(ArgumentTypeError, match=r"CoMUDF works on real numbers, .* complex128"):
        ud.run_udf(da.ones((4, 5, 9, 12), dtype=complex), CoMUDF())
    with pytest.raises(ArgumentValueError, match=r"frames have the shape \(0, 12\)"):
        ud.run_udf(da.ones((4, 5, 0, 12)), CoMUDF())
    with pytest.raises(ArgumentValueError, match=r"no pixel of frames .* correct the center"):
        ud.run_udf(da.ones((4, 5, 9, 12)), CoMUDF(cy=64, cx=64, r=10))
    for r, ri in ((2.2, 2.1), (100, 50)):
        with pytest.raises(ArgumentValueError, match=rf"no pixel .* in the ring ri={ri} < d <= r"):
            ud.run_udf(da.ones((4, 5, 9, 12)), CoMUDF(r=r, ri=ri))
