"""The notebooks run without warnings, end with a picture, and compute what NumPy computes."""

import base64
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
REAL = os.environ.get("UDFDASK_TEST_DATA")

# In a process of its own, because Jupyter's own warnings are not ours.
EXECUTE = """
import sys, nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
nbformat.write(notebook, sys.argv[2])
"""

# Run after the last cell, in the kernel: what the notebook says, against plain NumPy.
LAWS = {
    "1-first-look": """
        frames = scan.array.compute().astype("float64")
        k = np.arange(64) - 32
        distance = np.hypot(k[:, None], k)  # in mrad
        bf = frames[..., distance <= 6].sum(axis=-1)
        adf = frames[..., (distance > 9) & (distance <= 30)].sum(axis=-1)
        np.testing.assert_array_equal(images["BF"]["intensity"], bf)
        np.testing.assert_array_equal(images["ADF"]["intensity"], adf)
        np.testing.assert_array_equal(peak["peak"], frames.max(axis=(2, 3)))
        np.testing.assert_array_equal(electrons, frames.sum(axis=(2, 3)))
        # a particle is dark in both images, and bright in the share of the dark field
        on, off = np.s_[12:17, 13:18], np.s_[:4, 32:40]
        assert bf[on].mean() < bf[off].mean() and adf[on].mean() < adf[off].mean()
        assert (adf / electrons)[on].mean() > (adf / electrons)[off].mean()
    """,
    "2-virtual-detectors-and-dpc": """
        assert np.argwhere(broken).tolist() == [[28, 37]]
        patched = frames.astype("float64")
        around = patched[:, :, 27:30, 36:39].sum(axis=(2, 3)) - patched[:, :, 28, 37]
        patched[:, :, 28, 37] = around / 8
        moved = np.stack([
            [shift(patched[i, j], -plane[i, j], order=1) for j in range(64)] for i in range(48)
        ])
        k = np.indices((64, 64))
        distance = np.hypot(k[0] - cy, k[1] - cx)
        for name, (low, high) in {
            "BF": (-1, 5), "annular BF": (2.5, 5), "first ring": (9, 19)
        }.items():
            expected = moved[..., (distance > low) & (distance <= high)].sum(axis=-1)
            np.testing.assert_allclose(images[name]["intensity"], expected, rtol=1e-4)
        inner = moved * (distance <= 8)
        com = [(inner * k[i]).sum(axis=(2, 3)) / inner.sum(axis=(2, 3)) for i in (0, 1)]
        np.testing.assert_allclose(dpc["raw_com"], np.stack(com, axis=-1), rtol=1e-4)
        # the beam is deflected to the middle of the first particle
        assert field[14, 10, 1] > 0.3 and field[14, 20, 1] < -0.3
        assert (guess.scan_rotation, guess.flip_y) == (0, False)
        # the field is the slope of the phase, apart from noise
        slope = 1e3 * wavelength / (2 * np.pi) * np.stack(np.gradient(phase, 0.5), axis=-1)
        assert np.corrcoef(slope.ravel(), field.ravel())[0, 1] > 0.9
    """,
    "3-eds-and-eels-maps": """
        data = recording.array.compute().astype("float64")
        keV = energy_axis.positions(2048)
        def counted(data, axis, low, high):
            return data[..., (axis >= low) & (axis < high)].sum(axis=-1)
        def net(line):
            sides = [energies[f"{line}, {side}"] for side in ("left", "right")]
            return counted(data, keV, *energies[line]) - sum(counted(data, keV, *s) for s in sides)
        np.testing.assert_array_equal(aluminum, net("Al"))
        np.testing.assert_array_equal(silver, net("Ag"))
        np.testing.assert_allclose(inside, data[much_al].mean(axis=0))
        # aluminum at the left, silver at the right
        assert aluminum[:, :10].mean() > 1.5 * aluminum[:, -10:].mean()
        assert silver[:, -10:].mean() > 3 * silver[:, :10].mean()
        by_hyperspy = signal.isig[1.40:1.58].data.sum(axis=-1)
        np.testing.assert_array_equal(image.data, np.asarray(by_hyperspy))
        np.testing.assert_array_equal(saved.data, aluminum)
        assert saved.axes_manager[0].units == "µm"

        def above(before, after):
            (e1, e2), (a, b) = before, after
            halves = (e1, (e1 + e2) / 2), ((e1 + e2) / 2, e2)
            i1, i2 = (counted(spectra, loss, *half) for half in halves)
            s = 1 - 2 * np.log(i1 / i2) / np.log(e2 / e1)
            return counted(spectra, loss, a, b) - (i1 + i2) * (b**s - a**s) / (e2**s - e1**s)
        np.testing.assert_allclose(titanium, above((406, 454), (454, 478)), rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(oxygen, above((484, 526), (530, 560)), rtol=1e-6, atol=1e-6)
    """,
    "4-events": """
        k = (np.arange(128) - 64) * 0.5
        distance = np.hypot(k[:, None], k)  # in mrad
        adf = counts[..., (distance > 8) & (distance <= 31)].sum(axis=-1)
        np.testing.assert_array_equal(results["ADF"]["intensity"], adf)
        disk = counts * (distance <= 7)
        com = (disk * k[:, None]).sum(axis=(2, 3)) / disk.sum(axis=(2, 3))
        np.testing.assert_allclose(results["DPC"]["field_y"], com, atol=1e-9)
        np.testing.assert_array_equal(same, counts.sum(axis=(0, 1)))
        for udf in udfs.values():
            assert "numpy" not in str(ud.explain(events, udf, **options)), udf
    """,
    "5-write-a-udf": """
        frames = scan.compute().astype("float64")
        outside = np.hypot(*(np.indices((48, 48)) - 24)) > 6
        shares = frames[..., outside].sum(axis=-1) / frames.sum(axis=(2, 3))
        np.testing.assert_allclose(scattered, shares, atol=1e-6)
        np.testing.assert_allclose(on["pattern"], frames[particles].mean(axis=0))
        np.testing.assert_allclose(beside["pattern"], frames[~particles].mean(axis=0))
    """,
    "6-neighborhoods": """
        frames = scan.compute().astype("float64")
        mean = frames[18:21, 29:32].mean(axis=(0, 1))
        np.testing.assert_allclose(average[19, 30].compute(), mean, atol=1e-5)
        assert error < 0.6
    """,
    "7-live-plots": """
        frames = scan.compute().astype("float64")
        distance = np.hypot(*(np.indices((48, 48)) - 24))
        ring = (distance > 6) & (distance <= 16)
        np.testing.assert_array_equal(image, frames[..., ring].sum(axis=-1))
        np.testing.assert_array_equal(total["intensity"], frames.sum(axis=(0, 1)))
        # at least the eight chunks of 72 frames before the change, and not all
        assert 8 * 72 <= (used == 2).sum() < 36 * 48
    """,
    "8-laptop-to-cluster": """
        np.testing.assert_allclose(
            deviation["std"], recording.compute().std(axis=(0, 1)), atol=1e-4
        )
        # only what is not in the cache is read again
        assert 0 <= done[0] < first.size == done[-1] == 48
        assert second.sum() == 48 - done[0]
        assert not (first > 1).any() and not (second > 1).any()
        assert not ((first == 0) & (second == 0)).any()
        assert not Path(temporary.name).exists()
        assert (client.status, cluster.status.name) == ("closed", "closed")
    """,
    "9-phase-and-strain": """
        assert (guess["scan_rotation"], guess["flip_y"]) == (30, True)
        assert np.std(by_dpc["phase"] - thin.blurred_phase) < 0.1

        def correlation(one, other):
            return np.corrcoef(one.ravel(), other.ravel())[0, 1]
        assert correlation(by_side_band["phase"], thin.phase) > 0.8
        assert abs(found["defocus"] - 25) < 1 and abs(found["scan_rotation"] - 20) < 1
        from scipy.ndimage import gaussian_filter
        details = fine.phase - gaussian_filter(fine.phase, 0.2 / 0.025)
        assert correlation(found["phase"], details) > 0.8
        assert lattice["num_used"].min() >= 9 and lattice["residual"].max() < 0.5
        for name in ("exx", "eyy", "exy"):
            assert np.std(strain[name] - true[name]) < 0.003
        assert correlation(strain["exx"], true["exx"]) > 0.99
        assert abs(strain["rotation"][:, -9:].mean() - true["rotation"][:, -9:].mean()) < 3e-4
    """,
}
SAID = {
    "5-write-a-udf": [
        "equal: True",
        "keeps 17 laws",
        "merge is not associative",
        "Implement merge",
        "9 chunks for 3 UDFs: 9 reads",
    ],
    "7-live-plots": ["100% of the scan", "equal: True", "Stopped early: True"],
    "8-laptop-to-cluster": [
        "equal to the last bit: True",
        "The run failed: the disk was unplugged",
    ],
}
"""What the cells of a notebook print, among other things."""
COMPARES = ("4-events", "8-laptop-to-cluster")
"""Print for each comparison whether it is true."""
WITH_RECORDING = ("1-first-look", "3-eds-and-eels-maps")
CASES = [(name, False) for name in LAWS] + [(name, True) for name in WITH_RECORDING]


