"""Each call in docs/how-do-i.md runs on small data."""

import re
import shutil
from pathlib import Path

import click.testing
import dask.array as da
import numpy as np
import pytest

import udfdask as ud
import udfdask.udfs
from fences import read_fences
from udfdask.cli import main
from udfdask.demo import make_recording

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-do-i.md"
RUN_ELSEWHERE = {
    "read data on S3 or a web server": "needs a server; tests/io/test_remote_zarr.py has one",
    "run on a cluster": "needs a scheduler at this address; tests/scheduling/ has clusters",
    "run in two processes of my computer": "tests/project/test_docs.py runs its page",
    "use a GPU": "needs a CUDA device; tests/project/test_docs.py runs its page",
}


def read_rows():
    """The tasks of the tables, and the code spans of the call of each."""
    lines = PAGE.read_text("utf-8").splitlines()
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line[:2] == "| "]
    rows = [row for row in cells if row[0] not in {"I want to ...", "---"}]
    assert all(len(row) == 3 for row in rows)
    return {task: re.findall(r"`([^`]+)`", call) for task, call, _ in rows}


ROWS = read_rows()


class WindowUDF(ud.UDF):
    """The largest value in each window."""

    halo = 1

    def get_result_buffers(self):
        return {"peak": self.buffer(kind="nav", dtype="float32")}

    def process_neighborhood(self, frames):
        self.results.peak[:] = frames.max()


class MaximumUDF(ud.UDF):
    """The maximum of each pixel over all frames."""

    def get_result_buffers(self):
        return {"peak": self.buffer(kind="sig", dtype="float32")}

    def preprocess(self):
        self.results.peak[:] = -np.inf

    def process_frame(self, frame):
        self.results.peak[:] = np.maximum(self.results.peak, frame)

    def merge(self, dest, src):
        dest.peak[:] = np.maximum(dest.peak, src.peak)


OWN = {"WindowUDF": WindowUDF, "MaximumUDF": MaximumUDF}


def libertem_udf():
    try:
        from libertem.udf.stddev import StdDevUDF
    except ImportError:
        pytest.skip("LiberTEM is not installed")
    return StdDevUDF()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with the files that the page names; the signal and the DataArray in them."""
    h5py = pytest.importorskip("h5py", reason="the extra io brings it")
    hs = pytest.importorskip("hyperspy.api", reason="the extra hyperspy brings it")
    xr = pytest.importorskip("xarray", reason="the extra xarray brings it")
    pytest.importorskip("zarr", reason="the extra io brings it")
    folder = tmp_path_factory.mktemp("files")
    frames = make_recording((12, 16), (48, 48)).compute()
    signal = hs.signals.Signal2D(frames)
    coords = {
        "y": ("y", np.arange(12) * 0.5, {"units": "nm"}),
        "x": ("x", np.arange(16) * 0.5, {"units": "nm"}),
        "ky": ("ky", np.arange(48.0) - 24, {"units": "mrad"}),
        "kx": ("kx", np.arange(48.0) - 24, {"units": "mrad"}),
    }
    array = da.from_array(frames, chunks=(3, 16, -1, -1))
    scan = xr.DataArray(array, dims=tuple(coords), coords=coords, name="scan")
    signal.save(folder / "scan.hspy")
    scan.to_dataset().to_zarr(folder / "scan.zarr", consolidated=False)
    np.save(folder / "scan.npy", frames)
    np.save(folder / "frames.npy", frames.reshape(-1, 48, 48))
    frames.tofile(folder / "scan.raw")
    with h5py.File(folder / "several.h5", "w") as file:
        file["entry/frames"] = frames
        file["entry/others"] = frames
    few = frames[:4, :6, 20:28, 20:28].reshape(24, 64)
    frame, pixel = np.nonzero(few)
    np.searchsorted(frame, np.arange(25)).astype("int64").tofile(folder / "indptr.raw")
    pixel.astype("int32").tofile(folder / "indices.raw")
    few[frame, pixel].tofile(folder / "data.raw")
    spectrum_image = hs.signals.Signal1D(frames.reshape(12, 16, -1))
    spectrum_image.axes_manager[-1].units, spectrum_image.axes_manager[-1].scale = "keV", 0.01
    return folder, {"signal": signal, "scan": scan, "spectrum_image": spectrum_image}


@pytest.fixture
def names(files, tmp_path, monkeypatch):
    """The names that the calls use, in a folder with the files that they open."""
    folder, data = files
    shutil.copytree(folder, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    setup = next(fence for fence in read_fences(PAGE) if fence.language == "python")
    known = {**{name: getattr(udfdask.udfs, name) for name in udfdask.udfs.__all__}, **data, **OWN}
    known["__name__"] = "__main__"
    exec(setup.text, known)
    known["mask"] = np.hypot(*np.ogrid[-24:24, -24:24]) < 5
    known["spectra"] = known["array"].reshape((12, 16, -1)).rechunk({2: -1})
    return known


def run_span(span, known):
    """Run a code span; returns the value, computed if it is lazy, or what a command prints."""
    if span.startswith("udfdask "):
        done = click.testing.CliRunner().invoke(main, span.split()[1:], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output
    try:
        code = compile(span, str(PAGE), "eval")
    except SyntaxError:
        exec(span, known)
        return None
    value = eval(code, known)
    return value.compute() if hasattr(value, "compute") else value


@pytest.mark.full
@pytest.mark.parametrize("task", [task for task in ROWS if task not in RUN_ELSEWHERE])
def test_calls_run(task, names, capsys):
    if any("sparse." in span for span in ROWS[task]):
        names["sparse"] = pytest.importorskip("sparse", reason="the extra sparse brings it")
    if any("libertem" in span for span in ROWS[task]):
        names["libertem_udf"] = libertem_udf()
    before = {*names, *Path().iterdir()}
    values = [run_span(span, names) for span in ROWS[task]]
    left = {*names, *Path().iterdir()} - before
    given = [value for value in values if value is not None]
    assert left or given or capsys.readouterr().out, "no name, file, value or text"


def test_each_row_has_a_call():
    assert all(ROWS.values())
    assert set(RUN_ELSEWHERE) < set(ROWS)
