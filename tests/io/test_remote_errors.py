"""Remote data that cannot be read: each mistake has a message, and nothing is computed."""

import importlib
import socket
import sys

import numpy as np
import pytest

from remote_servers import serving
from udfdask.errors import FileFormatError
from udfdask.io import open_file

pytest.importorskip("aiohttp", reason="aiohttp is in the remote extra")

RAW = {"nav_shape": (4, 6), "sig_shape": (8, 10), "dtype": "u1"}


@pytest.fixture
def server(tmp_path):
    np.save(tmp_path / "scan.npy", np.zeros((4, 6, 8, 10), "u1"))
    with serving(tmp_path) as files:
        yield files


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
def test_a_missing_object(server, name):
    raw = RAW if name.endswith("raw") else {}
    with pytest.raises(FileNotFoundError, match=rf"{name} cannot be read .*check the URL"):
        open_file(f"{server.url}/{name}", **raw)


def test_options_reach_the_server(server):
    server.header = ("X-Token", "abc")
    with pytest.raises(FileFormatError, match=r"403.*credentials in storage_options"):
        open_file(f"{server.url}/scan.npy")
    opened = open_file(f"{server.url}/scan.npy", storage_options={"headers": {"X-Token": "abc"}})
    assert opened.array.sum().compute() == 0


def test_a_server_without_ranges(server):
    server.ranges = False
    content = (server.folder / "scan.npy").read_bytes()
    (server.folder / "scan.npy").write_bytes(content.ljust(1 << 20, b"\0"))
    with pytest.raises(FileFormatError, match="in place of the 16384 that were asked for"):
        open_file(f"{server.url}/scan.npy")


def test_a_file_of_another_format(server):
    (server.folder / "scan.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    with pytest.raises(FileFormatError, match=r"scan\.h5 is neither a zarr store.*kerchunk"):
        open_file(f"{server.url}/scan.h5")


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


def test_messages_and_names_show_no_password(server):
    host = server.url.removeprefix("http://")
    for url in (f"http://me:secret@{host}/a.npy", f"{server.url}/a.npy?signature=secret"):
        with pytest.raises(FileNotFoundError) as caught:
            open_file(url)
        assert "secret" not in str(caught.value)
        assert "/a.npy" in str(caught.value)
    opened = open_file(f"{server.url}/scan.npy?signature=secret")
    assert opened.title == "scan"
    assert "secret" not in opened.array.name
