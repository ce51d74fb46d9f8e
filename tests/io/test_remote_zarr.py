"""Zarr stores on servers: the same arrays, axes and choices as from a folder."""

import warnings

import numpy as np
import pytest
from dask.array.utils import assert_eq

from remote_servers import serving
from udfdask.errors import ArgumentValueError, FileFormatError
from udfdask.io import open_file

pytest.importorskip("aiohttp", reason="aiohttp is in the remote extra")
zarr = pytest.importorskip("zarr", reason="zarr is in the io extra")


def write(path, values, zarr_format, **options):
    """Write a group with an array deep/scan, its coordinates, and an array dark."""
    root = zarr.create_group(str(path), zarr_format=zarr_format)
    dims = ("y", "x", "ky", "kx")
    named = {"dimension_names": dims} if zarr_format == 3 else {}
    old = {} if zarr_format == 3 else {"_ARRAY_DIMENSIONS": list(dims)}
    root.create_array("deep/scan", data=values, attributes=old, **named, **options)
    y = root.create_array(
        "deep/y", data=np.arange(4) * 0.5, **({"dimension_names": ("y",)} if named else {})
    )
    y.attrs["units"] = "nm"
    root.create_array("dark", data=values[0, 0])
    return root


@pytest.fixture(scope="module")
def server(tmp_path_factory, values):
    folder = tmp_path_factory.mktemp("server")
    for zarr_format in (2, 3):
        write(folder / f"v{zarr_format}.zarr", values, zarr_format, chunks=(2, 3, 8, 10))
        with warnings.catch_warnings():  # not yet in the specification of format 3
            warnings.simplefilter("ignore", zarr.errors.ZarrUserWarning)
            zarr.consolidate_metadata(str(folder / f"v{zarr_format}.zarr"))
    zarr.create_array(str(folder / "a.zarr"), data=values, chunks=(1, 6, 8, 10))
    zarr.create_array(
        str(folder / "shards.zarr"), data=values, chunks=(1, 1, 8, 10), shards=(2, 6, 8, 10)
    )
    with serving(folder) as files:
        yield files


@pytest.mark.parametrize("name", ["v2.zarr", "v3.zarr", "a.zarr", "shards.zarr"])
def test_it_is_what_the_folder_is(server, values, name):
    here, there = open_file(server.folder / name), open_file(f"{server.url}/{name}")
    assert_eq(there.array, values)
    assert there.array.chunks == here.array.chunks
    assert (there.reader, there.title) == (here.reader, here.title)
    assert (there.sig_dims, there.axes) == (here.sig_dims, here.axes)
    assert there.unit == here.unit


def test_the_array_asked_for(server, values):
    assert_eq(open_file(f"{server.url}/v2.zarr", dataset="dark").array, values[0, 0])
    assert_eq(open_file(f"{server.url}/v2.zarr/deep/scan").array, values)
    with pytest.raises(ArgumentValueError, match=r"no dataset 'light' in .*v2.zarr.*'deep/scan'"):
        open_file(f"{server.url}/v2.zarr", dataset="light")
    with pytest.raises(ArgumentValueError, match="is itself an array"):
        open_file(f"{server.url}/a.zarr", dataset="dark")


def test_a_store_that_has_changed(tmp_path, values):
    with serving(tmp_path) as files:
        for other in (values.astype("f4"), values[:, :3]):
            zarr.create_array(str(tmp_path / "a.zarr"), data=values, overwrite=True)
            scan = open_file(f"{files.url}/a.zarr").array
            zarr.create_array(str(tmp_path / "a.zarr"), data=other, overwrite=True)
            with pytest.raises(FileFormatError, match=r"a\.zarr has changed since it was opened"):
                scan.sum().compute()


def test_a_group_that_cannot_be_listed_needs_a_name(tmp_path, values):
    write(tmp_path / "a.zarr", values, 3, chunks=(2, 6, 8, 10))
    with serving(tmp_path) as files:
        with pytest.raises(FileFormatError, match="cannot list a folder: pass dataset="):
            open_file(f"{files.url}/a.zarr")
        assert_eq(open_file(f"{files.url}/a.zarr", dataset="deep/scan").array, values)
