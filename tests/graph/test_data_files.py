"""Files that a graph reads are found, so that nothing is written over them."""

import functools
import gc
import threading
import weakref
from importlib.util import find_spec
from uuid import uuid4

import dask
import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from making import LATE
from udf_zoo import Rows
from udfdask.graph.inputs import data_files
from udfdask.io import from_raw, from_raw_csr, open_file
from udfdask.udfs import SumUDF

SHAPE = (4, 4, 4, 4)
VALUES = np.arange(256.0).reshape(SHAPE)
h5py = pytest.importorskip("h5py", reason="h5py is in the io extra")
xr = pytest.importorskip("xarray", reason="xarray is an extra")
zarr = pytest.importorskip("zarr", reason="zarr is in the io extra")

NAMED = "scan.npy"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working folder, with the same data in many files."""
    monkeypatch.chdir(tmp_path)
    np.save("scan.npy", VALUES)
    VALUES.tofile("scan.raw")
    with h5py.File("scan.h5", "w") as file:
        file["data"] = VALUES
    zarr.open_group("scan.zarr", mode="w").create_array("x", shape=SHAPE, dtype="f8")
    dataset = xr.Dataset({"v": (("a", "b", "c", "d"), VALUES)})
    dataset.to_netcdf("scan.nc", engine="h5netcdf" if find_spec("h5netcdf") else "scipy")
    for part in ("indptr", "indices", "data"):
        np.arange(2).astype("i4").tofile(f"scan.{part}")
    return tmp_path


def mapped():
    return np.memmap("scan.raw", "f8", mode="r", shape=SHAPE)


def delayed(function, *args):
    return da.from_delayed(dask.delayed(function, pure=True)(*args), SHAPE, "f8")


def blocks(function):
    return da.map_blocks(function, chunks=SHAPE, dtype="f8", meta=VALUES[:0])


def closed_over(path):
    return lambda block_info=None: np.load(path)


def csr():
    parts = [f"scan.{part}" for part in ("indptr", "indices", "data")]
    dtypes = {"indptr_dtype": "i4", "indices_dtype": "i4", "dtype": "i4"}
    np.array([0, 2], "i4").tofile(parts[0])
    return from_raw_csr(*parts, nav_shape=(1,), sig_shape=(4,), **dtypes)


CASES = {
    "npy": (lambda: open_file("scan.npy").array, "scan.npy"),
    "raw": (lambda: from_raw("scan.raw", nav_shape=4, sig_shape=64, dtype="f8"), "scan.raw"),
    "csr": (csr, "scan.data"),
    "hdf5": (lambda: open_file("scan.h5").array, "scan.h5"),
    "h5py": (lambda: da.from_array(h5py.File("scan.h5")["data"]), "scan.h5"),
    "zarr": (lambda: open_file("scan.zarr").array, "scan.zarr/x/zarr.json"),
    "dask's zarr": (lambda: da.from_zarr("scan.zarr", component="x"), "scan.zarr"),
    "zarr in a folder": (lambda: da.from_zarr(".", component="scan.zarr/x"), "scan.zarr/x"),
    "zarr array": (lambda: da.from_array(zarr.open_group("scan.zarr")["x"]), "scan.zarr"),
    "xarray": (lambda: xr.open_dataset("scan.nc", chunks={})["v"].data, "scan.nc"),
    "mapped": (lambda: delayed(np.negative, mapped()), "scan.raw"),
    "view of a map": (lambda: delayed(np.negative, np.asarray(mapped())[1:]), "scan.raw"),
    "argument": (lambda: delayed(np.load, "scan.npy"), "scan.npy"),
    "partial": (lambda: delayed(functools.partial(np.load, file="scan.npy")), "scan.npy"),
    "closure": (lambda: blocks(closed_over("scan.npy")), "scan.npy"),
    "global": (lambda: blocks(lambda block_info=None: np.load(NAMED)), "scan.npy"),
}


@pytest.mark.parametrize(("make", "name"), CASES.values(), ids=CASES)
def test_found(folder, make, name):
    array = make()
    with ud.testing.raise_if_dask_computes():
        assert str(folder / name) in data_files(array)
        if name != "scan.data":  # its blocks are sparse
            for derived in (array[1:], -array, array.rechunk(2), da.stack([array, array])):
                assert str(folder / name) in data_files(derived)
        result = ud.run_udf(array, SumUDF(), sig_dims=1)
    assert str(folder / name) in result._info.files


def test_files_of_parameters(folder):
    x, aux = da.ones(SHAPE, chunks=2), open_file("scan.h5").array.sum(axis=(2, 3))

    weight = ud.UDF.aux_data(aux, kind="nav", dtype="float64")
    assert ud.run_udf(x, Rows(weight=weight))._info.files == (str(folder / "scan.h5"),)


def test_nothing_is_found_in_data_in_memory(folder):
    x = da.from_array(VALUES, chunks=2) + 1
    assert data_files(x) == ()
    # neither names of axes nor paths in files are files, unless there are such
    assert data_files(x.map_blocks(lambda block, text: block, text="nowhere/a.npy")) == ()
    assert data_files(x.map_blocks(lambda block, text: block, text="/")) == ()


def test_objects_that_refer_to_themselves(folder):
    class Node:
        def __init__(self):
            self.me, self.path, self.many = self, "scan.npy", [self]

    loop = []
    loop.append(loop)
    array = da.ones(3).map_blocks(lambda block, node: block, node=dask.delayed(Node()))
    assert str(folder / "scan.npy") in data_files(array)
    assert data_files(da.ones(3).map_blocks(lambda block, node: block, node=(1, "a" * 5000))) == ()


class Source:
    """Data that are not an array of NumPy."""

    shape, dtype, ndim = SHAPE, VALUES.dtype, 4

    def __getitem__(self, index):
        return VALUES[index]


@pytest.mark.parametrize(
    "run",
    [
        lambda x: ud.run_udf(x, SumUDF()),
        lambda x: ud.run_udf(x, SumUDF()).compute(scheduler="synchronous"),
        lambda x: list(ud.run_udf_iter(x, SumUDF(), scheduler="synchronous")),
    ],
)
def test_data_are_freed_with_the_results(run):
    source = Source()
    alive, x = weakref.ref(source), da.from_array(source, chunks=2, name=uuid4().hex)
    before = {*threading.enumerate()}
    gc.disable()  # garbage would be collected too late
    try:
        run(x)
        del x, source
        for thread in {*threading.enumerate()} - before:
            if thread.daemon:  # that of an iterator ends shortly after the last snapshot
                thread.join(LATE)
        assert alive() is None
    finally:
        gc.enable()
