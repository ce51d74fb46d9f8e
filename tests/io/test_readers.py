"""The table of readers: readers of other packages, and what opening a file imports."""

import subprocess
import sys
from importlib.metadata import EntryPoint

import dask.array as da
import numpy as np
import pytest

from udfdask import Axis
from udfdask.errors import ArgumentValueError, UDFWarning
from udfdask.io import OpenedFile, Reader, open_file, opening


def open_frames(path, *, sig_dims, chunks):
    array = da.from_array(np.arange(2 * 3 * 4).reshape(2, 3, 4), chunks=chunks or -1)
    axes = tuple(Axis(name=name) for name in ("t", "y", "x"))
    return OpenedFile(array=array, sig_dims=sig_dims or 2, reader="ours", title="a", axes=axes)


def is_ours(path, begin):
    return begin.startswith(b"OURS")


READER = Reader(name="ours", matches=is_ours, open=open_frames)


@pytest.fixture
def added(monkeypatch):
    """The entry points of other packages, a list that tests fill."""
    found = []
    monkeypatch.setattr(opening, "entry_points", lambda group: found)
    opening.added_readers.cache_clear()
    yield found
    opening.added_readers.cache_clear()


def entry(name):
    return EntryPoint(name, f"{__name__}:{name}", opening.GROUP)


def test_a_reader_of_another_package(tmp_path, added):
    added.append(entry("READER"))
    path = tmp_path / "a.tif"  # the first bytes count more than the suffix
    path.write_bytes(b"OURS and more")
    opened = open_file(path, chunks=(1, -1, -1))
    assert (opened.reader, opened.array.numblocks) == ("ours", (2, 1, 1))
    assert opened.array.sum().compute() == 276
    with pytest.raises(TypeError, match="dataset"):
        open_file(path, dataset="scan")
    np.save(tmp_path / "b.npy", np.ones((2, 3, 4)))
    assert open_file(tmp_path / "b.npy").reader == "NumPy"


@pytest.mark.parametrize("broken", ["is_ours", "not_there"])
def test_a_broken_reader_of_another_package_is_left_out(tmp_path, added, broken):
    added += [entry(broken), entry("READER")]
    (tmp_path / "a.tif").write_bytes(b"OURS and more")
    with pytest.warns(UDFWarning, match=f"the reader '{broken}'"):
        assert open_file(tmp_path / "a.tif").reader == "ours"


@pytest.mark.parametrize("wrong", [{"axes": ()}, {"sig_dims": 9}, {"sig_dims": 0}])
def test_an_opened_file_fits_its_array(wrong):
    axes = tuple(Axis(name=name) for name in "tyx")
    right = {"array": da.ones((2, 2, 2)), "sig_dims": 2, "axes": axes, "reader": "", "title": ""}
    with pytest.raises(ArgumentValueError, match=next(iter(wrong))):
        OpenedFile(**right | wrong)


PROGRAM = """
import sys, types
for name in ("udfdask", "udfdask.io"):  # without what the packages themselves import
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [{folder!r} + name.replace(".", "/")]
from udfdask.io.opening import open_file
assert open_file({path!r}).array.sum().compute() == 24
print(*sorted(name for name in sys.modules if name.startswith("udfdask")))
"""


def test_opening_a_file_imports_little(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.ones((2, 3, 4)))
    folder = str(opening.__file__).removesuffix("udfdask/io/opening.py")
    program = PROGRAM.format(folder=folder, path=str(path))
    names = subprocess.check_output([sys.executable, "-c", program], text=True).split()
    assert len(names) < 30
    rooms = {name.split(".")[1] for name in names if "." in name}
    assert rooms <= {"base", "errors", "geometry", "io"}
