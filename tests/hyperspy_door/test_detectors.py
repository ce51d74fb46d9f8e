"""HyperSpy's ROIs and signals as detectors: pictures are those that HyperSpy itself sums up."""

import dask.array as da
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import udfdask as ud
from suites import examples
from udfdask.testing import raise_if_dask_computes
from udfdask.udfs import ApplyMasksUDF, SumUDF, VirtualDetectorUDF

hs = pytest.importorskip("hyperspy.api", reason="hyperspy is an extra")
import udfdask.hyperspy  # noqa: E402

few = settings(max_examples=examples(40), suppress_health_check=list(HealthCheck))
NAV, SIG = (3, 4), (9, 12)
DATA = np.random.default_rng(6).integers(1, 99, NAV + SIG)
QUIET = {"show_progressbar": False}


def make_scan(data=DATA, *, lazy=True, scale=(0.5, 0.25), offset=(-3.0, -1.0)):
    """A scan in nm whose frames have axes in mrad, x and y with their own scale and offset."""
    sig_dims = 1 if data.ndim == 3 else 2
    cls = {1: hs.signals.Signal1D, 2: hs.signals.Signal2D}[sig_dims]
    scan = cls(data)
    scan.metadata.General.title = "scan"
    for axis in scan.axes_manager.navigation_axes:
        axis.scale, axis.units = 3.0, "nm"
    for axis, *numbers in zip(scan.axes_manager.signal_axes, scale, offset, strict=False):
        axis.scale, axis.offset = numbers
        axis.units = "mrad"
    return scan.as_lazy(chunks=(2, *data.shape[1:])) if lazy else scan


def image_by_hyperspy(scan, roi, axes=None):
    """The sum over the part of the frames that HyperSpy slices, as in pyxem's virtual images."""
    scan = scan.deepcopy()
    if scan._lazy:
        scan.compute(show_progressbar=False)
    axes = scan.axes_manager.signal_axes if axes is None else axes
    part = roi(scan, axes=axes[: roi.ndim])
    n_nav = scan.axes_manager.navigation_dimension
    return np.nansum(part.data, axis=tuple(range(n_nav, part.data.ndim)))


def virtual_image(scan, detector, **options):
    return scan.udf.run_udf(VirtualDetectorUDF(detector), **options)["intensity"].T


halves = st.integers(-14, 14).map(lambda n: n / 4)
lengths = st.integers(1, 14).map(lambda n: n / 4)


def boxes(x, y, width, height):
    return hs.roi.RectangularROI(left=x, right=x + width, top=y, bottom=y + height)


def rings(x, y, r, share):
    return hs.roi.CircleROI(cx=x, cy=y, r=r, r_inner=r * share)


REGIONS = st.one_of(
    st.builds(boxes, halves, halves, lengths, lengths),
    st.builds(rings, halves, halves, lengths, st.sampled_from([0, 0.5])),
    st.builds(lambda x, width: hs.roi.SpanROI(x, x + width), halves, lengths),
    st.builds(hs.roi.Point2DROI, halves, halves),
    st.builds(
        lambda x, y, size: hs.roi.PolygonROI([(x, y), (x + size, y), (x, y + size)]),
        halves,
        halves,
        lengths,
    ),
)


@few
@given(roi=REGIONS, lazy=st.booleans())
def test_the_picture_is_that_of_hyperspy(roi, lazy):
    scan = make_scan(lazy=lazy)
    try:
        wanted = image_by_hyperspy(scan, roi)
    except (IndexError, ValueError):  # HyperSpy cannot slice: the ROI lies outside
        wanted = np.zeros(NAV)
    if not wanted.any():  # all data are positive
        with pytest.raises(
            ud.ArgumentValueError, match=r"cannot select|selects no pixel of the frames"
        ):
            virtual_image(scan, roi)
        return
    image = virtual_image(scan, roi, lazy_output=False, **QUIET)
    np.testing.assert_array_equal(image.data, wanted)


def test_the_image_is_an_image():
    scan = make_scan()
    with raise_if_dask_computes():
        image = virtual_image(scan, hs.roi.CircleROI(cx=0.0, cy=0.0, r=1.0))
    assert repr(image) == "<LazySignal2D, title: intensity of scan, dimensions: (|4, 3)>"
    assert [axis.units for axis in image.axes_manager.signal_axes] == ["nm", "nm"]


