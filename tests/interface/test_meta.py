"""Point 19: what a UDF can ask about the data set and about the piece at hand."""

import dask
import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from making import NAV, SIG, compute


class Looks(ud.UDF):
    """Checks every fact about a piece against the whole data set."""

    def __init__(self, values, flat, roi):
        super().__init__(values=values, flat=flat, roi=roi)

    def get_result_buffers(self):
        assert tuple(self.meta.dataset_shape) == NAV + SIG
        assert self.meta.dataset_dtype == np.float32
        return {
            "seen": self.buffer(kind="nav", dtype="int64"),
            "rows": self.buffer(kind="nav", dtype="int64"),
        }

    def look(self, data, n):
        meta, flat = self.meta, self.params.flat
        places = meta.coordinates
        assert places.shape == (n, 2)
        part = meta.sig_slice
        np.testing.assert_array_equal(
            data, self.params.values[tuple(places.T)][(..., *part.get())].reshape(data.shape)
        )
        where = meta.slice
        assert tuple(where.shape) == (n, *part.shape)
        assert where.sig == part == meta.tiling_scheme[meta.tiling_scheme_idx] or part.shape == SIG
        np.testing.assert_array_equal(flat[where.get()], data.reshape(where.shape))
        np.testing.assert_array_equal(where.get(flat), data.reshape(where.shape))
        (rows,) = where.get(nav_only=True)
        np.testing.assert_array_equal(np.arange(len(flat))[rows], self.numbers(places))
        if isinstance(rows, slice):
            assert where.origin[0] == rows.start
        else:
            with pytest.raises(ud.UDFError, match=r"no origin.*contiguous_nav"):
                _ = where.origin
            with pytest.raises(ValueError, match=r"read-only"):
                where.get(flat)[...] = 0
        assert meta.partition_shape.nav[0] >= n
        assert tuple(meta.partition_shape.sig) == SIG
        if self.params.roi is None:
            assert meta.roi is None
        else:
            np.testing.assert_array_equal(meta.roi, self.params.roi)
        assert meta.get_valid_nav_mask() is None
        assert (meta.device_class, meta.array_backend, meta.corrections) == ("cpu", "numpy", None)
        assert meta.threads_per_worker == 1
        assert hash(where) == hash(meta.slice)
        self.results.seen[:] += data.size
        self.results.rows[:] = self.numbers(places)

    def numbers(self, places):
        roi = np.ones(NAV, dtype=bool) if self.params.roi is None else self.params.roi
        return (np.cumsum(roi) - 1).reshape(NAV)[tuple(places.T)] if len(places) else []


class LooksAtFrames(Looks):
    def process_frame(self, frame):
        self.look(frame, 1)


class LooksAtTiles(Looks):
    def process_tile(self, tile):
        # data.size of a tile counts all frames: note pixels per frame instead
        self.look(tile, len(tile))
        self.results.seen[:] += tile[0].size - tile.size


class LooksAtPartitions(Looks):
    def process_partition(self, partition):
        self.look(partition, len(partition))
        self.results.seen[:] += partition[0].size - partition.size


CHECKER = np.indices(NAV).sum(axis=0) % 2 == 0


@pytest.mark.point(19)
@pytest.mark.parametrize(
    "roi", [None, CHECKER, CHECKER & (np.arange(6) < 4)], ids=["all", "a", "b"]
)
@pytest.mark.parametrize("cls", [LooksAtFrames, LooksAtTiles, LooksAtPartitions])
@pytest.mark.parametrize("contiguous", [False, True])
@pytest.mark.parametrize("sig_chunks", [(3, 5), (2, 3)])
def test_meta(values, roi, cls, contiguous, sig_chunks):
    if contiguous and cls is LooksAtPartitions:
        return
    x = da.from_array(values, chunks=(2, 4, *sig_chunks))
    flat = values.reshape(-1, *SIG) if roi is None else values[roi]
    made = type("Made", (cls,), {"contiguous_nav": contiguous})
    with dask.config.set({"udfdask.tile-bytes": 100}):
        done = compute(x, made(values, flat, roi), roi=roi)
    n = 24 if roi is None else np.count_nonzero(roi)
    assert done.raw["rows"].tolist() == list(range(n))
    assert set(done.raw["seen"].tolist()) == {15}
