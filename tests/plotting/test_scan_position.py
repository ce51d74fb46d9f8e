"""One scan position: `nav=`, and clicks on a map over the scan."""

import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import udfdask as ud
from suites import examples
from udfdask import Axis
from udfdask.errors import ArgumentTypeError, ArgumentValueError
from udfdask.testing import raise_if_dask_computes
from udfdask.udfs import ApplyMasksUDF, CoMUDF, RadialProfileUDF, SumSigUDF, SumUDF

pytest.importorskip("matplotlib", reason="matplotlib is an extra")
from matplotlib.backend_bases import MouseEvent
from matplotlib.backends.backend_agg import FigureCanvasAgg

FRAMES = np.random.default_rng(0).integers(0, 50, (4, 5, 16, 16)).astype("uint16")
AXES = (
    Axis(name="y", unit="nm", scale=-0.5, offset=3.0),
    Axis(name="x", unit="nm", scale=0.25, offset=-1.0),
    Axis(name="ky", unit="mrad", scale=0.5),
    Axis(name="kx", unit="mrad", scale=0.5),
)


def run(udf, frames=FRAMES, axes=AXES, **options):
    data = da.from_array(frames, chunks=(2, *frames.shape[1:]))
    return ud.run_udf(data, udf, sig_dims=2, axes=axes, unit="counts", **options).compute()


def click(figure, panel, y, x, button=1):
    """Press a button of the mouse at a point in the units of the axes."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    place = panel.transData.transform((x, y))
    event = MouseEvent("button_press_event", canvas, *place, button)
    canvas.callbacks.process("button_press_event", event)


def curve(figure):
    """The last line of the first panel: its name and its values."""
    line = figure.axes[0].lines[-1]
    return line.get_label(), line.get_ydata()


def contents(figure):
    """The lines of all panels, as numbers."""
    return [[line.get_xydata().tolist() for line in axes.lines] for axes in figure.axes]


@settings(max_examples=examples(5, 2))
@given(st.integers(0, 3), st.integers(0, 4), st.floats(-0.45, 0.45), st.floats(-0.45, 0.45))
def test_a_click_draws_what_nav_draws(row, column, dy, dx):
    result = run(RadialProfileUDF(r=6))
    asked, clicked = result.plot(nav=(row, column)), result.plot()
    y, x = AXES[0].positions(4)[row], AXES[1].positions(5)[column]
    click(clicked, clicked.axes[2], 0.0, 0.0)  # another position first: it is replaced
    click(clicked, clicked.axes[2], y + 0.5 * dy, x + 0.25 * dx)
    assert curve(asked)[0] == curve(clicked)[0] == f"y {y:g} nm, x {x:g} nm"
    np.testing.assert_array_equal(curve(asked)[1], result["intensity"][row, column])
    assert contents(asked) == contents(clicked)
    (mark,) = clicked.axes[2].lines
    np.testing.assert_allclose(mark.get_xydata(), [[x, y]])


def test_nothing_changes_without_a_click_on_a_map():
    result = run(RadialProfileUDF(r=6))
    figure = result.plot()
    before = contents(figure)
    assert len(before[0]) == 1
    click(figure, figure.axes[0], 22.0, 1.0)  # the curve
    click(figure, figure.axes[1], 2.0, 1.0)  # a mean over x
    click(figure, figure.axes[2], 2.0, -0.5, button=3)
    click(figure, figure.axes[2], 40.0, 40.0)  # outside
    assert contents(figure) == before
    limits = figure.axes[2].get_xlim(), figure.axes[2].get_ylim()
    click(figure, figure.axes[2], 2.0, -0.5)
    assert contents(figure) != before
    assert (figure.axes[2].get_xlim(), figure.axes[2].get_ylim()) == limits


def test_a_line_scan_is_clicked_in_its_image():
    frames = FRAMES.reshape(20, 16, 16)
    result = run(RadialProfileUDF(r=6), frames, (AXES[1], *AXES[2:]))
    figure = result.plot()
    assert len(figure.axes) == 2
    click(figure, figure.axes[1], -1 + 0.25 * 7, 2.0)
    assert curve(figure)[0] == "x 0.75 nm"
    np.testing.assert_array_equal(curve(figure)[1], result["intensity"][7])
    np.testing.assert_array_equal(curve(result.plot(nav=7))[1], result["intensity"][7])


@pytest.mark.full
def test_the_map_of_a_scan_of_three_dimensions():
    frames = np.stack([FRAMES, FRAMES + 7, FRAMES + 20])
    time = Axis(name="time", unit="s", scale=10.0)
    result = run(RadialProfileUDF(r=6), frames, (time, *AXES))
    figure = result.plot()
    assert figure.axes[2].get_title("left") == "intensity [10 s], mean over radius"
    click(figure, figure.axes[2], 2.5, -0.5)
    assert curve(figure)[0] == "time 10 s, y 2.5 nm, x -0.5 nm"
    np.testing.assert_array_equal(curve(figure)[1], result["intensity"][1, 1, 2])
    figure = result.plot(nav=(2, 1, 2))
    np.testing.assert_array_equal(curve(figure)[1], result["intensity"][2, 1, 2])
    assert not figure.axes[2].lines  # the map is that of another time


def test_positions_without_values():
    result = run(RadialProfileUDF(r=6), roi=np.s_[1:, :])
    assert curve(result.plot(nav=(0, 2)))[0] == "y 3 nm, x -0.5 nm: no values"


def test_positions_of_other_results():
    (mark,) = run(SumSigUDF()).plot(nav=(-1, 0)).axes[0].lines
    np.testing.assert_allclose(mark.get_xydata(), [[-1.0, 1.5]])
    field = run(CoMUDF()).plot(nav=(1, 1))
    assert [len(axes.lines) for axes in field.axes] == [1, 1]
    disks = {"BF": np.eye(16), "ADF": np.ones((16, 16))}
    assert len(run(ApplyMasksUDF(disks)).plot(nav=(1, 1)).axes) == 2


class SquareUDF(ud.UDF):
    def get_result_buffers(self):
        return {"square": self.buffer("nav", extra_shape=(3, 4), dtype="float32")}

    def process_frame(self, frame):
        self.results.square[:] = frame[:3, :4]


def test_an_image_for_each_position():
    panel = run(SquareUDF()).plot(nav=(2, 3)).axes[0]
    assert panel.get_title("left") == "square at y 2 nm, x -0.25 nm"
    np.testing.assert_array_equal(panel.images[0].get_array(), FRAMES[2, 3, :3, :4])


@pytest.mark.parametrize(
    ("nav", "error", "words"),
    [
        ((4, 0), ArgumentValueError, r"nav=\(4, 0\) is not a position of the scan, .* \(4, 5\)"),
        ((0, -6), ArgumentValueError, "not a position"),
        (3, ArgumentValueError, "not a position"),
        ((), ArgumentValueError, "not a position"),
        ((1.5, 0), ArgumentTypeError, r"nav must be a scan position, such as nav=\(3, 4\)"),
        ("ab", ArgumentTypeError, "nav must be a scan position"),
        ((True, False), ArgumentTypeError, "nav must be a scan position"),
    ],
)
def test_what_is_no_position(nav, error, words):
    lazy = ud.run_udf(da.from_array(FRAMES), RadialProfileUDF(r=6), axes=AXES)
    with raise_if_dask_computes(), pytest.raises(error, match=words):
        lazy.plot(nav=nav)


def test_a_pattern_has_no_positions():
    with pytest.raises(ArgumentValueError, match="'intensity' of SumUDF has no values for each"):
        run(SumUDF()).plot(nav=(0, 0))
