"""What runs on machines with a CUDA device runs here too, with NumPy standing in for CuPy."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from making import LATE
from stand_in import numpy_standing_in_for_cupy
from udfdask.backends.device import n_devices

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "asv_bench"))
try:
    import gpu
finally:
    sys.path.remove(str(ROOT / "asv_bench"))

NO_DEVICE = pytest.mark.skipif(n_devices() > 0, reason="this machine has a CUDA device")


@pytest.fixture
def tiny(monkeypatch):
    """Benchmarks of a few small frames, on a device that says what it is."""
    monkeypatch.setattr(gpu, "CHUNK_FRAMES", 16)
    monkeypatch.setattr(gpu, "SIG", (8, 8))
    monkeypatch.setattr(gpu, "MOVED", 2**16)
    with numpy_standing_in_for_cupy() as cupy:
        properties = {"name": b"NumPy", "totalGlobalMem": 2**30}
        runtime = {
            "getDeviceProperties": lambda number: properties,
            "runtimeGetVersion": lambda: 0,
            "driverGetVersion": lambda: 0,
            "deviceSynchronize": lambda: None,
        }
        monkeypatch.setattr(cupy, "__version__", "0", raising=False)
        both = SimpleNamespace(**{**vars(cupy.cuda.runtime), **runtime})
        monkeypatch.setattr(cupy.cuda, "runtime", both, raising=False)
        yield


def test_benchmarks_of_a_device(tiny, capsys):
    assert gpu.main(["--gigabytes", "0", "--repeats", "1"]) == 0
    assert capsys.readouterr().out.count("| agree |") == len(gpu.ROWS)


def test_about_the_device(tiny, capsys):
    assert gpu.main(["--about"]) == 0
    assert "NumPy, 1 GiB; cupy 0" in capsys.readouterr().out


@NO_DEVICE
def test_the_script_says_what_is_missing():
    done = subprocess.run(
        ["bash", "scripts/gpu-tests"],
        cwd=ROOT,
        env={**os.environ, "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=LATE,
        check=False,
    )
    assert done.returncode == 2
    assert "a UDF needs CuPy" in done.stderr
    assert "###" not in done.stdout
