"""Point 14: valid masks, by default and by with_mask."""

import dask
import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from making import NAV, SIG, SYNC, compute, make, mask_of
from udfdask.udfs import SumSigUDF


@pytest.mark.point(14)
@pytest.mark.parametrize("roi", [None, mask_of((1, 2), np.s_[3:, 3:])])
@pytest.mark.parametrize("lazy", [True, False])
def test_default_masks(x, roi, lazy):
    udf = make(
        {
            "n": {"kind": "nav", "extra_shape": (2,)},
            "s": {"kind": "sig"},
            "o": {"kind": "single"},
        },
        process_frame=lambda self, frame: None,
        merge=lambda self, dest, src: None,
    )()
    result = ud.run_udf(x, udf, roi=roi)
    masks = dict(
        zip(result, dask.compute(*result.valid_mask.values(), **SYNC), strict=True)
        if lazy
        else result.compute(**SYNC).valid_mask.items()
    )
    chosen = np.ones(NAV, dtype=bool) if roi is None else roi
    np.testing.assert_array_equal(masks["n"], np.stack([chosen, chosen], axis=-1))
    for name in "so":
        assert masks[name].shape == result[name].shape
        assert masks[name].all()


def test_default_masks_of_a_lazy_result_are_lazy(x):
    result = ud.run_udf(x, SumSigUDF(), roi=np.s_[:3])
    mask = result.valid_mask["intensity"]
    assert isinstance(mask, da.Array)
    assert mask.chunks == result["intensity"].chunks


ROI = mask_of((1, 2), (1, 3), np.s_[3:, 3:])  # five frames


@pytest.mark.point(14)
@pytest.mark.parametrize(
    ("kind", "mask", "expected"),
    [
        ("nav", True, ROI[..., None].repeat(2, -1)),
        ("nav", False, np.zeros((*NAV, 2), dtype=bool)),
        ("nav", np.array([True, False]), np.stack([ROI, ROI & False], axis=-1)),
        ("nav", np.ones((5, 1), dtype=bool), ROI[..., None].repeat(2, -1)),
        ("nav", [[True]], ROI[..., None].repeat(2, -1)),
        ("sig", True, np.ones((*SIG, 2), dtype=bool)),
        ("sig", np.False_, np.zeros((*SIG, 2), dtype=bool)),
        (
            "sig",
            np.eye(3, 5, dtype=bool)[..., None],
            np.eye(3, 5, dtype=bool)[..., None].repeat(2, -1),
        ),
        ("single", np.array([True, False]), np.array([True, False])),
        ("single", False, np.array([False, False])),
    ],
)
def test_own_masks_broadcast(x, kind, mask, expected):
    udf = make(
        {"v": {"kind": kind, "extra_shape": (2,)}},
        process_frame=lambda self, frame: None,
        merge=lambda self, dest, src: None,
        get_results=lambda self: {"v": self.with_mask(self.results.v, mask=mask)},
    )()
    lazy = ud.run_udf(x, udf, roi=ROI)
    done = lazy.compute(**SYNC)
    for found in (done.valid_mask["v"], lazy.valid_mask["v"].compute(**SYNC)):
        assert found.dtype == bool
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(done.masked["v"].mask, ~expected)


@pytest.mark.point(14)
def test_a_mask_in_full_nav_shape(x):
    """For a result in full nav shape; outside the ROI nothing is valid."""
    full = np.indices(NAV)[1] < 4
    udf = make(
        {"v": {"kind": "nav"}},
        process_frame=lambda self, frame: None,
        get_results=lambda self: {"v": self.with_mask(np.zeros(NAV, "float32"), full)},
    )()
    np.testing.assert_array_equal(compute(x, udf, roi=ROI).valid_mask["v"], full & ROI)


@pytest.mark.point(14, 22)
@pytest.mark.parametrize("package", ["scipy.sparse", "sparse"])
def test_masks_with_a_sparse_roi(x, package):
    module = pytest.importorskip(package)
    roi = module.csr_array(ROI) if package == "scipy.sparse" else module.COO.from_numpy(ROI)
    udf = make(
        {"v": {"kind": "nav"}, "w": {"kind": "nav"}},
        process_frame=lambda self, frame: setattr(self.results, "v", frame[0, 0]),
        get_results=lambda self: {"v": self.with_mask(self.results.v, self.results.v > 150)},
    )()
    done = compute(x, udf, roi=roi)
    np.testing.assert_array_equal(done.valid_mask["w"], ROI)
    np.testing.assert_array_equal(done.valid_mask["v"], ROI & (np.arange(24).reshape(NAV) > 10))


@pytest.mark.point(14)
def test_masks_of_elementwise_results(x):
    """Rows of the mask belong to rows of the chunk."""
    udf = make(
        {"v": {"kind": "nav"}},
        process_frame=lambda self, frame: setattr(self.results, "v", frame[0, 0]),
        get_results=lambda self: {"v": self.with_mask(self.results.v, self.results.v > 150)},
        elementwise_results=True,
    )()
    done = compute(x, udf, roi=ROI)
    np.testing.assert_array_equal(done.valid_mask["v"], ROI & (np.arange(24).reshape(NAV) > 10))
