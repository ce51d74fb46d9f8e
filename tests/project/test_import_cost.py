"""`import udfdask` and the command line stay cheap, in modules: seconds depend on the machine.

`dask.array` itself imports sparse and xarray where they are installed, and numba and scipy with
them. So the heavy packages are blocked here: neither dask nor udfdask may need one.
"""

import json
import sys

import pytest

from making import run_python

pytestmark = pytest.mark.full

HEAVY = (
    "cupy distributed h5py hyperspy llvmlite matplotlib numba rsciio scipy sparse sparseconverter "
    "xarray zarr"
).split()

REPORT = """
import importlib, json, sys
sys.modules.update(dict.fromkeys(json.loads(sys.argv[1])))
import dask.array
before = set(sys.modules)
importlib.import_module(sys.argv[2])
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def modules_on_top_of_dask(blocked: list[str], module: str = "udfdask") -> set[str]:
    """Names of the modules that `import udfdask` adds to those of `import dask.array`."""
    return set(json.loads(run_python("-c", REPORT, json.dumps(blocked), module).stdout))


@pytest.mark.parametrize("blocked", [[], HEAVY], ids=["installed", "blocked"])
def test_few_modules_are_loaded_on_top_of_dask(blocked):
    added = modules_on_top_of_dask(blocked)
    own = {name for name in added if name.partition(".")[0] == "udfdask"}
    packages = {name.rpartition(".")[0] for name in own}
    standard = {name for name in added if name.partition(".")[0] in sys.stdlib_module_names}
    foreign = added - own - standard
    assert not foreign.intersection(HEAVY)
    assert len(foreign) <= 20, sorted(foreign)
    code = own - packages  # one idea a file: many, but small ones
    assert len(code) <= 100, sorted(code)
    assert len(standard) <= 100, sorted(standard)


def test_the_command_line_loads_no_heavy_package():
    assert not modules_on_top_of_dask([], "udfdask.cli").intersection(HEAVY)
