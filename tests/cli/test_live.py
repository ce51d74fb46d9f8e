"""`udfdask run --live`: what is shown on the way, and that the end is that of any run."""

import matplotlib.image
import numpy as np
import pytest

from commands import call, tables
from udfdask.cli.live import LiveView
from udfdask.cli.outputs import Outputs
from udfdask.io import open_file
from udfdask.run.progressive import run_udf_iter
from udfdask.udfs import NoOpUDF, SumSigUDF

pytestmark = pytest.mark.full

SHAPE = (6, 8, 10, 12)
BROKEN = """
def broken(frame):
    if frame[0, 0] != 1:
        raise OSError("disk lost")
    return 1
"""


@pytest.fixture(autouse=True)
def every_chunk(monkeypatch):
    """Show the results after each chunk, not only every two seconds."""
    monkeypatch.setattr("udfdask.cli.live.EVERY", 0)
    monkeypatch.setattr("udfdask.cli.live.monotonic", lambda: 0.0)
    monkeypatch.setattr("udfdask.plotting.live._PAUSE", 0.0)


@pytest.fixture
def file(tmp_path):
    values = np.random.default_rng(5).integers(0, 1000, SHAPE).astype(np.uint16)
    np.save(tmp_path / "scan.npy", values)
    return tmp_path / "scan.npy"


def options(scheduler="synchronous"):
    return [
        "--udf",
        "sumsig",
        "--udf",
        "com:r=4",
        "--chunks",
        "2,8,-1,-1",
        "--scheduler",
        scheduler,
    ]


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_each_chunk_is_shown_and_the_end_is_the_same(file, scheduler):
    plain = call("run", file, *options(scheduler), "--no-progress")
    live = call("run", file, *options(scheduler), "--no-progress", "--live")
    assert live.count("1 of 3 chunks, 16 frames\n") == 1
    assert live.count("2 of 3 chunks, 32 frames\n") == 1
    assert "3 of 3 chunks" not in live  # the last table is that of the end
    assert live.endswith(plain[plain.index("\nudf ") :])
    assert len(tables(live)) == 3 * len(tables(plain))


def test_everything_is_written(file, tmp_path):
    figure, store = tmp_path / "a.png", tmp_path / "a.npz"
    outputs = ["--plot", figure, "--out", store]
    asked = ["--udf", "sumsig", "--udf", "sum", "--chunks", "2,8,-1,-1", "--no-progress"]
    output = call("run", file, *asked, *outputs, "--live")
    assert output.endswith(f"wrote {store}\nwrote {figure}\n")
    assert figure.read_bytes().startswith(b"\x89PNG")
    with np.load(store) as arrays:
        np.testing.assert_array_equal(arrays["sumsig_intensity"], np.load(file).sum(axis=(2, 3)))
    assert {p.name for p in tmp_path.iterdir()} == {"a.png", "a.npz", "scan.npy"}


def follow(file, udf=None, plot=None, in_place=False):
    """Follow a run of three chunks, and return the view."""
    opened = open_file(file, chunks=(2, 8, -1, -1))
    view = LiveView(["it"], Outputs(outs=(), plot=plot, overwrite=False, sources=()))
    assert not view.in_place
    view.in_place = in_place
    view.follow(run_udf_iter(opened, udf or SumSigUDF(), scheduler="synchronous"))
    return view


def test_a_table_in_place(file, capsys, monkeypatch):
    """As on a terminal: each takes the place of the one before, and no line is too long."""
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setenv("LINES", "3")
    follow(file, in_place=True)
    first, second, rest = capsys.readouterr().out.split("\x1b[2F\x1b[J")
    assert first.startswith("1 of 3 chunks")
    assert max(map(len, first.splitlines())) == 29
    assert second.startswith("2 of 3 chunks")
    assert len(second.splitlines()) == 2
    assert rest == ""


def test_a_picture_grows(file, tmp_path, monkeypatch):
    from udfdask.cli import live

    drawn = []
    save = live.save_figure

    def noting(path, *args, **kwargs):
        save(path, *args, **kwargs)
        drawn.append(matplotlib.image.imread(path))

    monkeypatch.setattr(live, "save_figure", noting)
    follow(file, plot=tmp_path / "a.png")
    first, second = drawn
    assert first.shape != second.shape or (first != second).any()
    assert [p.name for p in tmp_path.iterdir() if p.name != "scan.npy"] == ["a.png"]


def test_a_window_follows(file, monkeypatch):
    monkeypatch.setattr("udfdask.cli.live.has_windows", lambda: True)
    assert follow(file)._plot.figure.get_suptitle() == "SumSigUDF: 2 of 3 chunks"
    assert follow(file, NoOpUDF())._plot.figure is None
