"""Signals give signals with labels; the values are those of a run over the array."""

import pickle

import dask
import dask.array as da
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import udfdask as ud
from making import run_python
from signal_cases import EveryKindUDF, ListsUDF, axis_facts, cases, facts_of_axes, plain
from suites import examples
from udfdask.testing import raise_if_dask_computes
from udfdask.testing.strategies import rois
from udfdask.udfs import SumSigUDF, SumUDF

hs = pytest.importorskip("hyperspy.api", reason="hyperspy is an extra")
import udfdask.hyperspy  # noqa: E402

few = settings(max_examples=examples(15), deadline=None, suppress_health_check=list(HealthCheck))
pytestmark = pytest.mark.filterwarnings("ignore::udfdask.UDFWarning")  # of small signal chunks

quiet = {"show_progressbar": False}


def same_axis(made, source, navigate):
    """Two axes are equal, except that one may be a navigation axis and the other a signal axis."""
    assert {**axis_facts(made), "navigate": None} == {**axis_facts(source), "navigate": None}
    assert type(made) is type(source)
    assert made.navigate == navigate


def data_of(signal):
    return np.asarray(signal.data)


@pytest.mark.full
@few
@given(st.data())
def test_values_are_those_of_the_unlabelled_run(data):
    case = data.draw(cases())
    roi = data.draw(rois(case.array.shape[: case.array.ndim - case.sig_dims]))
    expected = ud.run_udf(case.array, EveryKindUDF(), sig_dims=case.sig_dims, roi=roi).compute(
        scheduler="synchronous"
    )
    with raise_if_dask_computes():
        found = case.signal.udf.run_udf(EveryKindUDF(), roi=roi, lazy_output=True)
        assert all(signal._lazy for signal in found.values())
        assert list(found) == list(expected)
    with dask.config.set(scheduler="synchronous"):
        done = found.compute(**quiet)
        (arrays,) = dask.compute({name: signal.data for name, signal in found.items()})
        for name, signal in done.items():
            array, valid = expected[name], expected.valid_mask[name]
            if name == "powers":  # its extra dimension is a navigation axis
                array, valid = np.moveaxis(array, -1, 0), np.moveaxis(valid, -1, 0)
            assert not signal._lazy
            assert signal.data.dtype == array.dtype
            np.testing.assert_array_equal(signal.data, np.atleast_1d(array))
            np.testing.assert_array_equal(arrays[name], signal.data)
            np.testing.assert_array_equal(done.valid_mask[name].data, np.atleast_1d(valid))


@pytest.mark.full
@few
@given(cases())
def test_every_attribute_of_every_axis_is_kept(case):
    nav = case.signal.axes_manager.navigation_axes[::-1]
    sig = case.signal.axes_manager.signal_axes[::-1]
    with raise_if_dask_computes():
        found = case.signal.udf.run_udf(EveryKindUDF(), lazy_output=True)
        for name in ("sums", "ends", "stack"):
            made = found[name].axes_manager
            for axis, source in zip(made.navigation_axes[::-1], nav, strict=True):
                same_axis(axis, source, navigate=True)
        for name in ("total", "powers"):
            made = found[name].axes_manager
            for axis, source in zip(made.signal_axes[::-1], sig, strict=True):
                same_axis(axis, source, navigate=False)
        (power,) = found["powers"].axes_manager.navigation_axes
        assert (power.name, power.units, power.scale, power.offset) == ("power", "1", 2.0, 1.0)
        (end,) = found["ends"].axes_manager.signal_axes
        assert (end.name, plain(end.units), end.scale) == ("end", None, 1.0)
        assert found["ends"].metadata.udfdask.labels.end == ["min", "max"]
        assert found["stack"].axes_manager.signal_shape == (3, 2)
        assert found["pair"].axes_manager.navigation_shape == ()


