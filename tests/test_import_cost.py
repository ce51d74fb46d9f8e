"""`import udfdask` stays cheap: counted in modules, because seconds depend on the machine."""

import json
import subprocess
import sys

import pytest

HEAVY = {
    "cupy",
    "distributed",
    "h5py",
    "hyperspy",
    "matplotlib",
    "numba",
    "scipy",
    "sparse",
    "sparseconverter",
    "xarray",
    "zarr",
}

REPORT = """
import json, sys
import dask.array
before = set(sys.modules)
import udfdask
print(json.dumps(sorted(set(sys.modules) - before)))
print(json.dumps(sorted(sys.modules)))
"""


@pytest.fixture(scope="module")
def modules() -> tuple[list[str], list[str]]:
    """The modules that udfdask loads on top of dask.array, and all that are loaded then."""
    run = subprocess.run([sys.executable, "-c", REPORT], capture_output=True, text=True, check=True)
    added, loaded = map(json.loads, run.stdout.splitlines())
    return added, loaded


def test_no_heavy_package_is_loaded(modules):
    _, loaded = modules
    assert not HEAVY.intersection(name.partition(".")[0] for name in loaded)


def test_no_compiler_is_loaded(modules):
    _, loaded = modules
    assert not [name for name in loaded if name.startswith("llvmlite")]


def test_few_modules_are_loaded_on_top_of_dask(modules):
    added, _ = modules
    foreign = [name for name in added if name.partition(".")[0] != "udfdask"]
    assert len(foreign) <= 60, foreign
