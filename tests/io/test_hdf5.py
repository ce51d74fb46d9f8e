"""HDF5 files: which dataset, which axes, which chunks."""

import dask
import numpy as np
import pytest
from dask.array.utils import assert_eq

from udfdask.errors import ArgumentValueError, FileFormatError
from udfdask.io import open_file

h5py = pytest.importorskip("h5py", reason="h5py is in the io extra")


@pytest.fixture
def values():
    return np.random.default_rng(2).integers(0, 99, (4, 6, 8, 10)).astype(np.uint16)


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


def test_automatic_chunks_are_whole_stored_chunks(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f.create_dataset("a", shape=(16, 16, 32, 32), dtype="u2", chunks=(2, 4, 16, 16))
    with dask.config.set({"array.chunk-size": "64kiB"}):
        chunks = open_file(tmp_path / "a.h5").array.chunksize
    assert np.prod(chunks) * 2 <= 65536
    assert all(size % stored == 0 for size, stored in zip(chunks, (2, 4, 16, 16), strict=True))
    with dask.config.set({"array.chunk-size": "1kiB"}):
        assert open_file(tmp_path / "a.h5").array.chunksize == (2, 4, 16, 16)


def test_axes_from_dimension_scales(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["a"] = np.zeros((3, 4, 5))
        f["y"] = 10.0 + 0.5 * np.arange(3)
        f["y"].attrs["units"] = "nm"
        f["log"] = [1.0, 2.0, 4.0, 8.0]
        for dim, scale in enumerate(["y", "log"]):
            f[scale].make_scale(scale)
            f["a"].dims[dim].attach_scale(f[scale])
        f["a"].dims[2].label = "energy"
    y, uneven, energy = open_file(tmp_path / "a.h5", dataset="a").axes
    assert (y.name, y.unit, y.scale, y.offset) == ("y", "nm", 0.5, 10.0)
    assert (uneven.name, uneven.unit, uneven.scale) == ("log", None, 1.0)
    assert (energy.name, energy.unit) == ("energy", None)


@pytest.fixture
def nexus(tmp_path, values):
    """A file in the form of the NeXus standard, whose axes are named in attributes."""
    with h5py.File(tmp_path / "scan.nxs", "w") as f:
        group = f.create_group("entry/data")
        group.attrs.update({"NX_class": "NXdata", "signal": "frames"})
        group.attrs["axes"] = ["y", ".", "kx", "ky"]
        group.attrs.update({"ky_indices": 2, "kx_indices": [3]})  # these count, not the order
        group["frames"] = values
        group["frames"].attrs["units"] = "counts"
        for name, n, unit in (("y", 4, "nm"), ("ky", 8, "mrad"), ("kx", 10, "mrad")):
            group[name] = 7.0 - 0.5 * np.arange(n)
            group[name].attrs["units"] = unit
    return tmp_path / "scan.nxs"


def test_axes_of_nexus(nexus):
    opened = open_file(nexus)
    assert (opened.sig_dims, opened.unit) == (2, "counts")
    assert [axis.name for axis in opened.axes] == ["y", "x", "ky", "kx"]
    assert [axis.unit for axis in opened.axes] == ["nm", None, "mrad", "mrad"]
    assert [axis.scale for axis in opened.axes] == [-0.5, 1, -0.5, -0.5]


def test_several_of_one_size_are_listed(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["first"] = np.zeros((2, 3, 4))
        f["second"] = np.zeros((2, 3, 4))
        f["tiny"] = np.zeros((2, 2, 2))
    with pytest.raises(FileFormatError, match=r"several.*dataset=.*'first' \(2, 3, 4\).*'second'"):
        open_file(tmp_path / "a.h5")


@pytest.mark.parametrize("dataset", ["entry/dat", "", 3])
def test_a_dataset_that_is_not_there(file, dataset):
    match = rf"no dataset {dataset!r} in scan\.h5: pass one of 'entry/data' \(4, 6, 8, 10\) uint16"
    with pytest.raises(ArgumentValueError, match=match):
        open_file(file, dataset=dataset)