@pytest.mark.full
@few
@given(cases())
def test_classes_and_metadata(case):
    with raise_if_dask_computes():
        found = case.signal.udf.run_udf(EveryKindUDF(), lazy_output=True)
        before = case.signal.metadata.as_dictionary()
        for name, signal in found.items():
            assert signal.metadata.Signal.signal_type == ""
            assert signal.metadata.General.date == "2026-11-21"
            assert signal.metadata.Sample.elements == ["Fe", "O"]
            assert signal.original_metadata.gun.voltage == 200
            title = case.signal.metadata.General.title
            assert signal.metadata.General.title == (f"{name} of {title}" if title else name)
            assert signal.metadata.udfdask.udf == "EveryKindUDF"
            assert signal.metadata.udfdask.result == name
            assert "quantity" not in signal.metadata.Signal  # this UDF keeps no units
            signal.metadata.Sample.elements.append("Pb")
        assert case.signal.metadata.as_dictionary() == before
        dims = min(case.sig_dims, 3)
        if case.signal.axes_manager.signal_dimension == dims:
            own = hs.signals.BaseSignal(np.zeros(case.array.shape)).transpose(signal_axes=dims)
            assert type(found["total"]) is type(own.as_lazy())
        assert type(found["sums"]) is hs.signals.LazySignal
        assert type(found["count"]) is hs.signals.LazySignal
        assert type(found["ends"]) is hs.signals.LazySignal1D
        assert type(found["stack"]) is hs.signals.LazySignal2D


def test_what_belongs_to_the_data_alone_is_not_taken_over():
    """Variance, navigator and markers hold only for the data; the input signal keeps them."""
    signal = hs.signals.Signal1D(np.ones((3, 4, 5)))
    signal.set_noise_variance(signal + 1)
    signal.navigator = signal.sum("sig")
    signal.add_marker(hs.plot.markers.VerticalLines([2]), permanent=True, plot_marker=False)
    found = signal.udf.run_udf(EveryKindUDF(), lazy_output=True)
    for made in found.values():
        for item in ("Signal.Noise_properties", "_HyperSpy.navigator", "Markers"):
            assert not made.metadata.has_item(item)
            assert signal.metadata.has_item(item)


@pytest.fixture
def data():
    return np.random.default_rng(3).integers(0, 9, size=(4, 5, 6, 7)).astype("uint16")


@pytest.fixture(params=["lazy", "in memory"])
def scan(request, data):
    signal = hs.signals.Signal2D(data.copy())
    signal.metadata.General.title = "Scan"
    for axis, name, scale in zip(
        signal.axes_manager._axes, ["y", "x", "ky", "kx"], [0.5, 0.25, 2.0, 4.0], strict=True
    ):
        axis.name, axis.scale, axis.units = name, scale, "nm" if len(name) == 1 else "1/nm"
    return signal.as_lazy(chunks=(2, 3, 6, 7)) if request.param == "lazy" else signal


@pytest.mark.parametrize("lazy", [True, False])
def test_as_lazy_as_asked(scan, data, lazy):
    total = scan.udf.run_udf(SumUDF(), lazy_output=lazy, **quiet)["intensity"]
    assert total._lazy == lazy
    np.testing.assert_array_equal(data_of(total), data.sum(axis=(0, 1)))


def test_nothing_is_computed_while_building(scan):
    with raise_if_dask_computes():
        results = scan.udf.run_udf([EveryKindUDF(), ListsUDF()], lazy_output=True)
        for result in results:
            repr(result)
            assert all(signal._lazy for signal in result.values())
            assert all(signal._lazy for signal in result.valid_mask.values())
            assert repr(result.valid_mask) == repr(dict(result.valid_mask))
        scan.udf.map_frames(np.sum, lazy_output=True)
        scan.udf.explain(SumUDF())


