"""Excluded pixels are patched from pixels of other tiles, however frames and tiles are cut."""

import dask
import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from making import SYNC
from udfdask.corrections import CorrectionSet
from udfdask.udfs import SumUDF

VALUES = np.random.default_rng(0).integers(0, 1000, (20, 64, 64)).astype("uint16")


@pytest.mark.parametrize("rows", [(8,) * 8, (4, 20, 8, 8, 8, 8, 8), (64,)])
def test_patches_near_the_borders_of_tiles(rows):
    """With many signal chunks, each has a task, whose tiles are parts of this chunk."""
    excluded = np.zeros((64, 64), dtype=bool)
    excluded[5, 5] = excluded[10, 3:7] = excluded[26, [0, 63]] = excluded[35] = True
    x = da.from_array(VALUES, chunks=(20, rows, 64))

    def total(tile_bytes):
        with dask.config.set({"udfdask.tile-bytes": tile_bytes, **SYNC}):
            run = ud.run_udf(x, SumUDF(), corrections=CorrectionSet(excluded_pixels=excluded))
            return run["intensity"].compute()

    assert np.array_equal(total(1 << 11), total(1 << 24))
