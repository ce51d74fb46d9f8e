"""Data on servers, by each kind of file, server and scheduler; and what cannot be read."""

import importlib
import json
import os
import pickle
import socket
import sys

import numpy as np
import pytest
from dask.array.utils import assert_eq
from hypothesis import given, settings
from hypothesis import strategies as st

import udfdask as ud
from remote_servers import s3_server, serving
from suites import examples
from udfdask.errors import FileFormatError, UDFWarning
from udfdask.io import from_raw, open_file
from udfdask.testing import raise_if_dask_computes
from udfdask.udfs import SumSigUDF, SumUDF

pytest.importorskip("aiohttp", reason="aiohttp is in the remote extra")
zarr = pytest.importorskip("zarr", reason="zarr is in the io extra")

SHAPE = (6, 8, 16, 16)
CHUNKS = (2, 8, 16, 16)
RAW = {"nav_shape": SHAPE[:2], "sig_shape": SHAPE[2:], "dtype": ">u2", "offset": 100}
KINDS = ["npy", "raw", "zarr", "json"]


def scan(seed=1):
    """Frames; those of other seeds have the same size in a file."""
    return np.random.default_rng(seed).integers(0, 999, SHAPE).astype(">u2")


def write(folder, seed=1, url=""):
    """Write frames as all kinds of files, with times that differ for each seed."""
    values = scan(seed)
    np.save(folder / "scan.npy", values)
    np.save(folder / "columns.npy", np.asfortranarray(values))
    (folder / "scan.raw").write_bytes(bytes(100) + values.tobytes())
    store = {"shape": SHAPE, "chunks": CHUNKS, "dtype": ">u2", "fill_value": 0, "overwrite": True}
    zarr.create_array(str(folder / "scan.zarr"), zarr_format=2, compressors=None, **store)[:] = (
        values
    )
    refs = {".zarray": (folder / "scan.zarr" / ".zarray").read_text()}
    for n in range(3):
        refs[f"{n}.0.0.0"] = [f"{url}/scan.raw", 100 + n * values.nbytes // 3, values.nbytes // 3]
    (folder / "scan.json").write_text(json.dumps({"version": 1, "refs": refs}))
    for path in folder.rglob("*"):
        os.utime(path, (1e9 + seed, 1e9 + seed))


def open_array(url, kind, **options):
    if kind == "raw":
        return from_raw(f"{url}/scan.raw", **RAW, chunks=CHUNKS, **options)
    return open_file(f"{url}/scan.{kind}", chunks=CHUNKS, **options).array


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    with serving(folder) as files:
        write(folder, url=files.url)
        yield files


@pytest.fixture
def changing(tmp_path):
    """A server whose files a test may change."""
    with serving(tmp_path) as files:
        write(tmp_path, url=files.url)
        yield files


@pytest.mark.parametrize("name", ["scan.npy", "columns.npy"])
def test_it_is_what_the_local_file_is(server, name):
    server.loaded()
    with raise_if_dask_computes():
        here, there = open_file(server.folder / name), open_file(f"{server.url}/{name}")
    assert sum(request.sent for request in server.loaded()) < 1 << 15  # the header alone
    assert_eq(there.array, scan())
    assert there.array.dtype == here.array.dtype
    assert there.array.chunks == here.array.chunks
    assert (there.title, there.sig_dims, there.axes) == (here.title, here.sig_dims, here.axes)
    assert there.reader == "NumPy, by byte ranges"


def test_a_pixel_of_each_frame_needs_no_request_for_each_frame(server):
    array = open_file(f"{server.url}/scan.npy").array
    server.loaded()
    assert np.array_equal(array[:, :, 3, 5].compute(), scan()[:, :, 3, 5])
    assert len(server.loaded()) == len(array.chunks[0])


@settings(max_examples=examples(40))
@given(st.data())
def test_any_part_is_that_of_the_array(server, data):
    name = data.draw(st.sampled_from(["scan.npy", "columns.npy"]))
    chunks = data.draw(st.tuples(*(st.integers(1, size) for size in SHAPE)))
    array = open_file(f"{server.url}/{name}", chunks=chunks).array
    index = data.draw(
        st.tuples(*(st.integers(-size, size - 1) | st.slices(size) for size in SHAPE))
    )
    assert np.array_equal(array[index].compute(), scan()[index])


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_each_scheduler_reads_it(server, kind, client):
    array = open_array(server.url, kind)
    for scheduler in ("threads", "processes", client):
        found = ud.run_udf(array, SumSigUDF()).compute(scheduler=scheduler)
        assert np.array_equal(found["intensity"], scan().sum((2, 3)))


@pytest.mark.full
def test_s3(server):
    pytest.importorskip("moto", reason="moto is in the test extra")
    s3fs = pytest.importorskip("s3fs", reason="s3fs is in the remote extra")
    with s3_server() as options:
        bucket = s3fs.S3FileSystem(**options)
        bucket.mkdir("bucket")
        bucket.put(str(server.folder), "bucket/data", recursive=True)
        for kind in ("npy", "raw", "zarr"):
            assert_eq(open_array("s3://bucket/data", kind, storage_options=options), scan())
        for name in ("nothing.npy", "nothing.zarr", "nothing.json"):
            with pytest.raises(FileNotFoundError, match=rf"s3://bucket/{name} cannot be read"):
                open_file(f"s3://bucket/{name}", storage_options=options)


@pytest.mark.parametrize("kind", KINDS)
def test_what_travels_is_small_and_shows_no_password(server, kind):
    array = open_array(server.url, kind, storage_options={"headers": {"X-Token": "dark secret"}})
    graph = pickle.dumps(array)
    assert len(graph) < 10_000
    assert_eq(pickle.loads(graph), scan())
    assert "secret" not in repr(dict(array.__dask_graph__()))


@pytest.mark.parametrize("kind", ["npy", "raw"])
def test_the_name_of_a_file_is_that_of_its_version(changing, kind, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cache")
    first = open_array(changing.url, kind)
    assert open_array(changing.url, kind).name == first.name
    total = ud.run_udf(first, SumUDF()).compute(cache=folder)["intensity"]
    assert np.array_equal(total, scan().sum((0, 1)))
    write(changing.folder, 2)
    second = open_array(changing.url, kind)
    assert second.name != first.name
    total = ud.run_udf(second, SumUDF()).compute(cache=folder)["intensity"]
    assert np.array_equal(total, scan(2).sum((0, 1)))


@pytest.mark.parametrize("kind", KINDS)
def test_without_versions_nothing_is_found_again(changing, kind, tmp_path):
    """HTTP tells no versions of all chunks of a store."""
    changing.tells = "nothing"
    first, second = open_array(changing.url, kind), open_array(changing.url, kind)
    assert first.name != second.name
    assert_eq(second, scan())
    with pytest.warns(UDFWarning, match=r"not kept.*the versions? of"):
        ud.compute(ud.run_udf(second, SumUDF()), cache=tmp_path / "cache")


@pytest.fixture
def nobody():
    """A URL of this machine where no server is."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return f"http://127.0.0.1:{port}"


@pytest.mark.parametrize("name", ["scan.npy", "scan.zarr", "scan.raw"])
def test_an_unreachable_server(nobody, name):
    raw = RAW if name.endswith("raw") else {}
    with pytest.raises(ConnectionError, match=rf"{name} cannot be read .*check the URL"):
        open_file(f"{nobody}/{name}", **raw)


@pytest.mark.parametrize("name", ["other.npy", "other.json", "other.raw"])
def test_a_missing_object(changing, name):
    raw = RAW if name.endswith("raw") else {}
    with pytest.raises(FileNotFoundError, match=rf"{name} cannot be read .*check the URL"):
        open_file(f"{changing.url}/{name}", **raw)


def test_a_server_without_ranges(changing):
    changing.ranges = False
    content = (changing.folder / "scan.npy").read_bytes()
    (changing.folder / "scan.npy").write_bytes(content.ljust(1 << 20, b"\0"))
    with pytest.raises(FileFormatError, match="in place of the 16384 that were asked for"):
        open_file(f"{changing.url}/scan.npy")


def test_a_file_of_another_format(changing):
    (changing.folder / "scan.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    with pytest.raises(FileFormatError, match=r"scan\.h5 is neither a zarr store.*kerchunk"):
        open_file(f"{changing.url}/scan.h5")


@pytest.mark.parametrize(
    ("url", "package"), [("s3://bucket/a.npy", "s3fs"), ("https://host/a.npy", "aiohttp")]
)
def test_a_missing_package(url, package, monkeypatch):
    registry = importlib.import_module("fsspec.registry")
    monkeypatch.delitem(registry._registry, url.partition("://")[0], raising=False)
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "fsspec.implementations.http", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf'{package}.*pip install "udfdask\[remote\]"'):
        open_file(url)


def test_messages_and_names_show_no_password(changing):
    host = changing.url.removeprefix("http://")
    for url in (f"http://me:secret@{host}/a.npy", f"{changing.url}/a.npy?signature=secret"):
        with pytest.raises(FileNotFoundError) as caught:
            open_file(url)
        assert "secret" not in str(caught.value)
        assert "/a.npy" in str(caught.value)
    opened = open_file(f"{changing.url}/scan.npy?signature=secret")
    assert opened.title == "scan"
    assert "secret" not in opened.array.name
