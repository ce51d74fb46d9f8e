"""Points 12 and 13: what a result holds, and get_results."""

import dask
import numpy as np
import pytest

import udfdask as ud
from making import NAV, SIG, SYNC, compute, make, mask_of
from udfdask.udfs import SumSigUDF


@pytest.mark.point(12)
def test_fill_value(x):
    udf = make(
        {
            "a": {"kind": "nav", "dtype": "int32", "fill_value": -1},
            "b": {"kind": "nav", "dtype": "float32", "fill_value": 0},
        },
        process_frame=lambda self, frame: None,
    )()
    done = compute(x, udf, roi=(0, 0))
    assert done["a"].sum() == -23
    assert done["b"].sum() == 0


@pytest.mark.point(12)
def test_single_shapes(x):
    udf = make(
        {"a": {"kind": "single"}, "b": {"kind": "single", "extra_shape": (1,)}},
        process_frame=lambda self, frame: None,
        merge=lambda self, dest, src: None,
    )()
    lazy = ud.run_udf(x, udf)
    done = lazy.compute(**SYNC)
    for res in (lazy, done):
        assert res["a"].shape == ()
        assert res.raw["a"].shape == (1,)
        assert res["b"].shape == res.raw["b"].shape == (1,)
        assert res.valid_mask["a"].shape == ()
    assert lazy.raw["a"].compute(**SYNC).tolist() == [0]


@pytest.mark.point(13)
@pytest.mark.parametrize("form", ["rows", "full", "flat"])
def test_nav_results_in_any_shape(x, form):
    roi = np.zeros(NAV, dtype=bool)
    roi[1:, 3:5] = True

    def get_results(self):
        v = self.results.v
        if form == "rows":
            return {"v": v * 2}
        full = np.zeros(NAV, dtype="float64")  # another precision
        full[self.meta.roi] = v * 2
        return {"v": full if form == "full" else full.reshape(-1)}

    def process_frame(self, frame):
        self.results.v = frame.sum()

    udf = make({"v": {"kind": "nav"}}, process_frame=process_frame, get_results=get_results)()
    done = compute(x, udf, roi=roi)
    assert done["v"].dtype == np.float32
    np.testing.assert_allclose(done["v"][roi], 2 * x.sum(axis=(2, 3)).compute(**SYNC)[roi])
    assert np.isnan(done["v"][~roi]).all()


@pytest.mark.point(11)
def test_private_and_passed_on(x):
    def process_frame(self, frame):
        self.results.kept = self.results.secret[:] = frame.sum()

    udf = make(
        {"kept": {"kind": "nav"}, "secret": {"kind": "nav", "use": "private"}},
        process_frame=process_frame,
        get_results=lambda self: {},
    )()
    assert list(compute(x, udf)) == ["kept"]


@pytest.mark.point(12)
@pytest.mark.parametrize("roi", [None, mask_of((0, 5), (1, 0), (3, 2), np.s_[2, 1:5])])
def test_chunk_order_never_shows(x, values, roi):
    """Rows of `.raw` are in C order of the scan, and what is selected is never filled."""
    udf = make(
        {"v": {"kind": "nav", "extra_shape": (2,), "dtype": "float64"}},
        process_frame=lambda self, frame: setattr(self.results, "v", (frame.sum(), np.inf)),
    )()
    lazy = ud.run_udf(x, udf, roi=roi)
    chosen = np.ones(NAV, dtype=bool) if roi is None else roi
    expected = values.sum(axis=(2, 3))[chosen]
    done = lazy.compute(**SYNC)
    for raw in (lazy.raw["v"].compute(**SYNC), done.raw["v"], done["v"][chosen]):
        np.testing.assert_allclose(raw[:, 0], expected)
        assert np.isposinf(raw[:, 1]).all()
    assert np.isnan(done["v"][~chosen]).all()


@pytest.mark.point(12)
def test_sig_and_single_are_never_filled(x):
    udf = make(
        {"s": {"kind": "sig"}, "o": {"kind": "single", "extra_shape": (2,)}},
        process_frame=lambda self, frame: None,
        merge=lambda self, dest, src: None,
    )()
    for roi in ((0, 0), np.zeros(NAV, dtype=bool)):
        done = compute(x, udf, roi=roi)
        assert not done["s"].any()
        assert not done["o"].any()
        assert done.valid_mask["s"].all()
        assert done.valid_mask["o"].all()


