"""References to parts of other files, written by kerchunk: a zarr store that is nowhere stored."""

import gc
import json
import os
from contextlib import closing

import numpy as np
import pytest
from dask.array.utils import assert_eq

import udfdask as ud
from remote_servers import serving
from udfdask.errors import ArgumentValueError
from udfdask.io import open_file
from udfdask.udfs import SumUDF

pytest.importorskip("aiohttp", reason="aiohttp is in the remote extra")
h5py = pytest.importorskip("h5py", reason="h5py is in the io extra")
hdf = pytest.importorskip("kerchunk.hdf", reason="kerchunk is in the test extra")


def write_hdf5(path, values):
    with h5py.File(path, "w") as file:
        data = file.create_dataset(
            "entry/scan", data=values, chunks=(1, 6, 8, 10), compression="gzip"
        )
        y = file.create_dataset("entry/y", data=np.arange(4) * 0.5)
        y.attrs["units"] = "nm"
        y.make_scale("y")
        data.dims[0].attach_scale(y)


def references(path, url):
    """References to the chunks of an HDF5 file, as kerchunk writes them."""
    # kerchunk holds the lock of h5py while it waits for a thread of zarr. If the garbage collector
    # runs in that thread and finds an HDF5 object of another test, it waits for the lock forever.
    gc.disable()
    try:
        # kerchunk does not close the HDF5 file by itself, which reads from the stream
        with (
            path.open("rb") as stream,
            closing(hdf.SingleHdf5ToZarr(stream, url, inline_threshold=64)) as file,
        ):
            return file.translate()
    finally:
        gc.enable()


@pytest.fixture
def server(tmp_path, values):
    write_hdf5(tmp_path / "scan.h5", values)
    os.utime(tmp_path / "scan.h5", (1e9, 1e9))
    with serving(tmp_path) as files:
        found = references(tmp_path / "scan.h5", f"{files.url}/scan.h5")
        (tmp_path / "scan.json").write_text(json.dumps(found))
        yield files


@pytest.mark.parametrize("where", ["local", "http", "chained", "reference"])
def test_they_are_the_array_of_the_file(server, values, where):
    options = None
    path = {
        "local": server.folder / "scan.json",
        "http": f"{server.url}/scan.json",
        "chained": f"reference::{server.url}/scan.json",
        "reference": "reference://",
    }[where]
    if where == "reference":
        options = {"fo": f"{server.url}/scan.json", "remote_protocol": "http"}
    opened = open_file(path, storage_options=options)
    here = open_file(server.folder / "scan.h5", dataset="entry/scan")
    assert_eq(opened.array, values)
    assert opened.reader == "zarr references, array entry/scan"
    assert opened.title == ("references" if where == "reference" else "scan")
    assert [axis.scale for axis in opened.axes] == [axis.scale for axis in here.axes]


def test_one_pass_loads_each_chunk_once(server, values):
    scan = open_file(f"{server.url}/scan.json").array
    server.loaded()
    found = ud.run_udf(scan, SumUDF()).compute()["intensity"]
    assert np.array_equal(found, values.sum((0, 1)))
    loaded = server.loaded("scan.h5")
    with h5py.File(server.folder / "scan.h5") as file:
        data = file["entry/scan"]
        chunks = [data.id.get_chunk_info(i) for i in range(data.id.get_num_chunks())]
    assert sorted((r.start, r.sent) for r in loaded) == sorted(
        (chunk.byte_offset, chunk.size) for chunk in chunks
    )


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # pandas about fastparquet
def test_references_in_parquet(server, values, tmp_path):
    pytest.importorskip("fastparquet", reason="fastparquet is in the remote extra")
    from kerchunk.df import refs_to_dataframe

    found = references(server.folder / "scan.h5", f"{server.url}/scan.h5")
    refs_to_dataframe(found, str(tmp_path / "scan.parquet"))
    with pytest.raises(ArgumentValueError, match="remote_protocol"):
        open_file(tmp_path / "scan.parquet")
    options = {"remote_protocol": "http"}
    assert_eq(open_file(tmp_path / "scan.parquet", storage_options=options).array, values)


def test_a_change_of_the_references(server, values):
    first = open_file(server.folder / "scan.json").array
    found = json.loads((server.folder / "scan.json").read_text())
    refs = found["refs"]
    refs["entry/scan/0.0.0.0"], refs["entry/scan/1.0.0.0"] = (
        refs["entry/scan/1.0.0.0"],
        refs["entry/scan/0.0.0.0"],
    )
    (server.folder / "scan.json").write_text(json.dumps(found))
    second = open_file(server.folder / "scan.json").array
    assert second.name != first.name
    assert_eq(second, values[[1, 0, 2, 3]])


def test_files_that_references_point_to_are_never_replaced(tmp_path, values):
    zarr = pytest.importorskip("zarr", reason="zarr is in the io extra")
    zarr.create_array(str(tmp_path / "scan.zarr"), data=values, chunks=(1, 6, 8, 10), zarr_format=2)
    refs = {".zarray": (tmp_path / "scan.zarr" / ".zarray").read_text()}
    for n in range(4):
        chunk = tmp_path / "scan.zarr" / f"{n}.0.0.0"
        refs[chunk.name] = [str(chunk), 0, chunk.stat().st_size]
    (tmp_path / "scan.json").write_text(json.dumps({"version": 1, "refs": refs}))
    scan = open_file(tmp_path / "scan.json").array
    assert_eq(scan, values)
    with pytest.raises(ArgumentValueError, match="the source of the data"):
        ud.run_udf(scan, SumUDF()).to_zarr(tmp_path / "scan.zarr", overwrite=True)
    assert_eq(scan, values)
