"""HDF5 files: which dataset, which axes, which chunks."""

import dask
import numpy as np
import pytest
from dask.array.utils import assert_eq

from udfdask.errors import ArgumentValueError, FileFormatError
from udfdask.io import open_file

h5py = pytest.importorskip("h5py", reason="h5py is in the io extra")


@pytest.fixture
def file(tmp_path, values):
    path = tmp_path / "scan.h5"
    with h5py.File(path, "w") as f:
        f["entry/data"] = values
        f["entry/mask"] = np.ones((8, 10), np.bool_)
        f["entry/small"] = values[:2, :2]
        f["entry/name"] = "gold"
        f["links/data"] = h5py.SoftLink("/entry/data")
    return path


def test_the_largest_dataset_is_meant(file, values):
    opened = open_file(file)
    assert_eq(opened.array, values)
    assert (opened.reader, opened.sig_dims) == ("HDF5, dataset entry/data", 2)


@pytest.mark.parametrize("dataset", ["entry/small", "/entry/small", "links/data"])
def test_the_dataset_asked_for(file, values, dataset):
    expected = values if dataset == "links/data" else values[:2, :2]
    assert_eq(open_file(file, dataset=dataset).array, expected)


@pytest.mark.parametrize(
    ("contents", "found"),
    [({}, "but nothing"), ({"a": "gold"}, r"but 'a' \(\)"), ({"a": np.ones((0, 2, 2))}, "but 'a'")],
)
def test_no_frames_of_numbers(tmp_path, contents, found):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f.update(contents)
    with pytest.raises(FileFormatError, match=f"{found}.*check that this is the right file"):
        open_file(tmp_path / "a.h5")


def test_automatic_chunks_are_whole_stored_chunks(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f.create_dataset("a", shape=(16, 16, 32, 32), dtype="u2", chunks=(2, 4, 16, 16))
    with dask.config.set({"array.chunk-size": "64kiB"}):
        chunks = open_file(tmp_path / "a.h5").array.chunksize
    assert np.prod(chunks) * 2 <= 65536
    assert all(size % stored == 0 for size, stored in zip(chunks, (2, 4, 16, 16), strict=True))
    with dask.config.set({"array.chunk-size": "1kiB"}):
        assert open_file(tmp_path / "a.h5").array.chunksize == (2, 4, 16, 16)


@pytest.mark.parametrize("dataset", ["entry/dat", "", 3])
def test_a_dataset_that_is_not_there(file, dataset):
    match = rf"no dataset {dataset!r} in scan\.h5: pass one of 'entry/data' \(4, 6, 8, 10\) uint16"
    with pytest.raises(ArgumentValueError, match=match):
        open_file(file, dataset=dataset)
