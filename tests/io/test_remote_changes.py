"""Remote data that change: other names, an error during a run, other stored results."""

import os
import pickle
import warnings

import numpy as np
import pytest
from dask.array.utils import assert_eq

import udfdask as ud
from remote_servers import serving
from udfdask.errors import FileFormatError, UDFWarning
from udfdask.io import from_raw, open_file
from udfdask.io.remote_file import RemoteFile
from udfdask.udfs import SumUDF
from zarr_writing import needs_zarr_3

pytest.importorskip("aiohttp", reason="aiohttp is in the remote extra")
zarr = pytest.importorskip("zarr", reason="zarr is in the io extra")
pytestmark = needs_zarr_3

SHAPE = (4, 6, 8, 10)
RAW = {"nav_shape": SHAPE[:2], "sig_shape": SHAPE[2:], "dtype": "u1"}


def scan(seed):
    """Frames; those of other seeds have the same size in a file."""
    return np.random.default_rng(seed).integers(0, 99, SHAPE, dtype=np.uint8)


def write_npy(path, seed):
    np.save(path, scan(seed))


def write_raw(path, seed):
    scan(seed).tofile(path)


def write_zarr(path, seed):
    zarr.create_array(
        str(path), data=scan(seed), chunks=(1, 6, 8, 10), compressors=None, overwrite=True
    )


def write_group(path, seed):
    root = zarr.create_group(str(path), zarr_format=2, overwrite=True)
    root.create_array("scan", data=scan(seed), chunks=(1, 6, 8, 10))
    zarr.consolidate_metadata(str(path), zarr_format=2)


KINDS = {"npy": write_npy, "raw": write_raw, "zarr": write_zarr, "group": write_group}


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def server(tmp_path, kind):
    KINDS[kind](tmp_path / f"scan.{kind}", 1)
    later(tmp_path, 100)
    with serving(tmp_path) as files:
        yield files


def later(folder, seconds):
    """Set the times of all files, so that no test depends on the resolution of the clock."""
    for path in folder.rglob("*"):
        os.utime(path, (1e9 + seconds, 1e9 + seconds))


def opened(server, kind):
    if kind == "raw":
        return from_raw(f"{server.url}/scan.raw", **RAW, chunks=(1, 6, 8, 10))
    return open_file(f"{server.url}/scan.{kind}", chunks=(1, 6, 8, 10)).array


def rewrite(server, kind, seed=2):
    KINDS[kind](server.folder / f"scan.{kind}", seed)
    later(server.folder, 100 + seed)


def test_the_name_is_that_of_the_contents(server, kind):
    first = opened(server, kind)
    assert opened(server, kind).name == first.name
    assert_eq(first, scan(1))
    rewrite(server, kind)
    second = opened(server, kind)
    assert second.name != first.name
    assert_eq(second, scan(2))


@pytest.mark.parametrize("read_before", [False, True])
def test_a_change_during_a_run_is_an_error(server, kind, read_before):
    array = opened(server, kind)
    if read_before:
        assert_eq(array[:1], scan(1)[:1])
    rewrite(server, kind)
    with pytest.raises(FileFormatError, match=r"has changed since it was opened.*Open it again"):
        ud.run_udf(array, SumUDF()).compute()


@pytest.mark.parametrize("kind", ["npy", "raw"], indirect=True)
def test_a_change_between_the_reads_of_a_task(server, kind, monkeypatch):
    array = opened(server, kind)
    read = RemoteFile.read

    def read_and_change(self, ranges):
        found = read(self, ranges)
        rewrite(server, kind)
        return found

    monkeypatch.setattr(RemoteFile, "read", read_and_change)
    with pytest.raises(FileFormatError, match="has changed since it was opened"):
        array[:1].compute()


def test_a_file_that_was_deleted(server, kind):
    array = opened(server, kind)
    for path in server.folder.rglob("*"):
        if path.is_file():
            path.unlink()
    with pytest.raises(FileFormatError, match=r"opened.*(there is no|no such object)"):
        array[:1].compute()


