"""Pointers of sparse frames that are overwritten: an error, where the process crashed."""

import subprocess
import sys

import numpy as np
import pytest

from udfdask.errors import FileFormatError
from udfdask.io import from_raw_csr

pytestmark = pytest.mark.full

scipy_sparse = pytest.importorskip("scipy.sparse", reason="scipy comes with sparse")
pytest.importorskip("sparse", reason="sparse is an extra")

FRAMES, EACH, WIDTH = 64, 20, 256

SUM = """
import os, sys, warnings
import numpy as np, udfdask as ud
from udfdask.io import from_raw_csr
from udfdask.udfs import SumUDF

*files, values, when = sys.argv[1:]
scan = from_raw_csr(
    *files, nav_shape=(8, 8), sig_shape=(16, 16), chunks=(4, 8, -1, -1),
    indptr_dtype="<i8", indices_dtype="<i4", dtype="<u2",
)
state = os.stat(files[0])
pointers = np.fromfile(files[0], "<i8")
for place, value in eval(values).items():
    pointers[place] = value
pointers.tofile(files[0])
if when == "kept":
    os.utime(files[0], ns=(state.st_atime_ns, state.st_mtime_ns))
try:
    print(ud.run_udf(scan, SumUDF()).compute(scheduler="threads")["intensity"].sum())
except ValueError as error:
    print(type(error).__name__, error)
"""


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    pixels = [np.sort(rng.choice(WIDTH, EACH, replace=False)) for _ in range(FRAMES)]
    paths = [tmp_path / name for name in ("indptr", "indices", "data")]
    (np.arange(FRAMES + 1) * EACH).astype("<i8").tofile(paths[0])
    np.concatenate(pixels).astype("<i4").tofile(paths[1])
    np.ones(FRAMES * EACH, "<u2").tofile(paths[2])
    return paths


@pytest.mark.parametrize(("values", "when"), [({5: 10**12}, "kept"), ({3: -5 * 10**9}, "new")])
def test_the_process_survives(files, values, when):
    run = subprocess.run(
        [sys.executable, "-c", SUM, *map(str, files), repr(values), when],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    reason = "must increase from 0 to 1280" if when == "kept" else "has changed since"
    assert run.stdout.startswith(f"FileFormatError {files[0]} {reason}")


@pytest.mark.parametrize("dtype", ["<i8", ">i4"])
@pytest.mark.parametrize(("place", "value"), [(0, 30), (9, 2000), (3, -1), (12, 10)])
def test_pointers_are_checked_where_they_are_used(files, dtype, place, value, monkeypatch):
    """The file is the one that was opened, by all that shows, and yet has other pointers."""
    pointers = (np.arange(FRAMES + 1) * EACH).astype(dtype)
    pointers.tofile(files[0])
    scan = from_raw_csr(
        *files,
        nav_shape=(8, 8),
        sig_shape=(16, 16),
        chunks=(2, 4, -1, -1),
        indptr_dtype=dtype,
        indices_dtype="<i4",
        dtype="<u2",
    )
    pointers[place : place + 1] = np.array([value]).astype(dtype)  # -1 is 2**64 - 1 without a sign
    pointers.tofile(files[0])
    monkeypatch.setattr(
        "udfdask.io.file_identity.FileIdentity.check", lambda self, descriptor: None
    )
    with pytest.raises(FileFormatError, match=rf"{files[0]} must increase from 0 to 1280, .*"):
        scan.compute(scheduler="synchronous")
