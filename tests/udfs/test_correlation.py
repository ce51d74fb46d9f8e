"""Discs found by template matching, against a reference of plain loops and known positions."""

import functools

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from correlation_oracle import correlate
from udfdask import ArgumentTypeError, ArgumentValueError
from udfdask.masks import DiskTemplate, circular
from udfdask.testing import check_udf, raise_if_dask_computes
from udfdask.udfs import CorrelationUDF

# a task takes all signal chunks of its frames, since maxima are found in whole maps
pytestmark = pytest.mark.filterwarnings("ignore:a task takes .* signal chunks:udfdask.UDFWarning")

NAV, SIG = (3, 4), (26, 30)
PEAKS = np.array([(6, 7), (8.4, 20.6), (18, 15), (1, 28), (40, 5)])  # beyond an edge, far outside
DISC = DiskTemplate(radius=2.5)
RING = DiskTemplate(radius=2.5, radius_outer=4)
OWN = np.random.default_rng(1).normal(size=(4, 5))
SHIFTS = np.random.default_rng(2).uniform(-4, 4, (*NAV, 2))
CHUNKS = {
    "one": (*NAV, *SIG),
    "frames": (1, 1, *SIG),
    "rows": (2, 4, *SIG),
    "signal": (2, 3, 11, 13),
    "signal rows": (3, 2, 5, 30),
    "uneven": ((1, 2), (3, 1), (2, 20, 4), (29, 1)),
}
ROI = np.random.default_rng(3).random(NAV) < 0.5


def scan(dtype="float32"):
    """Noisy frames with discs near the expected positions, each frame moved by `SHIFTS`."""
    rng = np.random.default_rng(4)
    frames = rng.uniform(0, 40, (*NAV, *SIG))
    for place in np.ndindex(NAV):
        for y, x in PEAKS + SHIFTS[place] + rng.uniform(-1, 1, (len(PEAKS), 2)):
            frames[place] += 500 * circular(x, y, *SIG[::-1], radius=2.5, antialiased=True)
    return frames.astype(dtype)


DATA = scan()


def run(udf, data, **options):
    return ud.run_udf(data, udf, sig_dims=2, **options).compute(scheduler="synchronous")


def assert_close(got, want, rows=slice(None)):
    np.testing.assert_array_equal(got["centers"], want["centers"][rows])
    np.testing.assert_allclose(got["refineds"], want["refineds"][rows], atol=2e-4)
    for name in ("peak_values", "peak_elevations"):
        np.testing.assert_allclose(got[name], want[name][rows], rtol=2e-4, atol=2e-4)


TEMPLATES = {"ring": RING.array(), "disc": DISC.array(), "own": OWN}


@functools.cache
def reference(name="ring", steps=3, moved=None, log_scale=True):
    """What loops give for all frames of `DATA`: moved each by `SHIFTS`, or all by one shift."""
    shifts = SHIFTS.reshape((-1, 2)) if moved == "each" else moved
    frames = DATA.reshape((-1, *SIG))
    return correlate(frames, PEAKS, TEMPLATES[name], steps, shifts, log_scale)


@pytest.fixture(params=CHUNKS)
def dataset(request):
    return da.from_array(DATA, chunks=CHUNKS[request.param])


@pytest.mark.parametrize("log_scale", [True, False])
@pytest.mark.parametrize("roi", [None, ROI], ids=["all", "roi"])
def test_it_is_what_loops_give(dataset, log_scale, roi):
    udf = CorrelationUDF(PEAKS, RING, steps=3, log_scale=log_scale)
    rows = (np.ones(NAV, bool) if roi is None else roi).reshape(-1)
    assert_close(run(udf, dataset, roi=roi).raw, reference(log_scale=log_scale), rows)


@pytest.mark.parametrize("log_scale", [True, False])
@pytest.mark.parametrize(("name", "template"), [("disc", DISC), ("own", OWN)])
def test_templates(name, template, log_scale):
    udf = CorrelationUDF(PEAKS, template, steps=3, log_scale=log_scale)
    got = run(udf, da.from_array(DATA, chunks=(2, 3, 11, 13)))
    assert_close(got.raw, reference(name, log_scale=log_scale))


@pytest.mark.parametrize("log_scale", [True, False])
@pytest.mark.parametrize("roi", [None, ROI], ids=["all", "roi"])
def test_each_frame_may_have_moved(dataset, log_scale, roi):
    aux = ud.UDF.aux_data(SHIFTS, kind="nav", extra_shape=(2,), dtype="float64")
    udf = CorrelationUDF(PEAKS, RING, steps=3, zero_shift=aux, log_scale=log_scale)
    rows = (np.ones(NAV, bool) if roi is None else roi).reshape(-1)
    want = reference(moved="each", log_scale=log_scale)
    assert_close(run(udf, dataset, roi=roi).raw, want, rows)


def test_shifts_may_be_lazy():
    shifts = da.from_array(SHIFTS, chunks=(1, 4, 2))
    aux = ud.UDF.aux_data(shifts, kind="nav", extra_shape=(2,), dtype="float64")
    lazy = CorrelationUDF(PEAKS, RING, steps=3, zero_shift=aux)
    got = run(lazy, da.from_array(DATA, chunks=(2, 4, *SIG)))
    assert_close(got.raw, reference(moved="each"))


