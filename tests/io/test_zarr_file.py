"""Zarr stores: arrays and groups, of both formats."""

import dask
import numpy as np
import pytest
from dask.array.utils import assert_eq

from udfdask.errors import ArgumentValueError
from udfdask.io import open_file

zarr = pytest.importorskip("zarr", reason="zarr is in the io extra")


def write_group(path, arrays, zarr_format):
    """Write a store with arrays by their paths: (values, chunks)."""
    root = zarr.create_group(str(path), zarr_format=zarr_format)
    for name, (values, chunks) in arrays.items():
        root.create_array(name, data=values, chunks=chunks)


@pytest.fixture(params=[2, 3])
def group(request, tmp_path, values):
    path = tmp_path / "scan.zarr"
    arrays = {"deep/scan": (values, (2, 3, 8, 10)), "dark": (values[0, 0], (8, 10))}
    write_group(path, arrays, request.param)
    return path


def test_the_array_of_a_group_that_is_meant(group, values):
    opened = open_file(group)
    assert_eq(opened.array, values)
    assert opened.reader == "zarr, array deep/scan"


def test_chunks_behind_a_link_that_are_written_anew(tmp_path, values):
    path = tmp_path / "a.zarr"
    array = zarr.create_array(str(path), data=values)
    (path / "c").rename(tmp_path / "elsewhere")
    (path / "c").symlink_to("../elsewhere")
    first = open_file(path).array.name
    assert open_file(path).array.name == first
    array[:] = values + 1
    assert open_file(path).array.name != first


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_the_image_of_ome_zarr(tmp_path, values, zarr_format):
    path, labels = tmp_path / "image.zarr", values.astype(np.uint32)  # larger than the image
    arrays = {"0": values, "1": values[..., ::2, ::2], "labels/cells/0": labels}
    write_group(path, {name: (v, v.shape) for name, v in arrays.items()}, zarr_format)
    group = zarr.open_group(str(path), mode="a")
    found = {"multiscales": [{"datasets": [{"path": "0"}, {"path": "1"}]}]}
    group.attrs.update({"ome": found} if zarr_format == 3 else found)
    assert open_file(path).reader == "zarr, array 0"
    assert open_file(path, dataset="1").reader == "zarr, array 1"
    for damaged in ({"damaged": [1]}, 3, [], [{"datasets": {}}]):
        group.attrs["ome"] = group.attrs["multiscales"] = damaged
        assert open_file(path).reader == "zarr, array labels/cells/0"


def test_shards_are_read_whole(tmp_path, values):
    zarr.create_array(
        str(tmp_path / "a.zarr"), data=values, chunks=(1, 1, 8, 10), shards=(2, 6, 8, 10)
    )
    with dask.config.set({"array.chunk-size": "100B"}):
        assert open_file(tmp_path / "a.zarr").array.chunksize == (2, 6, 8, 10)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_axes_of_what_xarray_wrote(tmp_path, zarr_format):
    xr = pytest.importorskip("xarray", reason="xarray is in the io extra")
    coords = {"y": ("y", [1.0, 1.5, 2.0], {"units": "nm"}), "kx": ("kx", [0, 1, 3, 9])}
    da = xr.DataArray(np.zeros((3, 5, 4)), dims=("y", "ky", "kx"), coords=coords, name="scan")
    da.to_dataset().to_zarr(tmp_path / "a.zarr", zarr_format=zarr_format, consolidated=False)
    y, ky, kx = open_file(tmp_path / "a.zarr").axes
    assert (y.name, y.unit, y.scale, y.offset) == ("y", "nm", 0.5, 1.0)
    assert (ky.name, ky.unit, ky.scale) == ("ky", None, 1.0)
    assert (kx.name, kx.unit, kx.scale) == ("kx", None, 1.0)


def test_an_array_that_is_not_there(group):
    with pytest.raises(
        ArgumentValueError, match=r"no dataset 'bright'.*'deep/scan' \(4, 6, 8, 10\)"
    ):
        open_file(group, dataset="bright")
