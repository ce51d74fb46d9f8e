"""Zarr stores for tests, written by zarr 2 or zarr 3, whichever is there."""

import pytest

zarr = pytest.importorskip("zarr", reason="zarr is in the io extra")

IS_ZARR_3 = int(zarr.__version__.partition(".")[0]) >= 3
FORMATS = [2, 3] if IS_ZARR_3 else [2]
needs_zarr_3 = pytest.mark.skipif(not IS_ZARR_3, reason="zarr 2 does not know it")
needs_zarr_2 = pytest.mark.skipif(IS_ZARR_3, reason="RosettaSciIO writes .zspy with zarr 2 only")


def write_array(path, values, **options):
    """Write a store that is one array."""
    if IS_ZARR_3:
        zarr.create_array(str(path), data=values, **options)
    else:
        zarr.save_array(str(path), values, **{k: v for k, v in options.items() if k != "overwrite"})


def write_group(path, arrays, zarr_format):
    """Write a store with arrays by their paths: (values, chunks)."""
    if IS_ZARR_3:
        root = zarr.create_group(str(path), zarr_format=zarr_format)
    else:
        root = zarr.open_group(str(path), mode="w")
    create = root.create_array if IS_ZARR_3 else root.create_dataset
    for name, (values, chunks) in arrays.items():
        create(name, data=values, chunks=chunks)
