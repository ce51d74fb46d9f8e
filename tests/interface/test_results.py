"""Points 12 to 14: what a result holds, get_results, valid masks."""

import numpy as np
import pytest

import udfdask as ud
from making import NAV, SYNC, compute, make


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
