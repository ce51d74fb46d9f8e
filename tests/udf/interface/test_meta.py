"""Point 19: what a UDF can ask about the data set and about the piece at hand."""

import pickle

import dask
import dask.array as da
import numpy as np
import pytest

import udfdask as ud
from making import NAV, SIG, compute, make, mask_of


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
        assert where.sig == part == meta.tiling_scheme[meta.tiling_scheme_idx]
        assert meta.tiling_scheme.dataset_shape == SIG
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


@pytest.mark.point(19)
def test_slices_of_pieces(x, values):
    """Origin, shape, parts, indices: of the data set with flat navigation, ROI applied."""
    roi = mask_of(np.s_[1:3, 2:], np.s_[3])
    flat = values[roi]
    seen = np.zeros(flat.shape, dtype=int)

    def process_tile(self, tile):
        where = self.meta.slice
        assert isinstance(where, ud.Slice)
        assert isinstance(where.shape, ud.Shape)
        assert where.shape == tile.shape
        assert (where.shape.nav, where.shape.sig) == (tile.shape[:1], tile.shape[1:])
        assert where.nav.shape == tile.shape[:1]
        assert where.sig == self.meta.sig_slice
        assert where.sig.shape == tile.shape[1:]
        assert where.get(sig_only=True) == self.meta.sig_slice.get()
        assert where.sig == self.meta.tiling_scheme[self.meta.tiling_scheme_idx]
        assert len(self.meta.tiling_scheme) == 2
        assert self.meta.tiling_scheme.shape.sig == (3, 4)
        assert self.meta.tiling_scheme.dataset_shape == SIG
        np.testing.assert_array_equal(where.get(flat), tile)
        np.testing.assert_array_equal(where.get(flat[:, 0, 0], nav_only=True), tile_corner(where))
        np.testing.assert_array_equal(where.get(values[0, 0], sig_only=True).shape, tile.shape[1:])
        seen[where.get()] += 1
        assert where.discard_nav() == self.meta.slice.discard_nav()
        assert {where: 1}[self.meta.slice] == 1

    def tile_corner(where):
        return flat[:, 0, 0][where.get(nav_only=True)]

    x = x.rechunk((2, 4, 3, (4, 1)))
    compute(x, make({"v": {"kind": "nav"}}, process_tile=process_tile)(), roi=roi)
    assert (seen == 1).all()


@pytest.mark.point(19)
def test_slice_arithmetic():
    tile = ud.Slice((3, 0, 8), ud.Shape((2, 4, 8), sig_dims=2))
    part = ud.Slice((2, 0, 0), ud.Shape((6, 4, 16), sig_dims=2))
    assert tile.shift(part).origin == (1, 0, 8)
    assert tile.shift(part).shift_by(part.origin) == tile
    assert tile.intersection_with(part) == part.intersection_with(tile) == tile
    apart = tile.intersection_with(tile.shift_by((2, 0, 0)))
    assert apart.is_null()
    assert not tile.is_null()
    assert tile.discard_nav() == tile.shift_by((5, 0, 0)).discard_nav()
    assert hash(tile) == hash(pickle.loads(pickle.dumps(tile)))
    assert tile != part
    assert len({tile, part, tile.shift(part).shift_by(part.origin)}) == 2
    with pytest.raises(ValueError, match=r"shorter|longer"):
        tile.shift_by((1, 2))
    scattered = ud.Slice((0, 0), ud.Shape((2, 4), sig_dims=1), np.array([0, 3]))
    for use in (
        lambda: scattered.origin,
        lambda: scattered.shift_by((0, 0)),
        lambda: tile.shift(scattered),
        lambda: scattered.intersection_with(scattered),
    ):
        with pytest.raises(ud.UDFError, match=r"this slice has no origin"):
            use()


@pytest.mark.point(19)
@pytest.mark.parametrize("nav_dims", [0, 1, 2, 3])
def test_coordinates_are_true_positions(nav_dims):
    nav = (2, 3, 4)[:nav_dims]
    data = np.arange(np.prod(nav, dtype=int) * 6).reshape((*nav, 2, 3))
    x = da.from_array(data, chunks=(*(2 for _ in nav), 2, 3))

    def process_tile(self, tile):
        places = self.meta.coordinates
        assert places.dtype.kind == "i"
        assert places.shape == (len(tile), nav_dims)
        np.testing.assert_array_equal(data[tuple(places.T)].reshape(tile.shape), tile)

    compute(x, make({"v": {"kind": "nav"}}, process_tile=process_tile)())


@pytest.mark.point(19)
def test_facts_that_exist_while_declaring(x):
    """The data set, the ROI, the device; what depends on a piece is a clear error."""
    roi = mask_of((1, 2))
    asked = []

    def get_result_buffers(self):
        meta = self.meta
        assert meta.dataset_shape == NAV + SIG
        assert (meta.dataset_shape.nav, meta.dataset_shape.sig) == (NAV, SIG)
        assert meta.dataset_dtype == meta.input_dtype == np.float32
        np.testing.assert_array_equal(meta.roi, roi)
        assert (meta.device_class, meta.array_backend) == ("cpu", "numpy")
        assert meta.corrections is None
        assert meta.threads_per_worker == 1
        for name in ("coordinates", "slice", "sig_slice", "partition_shape", "tiling_scheme_idx"):
            if meta.cursor is None:
                with pytest.raises(AttributeError, match=rf"meta\.{name} does not exist here.*not"):
                    getattr(meta, name)
                asked.append(name)
        return {"v": self.buffer("nav")}

    udf = make({}, get_result_buffers=get_result_buffers, process_frame=lambda self, frame: None)
    compute(x, udf(), roi=roi)
    assert len(asked) == 5


@pytest.mark.point(19, 22)
@pytest.mark.parametrize("scheduler", ["synchronous", "processes"])
def test_the_roi_cannot_be_written_to(x, scheduler):
    """All tasks share it, with the results: it would change what they hold."""

    def process_frame(self, frame):
        with pytest.raises(ValueError, match=r"read-only"):
            self.meta.roi[...] = False

    udf = make({"v": {"kind": "nav"}}, process_frame=process_frame)()
    roi = mask_of(np.s_[1:])
    done = ud.run_udf(x, udf, roi=roi).compute(scheduler=scheduler)
    np.testing.assert_array_equal(done.valid_mask["v"], roi)
    assert roi.flags.writeable
