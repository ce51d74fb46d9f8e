"""What the tests of progressive runs share."""

import dask.array as da
import numpy as np
import pytest

import progressive_udfs as pu
import udf_zoo
from aux_udfs import SeenInTree, aux_of
from udfdask.geometry.shapes import Shape
from udfdask.testing import assert_eq
from udfdask.udfs import NoOpUDF, SumSigUDF, SumUDF

SHAPE = (6, 5, 4, 3)
CHUNKS = ((2, 1, 3), (3, 2), (4,), (2, 1))
ROI = np.random.default_rng(3).random(SHAPE[:2]) < 0.4

LOCAL = [{"scheduler": "synchronous"}, {"scheduler": "threads", "num_workers": 2}]
local = pytest.mark.parametrize("local", LOCAL, ids=["synchronous", "threads"])

# MergeAllWhole says that its merge is never called; the median of MergeAllOnce is not merged
ZOO = [u for u in udf_zoo.ZOO if u not in (udf_zoo.MergeAllWhole, udf_zoo.MergeAllOnce)]
ZOO += [pu.OnlyMergeAll, pu.MedianOnce, NoOpUDF, SumSigUDF, SumUDF]


def long_array(n=200, data=None):
    """So many chunks of one frame."""
    if data is not None:
        return da.from_array(data, chunks=(1, *data.shape[1:]), meta=np.empty((0,) * 4))
    rows = da.arange(n, chunks=1, dtype="int64")
    return da.broadcast_to(rows[:, None, None, None], (n, 1, 2, 2)).copy()


def assert_same(buffers, *expected):
    """Equal results, masks and rows: integers exactly, floats to rounding."""
    for found, wanted in zip(buffers, expected, strict=True):
        assert list(found) == list(wanted)
        assert_eq(found, wanted, rtol=1e-6, atol=0)


def seen(shape, cls=SeenInTree, wrap=lambda a: a, **kwargs):
    return cls(**aux_of(Shape(shape, sig_dims=2), wrap), **kwargs)


def worker_of(iterator):
    """The thread in which a local scheduler works for an iterator."""
    return iterator._chunks._thread