@pytest.mark.parametrize("kind", ["zarr"], indirect=True)
@pytest.mark.parametrize("how", ["written", "deleted", "new"])
def test_one_chunk_of_a_store(server, how):
    chunk = server.folder / "scan.zarr" / "c" / "2" / "0" / "0" / "0"
    content = chunk.read_bytes()
    if how == "new":
        chunk.unlink()
    array = opened(server, "zarr")
    array[0].compute()
    if how == "deleted":
        chunk.unlink()
    else:
        chunk.write_bytes(content[::-1])
        later(chunk.parent, 300)
    assert_eq(array[3:], scan(1)[3:])
    with pytest.raises(FileFormatError, match=r"scan\.zarr/c/2/0/0/0 has changed"):
        array[2].compute()
    assert opened(server, "zarr").name != array.name


def test_what_travels_is_small_and_shows_no_password(server, kind):
    options = {"headers": {"X-Token": "dark secret"}}
    if kind == "raw":
        array = from_raw(f"{server.url}/scan.raw", **RAW, storage_options=options)
    else:
        array = open_file(f"{server.url}/scan.{kind}", storage_options=options).array
    assert (
        array.name
        == (
            from_raw(f"{server.url}/scan.raw", **RAW)
            if kind == "raw"
            else open_file(f"{server.url}/scan.{kind}").array
        ).name
    )
    graph = pickle.dumps(array)
    assert len(graph) < 10_000
    assert_eq(pickle.loads(graph), scan(1))
    assert "secret" not in repr(dict(array.__dask_graph__()))


@pytest.mark.parametrize("kind", ["npy", "zarr"], indirect=True)
def test_results_are_kept_until_the_data_change(server, kind, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cache")

    def total():
        with ud.cache(folder):
            return ud.run_udf(opened(server, kind), SumUDF()).compute()["intensity"]

    first = total()
    server.loaded()
    assert np.array_equal(total(), first)
    whole = scan(1).nbytes // SHAPE[0]
    loaded = [r for r in server.loaded() if r.sent == whole]
    assert not [r for r in loaded if r.start or "/c/" in r.path]
    rewrite(server, kind)
    assert np.array_equal(total(), scan(2).sum((0, 1), dtype="u8"))


@pytest.mark.parametrize("kind", ["npy", "zarr"], indirect=True)
def test_a_server_that_tells_no_version(server, kind, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cache")
    server.tells = "nothing"
    with pytest.warns(UDFWarning, match="tells neither an ETag nor a time"):
        first = opened(server, kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UDFWarning)
        second = opened(server, kind)
    assert first.name != second.name
    assert_eq(second, scan(1))
    with pytest.warns(UDFWarning, match=r"not kept.*the versions? of http"):
        ud.compute(ud.run_udf(second, SumUDF()), cache=folder / "cache")


@pytest.mark.parametrize("kind", ["npy", "zarr"], indirect=True)
def test_a_server_that_tells_times(server, kind):
    server.tells = "time"
    array = opened(server, kind)
    assert opened(server, kind).name == array.name
    assert_eq(array, scan(1))
    rewrite(server, kind)
    with pytest.raises(FileFormatError, match="has changed since it was opened"):
        array[:1].compute()


@pytest.mark.parametrize("kind", ["zarr"], indirect=True)
def test_too_many_chunks_to_look_at_each(server, monkeypatch):
    monkeypatch.setattr("udfdask.io.remote_objects.MOST_OBJECTS", 3)
    server.tells = "time"
    array = opened(server, "zarr")
    assert opened(server, "zarr").name != array.name
    assert_eq(array, scan(1))
    chunk = server.folder / "scan.zarr" / "c" / "2" / "0" / "0" / "0"
    os.utime(chunk, (4e9, 4e9))
    with pytest.raises(FileFormatError, match=r"c/2/0/0/0 was written after the array was opened"):
        array[2].compute()
    assert_eq(array[3], scan(1)[3])
