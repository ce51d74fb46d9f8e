"""The benchmarks of asv_bench run, at tiny sizes, and everyone finds the same."""

import importlib
import importlib.util
import inspect
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from making import LATE

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "asv_bench"
sys.path.insert(0, str(FOLDER))
try:
    import files
    from benchmarks import builtin_udfs, chunk_layouts, layouts, other_doors, start
    from comparison import bare, by_dask, by_libertem, by_udfdask
    from comparison.cases import CASES
    from comparison.contest import run_case
finally:
    sys.path.remove(str(FOLDER))

TINY = 0.0004
CASE = {case.name: case for case in CASES}
SETTINGS = {"gigabytes": TINY, "threads": 2, "repeats": 1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One folder for all, so that each file is made once."""
    return tmp_path_factory.mktemp("data")


@pytest.fixture
def tiny(folder, monkeypatch):
    """Tiny data sets for the benchmarks of asv."""
    monkeypatch.setenv("UDFDASK_BENCH_GIGABYTES", str(TINY))
    monkeypatch.setenv("UDFDASK_BENCH_FOLDER", str(folder))
    layouts.dataset.cache_clear()
    yield
    layouts.dataset.cache_clear()


@pytest.mark.parametrize("name", CASE)
def test_udfdask_and_dask_agree(name, folder):
    needed = "zarr" if CASE[name].zarr else "sparse" if name == "rings" else "numpy"
    pytest.importorskip(needed, reason=f"{needed} is an extra")
    outcome = run_case(CASE[name], folder=folder, peer=None, **SETTINGS)
    assert not outcome.failed, (outcome.said, outcome.differences)
    assert outcome.seconds["dask"] > 0
    assert outcome.seconds["udfdask"] > 0


@pytest.mark.skipif(not by_libertem.INSTALLED, reason="LiberTEM is not installed")
@pytest.mark.filterwarnings("default")  # those of LiberTEM and its dependencies
def test_libertem_agrees_too(folder, monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)  # its processes import what it is given
    with by_libertem.LiberTEM(threads=2) as peer:
        for case in CASES:
            outcome = run_case(case, folder=folder, peer=peer, **SETTINGS)
            assert not outcome.failed, (case.name, outcome.said, outcome.differences)
            assert outcome.executor in by_libertem.EXECUTORS


@pytest.mark.parametrize("name", ["zarr3-sharded", "hdf5-shuffle-gzip", "hdf5-contiguous", "npy"])
def test_file_formats_give_the_same_sum(name, folder, capsys):
    pytest.importorskip("zarr" if "zarr" in name else "h5py", reason="it is in the io extra")
    options = f"--gigabytes {TINY} --repeats 1 --no-libertem --formats {name} --folder {folder}"
    assert files.main(options.split()) == 0
    assert "GB/s" in capsys.readouterr().out


@pytest.mark.parametrize("work", by_dask.WORK)
def test_everyone_does_the_same_work(work):
    assert set(by_dask.WORK) == set(by_udfdask.WORK) == set(by_libertem.WORK)
    counts = {len(module.WORK[work]) for module in (by_dask, by_udfdask, by_libertem)}
    assert len(counts) == 1


@pytest.mark.parametrize("name", layouts.LAYOUTS)
def test_layouts(name, folder):
    layout = layouts.LAYOUTS[name]
    full = layout.shape(2)
    assert full[-layout.sig_dims - len(layout.line) : -layout.sig_dims] == layout.line
    assert 1e9 < np.prod(full, dtype=float) * np.dtype(layout.dtype).itemsize <= 2 << 30
    data = layouts.opened(layouts.make_file(layout, TINY, folder), layout)
    assert data.dtype == np.dtype(layout.dtype)
    assert data.numblocks[0] >= 2
    assert data.numblocks[-layout.sig_dims :] == (1,) * layout.sig_dims
    assert layout.name == "large" or data.numblocks[1] == 1
    values = data.compute()
    assert values.any()
    assert (values == 0).mean() > 0.9 or name != "events"


def test_the_bare_sees_every_word():
    words = np.random.default_rng(0).integers(0, 2**63, 1001, dtype="u8")
    assert bare.add_words(words) == words.sum()


PEERLESS = ["--repeats", "1", "--threads", "2", "--no-libertem"]
# Scripts that write tables between their marks on a page: packages they need, options, attributes
# that are made smaller, a part of some rows, and how many rows have it.
PAGES = {
    "peers": (
        [],
        ["--cases", "sum", *PEERLESS],
        {},
        "| sum over the frames",
        lambda peers: 2,  # the speeds, and the goals without LiberTEM
    ),
    "doors": (
        ["hyperspy", "xarray"],
        ["--megabytes", "0.3", "--repeats", "1", "--threads", "2"],
        {},
        "| agree |",
        lambda doors: len(doors.LAYOUTS) * len(doors.FUNCTIONS) * 3,
    ),
    "sparse_events": (
        ["sparse"],
        ["--frames", "48", "--dense-frames", "32", *PEERLESS],
        {},
        "| agree |",
        lambda events: len(events.CASES),
    ),
    "roofline": (
        ["sparse"],
        PEERLESS,
        {"SIZE": 64},
        "| ",
        lambda roofline: len(roofline.DTYPES) * (1 + len(roofline.WORKS)),
    ),
    "small_runs": (
        [],
        ["--rounds", "1"],
        {"WORKS": {"sum": ("sum",)}},
        "| sum over the frames |",
        lambda small_runs: 3,  # one of overheads, and one of first results for each dtype
    ),
}


@pytest.mark.parametrize("name", PAGES)
def test_scripts_agree_and_write_their_tables(name, folder, tmp_path, monkeypatch, capsys):
    packages, options, smaller, part, count = PAGES[name]
    for package in packages:
        pytest.importorskip(package, reason=f"{package} is an extra")
    monkeypatch.syspath_prepend(FOLDER)
    script = importlib.import_module(name)
    for attribute, value in smaller.items():
        monkeypatch.setattr(script, attribute, value)
    if name in ("peers", "roofline"):
        options = ["--gigabytes", str(TINY), *options]
    if name in ("sparse_events", "roofline"):
        options = ["--folder", str(folder), *options]
    page = tmp_path / "page.md"
    page.write_text(f"before\n{script.START}\nold\n{script.STOP}\nafter\n")
    assert not script.main([*options, "--write", str(page)])  # 1 if results differ
    text = page.read_text()
    assert text.startswith(f"before\n{script.START}\nMeasured ")
    assert text.endswith(f"|\n{script.STOP}\nafter\n")
    tables = [list(lines) for is_row, lines in grouped(text) if is_row]
    assert all(len({line.count("|") for line in table}) == 1 for table in tables)
    rows = [line for table in tables for line in table if part in line]
    assert len(rows) == count(script)
    assert rows[-1] in capsys.readouterr().out


def grouped(text):
    """Groups of lines: those of a table, and others."""
    return itertools.groupby(text.splitlines(), lambda line: line.startswith("|"))


def test_averages_of_neighbors_agree(monkeypatch, capsys):
    """All contestants find the same, each in a process of its own."""
    pytest.importorskip("zarr", reason="zarr is an extra")
    monkeypatch.syspath_prepend(FOLDER)
    neighborhoods = importlib.import_module("neighborhoods")
    monkeypatch.setattr(neighborhoods, "SIG", (8, 9))
    neighborhoods.main(["--megabytes", "0.1", "--rounds", "1"])
    text = capsys.readouterr().out
    for name in ("udfdask", "map_overlap, the same kernel", "with a halo", "without"):
        assert f"| {name} | " in text
    rows = [line for line in text.splitlines() if line.startswith("| udfdask | ")]
    assert rows[0].endswith("| 1.0, 1.0, 1.0 |")


def test_dense_masks_have_a_line_for_each_product(monkeypatch, capsys):
    monkeypatch.syspath_prepend(FOLDER)
    dense_masks = importlib.import_module("dense_masks")
    dense_masks.main(["--seconds", "0.001", "--masks", "1", "4", "--dtypes", "uint16"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 2 * 2
    assert len({line.count("|") for line in lines}) == 1
    goals = [line.split("|")[-2].strip() for line in lines[2:]]
    assert goals[::2] == ["", ""]  # one mask has no goal
    assert set(goals[1::2]) <= {"reached", "**missed**"}


def test_descan_has_a_line_for_each_udf_and_source(monkeypatch, capsys, tmp_path):
    monkeypatch.syspath_prepend(FOLDER)
    descan = importlib.import_module("descan")
    monkeypatch.setattr(descan, "CHUNK_BYTES", 1 << 14)
    descan.main(["--mib", "0", "--rounds", "1", "--sides", "16", "--folder", str(tmp_path)])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 3 * len(descan.udfs_for(16))
    assert len({line.count("|") for line in lines}) == 1
    goals = [line.split("|")[-2].strip() for line in lines[2:]]
    assert set(goals[::3] + goals[1::3]) <= {"reached", "**missed**"}
    assert set(goals[2::3]) == {""}  # data in memory have no goal


def test_first_calls_in_fresh_processes(tmp_path):
    options = ["--gigabytes", str(TINY), "--repeats", "1", "--no-libertem"]
    options += ["--cases", "first-call"]
    done = subprocess.run(
        [sys.executable, FOLDER / "peers.py", *options, "--folder", tmp_path],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=LATE,
    )
    assert done.returncode == 0, done.stderr
    assert "| sum | udfdask |" in done.stdout


ASV_MODULES = (builtin_udfs, chunk_layouts, other_doors, start)
MEASURES = ("time_", "timeraw_", "peakmem_", "track_")


def methods_of_asv() -> list:
    """Every method that asv measures, with each of its sets of parameters."""
    found = []
    for module in ASV_MODULES:
        for name, cls in inspect.getmembers(module, inspect.isclass):
            if cls.__module__ != module.__name__:
                continue
            axes = getattr(cls, "params", ())
            axes = axes if isinstance(axes, tuple) else (axes,)
            for method in dir(cls):
                if method.startswith(MEASURES):
                    for values in itertools.product(*axes):
                        label = "-".join(
                            [f"{module.__name__.split('.')[-1]}.{name}.{method}", *values]
                        )
                        found.append(pytest.param(cls, method, values, id=label))
    return found


@pytest.mark.filterwarnings("ignore:a task takes .* signal chunks:udfdask.UDFWarning")
@pytest.mark.filterwarnings("ignore:chunks give .* of frames:udfdask.UDFWarning")
@pytest.mark.parametrize(("cls", "method", "values"), methods_of_asv())
def test_benchmarks_of_asv_run_once(tiny, cls, method, values):
    if "large" in values:
        pytest.skip("four frames of the large layout have 134 MB")
    benchmark = cls()
    try:
        if hasattr(benchmark, "setup"):
            benchmark.setup(*values)
    except NotImplementedError as reason:  # so asv skips it
        pytest.skip(str(reason))
    returned = getattr(benchmark, method)(*values)
    if method.startswith("track_"):
        assert returned > 0
        assert getattr(cls, method).unit
    elif method.startswith("timeraw_"):
        exec(returned, {})
    else:
        assert returned is None


def test_each_module_of_benchmarks_is_run():
    stems = {file.stem for file in (FOLDER / "benchmarks").glob("*.py")} - {"__init__", "layouts"}
    assert stems == {module.__name__.split(".")[-1] for module in ASV_MODULES}


@pytest.mark.parametrize(
    ("name", "numblocks"),
    [
        ("rows", (8, 1, 1, 1)),
        ("tiles", (4, 4, 1, 1)),
        ("signal", (4, 1, 8, 1)),
        ("frames", (32, 128, 1, 1)),
    ],
)
def test_layouts_of_chunks(name, numblocks, folder, monkeypatch):
    monkeypatch.setenv("UDFDASK_BENCH_GIGABYTES", "2")
    monkeypatch.setenv("UDFDASK_BENCH_FOLDER", str(folder))
    monkeypatch.setattr(layouts, "make_file", lambda *args: empty_scan(folder))
    assert set(layouts.CHUNK_LAYOUTS) == {"rows", "tiles", "signal", "frames"}
    assert layouts.in_chunks(name).numblocks == numblocks


def empty_scan(folder: Path) -> Path:
    """A file without content that has the shape of the scan of the chunk layouts."""
    path = folder / "empty.npy"
    shape = layouts.LAYOUTS["scan"].shape(layouts.CHUNKED_GIGABYTES)
    np.lib.format.open_memmap(path, "w+", np.dtype("<u2"), shape)
    return path


@pytest.mark.skipif(importlib.util.find_spec("asv") is None, reason="asv is in the bench extra")
def test_asv_runs_quickly(tmp_path):
    """asv itself finds and runs benchmarks, in processes that it forks."""
    config = json.loads((FOLDER / "asv.conf.json").read_text())
    config |= {"repo": str(ROOT), "benchmark_dir": str(FOLDER / "benchmarks")}
    config |= {f"{name}_dir": str(tmp_path / name) for name in ("env", "results", "html")}
    (tmp_path / "asv.conf.json").write_text(json.dumps(config))

    def asv(*arguments):
        done = subprocess.run(
            [sys.executable, "-m", "asv", *arguments],
            env={
                **os.environ,
                "HOME": str(tmp_path),  # where asv keeps what it knows about machines
                "UDFDASK_BENCH_GIGABYTES": str(TINY),
                "UDFDASK_BENCH_FOLDER": str(tmp_path),
            },
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=LATE,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    asv("machine", "--yes", "--machine", "here")
    options = ["--quick", "--machine", "here", "-E", f"existing:{sys.executable}", "--show-stderr"]
    shown = asv("run", *options, "--bench", "other_doors.Graph|Check|Imports")
    assert "other_doors.Graph.track_tasks" in shown
    assert "failed" not in shown, shown