class TestUseInHyperSpy:
    """Common next steps of users with a signal."""

    @pytest.fixture
    def results(self, scan):
        return scan.udf.run_udf([SumUDF(), SumSigUDF(), EveryKindUDF()], **quiet)

    def test_as_hyperspys_own_sums(self, scan, results):
        total, image, _ = results
        for found, own in [
            (total["intensity"], scan.sum("nav")),
            (image["intensity"], scan.sum("sig")),
        ]:
            assert type(found) is type(own)
            np.testing.assert_array_equal(data_of(found), data_of(own))
            assert facts_of_axes(found) == facts_of_axes(own)

    @pytest.mark.full
    def test_saved_and_read_back(self, results, tmp_path):
        for result in results:
            for name, signal in result.items():
                path = tmp_path / f"{name}.hspy"
                signal.save(path, overwrite=True, **quiet)
                back = hs.load(path)
                np.testing.assert_array_equal(back.data, data_of(signal))
                assert facts_of_axes(back) == facts_of_axes(signal)
                assert back.metadata.udfdask.as_dictionary() == (
                    signal.metadata.udfdask.as_dictionary()
                )

    def test_saving_does_not_write_over_the_file_of_the_data(self, data, tmp_path):
        hs.signals.Signal2D(data).save(tmp_path / "scan.hspy")
        loaded = hs.load(tmp_path / "scan.hspy", lazy=True)
        image = loaded.udf.run_udf(SumSigUDF(), lazy_output=False, **quiet)["intensity"]
        with pytest.raises(ValueError, match="File name not defined"):
            image.save()
        assert [path.name for path in tmp_path.iterdir()] == ["scan.hspy"]
        loaded.close_file()


def test_lists_are_ragged_signals(scan, data):
    found = scan.udf.run_udf(ListsUDF(), **quiet)
    assert all(signal.ragged for signal in found.values())
    where = found["where"]
    assert repr(where).endswith("(5, 4|ragged)>")
    if where._lazy:
        found = found.compute(**quiet)
        assert found["where"].ragged
    for index in np.ndindex(4, 5):
        expected = np.flatnonzero(data[index] > 1)
        np.testing.assert_array_equal(found["where"].data[index], expected)
        np.testing.assert_array_equal(found["pairs"].data[(*index, 1)], expected + 1)
    assert found["pairs"].axes_manager.navigation_shape == (2, 5, 4)


def test_pickled(scan, data):
    found = pickle.loads(pickle.dumps(scan.udf.run_udf(SumUDF(), **quiet)))
    np.testing.assert_array_equal(data_of(found["intensity"]), data.sum(axis=(0, 1)))
    assert found["intensity"].axes_manager["kx"].scale == 4.0


def test_without_navigation_axes_there_is_one_frame():
    frame = hs.signals.Signal2D(np.arange(12.0).reshape(3, 4))
    total, image = frame.udf.run_udf([SumUDF(), SumSigUDF()], **quiet)
    np.testing.assert_array_equal(total["intensity"].data, frame.data)
    own = frame.sum(axis=(0, 1))
    assert image["intensity"].data == own.data == [66.0]
    assert repr(image["intensity"].axes_manager) == repr(own.axes_manager)


def test_signals_without_frames(scan):
    image = scan.udf.run_udf(SumSigUDF(), **quiet)["intensity"]
    with pytest.raises(ud.ArgumentValueError, match=r"no signal axes.*signal\.T"):
        image.udf.run_udf(SumUDF())
    lists = scan.udf.run_udf(ListsUDF(), **quiet)["where"]
    with pytest.raises(ud.ArgumentValueError, match="is ragged"):
        lists.udf.run_udf(SumUDF())


def test_axes_in_another_order_than_the_data(data):
    """Navigation axes after signal axes: the data are transposed once and not copied."""
    signal = hs.signals.BaseSignal(data)
    for axis, navigate in zip(signal.axes_manager._axes, [False, True, False, True], strict=True):
        axis.navigate, axis.name = navigate, "abcd"[axis.index_in_array]
    assert not signal.axes_manager.axes_are_aligned_with_data
    total, image = signal.udf.run_udf([SumUDF(), SumSigUDF()], **quiet)
    np.testing.assert_array_equal(total["intensity"].data, data.sum(axis=(1, 3)))
    np.testing.assert_array_equal(image["intensity"].data, data.sum(axis=(0, 2)))
    assert [axis.name for axis in image["intensity"].axes_manager._axes] == ["b", "d"]
    assert [axis.name for axis in total["intensity"].axes_manager._axes] == ["a", "c"]