@pytest.mark.point(12)
def test_lazy_raw_is_gathered_by_bands(x):
    """One block for each chunk of the first navigation axis."""
    lazy = ud.run_udf(x, SumSigUDF(), roi=np.s_[:3])
    assert lazy.raw["intensity"].chunks == ((12, 6),)
    assert ud.run_udf(x, SumSigUDF()).raw["intensity"].chunks == ((12, 12),)


@pytest.mark.point(12)
def test_masked_of_a_computed_result(x, values):
    done = compute(x, SumSigUDF(), roi=np.s_[:2])
    masked = done.masked["intensity"]
    assert isinstance(masked, np.ma.MaskedArray)
    assert masked.count() == 12
    np.testing.assert_allclose(masked.sum(), values[:2].sum(), rtol=1e-6)


@pytest.mark.point(12)
def test_nothing_runs_again_after_persist(x):
    runs = []

    def process_frame(self, frame):
        runs.append(1)
        self.results.v = frame.sum()

    udf = make(
        {"v": {"kind": "nav"}, "o": {"kind": "single"}},
        process_frame=process_frame,
        merge=lambda self, dest, src: setattr(dest, "v", src.v),
        get_results=lambda self: {"v": self.with_mask(self.results.v, self.results.v > 0)},
    )()
    kept = ud.run_udf(x, udf).persist(**SYNC)
    assert len(runs) == 24
    for name in kept:
        dask.compute(kept[name], kept.raw[name], kept.valid_mask[name], **SYNC)
    kept.compute(**SYNC)
    assert len(runs) == 24


# get_results.


class Means(ud.UDF):
    """Counts how often get_results runs, and what it is given."""

    def __init__(self, runs):
        super().__init__(runs=runs)

    def get_result_buffers(self):
        return {
            "n": self.buffer("nav"),
            "total": self.buffer("sig", dtype="float64", use="private"),
            "mean": self.buffer("sig", dtype="float32", use="result_only"),
            "peak": self.buffer("single", dtype="float32", use="result_only"),
            "where": self.buffer("nav", extra_shape=(2,), dtype="int16", use="result_only"),
        }

    def process_frame(self, frame):
        self.results.n = frame.max()
        self.results.total += frame

    def merge(self, dest, src):
        dest.n[:] = src.n
        dest.total += src.total

    def get_results(self):
        RUNS.append(self.params.runs)
        frames = int(self.meta.get_valid_nav_mask().sum())
        for name, shape in (("n", (frames,)), ("total", SIG)):
            view = getattr(self.results, name)
            assert type(view) is np.ndarray
            assert view.shape == shape
        assert self.results.mean is None
        assert self.meta.coordinates.shape == (frames, 2)
        return {
            "mean": self.results.total / max(frames, 1),
            "peak": self.results.n.max(initial=0),  # a NumPy scalar
            "where": self.meta.coordinates,
        }


RUNS: list[str] = []


@pytest.mark.point(13)
@pytest.mark.parametrize("roi", [None, mask_of((0, 5), (1, 0), (3, 2)), mask_of()])
def test_get_results_runs_once_in_a_task(x, values, roi):
    RUNS.clear()
    lazy = ud.run_udf(x, [Means("a"), Means("b")], roi=roi)
    assert not RUNS
    done, _ = ud.compute(*lazy, **SYNC)
    assert sorted(RUNS) == ["a", "b"]
    chosen = np.ones(NAV, dtype=bool) if roi is None else roi
    frames = values[chosen]
    np.testing.assert_allclose(done["mean"], frames.sum(axis=0) / max(len(frames), 1), rtol=1e-6)
    assert done["peak"] == frames.max(initial=0)
    assert {name: a.dtype.str for name, a in done.items() if name != "n"} == {
        "mean": "<f4",
        "peak": "<f4",
        "where": "<i2",
    }


