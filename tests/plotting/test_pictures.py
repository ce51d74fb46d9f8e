"""Every kind of picture, rendered and looked at: colors by their statistics, words by their place.

The files are left in the folder that UDFDASK_PICTURES names, for people to look at.
"""

import os
from itertools import combinations
from pathlib import Path

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from udfdask.demo import make_recording
from udfdask.plotting import LivePlot, Panel, draw
from udfdask.udfs import CoMUDF, SumSigUDF, SumUDF, VirtualDetectorUDF

pytest.importorskip("matplotlib", reason="matplotlib is in the plot extra")

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import rgb_to_hsv, to_rgb
from matplotlib.image import imread
from matplotlib.text import Text

from udfdask.plotting.drawing import MISSING

pytestmark = pytest.mark.full

DPI = 80
NM = tuple(ud.Axis(name=name, unit="nm", scale=0.5) for name in "yx")
PER_NM = tuple(ud.Axis(name=name, unit="1/nm", scale=0.1, offset=-2.4) for name in ("ky", "kx"))
AXES = NM + PER_NM


@pytest.fixture(scope="module")
def recording():
    return make_recording(nav_shape=(24, 32), sig_shape=(48, 48), chunks=(6, 8, -1, -1)).persist()


@pytest.fixture
def save(tmp_path):
    """Save a figure under a name; returns the pixels, shape (y, x, 3), from 0 to 1."""
    folder = Path(os.environ.get("UDFDASK_PICTURES") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)

    def saved(figure, name):
        figure.set_dpi(DPI)  # so that places in the figure are places in the file
        FigureCanvasAgg(figure).print_png(folder / f"{name}.png")
        assert_legible(figure)
        return imread(folder / f"{name}.png")[..., :3]

    return saved


def assert_legible(figure):
    """No word is tiny or cut off, no panel reaches into another one, y points down."""
    renderer = figure.canvas.get_renderer()
    words = [t for t in figure.findobj(Text) if t.get_text() and t.get_visible()]
    assert words
    assert min(word.get_fontsize() for word in words) >= 7
    boxes = [axes.get_tightbbox(renderer) for axes in figure.axes]
    if figure.get_suptitle():
        boxes.append(figure._suptitle.get_window_extent(renderer))
    for box in boxes:
        assert box.x0 >= -1
        assert box.y0 >= -1
        assert box.x1 <= figure.bbox.width + 1
        assert box.y1 <= figure.bbox.height + 1
    for one, other in combinations(boxes, 2):
        across = min(one.x1, other.x1) - max(one.x0, other.x0)
        up = min(one.y1, other.y1) - max(one.y0, other.y0)
        assert min(across, up) < 1, "two panels overlap"
    for axes in figure.axes:
        if axes.images:
            bottom, top = axes.get_ylim()
            assert bottom > top


def inside(pixels, axes):
    """The pixels of a panel, without its frame."""
    box = axes.get_window_extent()
    height = len(pixels)
    return pixels[
        int(height - box.y1) + 3 : int(height - box.y0) - 3, int(box.x0) + 3 : int(box.x1) - 3
    ]


def share_missing(pixels):
    """Share of pixels that have the color of what is missing."""
    return np.isclose(pixels, to_rgb(MISSING), atol=0.01).all(axis=-1).mean()


def contrast(pixels):
    """Spread of the brightness, from 0 to 0.5."""
    return pixels.mean(axis=-1).std()


def test_scan_images(recording, save):
    (sums,) = ud.compute(ud.run_udf(recording, SumSigUDF(), axes=AXES))
    pixels = save(figure := sums.plot(), "scan")
    panel = inside(pixels, figure.axes[0])
    assert contrast(panel) > 0.1
    assert share_missing(panel) == 0
    assert np.ptp(panel, axis=-1).max() < 0.02  # gray


