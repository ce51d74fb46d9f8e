"""The command line reads URLs."""

import numpy as np
import pytest

from commands import call, tables
from remote_servers import serving

pytest.importorskip("aiohttp", reason="aiohttp is in the remote extra")


@pytest.fixture
def server(tmp_path):
    np.save(tmp_path / "scan.npy", np.ones((4, 6, 8, 10), "u1"))
    with serving(tmp_path) as files:
        yield files


def test_a_file_on_a_server(server, tmp_path):
    options = ["--udf", "sumsig", "--out", tmp_path / "sum.npz", "--no-progress"]
    found = call("run", f"{server.url}/scan.npy", *options)
    assert f"{server.url}/scan.npy: 4 x 6 positions of 8 x 10 uint8, read by NumPy" in found
    assert tables(found)[0][:2] == ["sumsig", "intensity"]
    (sums,) = np.load(tmp_path / "sum.npz").values()
    assert np.array_equal(sums, np.full((4, 6), 80))
    assert "scan.npy" in call("explain", f"{server.url}/scan.npy")


def test_options_for_the_server(server):
    server.header = ("X-Token", "abc")
    url = f"{server.url}/scan.npy"
    assert "the credentials in storage_options" in call("run", url, code=1)
    option = 'headers={"X-Token": "abc"}'
    assert "sumsig" in call("run", url, "--storage-option", option)
    wrong = call("run", url, "--storage-option", "anon", code=2)
    assert "Invalid value for '--storage-option'" in wrong
    path = server.folder / "scan.npy"
    assert "leave them out" in call("run", path, "--storage-option", "anon=true", code=1)
