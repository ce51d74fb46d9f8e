"""`udfdask run --live`: what is shown on the way, and that the end is that of any run."""

import matplotlib.image
import numpy as np
import pytest

from commands import call, tables
from udfdask.cli.live import PictureView, TableView, WindowView, last_snapshot
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
    live = call("run", file, *options(scheduler), "--no-progress", "--live", "--every", 0)
    assert live.count("1 of 3 chunks, 16 frames\n") == 1
    assert live.count("2 of 3 chunks, 32 frames\n") == 1
    assert "3 of 3 chunks" not in live  # the last table is that of the end
    assert live.endswith(plain[plain.index("\nudf ") :])
    assert len(tables(live)) == 3 * len(tables(plain))


def test_numbers_on_the_way_are_right(file):
    live = call("run", file, *options(), "--live", "--every", 0)
    sums = np.load(file)[:2].sum(axis=(2, 3), dtype=np.int64)
    first = tables(live)[0]
    assert first[:3] == ["sumsig", "intensity", "nav"]
    assert float(first[-3]) == sums.min()
    assert float(first[-1]) == sums.max()


def test_seldom_looks(file):
    live = call("run", file, *options(), "--live", "--every", 1000)
    assert "1 of 3 chunks" in live
    assert "2 of 3 chunks" not in live


def test_everything_is_written(file, tmp_path):
    figure, store = tmp_path / "a.png", tmp_path / "a.npz"
    outputs = ["--plot", figure, "--out", store]
    asked = ["--udf", "sumsig", "--udf", "sum", "--chunks", "2,8,-1,-1", "--no-progress"]
    output = call("run", file, *asked, *outputs, "--live", "--every", 0)
    assert output.endswith(f"wrote {store}\nwrote {figure}\n")
    assert figure.read_bytes().startswith(b"\x89PNG")
    with np.load(store) as arrays:
        np.testing.assert_array_equal(arrays["sumsig_intensity"], np.load(file).sum(axis=(2, 3)))
    assert {p.name for p in tmp_path.iterdir()} == {"a.png", "a.npz", "scan.npy"}


@pytest.mark.usefixtures("warns_of_few_data")
def test_warnings_are_told_once(file):
    output = call("run", file, "--udf", "pick", "--chunks", "3,8,2,-1", "--live")
    assert output.count("would do better: --chunks 6,8,-1,-1\n") == 1


def test_a_run_that_fails(file, tmp_path):
    (tmp_path / "mine.py").write_text(BROKEN)
    for more in ([], ["--live"]):
        output = call("run", file, "--udf", f"auto:{tmp_path}/mine.py:broken", *more, code=1)
        assert "Error: disk lost" in output


@pytest.mark.parametrize("every", ["-1", "soon"])
def test_a_wrong_interval(file, every):
    assert "Invalid value for '--every'" in call("run", file, "--live", "--every", every, code=2)


def snapshots(file, udf=None):
    opened = open_file(file, chunks=(2, 8, -1, -1))
    return opened, run_udf_iter(opened.array, udf or SumSigUDF(), scheduler="synchronous")


def test_a_table_in_place(file, capsys, monkeypatch):
    """As on a terminal: each takes the place of the one before, and no line is too long."""
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setenv("LINES", "3")
    _, iterator = snapshots(file)
    view = TableView(["sumsig"])
    assert not view.in_place
    view.in_place = True
    view(next(iterator))
    first = capsys.readouterr().out
    assert first.startswith("1 of 3 chunks")
    assert max(map(len, first.splitlines())) == 29
    assert len(first.splitlines()) == 2
    view(next(iterator))
    assert capsys.readouterr().out.startswith("\x1b[2F\x1b[J2 of 3 chunks")
    view.clear()
    view.clear()
    assert capsys.readouterr().out == "\x1b[2F\x1b[J"


def test_any_view_can_be_plugged_in(file):
    _, iterator = snapshots(file)
    shown = []
    last = last_snapshot(iterator, [lambda snapshot: shown.append(snapshot.n_merged)], every=0)
    assert shown == [1, 2]
    assert last.n_merged == 3


def test_a_picture_grows(file, tmp_path):
    opened, iterator = snapshots(file)
    view = PictureView(tmp_path / "a.png", ["sumsig"], opened)
    view(next(iterator))
    first = matplotlib.image.imread(tmp_path / "a.png")
    view(next(iterator))
    second = matplotlib.image.imread(tmp_path / "a.png")
    assert first.shape != second.shape or (first != second).any()
    assert [p.name for p in tmp_path.iterdir() if p.name != "scan.npy"] == ["a.png"]


def test_a_window_follows(file):
    opened, iterator = snapshots(file)
    view = WindowView(["sumsig"], opened)
    view(next(iterator))
    assert view.plot.figure.get_suptitle() == "SumSigUDF: 1 of 3 chunks"
    *_, last = iterator
    view(last)
    assert view.plot.figure.get_suptitle() == "SumSigUDF: 3 of 3 chunks"


def test_nothing_to_draw_in_a_window(file):
    opened, iterator = snapshots(file, NoOpUDF())
    view = WindowView(["noop"], opened)
    view(next(iterator))
    assert view.plot.figure is None


def test_nothing_to_draw(file, tmp_path):
    opened, iterator = snapshots(file, NoOpUDF())
    PictureView(tmp_path / "a.png", ["noop"], opened)(next(iterator))
    assert not (tmp_path / "a.png").exists()
