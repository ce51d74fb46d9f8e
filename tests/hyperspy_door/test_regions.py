"""Regions of interest: signals, HyperSpy's ROIs and masks, and all forms that `run_udf` takes."""

import dask.array as da
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import udfdask as ud
from suites import examples
from udfdask.testing import raise_if_dask_computes
from udfdask.udfs import SumSigUDF, VirtualDetectorUDF

pytestmark = pytest.mark.full

hs = pytest.importorskip("hyperspy.api", reason="hyperspy is an extra")
import udfdask.hyperspy  # noqa: E402

few = settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))
NAV = (4, 6)


def make_scan(nav=NAV, *, scale=0.5, offset=-1.0):
    """A scan of ones: a sum is 4 where a frame has been processed, and NaN elsewhere."""
    signal = hs.signals.Signal2D(np.ones((*nav, 2, 2)))
    for axis in signal.axes_manager.navigation_axes:
        axis.scale, axis.offset, axis.units = scale, offset, "nm"
    return signal


def selected(signal, **region):
    """Return which positions are processed, from the result of a sum."""
    found = signal.udf.run_udf(SumSigUDF(), show_progressbar=False, **region)
    return np.isfinite(found["intensity"].data)


masks = st.lists(st.booleans(), min_size=24, max_size=24).map(lambda m: np.array(m).reshape(NAV))


@pytest.mark.full
@few
@given(masks)
def test_signals_of_booleans(mask):
    scan = make_scan()
    image = hs.signals.BaseSignal(mask.copy())  # (|6, 4), as an image
    for roi in (mask, image, image.T, image.T.T):
        np.testing.assert_array_equal(selected(scan, roi=roi), mask)
        np.testing.assert_array_equal(selected(scan.as_lazy(), roi=roi, lazy_output=False), mask)


def as_hyperspy_selects(scan, roi):
    """Return which positions HyperSpy keeps when it slices a signal of position numbers."""
    numbers = hs.signals.BaseSignal(
        np.arange(float(np.prod(NAV))).reshape(NAV),
        axes=scan.axes_manager._get_navigation_axes_dicts(),
    )
    kept = np.ravel(roi(numbers).data)
    expected = np.zeros(NAV, dtype=bool)
    expected.flat[kept[np.isfinite(kept)].astype(int)] = True
    return expected


class TestHyperSpysRegions:
    @pytest.mark.parametrize(
        ("make", "count"),
        [
            (lambda: hs.roi.RectangularROI(left=-0.5, right=1.0, top=-1, bottom=0), 6),
            (lambda: hs.roi.RectangularROI(left=-9, right=9, top=-9, bottom=9), 24),
            (lambda: hs.roi.CircleROI(cx=0.0, cy=0.0, r=0.6), None),
            (lambda: hs.roi.CircleROI(cx=0.0, cy=0.0, r=1.2, r_inner=0.4), None),
            (lambda: hs.roi.SpanROI(left=-0.5, right=0.5), 8),
            (lambda: hs.roi.Point1DROI(0.5), 4),
            (lambda: hs.roi.Point2DROI(0.5, 0.0), 1),
            (lambda: hs.roi.PolygonROI([(-1, -1), (1.5, -1), (-1, 0.5)]), None),
        ],
    )
    def test_the_positions_that_hyperspy_selects(self, make, count):
        scan = make_scan()
        found = selected(scan, roi=make())
        np.testing.assert_array_equal(found, as_hyperspy_selects(scan, make()))
        assert 0 < found.sum() <= 24
        assert count in (None, found.sum())

    def test_put_on_other_axes_by_a_widget(self):
        plt = pytest.importorskip("matplotlib.pyplot", reason="matplotlib is an extra")
        scan = make_scan()
        roi = hs.roi.SpanROI(left=-0.5, right=0.5)
        with plt.rc_context({"backend": "agg"}):
            scan.plot()
            roi.add_widget(scan, axes=(scan.axes_manager.navigation_axes[1],))
            found = selected(scan, roi=roi)
            with pytest.raises(ud.ArgumentValueError, match="drawn over other axes"):
                scan.udf.run_udf(VirtualDetectorUDF(roi))
            plt.close("all")
        expected = np.zeros(NAV, dtype=bool)
        expected[1:3] = True
        np.testing.assert_array_equal(found, expected)


