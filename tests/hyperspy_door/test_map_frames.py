"""Compare `s.udf.map_frames` with HyperSpy's own `s.map`."""

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import udfdask as ud
from signal_cases import cases, facts_of_axes
from suites import examples
from udfdask.testing import raise_if_dask_computes

hs = pytest.importorskip("hyperspy.api", reason="hyperspy is an extra")
import udfdask.hyperspy  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::udfdask.UDFWarning")  # of small signal chunks

few = settings(max_examples=examples(15), deadline=None, suppress_health_check=list(HealthCheck))


def spread(frame, scale=1.0):
    return (frame.max() - frame.min()) * scale


def doubled(frame):
    return frame * 2.0


FUNCTIONS = {"a number": spread, "a frame": doubled}


def about_the_data(signal):
    """The metadata without signal type and quantity, which HyperSpy never removes."""
    return {
        name: node
        for name, node in signal.metadata.as_dictionary().items()
        if name not in ("Signal", "_HyperSpy")
    }


def assert_same(found, own):
    """Two signals are the same in all respects, but only the first one surely has a title."""
    assert found.metadata.General.title
    if not own.metadata.General.title:
        own.metadata.General.title = found.metadata.General.title
    assert type(found) is type(own)
    assert found.data.dtype == own.data.dtype
    np.testing.assert_array_equal(np.asarray(found.data), np.asarray(own.data))
    assert facts_of_axes(found) == facts_of_axes(own)
    assert about_the_data(found) == about_the_data(own)
    assert found.original_metadata.as_dictionary() == own.original_metadata.as_dictionary()


@pytest.mark.full
@pytest.mark.parametrize("name", FUNCTIONS)
@few
@given(data=st.data())
def test_the_same_signal_as_s_map_gives(name, data):
    case = data.draw(cases(min_nav=1, max_sig=2, dtypes=["float64"]))
    assume(case.array.shape[-1] > 1)  # HyperSpy drops a last axis of size 1, or fails on it
    function = FUNCTIONS[name]
    own = case.signal.map(function, inplace=False, show_progressbar=False)
    found = case.signal.udf.map_frames(function, show_progressbar=False)
    assert_same(found, own)


@pytest.fixture(params=["lazy", "in memory"])
def scan(request):
    values = np.random.default_rng(1).random((3, 4, 5, 6))
    signal = hs.signals.Signal2D(values, metadata={"General": {"title": "Scan"}})
    signal.axes_manager[0].scale, signal.axes_manager[0].units = 0.5, "nm"
    return signal.as_lazy(chunks=(2, 2, 5, 6)) if request.param == "lazy" else signal


def test_ragged(scan):
    def large(frame):
        return np.flatnonzero(frame > 0.7)

    own = scan.map(large, inplace=False, ragged=True, show_progressbar=False)
    found = scan.udf.map_frames(large, ragged=True, show_progressbar=False)
    assert type(found) is type(own)
    assert found.ragged
    assert repr(found) == repr(own)
    for a, b in zip(np.ravel(found.data), np.ravel(own.data), strict=True):
        np.testing.assert_array_equal(a, b)


def test_another_shape(scan):
    def rows(frame):
        return frame.sum(axis=0)[:4]

    own = scan.map(rows, inplace=False, show_progressbar=False)
    found = scan.udf.map_frames(rows, show_progressbar=False)
    assert type(found) is type(own)
    np.testing.assert_array_equal(np.asarray(found.data), np.asarray(own.data))
    assert found.axes_manager[0].scale == 0.5
    # the result does not keep the scale of the axis that the function removed
    assert found.axes_manager.signal_axes[0].name == "result_dim_0"


def test_parameters_and_regions(scan):
    mask = np.zeros((3, 4), dtype=bool)
    mask[1, 2] = True
    found = scan.udf.map_frames(spread, roi=mask, scale=3.0, lazy_output=False)
    frame = np.asarray(scan.data)[1, 2]
    assert found.data[1, 2] == spread(frame) * 3
    assert np.isnan(found.data).sum() == 11


class TestSignalsAsParameters:
    """As in `s.map`, a function gets the value for its frame."""

    @staticmethod
    def shifted(frame, offset, weights=0.0):
        assert np.ndim(offset) == 0
        return frame.sum() + offset + np.sum(weights)

    @pytest.mark.parametrize("lazy", [True, False])
    def test_a_value_for_each_position(self, scan, lazy):
        values = np.arange(12.0).reshape(3, 4)
        offset = hs.signals.BaseSignal(values).T
        weights = hs.signals.Signal1D(np.random.default_rng(2).random((3, 4, 5)))
        given = {"offset": offset, "weights": weights}
        own = scan.map(self.shifted, inplace=False, show_progressbar=False, **given)
        if lazy:
            chunks = {"offset": (1, 2), "weights": (1, 2, 3)}  # others than those of the data
            given = {name: s.as_lazy(chunks=chunks[name]) for name, s in given.items()}
        with raise_if_dask_computes():
            found = scan.udf.map_frames(self.shifted, lazy_output=True, **given)
        assert_same(scan.udf.map_frames(self.shifted, show_progressbar=False, **given), own)
        np.testing.assert_array_equal(np.asarray(found.data), np.asarray(own.data))
        given["offset"] = hs.signals.BaseSignal(np.array([3.0]))
        own = scan.map(self.shifted, inplace=False, show_progressbar=False, **given)
        assert_same(scan.udf.map_frames(self.shifted, show_progressbar=False, **given), own)

    def test_mistakes(self, scan):
        with pytest.raises(ud.ArgumentValueError, match=r"parameter offset is .*\(4, 3\)"):
            scan.udf.map_frames(self.shifted, offset=hs.signals.BaseSignal(np.ones((4, 3))).T)
        one = hs.signals.Signal1D(np.ones(3)).as_lazy()
        with pytest.raises(ud.ArgumentTypeError, match=r"offset is a lazy.*\.compute\(\)"):
            scan.udf.map_frames(self.shifted, offset=one)


def test_mistakes(scan):
    with pytest.raises(ud.ArgumentTypeError, match="expected a function"):
        scan.udf.map_frames("sum")
    with pytest.raises(TypeError, match="inplace"):  # it is an argument of the function
        scan.udf.map_frames(spread, inplace=False)
    with pytest.raises(ud.ArgumentValueError, match=r"empty array .* pass ragged=True"):
        scan.udf.map_frames(lambda frame: frame[frame > 5])


class TestNames:
    """Maps have a title of their own where the signal has none, and never its file name."""

    def test_titles(self, scan):
        def fit(frame):
            return frame.max(), frame.min()

        assert scan.udf.map_frames(np.sum).metadata.General.title == "Scan"
        scan.metadata.General.title = ""
        assert scan.udf.map_frames(np.sum).metadata.General.title == "sum"
        assert scan.udf.map_frames(lambda frame: frame[0, 0]).metadata.General.title == "map_frames"
        found = scan.udf.map_frames(fit, output_names=("high", "low"))
        assert [one.metadata.General.title for one in found.values()] == ["high", "low"]

    def test_the_file_of_the_signal_is_not_proposed(self, scan):
        scan.tmp_parameters.add_dictionary({"filename": "scan", "folder": "a", "extension": "hspy"})
        assert not scan.udf.map_frames(np.sum).tmp_parameters.has_item("filename")
