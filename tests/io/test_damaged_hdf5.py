"""Damaged HDF5 files. The library is written in C: bytes are changed in another process."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import damaging
from damaging import assert_same, outcome
from making import LATE
from udfdask.errors import FileFormatError
from udfdask.io import open_file

pytestmark = pytest.mark.full

h5py = pytest.importorskip("h5py", reason="h5py is in the io extra")

VALUES = np.random.default_rng(6).integers(0, 50, (3, 4, 6, 8)).astype(np.uint16)


@pytest.fixture
def file(tmp_path):
    """A compressed scan with a checksum, a plain one, and a coordinate."""
    with h5py.File(tmp_path / "scan.h5", "w") as opened:
        opened.create_dataset(
            "entry/scan", data=VALUES, chunks=(1, 2, 6, 8), compression="gzip", fletcher32=True
        )
        opened["entry/plain"] = VALUES[0]
        opened["entry/x"] = np.arange(4.0)
        opened["entry/x"].make_scale()
        opened["entry/scan"].dims[1].attach_scale(opened["entry/x"])
    return tmp_path / "scan.h5"


PROGRAM = """
import sys, warnings
from pathlib import Path
import h5py, numpy as np
sys.path.insert(0, {tests!r})
from damaging import outcome

path, first, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
content = path.read_bytes()
for seed in range(first, first + count):
    rng = np.random.default_rng(seed)
    if seed % 3 == 0:
        damaged = content[: rng.integers(len(content))]
    else:
        damaged = bytearray(content)
        for place in rng.integers(0, len(content) if seed % 3 == 1 else 2500, rng.integers(1, 5)):
            damaged[place] = rng.choice([0, 1, 127, 255, rng.integers(256)])
    path.write_bytes(damaged)
    for dataset in ("entry/scan", "entry/plain", None):
        print(seed, dataset, flush=True)
        values = outcome(path, dataset=dataset)
        if values is not None and dataset is not None:
            with h5py.File(path) as file:
                twice = [file[dataset][()] for _ in range(2)]
            # Where HDF5 itself hands out memory as it was, nobody can tell what is right.
            if np.array_equal(*twice):
                np.testing.assert_array_equal(values, twice[0])
print("done")
"""


def fuzz(file, first, count):
    """Damage the file in so many ways, each given by a number."""
    program = PROGRAM.format(tests=str(Path(damaging.__file__).parent))
    command = [sys.executable, "-c", program, str(file), str(first), str(count)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LATE, check=False)
    assert done.stdout.splitlines()[-1] == "done", (done.returncode, done.stdout[-40:], done.stderr)


def test_damaged(file):
    fuzz(file, 0, 80)


def test_cut_at_many_lengths(file):
    content = file.read_bytes()
    for length in range(0, len(content), len(content) // 60):
        file.write_bytes(content[:length])
        assert outcome(file) is None, length


def test_a_chunk_that_cannot_be_inflated_is_named(file):
    with h5py.File(file) as opened:
        chunk = opened["entry/scan"].id.get_chunk_info(1)
    content = bytearray(file.read_bytes())
    content[chunk.byte_offset + 5] ^= 0xFF
    file.write_bytes(content)
    array = open_file(file, chunks=(1, 2, -1, -1)).array
    match = rf"{file}, dataset 'entry/scan' at .*slice\(2, 4.*cannot be read as HDF5: OSError.*copy"
    with pytest.raises(FileFormatError, match=match.replace("copy", "Copy it again")):
        array.compute(scheduler="synchronous")
    assert_same(array[1:].compute(scheduler="synchronous"), VALUES[1:])


@pytest.fixture
def links(tmp_path):
    """A file with links to nowhere."""
    with h5py.File(tmp_path / "links.h5", "w") as opened:
        opened["scan"] = VALUES
        opened["soft"] = h5py.SoftLink("/gone")
        opened["loop"] = h5py.SoftLink("/pool")
        opened["pool"] = h5py.SoftLink("/loop")
        opened["self"] = h5py.SoftLink("/self")
        opened["file"] = h5py.ExternalLink("gone.h5", "/scan")
        opened["path"] = h5py.ExternalLink("links.h5", "/gone")
        opened["group"] = h5py.SoftLink("/")
        opened["good"] = h5py.SoftLink("/scan")
    return tmp_path / "links.h5"


@pytest.mark.parametrize("name", ["soft", "loop", "self", "file", "path"])
def test_links_to_nowhere(links, name):
    match = rf"{name} of {links} (cannot be found|also needs the file gone).*'scan' \(3, 4, 6, 8\)"
    with pytest.raises(FileFormatError, match=match):
        open_file(links, dataset=name)


def test_links_do_not_keep_the_rest_from_being_read(links):
    assert_same(outcome(links, dataset="scan"), VALUES)
    assert_same(outcome(links, dataset="good"), VALUES)
    assert_same(outcome(links, dataset="group/group/scan"), VALUES)


def test_a_link_to_another_file_that_is_gone_may_be_the_recording(links):
    with pytest.raises(FileFormatError, match=r"needs the file gone\.h5.* dataset="):
        open_file(links)
    with h5py.File(links, "r+") as opened:
        del opened["file"], opened["path"]
    assert_same(outcome(links), VALUES)


def test_values_in_another_file_that_is_gone(tmp_path):
    outside = [(str(tmp_path / "scan.raw"), 0, h5py.h5f.UNLIMITED)]
    with h5py.File(tmp_path / "a.h5", "w") as opened:
        opened.create_dataset("scan", data=VALUES, external=outside)
    assert_same(outcome(tmp_path / "a.h5"), VALUES)
    (tmp_path / "scan.raw").unlink()
    assert outcome(tmp_path / "a.h5") is None


@pytest.mark.parametrize(
    "values",
    [
        np.zeros((2, 3, 4), [("r", "u1"), ("g", "u1")]),
        np.full((2, 3, 4), "text", object),
        np.full((2, 3, 4), b"text"),
        np.zeros((2, 3, 4), "V5"),
        np.float64(3),
        h5py.Empty("f4"),
    ],
    ids=["compound", "strings", "bytes", "opaque", "single", "empty"],
)
def test_no_numbers(tmp_path, values):
    with h5py.File(tmp_path / "a.h5", "w") as opened:
        opened["scan"] = values
        opened["x"] = np.arange(3.0)
    assert outcome(tmp_path / "a.h5", dataset="scan") is None
    if np.ndim(values) == 3:
        match = r"a\.h5 contains frames, but they are empty or not numbers: 'scan' \(2, 3, 4\)"
        with pytest.raises(FileFormatError, match=match):
            open_file(tmp_path / "a.h5")


@pytest.mark.parametrize(
    "options",
    [{"dtype": ">f8"}, {"dtype": "f2"}, {"dtype": "?"}, {"dtype": "c8"}, {"fillvalue": -3}],
    ids=str,
)
def test_unusual_and_right(tmp_path, options):
    options = {"dtype": "i4", **options}
    with h5py.File(tmp_path / "a.h5", "w") as opened:
        opened.create_dataset("scan", (4, 3, 2), chunks=(1, 3, 2), maxshape=(None, 3, 2), **options)
        opened["scan"][1] = 1
        expected = opened["scan"][()]
    assert_same(outcome(tmp_path / "a.h5"), expected)


def test_an_axis_without_a_position(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as opened:
        opened.create_dataset("scan", (4, 0, 3, 2), "u1", chunks=(1, 1, 3, 2), maxshape=(None,) * 4)
    assert outcome(tmp_path / "a.h5", dataset="scan").shape == (4, 0, 3, 2)
