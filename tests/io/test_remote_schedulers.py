"""Remote data on each scheduler and each kind of server: the same values."""

import json

import numpy as np
import pytest
from dask.array.utils import assert_eq

import udfdask as ud
from remote_servers import s3_server, serving
from udfdask.io import from_raw, open_file
from udfdask.udfs import SumSigUDF

pytest.importorskip("aiohttp", reason="aiohttp is in the remote extra")
zarr = pytest.importorskip("zarr", reason="zarr is in the io extra")
pytestmark = pytest.mark.full

SHAPE = (4, 6, 8, 10)
RAW = {"nav_shape": SHAPE[:2], "sig_shape": SHAPE[2:], "dtype": "u2"}


@pytest.fixture(scope="module")
def values():
    return np.random.default_rng(3).integers(0, 99, SHAPE).astype(np.uint16)


@pytest.fixture(scope="module")
def http(tmp_path_factory, values):
    folder = tmp_path_factory.mktemp("server")
    np.save(folder / "scan.npy", values)
    zarr.create_array(str(folder / "scan.zarr"), data=values, chunks=(1, 6, 8, 10))
    refs = {
        ".zarray": json.dumps(
            {
                "zarr_format": 2,
                "shape": SHAPE,
                "chunks": (1, 6, 8, 10),
                "dtype": "<u2",
                "order": "C",
                "fill_value": 0,
                "filters": None,
                "compressor": None,
            }
        )
    }
    with serving(folder) as files:
        start, step = (folder / "scan.npy").stat().st_size - values.nbytes, values.nbytes // 4
        for n in range(4):
            refs[f"{n}.0.0.0"] = [f"{files.url}/scan.npy", start + n * step, step]
        (folder / "scan.json").write_text(json.dumps({"version": 1, "refs": refs}))
        yield files


@pytest.fixture(scope="module")
def s3(http, values):
    """A bucket with the same files, and the options for it."""
    pytest.importorskip("moto", reason="moto is in the test extra")
    s3fs = pytest.importorskip("s3fs", reason="s3fs is in the remote extra")
    with s3_server() as options:
        bucket = s3fs.S3FileSystem(**options)
        bucket.mkdir("bucket")
        bucket.put(str(http.folder), "bucket/data", recursive=True)
        bucket.pipe("bucket/data/scan.raw", values.tobytes())
        yield options


@pytest.mark.parametrize("name", ["scan.npy", "scan.zarr", "scan.json"])
def test_each_scheduler_reads_it(http, values, name, client):
    array = open_file(f"{http.url}/{name}", chunks=(1, 6, 8, 10)).array
    for scheduler in ("threads", "processes", client):
        found = ud.run_udf(array, SumSigUDF()).compute(scheduler=scheduler)
        assert np.array_equal(found["intensity"], values.sum((2, 3)))


@pytest.mark.parametrize("name", ["scan.npy", "scan.zarr", "scan.raw"])
def test_s3(s3, values, name):
    url = f"s3://bucket/data/{name}"
    if name == "scan.raw":
        array = from_raw(url, **RAW, storage_options=s3, chunks=(1, 6, 8, 10))
    else:
        array = open_file(url, storage_options=s3, chunks=(1, 6, 8, 10)).array
    assert_eq(array, values)
    found = ud.run_udf(array, SumSigUDF()).compute()
    assert np.array_equal(found["intensity"], values.sum((2, 3)))
