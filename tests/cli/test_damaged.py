"""Damaged files and empty arguments on the command line: a readable line, and no traceback."""

import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from damaging import LEAVES_FILES_OPEN
from udfdask.cli import main

pytestmark = [pytest.mark.full, *LEAVES_FILES_OPEN]


VALUES = np.ones((2, 3, 8, 8), np.uint16)


def refused(*args):
    """Run a command that must fail; return what it says."""
    outcome = CliRunner().invoke(main, [str(arg) for arg in args])
    assert outcome.exit_code != 0
    assert isinstance(outcome.exception, SystemExit), outcome.exception
    assert "Aborted" not in outcome.output
    assert "Traceback" not in outcome.output
    errors = [line for line in outcome.output.splitlines() if line.startswith("Error: ")]
    assert len(errors) == 1, outcome.output
    return errors[0]


@pytest.fixture
def scan(tmp_path):
    np.save(tmp_path / "scan.npy", VALUES)
    return tmp_path / "scan.npy"


@pytest.mark.parametrize("command", ["run", "explain"])
@pytest.mark.parametrize("suffix", ["npy", "h5", "mib", "blo", "bcf", "toml", "nc", "hspy", "tif"])
@pytest.mark.parametrize("content", [b"", b"1", b"something else\n" * 9])
def test_damaged_files(tmp_path, command, suffix, content):
    path = tmp_path / f"a.{suffix}"
    path.write_bytes(content)
    assert str(path) in refused(command, path)


def test_a_damaged_store(tmp_path):
    path = tmp_path / "a.zarr"
    path.mkdir()
    (path / "zarr.json").write_text('{"zarr_format": 3, "node_type": "array", "shape": -1}')
    assert str(path) in refused("run", path)


def test_damage_that_shows_in_a_task(tmp_path):
    zarr = pytest.importorskip("zarr", reason="zarr is in the io extra")
    zarr.save_array(str(tmp_path / "a.zarr"), VALUES)
    chunk = next(p for p in (tmp_path / "a.zarr").rglob("*") if p.is_file() and p.name == "0")
    chunk.write_bytes(b"\x28\xb5\x2f\xfd" + bytes(9))
    assert str(chunk) in refused("run", tmp_path / "a.zarr", "--no-progress")


@pytest.mark.parametrize(
    "args",
    [
        ("run", ""),
        ("explain", ""),
        ("run", "{scan}", "--udf", ""),
        ("run", "{scan}", "--roi", ""),
        ("run", "{scan}", "--chunks", ""),
        ("run", "{scan}", "--nav-shape", ""),
        ("run", "{scan}", "--sig-shape", ""),
        ("run", "{scan}", "--dtype", ""),
        ("run", "{scan}", "--sig-dims", ""),
        ("run", "{scan}", "--offset", ""),
        ("run", "{scan}", "--out", ""),
        ("run", "{scan}", "--plot", ""),
        ("run", "{scan}", "--scheduler", ""),
        ("udfs", ""),
        ("demo", "--plot", ""),
    ],
    ids=" ".join,
)
def test_empty_arguments(scan, args):
    refused(*(str(scan) if arg == "{scan}" else arg for arg in args))


@pytest.mark.parametrize("args", [("--roi", "{}"), ("--udf", "applymasks:mask_factories={}")])
@pytest.mark.parametrize("content", ["empty", "cut", "text", "zip", "pickle", "huge", "folder"])
def test_arrays_that_cannot_be_read(scan, args, content):
    """An empty one ended with "Aborted!", as if a key had been pressed."""
    path = scan.with_name("mask.npy")
    header = b"\x93NUMPY\x01\x00v\x00{'descr': '|b1', 'fortran_order': False, 'shape': (%d,), }"
    contents = {
        "empty": b"",
        "cut": scan.read_bytes()[:100],
        "text": b"0:3,4:5\n",
        "huge": (header % 10**15).ljust(127) + b"\n",
    }
    if content == "zip":
        with path.open("wb") as stream:
            np.savez(stream, a=VALUES)
    elif content == "pickle":
        np.save(path, np.array([None, {}]), allow_pickle=True)
    elif content == "folder":
        path.mkdir()
    else:
        path.write_bytes(contents[content])
    assert "mask.npy" in refused("run", scan, *(arg.format(path) for arg in args))


@pytest.mark.full
def test_in_a_process_of_its_own(tmp_path):
    (tmp_path / "a.npy").write_bytes(b"")
    command = [sys.executable, "-m", "udfdask", "run", str(tmp_path / "a.npy")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"Error: {tmp_path / 'a.npy'} is empty (0 bytes). Is the file complete? Copy it again from "
        "where it was recorded, or write it anew\n"
    )