@pytest.mark.parametrize("kind", ["plain", "single"])
def test_all_frames_may_have_moved(dataset, kind):
    shift = np.array((2.6, -1.4))
    if kind == "single":
        shift = ud.UDF.aux_data(shift, kind="single", extra_shape=(2,), dtype="float64")
    udf = CorrelationUDF(PEAKS, RING, steps=3, zero_shift=shift)
    assert_close(run(udf, dataset).raw, reference(moved=(2.6, -1.4)))


def test_peaks_and_template_may_be_computed_by_dask():
    with raise_if_dask_computes():
        peaks = da.from_array(PEAKS, chunks=(2, 2))
        template = da.from_array(OWN, chunks=2)
        shift = da.from_array(np.array([1.2, 0]), chunks=1)
        udf = CorrelationUDF(peaks, template, steps=3, zero_shift=shift)
        res = ud.run_udf(da.from_array(DATA, chunks=(2, 4, *SIG)), udf)
    assert_close(res.compute().raw, reference("own", moved=(1, 0)))


@pytest.mark.parametrize("dtype", ["uint16", "int32", "float64", ">f4", "uint8"])
@pytest.mark.parametrize("log_scale", [True, False])
def test_dtypes(dtype, log_scale):
    data = scan(dtype) if dtype != "uint8" else (DATA / 5).astype(dtype)
    udf = CorrelationUDF(PEAKS, RING, steps=3, log_scale=log_scale)
    got = run(udf, da.from_array(data, chunks=(2, 4, 13, 30)))
    assert [got[name].dtype for name in got] == ["int32", "float32", "float32", "float32"]
    frames = data.reshape((-1, *SIG)).astype("float64")
    assert_close(got.raw, correlate(frames, PEAKS, RING.array(), 3, None, log_scale))


@pytest.mark.parametrize("nav", [(), (7,), (2, 1, 3)])
def test_any_number_of_navigation_axes(nav):
    data = np.resize(DATA, (*nav, *SIG))
    got = run(CorrelationUDF(PEAKS, RING, steps=2), da.from_array(data, chunks=-1))
    assert got["refineds"].shape == (*nav, 5, 2)
    assert got["peak_values"].shape == (*nav, 5)
    assert_close(got.raw, correlate(data.reshape((-1, *SIG)), PEAKS, RING.array(), 2))


@pytest.mark.full
@pytest.mark.parametrize("radius_outer", [None, 8])
@pytest.mark.parametrize("log_scale", [True, False])
def test_discs_are_found_between_pixels(radius_outer, log_scale):
    rng = np.random.default_rng(5)
    expected = np.array([(20, 20), (20, 44), (44, 20), (44, 44)])
    moved = expected + rng.uniform(-3, 3, (6, 4, 2))
    frames = np.zeros((6, 64, 64))
    for f, p in np.ndindex(6, 4):
        y, x = moved[f, p]
        frames[f] += 100 * circular(x, y, 64, 64, radius=5, antialiased=True)
    template = DiskTemplate(radius=5, radius_outer=radius_outer)
    udf = CorrelationUDF(expected, template, steps=6, log_scale=log_scale)
    found = run(udf, da.from_array(frames, chunks=(2, 64, 64)))
    assert np.abs(found["refineds"] - moved).max() < 0.2
    assert np.abs(found["centers"] - moved).max() < 1
    assert found["peak_elevations"].min() > 0.5


def test_the_extra_axes_have_names():
    res = ud.run_udf(da.from_array(DATA), CorrelationUDF(PEAKS, RING, steps=3))
    axes = {name: [axis.name for axis in res.extra_axes[name]] for name in res}
    assert axes["centers"] == axes["refineds"] == ["peak", "component"]
    assert axes["peak_values"] == axes["peak_elevations"] == ["peak"]
    assert res.extra_axes["centers"][-1].labels == ("y", "x")


@pytest.mark.parametrize("log_scale", [True, False])
def test_a_run_keeps_the_laws(log_scale):
    udf = CorrelationUDF(PEAKS, RING, steps=2, log_scale=log_scale)
    check_udf(udf, DATA[:2, :3])


def test_a_run_with_shifts_keeps_the_laws():
    aux = ud.UDF.aux_data(SHIFTS, kind="nav", extra_shape=(2,), dtype="float64")
    check_udf(CorrelationUDF(PEAKS, RING, steps=2, zero_shift=aux), DATA)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("log_scale", [True, False])
def test_pixels_that_are_no_number(bad, log_scale):
    data = DATA.copy()
    data[1, 2, 6, 7] = bad
    udf = CorrelationUDF(PEAKS, RING, steps=3, log_scale=log_scale)
    got = run(udf, da.from_array(data, chunks=(2, 4, 13, 30)))
    clean = run(udf, da.from_array(DATA, chunks=(2, 4, 13, 30)))
    hit = np.zeros((*NAV, 5), dtype=bool)
    # the minimum of a frame with NaN is NaN, with infinity it is not
    hit[1, 2, : 5 if log_scale and np.isnan(bad) else 1] = True
    np.testing.assert_array_equal(got["centers"][1, 2, 0], PEAKS[0])
    for name in got:
        np.testing.assert_array_equal(got[name][~hit], clean[name][~hit])
        if name != "centers":
            assert np.isnan(got[name][1, 2, 0]).all()