@pytest.mark.parametrize("lazy", [False, True])
def test_rois_by_name_in_one_pass(lazy):
    scan = make_scan(lazy=lazy)
    rois = {
        "BF": hs.roi.CircleROI(cx=0.0, cy=0.0, r=0.8),
        "ADF": hs.roi.CircleROI(cx=0.0, cy=0.0, r=1.9, r_inner=1.0),
        "box": hs.roi.RectangularROI(left=-2, right=0, top=-1, bottom=0),
    }
    for masks, name in ((rois, "ADF"), (list(rois.values()), None), (tuple(rois.values()), None)):
        found = scan.udf.run_udf(ApplyMasksUDF(masks), lazy_output=False, **QUIET)
        for k, roi in enumerate(rois.values()):
            wanted = image_by_hyperspy(scan, roi)
            np.testing.assert_array_equal(found["intensity"].data[..., k], wanted)
            if name is not None:
                np.testing.assert_array_equal(found[list(rois)[k]].data, wanted)
    udfs = {name: VirtualDetectorUDF(roi) for name, roi in rois.items()}
    several = scan.udf.run_udf(udfs, lazy_output=False, **QUIET)
    for name, roi in rois.items():
        wanted = image_by_hyperspy(scan, roi)
        np.testing.assert_array_equal(several[name]["intensity"].data, wanted)
    *_, last = scan.udf.run_udf_iter(udfs)
    np.testing.assert_array_equal(
        last.buffers[2]["intensity"].data, several["box"]["intensity"].data
    )
    assert scan.udf.explain(udfs).n_chunks > 0


@pytest.mark.parametrize("change", [lambda mask: mask, lambda mask: mask.data])
def test_signals_as_masks(change):
    scan = make_scan(lazy=False)
    mean = scan.mean()
    mask = mean > mean.data.mean()
    wanted = DATA[..., mask.data].sum(axis=-1)
    image = virtual_image(scan, change(mask), **QUIET)
    np.testing.assert_array_equal(image.data, wanted)
    weights = scan.udf.run_udf(ApplyMasksUDF([change(mask)]), **QUIET)["intensity"]
    np.testing.assert_array_equal(weights.data[..., 0], wanted)


MISTAKES = [
    (lambda: hs.roi.Line2DROI(0, 0, 1, 1, 1), ud.ArgumentTypeError, "does not select"),
    (hs.roi.CircleROI, ud.ArgumentValueError, "not yet been set"),
    (lambda: hs.roi.Point2DROI(99, 0), ud.ArgumentValueError, "cannot select"),
    (lambda: hs.signals.Signal2D(np.ones((12, 9), bool)), ud.ArgumentValueError, r"\(12, 9\)"),
    (lambda: hs.signals.Signal2D(np.ones(NAV + SIG)), ud.ArgumentValueError, r"\(12, 9\)"),
    (
        lambda: hs.signals.Signal2D(np.ones(SIG, bool)).as_lazy(),
        ud.ArgumentTypeError,
        r"lazy signal: write mask\.compute\(\)",
    ),
]


@pytest.mark.parametrize(("make", "error", "match"), MISTAKES)
def test_detectors_that_are_none(make, error, match):
    with raise_if_dask_computes(), pytest.raises(error, match=match):
        virtual_image(make_scan(), make())


def test_without_a_signal():
    roi = hs.roi.CircleROI(cx=0.0, cy=0.0, r=1.0)
    for udf in (ApplyMasksUDF(roi), ApplyMasksUDF({"BF": roi}), VirtualDetectorUDF(roi)):
        with pytest.raises(ud.ArgumentTypeError, match=r"signal\.udf\.run_udf"):
            ud.run_udf(da.ones(NAV + SIG), udf)


def test_names_of_udfs_reach_the_titles_of_signals():
    named = {"BF": VirtualDetectorUDF("disk", r=2), "ADF": VirtualDetectorUDF("ring", ri=2, ro=4)}
    done = make_scan().udf.run_udf(named)
    titles = [one["intensity"].metadata.General.title for one in done.values()]
    assert titles == ["intensity of BF of scan", "intensity of ADF of scan"]


class TestOutlines:
    """`plot_detectors` of a signal's result draws what `run_udf` sums up."""

    ROI = {"cx": 0.0, "cy": 0.0, "r": 1.5}

    @pytest.fixture
    def total(self):
        pytest.importorskip("matplotlib")
        return make_scan().udf.run_udf(SumUDF())

    @staticmethod
    def drawn(figure):
        """The outlines in a picture, in the order in which they were drawn."""
        axes = figure.axes[0]
        names = [text.get_text() for text in axes.get_legend().get_texts()]
        lines = [path for each in axes.collections for path in each.get_paths()]
        return names, [path.vertices.tolist() for path in lines]

    def test_a_roi_is_drawn_as_the_mask_of_its_pixels(self, total):
        roi = hs.roi.CircleROI(**self.ROI)
        one_by_one = make_scan(np.eye(108).reshape(9, 12, 9, 12), lazy=False)
        mask = image_by_hyperspy(one_by_one, roi) > 0
        assert 0 < mask.sum() < mask.size
        expected = self.drawn(total.plot_detectors({"BF": mask}))
        assert expected[0] == ["BF"]
        signal = hs.signals.Signal2D(mask)
        for detector in (roi, VirtualDetectorUDF(roi), VirtualDetectorUDF(signal), signal):
            assert self.drawn(total.plot_detectors({"BF": detector})) == expected
        assert self.drawn(total.plot_detectors([roi]))[1] == expected[1]
        assert self.drawn(total.plot_detectors(roi))[1] == expected[1]
