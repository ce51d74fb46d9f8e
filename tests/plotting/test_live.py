"""Live plots: what is drawn when, on which screen, and that a run never depends on it."""

import re
import threading

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from picture_udfs import ManyUDF, drawn
from suites import without_address
from udfdask.plotting import LivePlot, live
from udfdask.udfs import SumSigUDF, SumUDF

pytest.importorskip("matplotlib", reason="matplotlib is in the plot extra")

DATA = np.random.default_rng(1).integers(1, 50, size=(5, 6, 8, 9)).astype("float32")
X = da.from_array(DATA, chunks=(1, 6, 8, 9))
ONE_BY_ONE = {"scheduler": "synchronous"}


class Clock:
    """Stands still until it is told the time."""

    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(live, "time", made)
    return made


@pytest.fixture
def windows():
    """Figures are in windows, or so pyplot believes."""
    import matplotlib.pyplot as plt

    plt.switch_backend("module://window_backend")
    yield plt
    plt.close("all")
    plt.switch_backend("agg")


def test_what_is_not_there_yet_is_missing():
    plot = LivePlot(interval=0)
    for snapshot in ud.run_udf_iter(X, [SumUDF(), SumSigUDF()], **ONE_BY_ONE):
        plot._not_before = 0.0
        assert plot.update(snapshot)
        image = drawn(plot.figure)["SumSigUDF: intensity"]
        np.testing.assert_array_equal(~np.isnan(image), snapshot.damage)
        n = snapshot.n_merged
        assert plot.figure.get_suptitle() == f"SumUDF, SumSigUDF: {n} of 5 chunks"
    np.testing.assert_allclose(image, DATA.sum(axis=(2, 3)))


@pytest.mark.parametrize(
    ("plots", "message"),
    [
        ("nope", "plots asks for 'nope', which is not one of the results ['image'"),
        (5, "plots must be True, a name, a pair (name, function), or a list of"),
        (LivePlot("nope"), "plots asks for 'nope'"),
    ],
    ids=without_address,
)
def test_mistakes_are_found_before_the_run(plots, message):
    with pytest.raises(ud.UDFError, match=re.escape(message)):
        ud.run_udf_iter(X, ManyUDF(), plots=plots)


def test_names_of_a_dictionary_and_colors():
    plot = LivePlot(vmin=0, vmax=9000, cmap="viridis")
    for snapshot in ud.run_udf_iter(X, {"bright": SumSigUDF(), "all": SumSigUDF()}, plots=plot):
        assert [result.name for result in snapshot.buffers] == ["bright", "all"]
    assert list(drawn(plot.figure)) == ["bright: intensity", "all: intensity"]
    assert plot.figure.get_suptitle().startswith("bright, all: 5 of 5")
    (first, second) = (axes.images[0] for axes in plot.figure.axes)
    assert first.get_clim() == second.get_clim() == (0, 9000)
    assert first.get_cmap().name == "viridis"


def test_no_more_than_one_drawing_in_an_interval(clock):
    plot, times = LivePlot(interval=1.0), []
    for snapshot in ud.run_udf_iter(X, SumSigUDF(), **ONE_BY_ONE):
        times.append(plot.update(snapshot))
        clock.now += 0.6
    # the first; then each that comes a second later; and the last in any case
    assert times == [True, False, True, False, True]


def test_an_error_in_drawing_is_a_warning_and_the_run_goes_on():
    def late(array):
        if np.nanmax(array) > 100:
            raise ZeroDivisionError("on purpose")
        return array

    snapshots = ud.run_udf_iter(X, SumSigUDF(), plots=("intensity", late), **ONE_BY_ONE)
    with pytest.warns(ud.UDFWarning, match="the run goes on: ZeroDivisionError: on purpose") as w:
        done = list(snapshots)
    assert len(w) == 1
    np.testing.assert_allclose(done[-1].buffers[0]["intensity"], DATA.sum(axis=(2, 3)))


class TestWindows:
    def test_it_is_shown_drawn_and_kept_alive(self, windows):
        plot = LivePlot()
        n_drawings = 0
        for snapshot in ud.run_udf_iter(X, SumSigUDF(), **ONE_BY_ONE):
            n_drawings += plot.update(snapshot)
        canvas = plot.figure.canvas
        assert canvas.manager.n_shown == 1
        assert canvas.n_drawn >= n_drawings
        assert canvas.n_flushed == n_drawings
        assert windows.get_fignums() == [1]

    def test_closing_it_does_not_break_the_run(self, windows):
        plot = LivePlot(interval=0)
        for snapshot in ud.run_udf_iter(X, SumSigUDF(), plots=plot, **ONE_BY_ONE):
            plot._not_before = 0.0
            if snapshot.n_merged == 2:
                windows.close(plot.figure)
        assert plot.figure.get_suptitle() == "SumSigUDF: 2 of 5 chunks"
        assert snapshot.n_merged == 5

    def test_other_threads_open_none(self, windows):
        plot = LivePlot()

        def watch():
            for _ in ud.run_udf_iter(X, SumSigUDF(), plots=plot, **ONE_BY_ONE):
                pass

        thread = threading.Thread(target=watch)
        thread.start()
        thread.join()
        assert windows.get_fignums() == []
        np.testing.assert_allclose(drawn(plot.figure)["intensity"], DATA.sum(axis=(2, 3)))

    def test_static_plots_are_shown_by_pyplot(self, windows):
        figure = ud.run_udf(X, SumUDF()).plot()
        assert windows.figure(windows.get_fignums()[0]) is figure
