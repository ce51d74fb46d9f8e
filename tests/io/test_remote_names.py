"""Names of remote data: they change with the data, and caches find results by them."""

import os
import pickle

import numpy as np
import pytest
from dask.array.utils import assert_eq

import udfdask as ud
from remote_servers import serving
from udfdask.errors import UDFWarning
from udfdask.io import from_raw, open_file
from udfdask.udfs import SumUDF

pytest.importorskip("aiohttp", reason="aiohttp is in the remote extra")
zarr = pytest.importorskip("zarr", reason="zarr is in the io extra")

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


KINDS = {"npy": write_npy, "raw": write_raw, "zarr": write_zarr}


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


def test_what_travels_is_small_and_shows_no_password(server, kind):
    options = {"headers": {"X-Token": "dark secret"}}
    if kind == "raw":
        array = from_raw(f"{server.url}/scan.raw", **RAW, storage_options=options)
    else:
        array = open_file(f"{server.url}/scan.{kind}", storage_options=options).array
    graph = pickle.dumps(array)
    assert len(graph) < 10_000
    assert_eq(pickle.loads(graph), scan(1))
    assert "secret" not in repr(dict(array.__dask_graph__()))


@pytest.mark.parametrize("kind", ["npy", "raw"], indirect=True)
def test_the_name_of_a_file_is_that_of_its_version(server, kind):
    first = opened(server, kind)
    assert opened(server, kind).name == first.name
    assert_eq(first, scan(1))
    rewrite(server, kind)
    second = opened(server, kind)
    assert second.name != first.name
    assert_eq(second, scan(2))


def test_without_versions_nothing_is_found_again(server, kind, tmp_path):
    """HTTP tells no versions of all chunks of a store."""
    server.tells = "nothing"
    first, second = opened(server, kind), opened(server, kind)
    assert first.name != second.name
    assert_eq(second, scan(1))
    with pytest.warns(UDFWarning, match=r"not kept.*the versions? of http"):
        ud.compute(ud.run_udf(second, SumUDF()), cache=tmp_path / "cache")