def test_each_row_has_the_height_of_its_panels(save):
    image = Panel(title="image", values=np.eye(64), axes=NM, label="rad")
    line = Panel(title="line", values=np.arange(64), axes=NM[1:], label="px")
    figure = draw([image, image, line], title="Two images above a line")
    save(figure, "rows")
    square, _, flat = (axes.get_window_extent() for axes in figure.axes)
    assert square.height == pytest.approx(square.width)
    # in rows of one height the line would be 1.6 times as wide as the image
    assert flat.width == pytest.approx(square.width, rel=0.2)


def test_the_origin_is_at_the_top_left(save):
    data = np.zeros((8, 9, 2, 2))
    data[0, 0] = data[1, 8] = 1
    result = ud.run_udf(da.from_array(data), SumSigUDF())
    panel = inside(save(figure := result.plot(), "origin"), figure.axes[0]).mean(axis=-1)
    cells = [
        [cell.mean() for cell in np.array_split(row, 9, 1)] for row in np.array_split(panel, 8)
    ]
    bright = np.argwhere(np.array(cells) > 0.5)
    assert bright.tolist() == [[0, 0], [1, 8]]


def test_on_a_logarithmic_scale_zero_is_dark_and_nan_is_missing(save):
    values = np.geomspace(1, 1e4, 100).reshape(10, 10)
    values[:5] = 0
    values[:, :2] = np.nan
    figure = draw([Panel(title="t", values=values, axes=NM, style="pattern", log=True)])
    panel = inside(save(figure, "zero-and-nan"), figure.axes[0])
    assert share_missing(panel) == pytest.approx(0.2, abs=0.03)
    assert panel[: len(panel) // 2 - 2, panel.shape[1] // 4 :].max() < 0.05


def test_vectors(save):
    y, x = np.mgrid[-12:13, -12:13].astype(float)
    component = ud.Axis(name="component", labels=("y", "x"))
    field = np.stack([y, x], axis=-1)  # away from the middle: the picture of the wheel itself
    figure = draw([Panel(title="field", values=field, axes=(*NM, component), style="vector")])
    pixels = save(figure, "vectors")
    (wheel,) = figure.axes[0].child_axes
    for picture in (figure.axes[0], wheel):
        hsv = rgb_to_hsv(inside(pixels, picture))
        n = len(hsv)
        near, middle, far = n // 4, n // 2, -n // 4
        for place, hue in {(middle, far): 0, (far, middle): 0.25, (middle, near): 0.5}.items():
            turns = (hsv[place][0] - hue) % 1.0
            assert min(turns, 1 - turns) < 0.05


def test_a_live_plot_in_progress(recording, save):
    udfs = [CoMUDF(), SumUDF(), SumSigUDF()]
    plot = LivePlot(["field", "intensity"], interval=0)
    shares = []
    for snapshot in ud.run_udf_iter(recording, udfs, axes=AXES, scheduler="synchronous"):
        if snapshot.n_merged not in (1, 9, 16):
            continue
        plot._not_before = 0.0
        plot.update(snapshot)
        pixels = save(plot.figure, f"live-{snapshot.n_merged:02}-of-16")
        panels = [inside(pixels, axes) for axes in plot.figure.axes]
        done = snapshot.damage.mean()
        for panel in (panels[0], panels[2]):
            assert share_missing(panel) == pytest.approx(1 - done, abs=0.08)
        assert contrast(panels[1]) > 0.05
        shares.append(done)
    assert shares == [1 / 16, 9 / 16, 1]


def test_detectors_over_a_pattern(recording, save):
    disk, ring = VirtualDetectorUDF(r="0.5 1/nm"), VirtualDetectorUDF("ring", ri=12, ro=20)
    total = ud.run_udf(recording, SumUDF(), axes=AXES, unit="counts")
    figure = total.plot_detectors({"BF": disk, "ADF": ring})
    assert contrast(inside(save(figure, "detectors"), figure.axes[0])) > 0.1
    names = {text.get_text().split(" ")[0] for text in figure.findobj(Text)}
    assert {"BF", "ADF"} <= {name.rstrip(":,") for name in names}