@pytest.mark.point(13, 19)
@pytest.mark.parametrize("roi", [None, mask_of((0, 5), (1, 0), np.s_[2:, 3:])])
def test_rows_and_coordinates_agree_in_get_results(x, roi):
    """Both in C order of the scan, also where an inner navigation axis is chunked."""

    def get_results(self):
        np.testing.assert_array_equal(self.results.here, self.meta.coordinates)
        n = len(self.results.here)
        assert self.meta.slice.origin == (0, 0, 0)
        assert self.meta.slice.shape == (n, *SIG)
        assert self.meta.slice.get(self.results.here, nav_only=True).shape == (n, 2)
        return {"again": self.meta.coordinates}

    nav = {"kind": "nav", "extra_shape": (2,), "dtype": "int64"}
    udf = make(
        {"here": nav, "again": {**nav, "use": "result_only"}},
        process_tile=lambda self, tile: setattr(self.results, "here", self.meta.coordinates),
        get_results=get_results,
    )()
    done = compute(x, udf, roi=roi)
    chosen = np.ones(NAV, dtype=bool) if roi is None else roi
    np.testing.assert_array_equal(done.raw["here"], np.argwhere(chosen))
    np.testing.assert_array_equal(done.raw["again"], np.argwhere(chosen))


@pytest.mark.point(13)
def test_nav_results_of_get_results_keep_the_chunks(x):
    lazy = ud.run_udf(x, Means("c"))
    assert lazy["n"].chunks == x.chunks[:2]
    assert lazy["where"].chunks == (*x.chunks[:2], (2,))
    lazy = ud.run_udf(x, Means("c"), roi=(0, 0))
    assert lazy["n"].chunks == x.chunks[:2]


@pytest.mark.point(13)
@pytest.mark.parametrize("extra", [(), (2,), (2, 3)])
@pytest.mark.parametrize("form", ["rows", "flat rows", "full", "flat full", "transposed"])
def test_nav_results_in_any_shape_of_the_right_size(x, form, extra):
    roi = mask_of(np.s_[1:, 3:5], (0, 0))
    full = np.arange(np.prod(NAV + extra), dtype="float64").reshape(NAV + extra)
    rows = full[roi]
    value = {
        "rows": rows,
        "flat rows": rows.reshape(-1),
        "full": full,
        "flat full": full.reshape(-1),
        "transposed": rows.reshape((7, -1, 1)),
    }[form]
    udf = make(
        {"v": {"kind": "nav", "extra_shape": extra, "use": "result_only"}},
        process_frame=lambda self, frame: None,
        get_results=lambda self: {"v": value},
    )()
    done = compute(x, udf, roi=roi)
    np.testing.assert_array_equal(done.raw["v"], rows)
    np.testing.assert_array_equal(done["v"][roi], rows)


@pytest.mark.point(13)
@pytest.mark.parametrize(
    "value", [np.float64(3), np.float32(3), 3.0, np.array(3.0), np.ones(1) * 3]
)
def test_scalars_are_fine_for_single(x, value):
    udf = make(
        {"v": {"kind": "single", "use": "result_only"}},
        process_frame=lambda self, frame: None,
        get_results=lambda self: {"v": value},
    )()
    done = compute(x, udf)
    assert done["v"].shape == ()
    assert done["v"] == 3
    assert done["v"].dtype == np.float32


@pytest.mark.point(11, 13)
def test_none_is_a_value_of_objects_alone(x):
    """Elsewhere it leaves a result out."""

    def udf(dtype, use):
        return make(
            {"v": {"kind": "single", "dtype": dtype, "use": use}},
            process_frame=lambda self, frame: None,
            merge=lambda self, dest, src: None,
            get_results=lambda self: {"v": None},
        )()

    assert compute(x, udf(object, "result_only"))["v"].item() is None
    assert compute(x, udf("float32", None))["v"] == 0
    with pytest.raises(ud.UDFError, match=r"left out 'v', which is declared use='result_only'"):
        compute(x, udf("float32", "result_only"))


@pytest.mark.point(13)
def test_results_themselves_may_be_returned(x):
    """As they are; what they do not hold is left out."""
    buffers = {"items": {"kind": "nav"}, "late": {"kind": "single", "use": "result_only"}}

    def process_frame(self, frame):
        self.results.items = 3

    methods = {"process_frame": process_frame, "get_results": lambda self: self.results}
    assert compute(x, make({"items": {"kind": "nav"}}, **methods)())["items"].sum() == 72
    with pytest.raises(ud.UDFError, match=r"left out 'late', which is declared use='result_only'"):
        compute(x, make(buffers, **methods)())
