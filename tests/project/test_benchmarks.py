"""The benchmarks of asv_bench run, at tiny sizes, and everyone finds the same."""

import importlib
import inspect
import itertools
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from stand_in import numpy_standing_in_for_cupy

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "asv_bench"
sys.path.insert(0, str(FOLDER))
try:
    import files
    from benchmarks import analyses, builtin_udfs, chunk_layouts, layouts, other_doors, start
    from comparison import by_libertem
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
            assert outcome.executors["LiberTEM"] in by_libertem.EXECUTORS


@pytest.mark.parametrize("name", ["zarr3-sharded", "hdf5-shuffle-gzip", "hdf5-contiguous", "npy"])
def test_file_formats_give_the_same_sum(name, folder, capsys):
    pytest.importorskip("zarr" if "zarr" in name else "h5py", reason="it is in the io extra")
    options = f"--gigabytes {TINY} --repeats 1 --no-libertem --formats {name} --folder {folder}"
    assert files.main(options.split()) == 0
    assert "GB/s" in capsys.readouterr().out


PEERLESS = ["--repeats", "1", "--threads", "2", "--no-libertem"]
# Scripts that write tables: packages they need, options, and attributes that are made smaller.
SCRIPTS = {
    "peers": ([], ["--gigabytes", str(TINY), "--cases", "sum", *PEERLESS], {}),
    "doors": (["hyperspy"], ["--megabytes", "0.3", "--repeats", "1", "--threads", "2"], {}),
    "sparse_events": (["sparse"], ["--frames", "48", "--dense-frames", "32", *PEERLESS], {}),
    "roofline": (["sparse"], ["--gigabytes", str(TINY), *PEERLESS], {"SIZE": 64}),
    "small_runs": ([], ["--rounds", "1"], {"WORKS": {"sum": ("sum",)}}),
    "neighborhoods": (["zarr"], ["--megabytes", "0.1", "--rounds", "1"], {"SIG": (8, 9)}),
    "dense_masks": ([], ["--seconds", "0.001", "--masks", "1", "4", "--dtypes", "uint16"], {}),
    "transposed": (["h5py", "hdf5plugin", "zarr"], ["--rounds", "1"], {"NAV": 24, "SIG": 16}),
    "descan": ([], ["--mib", "0", "--rounds", "1", "--sides", "16"], {"CHUNK_BYTES": 1 << 14}),
}
WITH_FILES = ("sparse_events", "roofline", "descan", "transposed")


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_agree_and_print_their_tables(name, folder, monkeypatch, capsys):
    packages, options, smaller = SCRIPTS[name]
    for package in packages:
        pytest.importorskip(package, reason=f"{package} is an extra")
    monkeypatch.syspath_prepend(FOLDER)
    script = importlib.import_module(name)
    for attribute, value in smaller.items():
        monkeypatch.setattr(script, attribute, value)
    if name in WITH_FILES:
        options = ["--folder", str(folder), *options]
    assert not script.main(options)  # 1 if results differ
    assert "\n| " in capsys.readouterr().out


def test_benchmarks_of_a_device(monkeypatch, capsys):
    """A few small frames, with NumPy standing in for CuPy."""
    monkeypatch.syspath_prepend(FOLDER)
    gpu = importlib.import_module("gpu")
    monkeypatch.setattr(gpu, "CHUNK_FRAMES", 16)
    monkeypatch.setattr(gpu, "SIG", (8, 8))
    monkeypatch.setattr(gpu, "MOVED", 2**16)
    with numpy_standing_in_for_cupy() as cupy:
        runtime = SimpleNamespace(
            **vars(cupy.cuda.runtime),
            getDeviceProperties=lambda number: {"name": b"NumPy", "totalGlobalMem": 2**30},
            runtimeGetVersion=lambda: 0,
            driverGetVersion=lambda: 0,
            deviceSynchronize=lambda: None,
        )
        monkeypatch.setattr(cupy, "__version__", "0", raising=False)
        monkeypatch.setattr(cupy.cuda, "runtime", runtime, raising=False)
        assert gpu.main(["--gigabytes", "0", "--repeats", "1"]) == 0
    assert capsys.readouterr().out.count("| agree |") == len(gpu.ROWS)


ASV_MODULES = (analyses, builtin_udfs, chunk_layouts, other_doors, start)
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