def executed(notebook, folder):
    """The code cells of a notebook after it ran in a kernel."""
    pytest.importorskip("nbclient", reason="nbclient is in the test extra")
    pytest.importorskip("ipykernel", reason="ipykernel is in the test extra")
    source, done = folder / "source.ipynb", folder / "done.ipynb"
    source.write_text(json.dumps(notebook), "utf-8")
    # the backend of matplotlib is the one that kernels choose
    environment = {key: value for key, value in os.environ.items() if key != "MPLBACKEND"}
    command = [sys.executable, "-c", EXECUTE, str(source), str(done)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    cells = json.loads(done.read_text("utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def code_cell(code):
    """A code cell as it is before it runs."""
    return {
        "cell_type": "code",
        "id": "more",
        "metadata": {},
        "source": code,
        "execution_count": None,
        "outputs": [],
    }


def texts(outputs):
    """The text that was printed."""
    return "".join("".join(one["text"]) for one in outputs if one["output_type"] == "stream")


def pictures(outputs):
    """The PNG images among outputs, shape (y, x, 4), from 0 to 1."""
    from matplotlib.image import imread

    data = [one.get("data", {}).get("image/png") for one in outputs]
    return [imread(io.BytesIO(base64.b64decode(png))) for png in data if png]


def test_each_notebook_is_here():
    assert sorted(LAWS) == sorted(path.stem for path in FOLDER.glob("*.ipynb"))


@pytest.mark.parametrize(
    ("name", "with_recording"),
    CASES,
    ids=[name + "-recording" * with_recording for name, with_recording in CASES],
)
def test_it_runs_and_says_what_is_true(name, with_recording, tmp_path, monkeypatch):
    if with_recording and REAL is None:
        pytest.skip("UDFDASK_TEST_DATA names no folder of recordings")
    monkeypatch.setenv("UDFDASK_TEST_DATA", REAL if with_recording else str(tmp_path))
    notebook = json.loads((FOLDER / f"{name}.ipynb").read_text("utf-8"))
    assert all(not cell.get("outputs") for cell in notebook["cells"])
    laws = "\n".join(line[8:] for line in LAWS[name].splitlines())
    notebook["cells"].append(code_cell(laws))
    *cells, _ = executed(notebook, tmp_path)
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert not [one for one in outputs if one.get("name") == "stderr"]
    printed = texts(outputs)
    if name in COMPARES:
        assert "False" not in printed
    for words in SAID.get(name, ()):
        assert words in printed
    if with_recording:
        shown = "".join("".join(one.get("data", {}).get("text/plain", "")) for one in outputs)
        assert "'twin'" not in shown
    (picture,) = pictures(cells[-1]["outputs"])
    assert min(picture.shape[:2]) > 200
    assert picture[..., :3].std() > 0.1  # not only axes on an empty ground


WITHOUT_WIDGETS = """
import sys
sys.modules["ipywidgets"] = None  # as if it were not installed
import udfdask as ud
from udfdask.demo import make_recording
from udfdask.udfs import SumUDF
scan = make_recording(nav_shape=(4, 6), sig_shape=(32, 32))
for _ in range(2):
    ud.run_udf(scan, SumUDF()).compute(progress=True)
"""


def test_a_kernel_without_ipywidgets_shows_a_line_of_text(tmp_path):
    head = {"metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (done,) = executed({**head, "cells": [code_cell(WITHOUT_WIDGETS)]}, tmp_path)
    shown = texts(done["outputs"])
    bars = [line.split("\r")[-1] for line in shown.strip().split("\n")]
    assert len(bars) == 2
    assert all("24.0/24.0" in bar for bar in bars)
    assert "Warning" not in shown