@pytest.mark.full
def test_the_class_and_the_signal_type_are_kept(data):
    """An image has the class of the data, and no type of spectra or patterns."""
    signal = hs.signals.Signal2D(data.astype(complex))
    signal.metadata.Signal.signal_type = "EDS_TEM"
    signal.metadata.set_item("Acquisition_instrument.TEM.beam_energy", 200)
    for udf, cls, kind in [
        (SumUDF(), hs.signals.ComplexSignal2D, "EDS_TEM"),
        (SumSigUDF(), hs.signals.ComplexSignal, ""),
    ]:
        found = signal.udf.run_udf(udf, **quiet)["intensity"]
        assert type(found) is cls
        assert found.metadata.Signal.signal_type == kind
        assert found.metadata.Acquisition_instrument.TEM.beam_energy == 200


@pytest.mark.parametrize("lazy", [True, False])
def test_axes_of_plots_are_those_of_the_signal(lazy):
    pytest.importorskip("matplotlib", reason="matplotlib is in the plot extra")
    values = np.random.default_rng(5).integers(0, 9, size=(4, 3, 2, 5)).astype("float64")
    scan = hs.signals.Signal2D(da.from_array(values, chunks=(1, 3, 2, 5))).as_lazy()
    for number, (name, unit) in enumerate([("x", "nm"), ("y", "um"), ("kx", "mrad")]):
        axis = scan.axes_manager[number]
        axis.name, axis.units, axis.scale, axis.offset = name, unit, 0.5 + number, 7
    total, sums = scan.udf.run_udf([SumUDF(), SumSigUDF()], lazy_output=lazy, **quiet)
    (image,) = [axes for axes in sums.plot().axes if axes.images]
    assert (image.get_xlabel(), image.get_ylabel()) == ("x (nm)", "y (um)")
    # pixels of 0.5 nm whose first has its center at 7 nm, and of 1.5 um
    np.testing.assert_allclose(image.images[0].get_extent(), [6.75, 8.25, 12.25, 6.25])
    drawn = np.ma.filled(image.images[0].get_array(), np.nan)
    np.testing.assert_allclose(drawn, values.sum(axis=(2, 3)))
    (pattern,) = [axes for axes in total.plot(log=False, title="T").axes if axes.images]
    # an axis without a unit shows the numbers of pixels, whatever its scale
    assert (pattern.get_xlabel(), pattern.get_ylabel()) == ("kx (mrad)", "sig_y (pixels)")
    np.testing.assert_allclose(pattern.images[0].get_extent(), [5.75, 18.25, 1.5, -0.5])


def test_all_signals_have_it():
    assert hs.signals.BaseSignal.udf is udfdask.hyperspy.UDFAccessor
    for cls in (hs.signals.Signal1D, hs.signals.Signal2D, hs.signals.ComplexSignal2D):
        signal = cls(np.ones((2, 3, 4, 5)))
        for each in (signal, signal.as_lazy(), signal.deepcopy(), signal.T):
            assert repr(each.udf) == f"<UDFAccessor of {each!r}>"
            assert "udf" in dir(each)


def test_it_sees_the_signal_as_it_is_now():
    signal = hs.signals.Signal1D(np.ones((3, 4)))
    accessor = signal.udf
    signal.data = np.full((3, 4), 2.0)
    found = accessor.run_udf(SumUDF(), show_progressbar=False)["intensity"]
    np.testing.assert_array_equal(found.data, [6.0] * 4)


@pytest.mark.full
def test_without_hyperspy_it_says_what_to_install():
    code = "import sys; sys.modules['hyperspy'] = None; import udfdask.hyperspy"
    assert 'pip install "udfdask[hyperspy]"' in run_python("-c", code, fails=True).stderr