def test_a_shift_that_is_no_number():
    shifts = SHIFTS.copy()
    shifts[1, 2, 0] = np.nan
    aux = ud.UDF.aux_data(shifts, kind="nav", extra_shape=(2,), dtype="float64")
    got = run(CorrelationUDF(PEAKS, RING, steps=3, zero_shift=aux), da.from_array(DATA))
    np.testing.assert_array_equal(got["centers"][1, 2], np.rint(PEAKS))
    assert np.isnan(got["refineds"][1, 2]).all()
    rows = np.ones(12, dtype=bool)
    rows[6] = False
    raw = {name: got.raw[name][rows] for name in got}
    assert_close(raw, reference(moved="each"), rows)


def test_nothing_to_see():
    got = run(CorrelationUDF(PEAKS, RING, steps=3), da.zeros((2, *SIG)))
    np.testing.assert_array_equal(got["centers"][0], np.rint(PEAKS) - 3)
    assert not got["peak_elevations"].any()
    assert not got["peak_values"].any()


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"peaks": [3, 4]}, ArgumentValueError),
        ({"peaks": np.ones((4, 3))}, ArgumentValueError),
        ({"peaks": np.ones((0, 2))}, ArgumentValueError),
        ({"peaks": [(1, np.nan)]}, ArgumentValueError),
        ({"peaks": [(1, "a")]}, ArgumentTypeError),
        ({"peaks": [(1, 2), (3,)]}, ArgumentValueError),
        ({"peaks": da.ones((4, 3))}, ArgumentValueError),
        ({"template": 5}, ArgumentValueError),
        ({"template": np.ones(4)}, ArgumentValueError),
        ({"template": np.ones((0, 4))}, ArgumentValueError),
        ({"template": np.ones((3, 3)) * 1j}, ArgumentTypeError),
        ({"template": [[np.inf]]}, ArgumentValueError),
        ({"steps": 1}, ArgumentValueError),
        ({"steps": 2.5}, ArgumentTypeError),
        ({"zero_shift": 3}, ArgumentValueError),
        ({"zero_shift": np.ones((3, 4, 2))}, ArgumentValueError),
        ({"zero_shift": (np.nan, 0)}, ArgumentValueError),
        ({"zero_shift": ud.UDF.aux_data(np.ones(12, dtype="f4"), kind="nav")}, ArgumentValueError),
        ({"log_scale": 1}, ArgumentTypeError),
    ],
)
def test_wrong_parameters(change, error):
    parameters = {"peaks": PEAKS, "template": RING, "steps": 3, **change}
    with pytest.raises(error):
        CorrelationUDF(**parameters)


@pytest.mark.parametrize(
    ("template", "shape", "dtype", "sig_dims", "error"),
    [
        (RING, (4, 9, 8), "f4", 2, ArgumentValueError),
        (OWN, (9, 3, 9), "f4", 2, ArgumentValueError),
        (OWN, (4, 9, 9, 9), "f4", 3, ArgumentValueError),
        (OWN, (4, 9), "f4", 1, ArgumentValueError),
        (OWN, (4, 9, 9), "c8", 2, ArgumentTypeError),
    ],
)
def test_data_that_do_not_fit(template, shape, dtype, sig_dims, error):
    data = da.zeros(shape, dtype=dtype)
    with raise_if_dask_computes(), pytest.raises(error):
        ud.run_udf(data, CorrelationUDF(PEAKS, template, steps=3), sig_dims=sig_dims)


def found_at(places, radius, size=48):
    """Where discs are found, each in a frame of its own, (y, x) less where they are."""
    places = np.asarray(places, dtype=float)
    frames = [circular(x, y, size, size, radius=radius, antialiased=True) for y, x in places]
    shifts = ud.UDF.aux_data(np.round(places), kind="nav", extra_shape=(2,), dtype="float64")
    template = DiskTemplate(radius=radius, radius_outer=1.5 * radius)
    udf = CorrelationUDF([(0, 0)], template, steps=4, zero_shift=shifts)
    found = run(udf, da.from_array(np.stack(frames).astype("f4")))
    return found["refineds"][:, 0] - places


@pytest.mark.parametrize("radius", [3, 5, 8])
def test_how_exact_positions_are(radius):
    part = np.arange(-5, 5) / 10
    error = found_at([(24 + y, 24 + x) for y in part for x in part], radius)
    assert 0.15 < np.abs(error).max() < 0.25  # the most at half a pixel
    assert np.sqrt(np.mean(error**2)) < 0.1


def test_discs_that_the_border_cuts_are_found_too_far_inside():
    inside, cut = found_at([(6, 24), (1, 24)], radius=4)[:, 0]
    assert abs(inside) < 0.01
    assert 0.7 < cut < 1.3
