"""Point 32: what each optional class attribute promises."""

import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from making import SYNC, compute, make


@pytest.mark.point(32)
def test_contiguous_nav_gives_origins(x):
    def process_tile(self, tile):
        start = self.meta.slice.origin[0]
        self.results.v[:] = np.arange(start, start + len(tile))

    buffers = {"v": {"kind": "nav", "dtype": "int64"}}
    udf = make(buffers, process_tile=process_tile, contiguous_nav=True)()
    assert compute(x, udf).raw["v"].tolist() == list(range(24))
    with pytest.raises(ud.UDFError, match=r"this slice has no origin"):
        compute(x, make(buffers, process_tile=process_tile)())


@pytest.mark.point(32)
def test_contiguous_partitions_that_cannot_be(x):
    udf = make(
        {"v": {"kind": "nav"}}, process_partition=lambda self, p: None, contiguous_nav=True
    )()
    with pytest.raises(ud.ArgumentValueError, match=r"contiguous_nav.*rechunk"):
        ud.run_udf(x, udf)
    ud.run_udf(x.rechunk((1, 6, 3, 5)), udf)


@pytest.mark.point(32)
@pytest.mark.parametrize("method", ["process_frame", "process_tile", "process_partition"])
def test_writable_input(values, method):
    x = da.from_array(values, chunks=(2, 6, 3, 5))

    def process(self, data):
        assert data.flags.writeable
        data *= 0
        self.results.v[:] = data.sum()

    def look(self, data):
        assert not data.flags.writeable
        self.results.v[:] = 1 + data.max()

    writes = make({"v": {"kind": "nav"}}, writable_input=True, **{method: process})()
    looks = make({"v": {"kind": "nav"}}, **{method: look})()
    kept = values.copy()
    first, second = ud.compute(*ud.run_udf(x, [writes, looks]), **SYNC)
    assert (first["v"] == 0).all()
    assert (second["v"][-1] > 1).all()
    np.testing.assert_array_equal(values, kept)