BOOL = np.ones(NAV, dtype=bool)
MASKS = [
    (make_scan().sum("sig"), ud.ArgumentTypeError, "dtype float64"),
    (BOOL.T, ud.ArgumentValueError, "the roi has shape"),
    (hs.signals.BaseSignal(BOOL.T), ud.ArgumentValueError, r"roi is .*sizes \(6, 4\)"),
    (hs.signals.Signal2D(np.ones((*NAV, 2, 2), bool)), ud.ArgumentValueError, r"sizes \(6, 4\)"),
]


class TestMistakes:
    @pytest.mark.parametrize(("mask", "error", "match"), MASKS)
    def test_masks_that_do_not_fit(self, mask, error, match):
        with pytest.raises(error, match=match):
            selected(make_scan(), roi=mask)

    def test_what_the_message_on_lazy_masks_advises(self):
        scan = make_scan().as_lazy()
        scan.data = scan.data * np.arange(24).reshape(*NAV, 1, 1)
        mask = scan.sum("sig") > 40
        message = r"roi is a lazy signal: write mask\.compute\(\)"
        with raise_if_dask_computes(), pytest.raises(ud.ArgumentTypeError, match=message):
            selected(scan, roi=mask)
        assert mask.compute(show_progressbar=False) is None
        found = selected(scan, roi=mask, lazy_output=False)
        np.testing.assert_array_equal(found, np.arange(24).reshape(NAV) > 10)


def test_data_arrays_in_memory_are_aligned_by_the_names_of_axes():
    xr = pytest.importorskip("xarray", reason="xarray is an extra")
    mask = np.zeros((4, 4), dtype=bool)
    mask[1, 2] = mask[3, 0] = True
    scan = make_scan((4, 4))
    for axis, name in zip(scan.axes_manager.navigation_axes, "xy", strict=True):
        axis.name = name
    roi = xr.DataArray(da.from_array(mask), dims=("y", "x")).compute()
    for given_roi in (roi, roi.T, roi.rename(y="a", x="b")):
        np.testing.assert_array_equal(selected(scan, roi=given_roi), mask)
    with pytest.raises(ud.ArgumentTypeError, match=r"write roi = roi\.compute\(\) on a line"):
        selected(scan, roi=roi.T.chunk())


def test_regions_in_a_run_of_an_array():
    """Only the run of a signal knows the axes of a region; a mask in memory is an array."""
    x, mask = da.ones((*NAV, 2, 2)), np.arange(24).reshape(NAV) % 3 == 0
    found = ud.run_udf(x, SumSigUDF(), roi=hs.signals.BaseSignal(mask)).compute()
    np.testing.assert_array_equal(np.isfinite(found["intensity"]), mask)
    advice = r"import udfdask.hyperspy, then signal.udf.run_udf\(udf, roi=roi\)"
    for roi in (hs.roi.CircleROI(1, 1, 1), hs.roi.RectangularROI(0, 0, 1, 1)):
        words = rf"cannot use {type(roi).__name__}.*{advice}"
        with pytest.raises(ud.ArgumentTypeError, match=words):
            ud.run_udf(x, SumSigUDF(), roi=roi)
    with pytest.raises(ud.ArgumentValueError, match=rf"the roi has shape \(6, 4\).*{advice}"):
        ud.run_udf(x, SumSigUDF(), roi=hs.signals.BaseSignal(mask.T))
    with raise_if_dask_computes(), pytest.raises(ud.ArgumentTypeError, match="a lazy signal of"):
        ud.run_udf(x, SumSigUDF(), roi=hs.signals.BaseSignal(mask).as_lazy())


def test_a_mask_of_the_scan_is_no_mask_of_frames():
    scan = hs.signals.Signal2D(np.arange(256.0).reshape(4, 4, 4, 4))
    bright = scan.sum("sig") > 60
    with pytest.raises(ud.ArgumentValueError, match=r"the mask is .* pass a signal"):
        scan.udf.run_udf(VirtualDetectorUDF(bright))
    scan.udf.run_udf(VirtualDetectorUDF(scan.mean() > 60))
